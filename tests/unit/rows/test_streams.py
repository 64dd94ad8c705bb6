"""STREAM of hpcc, whose values are in the records of HPL, in the rows of the triad."""

import pytest
from tests.unit import campaign_data as make
from tests.unit.rows.checked import contains, values_of

from peakmark.rows import schema, streams
from peakmark.tools.tables import BY_NAME
from peakmark.views.tables import frame


def triad(rate=3e10, variant="pool-temporal", **place):
    """A record of TRIAD in DRAM."""
    return make.runs("rambench", "TRIAD", rate, variant=variant, **place)


def judged(folder, records, facts=make.VM):
    return make.frames(folder, records, facts=facts)


def streams_of(frames):
    """(variant, block, threads) -> value of hpcc's STREAM, and the ratio of the triad's to it."""
    rows = frames.rows[frames.rows["instrument"].eq("hpcc-stream")]
    return {
        (row.variant, row.block_bytes, row.concurrency): (row.value, row.ratio)
        for row in schema.lines(rows)
    }


def test_stream_is_beside_the_triads_with_its_stores_and_its_threads(tmp_path):
    records = triad() + triad(block=4096) + triad(concurrency=2) + triad(variant="pool")
    found = streams_of(judged(tmp_path / "c", [*records, make.of_hpcc()]))
    assert found == {
        ("pool-temporal", 1 << 20, 1): (2.5e10, pytest.approx(1.2)),
        ("pool-temporal", 4096, 1): (2.5e10, pytest.approx(1.2)),
    }


def test_stream_of_several_processes_is_beside_as_many_threads(tmp_path):
    records = [*triad(concurrency=2), make.of_hpcc(threads=2)]
    assert list(streams_of(judged(tmp_path / "c", records))) == [("pool-temporal", 1 << 20, 2)]


def test_hpl_has_its_row_and_its_warnings_and_stream_none_of_them(tmp_path):
    frames = judged(tmp_path / "c", [*triad(), make.of_hpcc(), *make.runs("cpubench", "DP", 5e11)])
    rows = frames.rows[frames.rows["table"].eq("cpu")]
    assert sorted(rows["instrument"]) == ["cpubench", "hpl"]
    notes = frames.warnings[frames.warnings["code"].eq("warning")]
    assert list(notes["about"]) == ["hpl"]


@pytest.mark.parametrize(("caches", "code", "values"), [
    (None, "stream-in-cache", {"vector": "30 MiB", "cache": "32 MiB"}),
    ([], "stream-in-cache", {}),
])  # fmt: skip
def test_vectors_that_a_cache_may_hold_leave_a_remark_in_place_of_a_value(
    tmp_path, caches, code, values
):
    facts = make.VM
    if caches is not None:
        facts = {**facts, "cpu": {**facts["cpu"], "caches": caches}}
    frames = judged(tmp_path / "c", [*triad(), make.of_hpcc(vector=30 << 20)], facts)
    assert streams_of(frames) == {}
    lines = schema.lines(frames.warnings[frames.warnings["code"].eq(code)])
    (note,) = [schema.message_of_line(line) for line in lines]
    assert contains(values_of(note), values)


def test_a_campaign_without_triads_keeps_the_value_in_its_runs_only(tmp_path):
    frames = judged(tmp_path / "c", [make.of_hpcc(), *make.runs("rambench", "RWS", 1e10)])
    assert streams_of(frames) == {}
    runs = frames.runs[frames.runs["instrument"].eq("hpcc-stream")]
    assert list(runs["table"]) == [""]
    assert not frames.warnings["code"].eq("stream-in-cache").any()


@pytest.mark.parametrize("records", [[], [make.of_hpcc()]], ids=["without", "with"])
def test_files_have_columns_of_stream_if_it_has_values(tmp_path, records):
    frames = judged(tmp_path / "c", [*triad(), *records])
    table = BY_NAME["memory_throughput"]
    headings = list(frame(table, frames, frames.rows[frames.rows["table"].eq(table.name)]))
    of_stream = [heading for heading in headings if heading.startswith("STREAM (hpcc)")]
    assert len(of_stream) == (2 if records else 0)


def test_the_last_level_is_the_one_with_the_highest_number():
    caches = [{"level": 3, "size": 32 << 20}, {"level": 1, "size": 48 << 10}]
    assert streams.last_level_bytes({"cpu": {"caches": caches}}) == 32 << 20
    assert streams.last_level_bytes({}) is None
