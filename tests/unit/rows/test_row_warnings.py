"""What a row is marked with beside the checks: holes, programs that differ, what most rows share."""

import pytest
from tests.unit import campaign_data as make

from peakmark.rows import schema


def notes(frames, code, point=None):
    """The messages of a code, of all points or of one."""
    lines = schema.lines(frames.warnings[frames.warnings["code"].eq(code)])
    return [line for line in lines if point in (None, line.point)]


def own_rows(frames, table):
    """The lines of peakmark's kernels in a table."""
    rows = frames.rows
    return list(schema.lines(rows[rows["is_own"] & rows["table"].eq(table)]))


def test_a_reference_that_cannot_do_as_ours_was_asked_to_says_so(tmp_path):
    records = make.runs("diskbench", "WR", 4e8, fill="new")
    records += make.runs("iozone", "WR", 4e8, details={"fill": "overwrite"}, fill="new")
    (note,) = notes(make.frames(tmp_path / "c", records), "otherwise")
    assert note.about == "iozone" and "fill overwrite, not new" in note.text


@pytest.mark.parametrize(
    ("factor", "disagree"), [(1 / 0.6, True), (1 / 1.7, True), (1 / 0.99, False), (40.0, True)]
)
def test_programs_that_disagree_are_a_finding_and_no_doubt(tmp_path, factor, disagree):
    records = make.runs("cpubench", "DP", *make.near(1e11, 3))
    records += make.runs("hpl", "DP", 1e11 / factor)
    frames = make.frames(tmp_path / "c", records)
    found = notes(frames, "disagreement")
    assert [note.trust for note in found] == ["ok"] * disagree
    assert all(note.amount == pytest.approx(max(factor, 1 / factor), rel=1e-3) for note in found)
    (row,) = own_rows(frames, "cpu")
    assert row.trust == "ok"


@pytest.mark.parametrize(("isa", "code"), [("auto", "disagreement"), ("scalar", "otherwise")])
def test_scalar_operations_beside_hpl_are_no_contradiction(tmp_path, isa, code):
    records = make.runs("cpubench", "DP", 3e9, isa=isa) + make.runs("hpl", "DP", 9e10, isa=isa)
    frames = make.frames(tmp_path / "c", records)
    assert set(frames.warnings["code"]) & {"disagreement", "otherwise"} == {code}


def test_dram_is_held_against_the_median_of_the_host_with_as_many_threads(tmp_path):
    """A row of one thread and three of two, each repetition of which read DRAM at these GB/s."""
    records = []
    rows = (("RS", 1, 12e9), ("RS", 2, 20e9), ("RWS", 2, 20e9), ("WS", 2, 12e9))
    for workload, threads, rate in rows:
        details = {"probe_before": rate, "probe_after": rate}
        place = {"concurrency": threads, "variant": "pool", "block": 1 << 20, "details": details}
        records += make.runs("rambench", workload, 1e10, 1e10, **place)
    frames = make.frames(tmp_path / "c", records)
    marked = {
        (row.workload, row.concurrency)
        for row in own_rows(frames, "memory_throughput")
        if notes(frames, "neighbours", row.point)
    }
    assert marked == {("WS", 2)}


@pytest.mark.parametrize(
    ("virtual", "flush", "kept"), [(True, 1e-4, True), (True, 0.1, False), (False, 1e-4, False)]
)
def test_a_disk_whose_host_keeps_writes_is_in_doubt(tmp_path, virtual, flush, kept):
    """What it read may have come from there, too."""
    moved = {"work": 8e8, "device_bytes": 8e8}
    records = make.runs("diskbench", "RS", *make.near(3e9, 3), details=moved)
    for repetition, seconds in enumerate([flush, flush, 0.1]):
        details = moved | {"flush_seconds": seconds}
        records += make.runs("diskbench", "WS", 1e9, details=details, repetition=repetition)
    facts = {"cpu": {"virtualised": "KVM" if virtual else None}}
    frames = make.frames(tmp_path / "c", records, facts=facts)
    read, written = own_rows(frames, "disk_throughput")
    assert [read.trust, written.trust] == (["no", "no"] if kept else ["ok", "ok"])
    assert ("flush" in read.warnings.split()) == kept
