"""Page one: which row speaks for a subsystem, how sure it is, and the caveats of the campaign."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.unit import campaign_data as make
from tests.unit.campaign_data import judge, placed, runs

from peakmark.analysis import verdict
from peakmark.analysis.analysis import Analysis
from peakmark.figures import figures
from peakmark.messages import Severity
from peakmark.tables import tables

KIB, MIB = 1 << 10, 1 << 20
QUIET = (1.0, 1.002, 0.998)
WILD = (1.0, 1.5, 0.5)
SURE, SHARED, UNSURE = "no doubt seen", "no doubt of its own", "unsure"


def times(value: float, factors: Sequence[float]) -> list[float]:
    return [value * factor for factor in factors]


def judged(
    folder: Path, wobble: Sequence[float], loopback: bool = True, limit: float = 2e10
) -> Analysis:
    """A CPU row and a network row of three repetitions each; the network's limit is stated where it
    is no loopback.
    """
    context = {"network": {"interface": "lo" if loopback else "eth1", "loopback": loopback}}
    records = [
        *runs("cpubench", "DP", *times(5e10, wobble)),
        *runs("netbench", "TCP", *times(1e10, wobble), context=context),
    ]
    site = {} if loopback else {"site_facts": {"network": {"speed_bps": limit, "mtu": 1500}}}
    return judge(folder, records, config=site)


def head(of: Analysis, subsystem: str) -> verdict.Verdict:
    (found,) = (one for one in verdict.verdicts(of.rows) if one.subsystem == subsystem)
    return found


def said(of: Analysis, word: str = "") -> list[str]:
    """The caveats that hold a word."""
    found = verdict.build_caveats(of.rows, verdict.verdicts(of.rows), of.results.config)
    return [text for text in found if word in text]


def test_where_nothing_is_sure_that_is_said_first(tmp_path: Path) -> None:
    assert said(judged(tmp_path / "wild", WILD))[0].startswith("None of the 2")
    assert not said(judged(tmp_path / "quiet", QUIET), "None of")


def test_a_figure_over_loopback_says_so_in_its_row_and_asks_for_no_limit(tmp_path: Path) -> None:
    of = judged(tmp_path / "a", QUIET)
    assert head(of, "network").what == "TCP of 1 KiB, 1 stream, over loopback"
    assert head(of, "network").limit == "none: no link"
    (caveat,) = said(of, "network")
    assert "loopback" in caveat and "site file" not in caveat
    real = judged(tmp_path / "b", QUIET, loopback=False)
    assert head(real, "network").what == "TCP of 1 KiB, 1 stream"
    assert head(real, "network").limit.endswith("b/s")
    assert not said(real, "loopback")


def test_no_repetition_lies_outside_the_figure(tmp_path: Path) -> None:
    figure = figures.overview(judged(tmp_path / "c", (0.9, 1.0, 3.6), False).rows)
    assert figure is not None
    assert figure.axes[0].get_xlim()[1] > 1.8


def test_beside_what_was_measured_stand_its_lowest_and_highest_repetition(tmp_path: Path) -> None:
    cpu, network = verdict.verdicts(judged(tmp_path / "c", (0.9, 1.0, 1.2)).rows)
    assert (cpu.measured, cpu.spread) == ("50.00 GigaOPS", "45.00 to 60.00")
    assert (network.measured, network.spread) == ("10000 Mb/s", "9000 to 12000")


@pytest.mark.parametrize(("isa", "told"), [("scalar", 1), ("auto", 0)])
def test_a_share_of_instructions_that_were_asked_for_is_not_the_nodes(
    tmp_path: Path, isa: str, told: int
) -> None:
    site = {"cpu": {"cores": 2, "operations_per_cycle": {"DP": 32}}}
    clocks = {"clock_hz_before": 2e9, "clock_hz_after": 2e9}
    records = runs("cpubench", "DP", 3e9, isa=isa, details=clocks)
    found = judge(tmp_path / "c", records, config={"site_facts": site})
    assert head(found, "cpu").share
    assert len(said(found, "plain arithmetic")) == told


def test_a_part_of_the_node_does_not_speak_for_it(tmp_path: Path) -> None:
    def of(cores: int) -> Analysis:
        records = runs("cpubench", "DP", 5e10, concurrency=cores, context=placed(cores, 128))
        return judge(tmp_path / str(cores), records)

    (caveat,) = said(of(4), "4 of the node's 128 cores")
    assert "limit" not in caveat, "there is none"
    assert not said(of(128), "128 cores")


def test_a_missing_memory_module_is_told(tmp_path: Path) -> None:
    vm = json.loads((make.DATA / "machine" / "zen3-vm.json").read_text())
    model = {"model_name": "AMD EPYC 7763 64-Core Processor", "sockets": 1, "virtualised": None}
    memory = vm["memory"] | {"channels": 7, "speed_mts": 3200}
    facts = vm | {"host": "node1", "cpu": vm["cpu"] | model, "memory": memory}
    assert (
        len(said(judge(tmp_path / "c", runs("rambench", "RS", 1e10), facts=facts), "7 of 8")) == 1
    )


@pytest.mark.parametrize(("scale", "told"), [(0.1, 1), (1, 0), (2, 0)])
def test_a_scaled_campaign_says_that_its_figures_are_short(
    tmp_path: Path, scale: float, told: int
) -> None:
    of = judge(tmp_path / "c", runs("cpubench", "DP", 5e10), config={"scale": scale})
    assert len(said(of, "0.1 times")) == told


def test_the_best_row_without_doubt_speaks_and_else_none_that_is_wrong(tmp_path: Path) -> None:
    """Of two workloads the faster one is cached: it is wrong, whatever the slower one is."""

    def row(block: int, moved: float, wobble: Sequence[float]) -> list[dict[str, Any]]:
        details = {"device_bytes": 1e9 * moved, "work": 1e9, "filesystem": "ext4"}
        values = times(1e9 * block / 65536, wobble)
        return runs("diskbench", "RS", *values, block=block, details=details)

    cached, sure, unsure = row(MIB, 0.1, QUIET), row(KIB * 64, 1.0, QUIET), row(KIB * 64, 1.0, WILD)
    fast_unsure = row(MIB, 1.0, WILD)
    for records, confidence in (
        ([*cached, *sure], SURE),
        ([*cached, *unsure], UNSURE),
        ([*fast_unsure, *sure], SURE),
    ):
        found = head(judge(tmp_path / "c", records), "disk")
        assert (found.what, found.confidence) == ("RS of 64 KiB, 1 thread", confidence)
    nothing = judge(tmp_path / "d", cached)
    disk = head(nothing, "disk")
    assert (disk.what, disk.measured, disk.row) == (verdict.NO_ROW, "", None)
    assert "only 10%" in disk.why
    assert said(nothing, f"Disk: {verdict.NO_ROW}: {disk.why}")


def test_a_cache_does_not_stand_for_the_memory(tmp_path: Path) -> None:
    block, pool = (
        runs("rambench", "RS", value, variant=variant)
        for variant, value in (("block", 9e11), ("pool", 2e10))
    )
    found = head(judge(tmp_path / "c", [*block, *pool]), "memory")
    assert (found.what, found.measured) == ("RS of 1 MiB, 1 thread", "20.00 GB/s")


def test_wrong_and_unsure_rows_are_counted(tmp_path: Path) -> None:
    def rows(name: str, *factors: float) -> Analysis:
        """A disk's rows of three repetitions, wild where the factor is above one; a negative one is
        cached.
        """
        records = []
        for place, factor in enumerate(factors):
            details = {"device_bytes": 1e9 * (factor > 0), "work": 1e9, "filesystem": "ext4"}
            values = [1e9 * abs(factor) ** number for number in range(3)]
            records += runs("diskbench", "RS", *values, block=4096 << place, details=details)
        return judge(tmp_path / name, records)

    (one,) = said(rows("one", 1.0, 1.5), "measured rows")
    assert "Of 2 measured rows 1" in one
    assert "unsure" in one and "wrong" not in one
    (both,) = said(rows("both", 1.5, 1.5, -1.0), "measured rows")
    assert "1 is wrong" in both and "2 are unsure" in both
    assert said(rows("four", 1.0, 1.0, 1.0, 1.0), "all 4 rows, n = 3")


def test_memory_on_all_cores_speaks_before_one_thread_with_a_reference(tmp_path: Path) -> None:
    """Of as many threads as the best row has, one with a reference."""

    def of(name: str, *rows: tuple[str, int, float, bool]) -> Analysis:
        records = []
        for workload, threads, value, beside in rows:
            for tool in ("rambench", "likwid-bench") if beside else ("rambench",):
                values, context = times(value, QUIET), placed(threads, 4)
                records += runs(
                    tool,
                    workload,
                    *values,
                    subsystem="memory",
                    concurrency=threads,
                    context=context,
                )
        return judge(tmp_path / name, records)

    one = ("RWS", 1, 20e9, True)
    best = head(of("one", one, ("WR", 4, 45e9, False)), "memory")
    assert (best.what, best.reference) == ("WR of 1 MiB, 4 threads", "")
    two = [("WR", 2, 45e9, False), ("RWS", 2, 38e9, True)]
    beside = of("beside", one, *two, ("WR", 4, 40e9, False), ("WS", 4, 30e9, False))
    best = head(beside, "memory")
    assert best.what == "RWS of 1 MiB, 2 threads"
    assert best.reference == "1.00 × likwid-bench (n = 3; 1.00 to 1.00)"
    (why,) = said(beside, "2 of the node's 4 cores")
    assert "slower" in why and "a reference" in why


@pytest.mark.parametrize(
    ("wobble", "hole", "why"),
    [(WILD, False, "in doubt"), (None, True, "not measured"), (None, False, "[cores]")],
)
def test_why_rows_of_more_threads_do_not_speak_is_said(
    tmp_path: Path, wobble: Sequence[float] | None, hole: bool, why: str
) -> None:
    records = runs("cpubench", "DP", *times(5e10, QUIET), context=placed(1, 2))
    if wobble:
        values = times(1e11, wobble)
        records += runs("cpubench", "DP", *values, concurrency=2, context=placed(2, 2))
    more = make.cell("cpubench", "DP", subsystem="cpu", concurrency=2)
    (caveat,) = said(
        judge(tmp_path / "c", records, planned=[more] if hole else []), "1 of the node"
    )
    assert why in caveat


def test_what_most_rows_share_is_said_once_and_marks_no_row(tmp_path: Path) -> None:
    """Threads that had half of their CPUs: in one row of eight a doubt about that row, in six a
    sentence about the campaign.
    """

    def of(waited: int) -> Analysis:
        points = [(workload, count) for workload in ("DP", "SP", "HP", "QP") for count in (1, 2)]
        records = []
        for number, (workload, threads) in enumerate(points):
            details = {"cpu_share": 0.5 if number < waited else 1.0}
            records += runs("cpubench", workload, 5e10, 5e10, concurrency=threads, details=details)
        return judge(tmp_path / str(waited), records)

    one, most = of(1), of(6)
    assert [row.level for row in one.rows["cpu"]].count(Severity.UNSURE) == 1
    assert not said(one, "threads lost")
    assert {row.level for row in most.rows["cpu"]} == {None}
    (caveat,) = said(most, "threads lost")
    assert caveat.startswith("In 6 of 8 rows") and "50.0%" in caveat
    # What speaks for the CPU is not called without doubt, on the page and in the terminal.
    assert head(most, "cpu").confidence == SHARED and "threads lost" in head(most, "cpu").why
    (number,) = verdict.telling_numbers(most.rows)
    assert number.confidence == SHARED and "threads lost" in number.specific_warnings[0]


def test_what_only_some_rows_can_show_is_counted_among_these(tmp_path: Path) -> None:
    """Clocks that move in most rows of the CPU are the machine's, however many rows of the network
    know none.
    """
    records = []
    for threads in (1, 2, 3, 4):
        for number, hz in enumerate((3.0e9, 3.0e9, 2.7e9)):
            details = {"clock_hz_before": hz, "clock_hz_after": 2.7e9 if threads > 2 else hz}
            records += runs(
                "cpubench", "DP", 5e10, concurrency=threads, repetition=number, details=details
            )
    for block in range(1, 9):
        records += runs("netbench", "TCP", 1e10, block=block << 10)
    of = judge(tmp_path / "c", records)
    assert {row.level for row in of.rows["cpu"]} == {None}
    assert not any("clock" in note for row in of.rows["cpu"] for note in row.said(row.remarks))
    (caveat,) = said(of, "clock")
    differs, moved = caveat.partition(": ")[0].split("; ")
    assert differs.startswith("In 2 of 12 rows") and "11%" in differs
    assert moved.startswith("in 2,") and "10%" in moved


def test_a_doubt_has_the_same_word_in_the_files(tmp_path: Path) -> None:
    judged(tmp_path / "c", WILD)
    tables.build(tmp_path / "c")
    written = (tmp_path / "c" / "tables" / "cpu.csv").read_text().splitlines()
    line = dict(zip(*csv.reader(written), strict=True))
    assert line["Doubt"] == UNSURE
    assert float(line["Level of the interval (%)"]) == 75.0, "of three"


def test_of_a_latency_the_shortest_is_told(tmp_path: Path) -> None:
    one, two = (
        runs("rambench", "LAT", seconds, block=16 * KIB, concurrency=threads)
        for threads, seconds in ((1, 2e-9), (2, 3e-9))
    )
    (number,) = verdict.telling_numbers(judge(tmp_path / "c", [*one, *two]).rows)
    assert (number.label, number.value) == ("Memory LAT of 16 KiB, 1 thread", "2.000 ns")


@pytest.mark.parametrize(
    ("virtual", "flush", "kept"), [(True, 1e-4, True), (True, 0.1, False), (False, 1e-4, False)]
)
def test_a_disk_whose_host_keeps_its_writes_is_not_read_without_doubt(
    tmp_path: Path, virtual: bool, flush: float, kept: bool
) -> None:
    """What it read may have come from there, too: said once, and of the row that speaks for it on
    page one.
    """
    moved = {"work": 8e8, "device_bytes": 8e8}
    records = [
        *runs("diskbench", "RS", *times(3e9, QUIET), details=moved),
        *runs("diskbench", "WS", *times(1e9, QUIET), details=moved | {"flush_seconds": flush}),
    ]
    of = judge(tmp_path / "c", records, facts={"cpu": {"virtualised": "KVM" if virtual else None}})
    disk = head(of, "disk")
    assert disk.what == "RS of 1 MiB, 1 thread"
    assert disk.confidence == (SHARED if kept else SURE)
    assert bool(disk.why) is kept
    read, written = of.rows["disk_throughput"]
    assert [read.level, written.level] == [None, Severity.UNSURE if kept else None]
    unsure = [note for note in read.warnings if note.severity is Severity.UNSURE]
    assert [note.code for note in unsure] == (["host-cache"] if kept else [])
    assert len(said(of, "In 1 of 2 rows, the disk")) == kept
