"""Page one: which row speaks for a subsystem, how sure it is, and the caveats of the campaign."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.unit import campaign_data as make
from tests.unit.analysis.checked import VM
from tests.unit.campaign_data import judge, near, placed, runs

from peakmark.analysis import verdict
from peakmark.analysis.analysis import Analysis
from peakmark.figures import figures

KIB, MIB = 1 << 10, 1 << 20
QUIET = (1.0, 1.002, 0.998)
WILD = (1.0, 1.5, 0.5)
SURE, SHARED, UNSURE = "no doubt seen", "no doubt of its own", "unsure"
Records = list[dict[str, Any]]


def times(value: float, factors: Sequence[float]) -> list[float]:
    return [value * factor for factor in factors]


def judged(folder: Path, wobble: Sequence[float], loopback: bool = True) -> Analysis:
    """A CPU row and a network row of three repetitions each; the network's limit is stated where it
    is no loopback.
    """
    context = {"network": {"interface": "lo" if loopback else "eth1", "loopback": loopback}}
    records = runs("cpubench", "DP", *times(5e10, wobble))
    records += runs("netbench", "TCP", *times(1e10, wobble), context=context)
    site = {} if loopback else {"site_facts": {"network": {"speed_bps": 2e10, "mtu": 1500}}}
    return judge(folder, records, config=site)


def verdict_of(of: Analysis, subsystem: str) -> verdict.Verdict:
    (found,) = (one for one in verdict.verdicts(of.rows) if one.subsystem == subsystem)
    return found


def caveats_with(of: Analysis, word: str = "") -> list[str]:
    """The caveats that hold a word."""
    found = verdict.build_caveats(of.rows, verdict.verdicts(of.rows), of.results.config)
    return [text for text in found if word in text]


def test_where_nothing_is_sure_that_is_said_first(tmp_path: Path) -> None:
    assert caveats_with(judged(tmp_path / "wild", WILD))[0].startswith("None of the 2")
    assert not caveats_with(judged(tmp_path / "quiet", QUIET), "None of")


def test_a_figure_over_loopback_says_so_in_its_row_and_asks_for_no_limit(tmp_path: Path) -> None:
    of = judged(tmp_path / "a", QUIET)
    network = verdict_of(of, "network")
    assert network.what == "TCP of 1 KiB, 1 stream, over loopback"
    assert network.limit == "none: no link"
    (caveat,) = caveats_with(of, "network")
    assert "loopback" in caveat and "site file" not in caveat
    real = judged(tmp_path / "b", QUIET, loopback=False)
    assert verdict_of(real, "network").what == "TCP of 1 KiB, 1 stream"
    assert verdict_of(real, "network").limit.endswith("b/s")
    assert not caveats_with(real, "loopback")


def test_beside_what_was_measured_stand_its_lowest_and_highest_repetition(tmp_path: Path) -> None:
    of = judged(tmp_path / "c", (0.9, 1.0, 3.6), loopback=False)
    assert [(one.measured, one.spread) for one in verdict.verdicts(of.rows)] == [
        ("50.00 GigaOPS", "45.00 to 180.0"), ("10000 Mb/s", "9000 to 36000"),
    ]  # fmt: skip
    figure = figures.overview(of.rows)
    assert figure is not None and figure.axes[0].get_xlim()[1] > 1.8, "the limit is 2e10"


@pytest.mark.parametrize(
    ("scale", "isa", "cores", "word", "count"),
    [
        (0.1, "auto", 128, "0.1 times", 1),
        (1, "auto", 128, "times those", 0),
        (2, "auto", 128, "times those", 0),
        (1, "scalar", 128, "plain arithmetic", 1),
        (1, "auto", 128, "plain arithmetic", 0),
        (1, "auto", 4, "4 of the node's 128 cores", 1),
        (1, "auto", 128, "128 cores", 0),
    ],
)
def test_what_a_reader_must_know_of_a_campaign(
    tmp_path: Path, scale: float, isa: str, cores: int, word: str, count: int
) -> None:
    site = {"cpu": {"cores": 128, "operations_per_cycle": {"DP": 32}}}
    clocks = {"clock_hz_before": 2e9, "clock_hz_after": 2e9}
    place: dict[str, Any] = {"concurrency": cores, "context": placed(cores, 128)}
    records = runs("cpubench", "DP", 3e9, isa=isa, details=clocks, **place)
    of = judge(tmp_path / "c", records, config={"scale": scale, "site_facts": site})
    assert verdict_of(of, "cpu").share
    assert len(caveats_with(of, word)) == count


def test_a_missing_memory_module_is_told(tmp_path: Path) -> None:
    model = {"model_name": "AMD EPYC 7763 64-Core Processor", "sockets": 1, "virtualised": None}
    memory = VM["memory"] | {"channels": 7, "speed_mts": 3200}
    facts = VM | {"host": "node1", "cpu": VM["cpu"] | model, "memory": memory}
    assert caveats_with(judge(tmp_path / "c", runs("rambench", "RS", 1e10), facts=facts), "7 of 8")


def disk(block: int, value: float, moved: float, wobble: Sequence[float]) -> Records:
    """A disk's row of three repetitions of which so much reached the device."""
    details = {"device_bytes": 1e9 * moved, "work": 1e9, "filesystem": "ext4"}
    return runs("diskbench", "RS", *times(value, wobble), block=block, details=details)


FAST_CACHED, FAST_WILD = disk(MIB, 16e9, 0.1, QUIET), disk(MIB, 16e9, 1.0, WILD)
SLOW_SURE, SLOW_WILD = disk(64 * KIB, 1e9, 1.0, QUIET), disk(64 * KIB, 1e9, 1.0, WILD)


@pytest.mark.parametrize(
    ("records", "confidence"),
    [
        (FAST_CACHED + SLOW_SURE, SURE),
        (FAST_CACHED + SLOW_WILD, UNSURE),
        (FAST_WILD + SLOW_SURE, SURE),
    ],
)
def test_the_best_row_without_doubt_speaks_and_else_none_that_is_wrong(
    tmp_path: Path, records: Records, confidence: str
) -> None:
    found = verdict_of(judge(tmp_path / "c", records), "disk")
    assert (found.what, found.confidence) == ("RS of 64 KiB, 1 thread", confidence)


def test_where_all_rows_are_wrong_none_speaks(tmp_path: Path) -> None:
    nothing = judge(tmp_path / "c", FAST_CACHED)
    found = verdict_of(nothing, "disk")
    assert (found.what, found.measured, found.row) == (verdict.NO_ROW, "", None)
    assert "10%" in found.why
    assert caveats_with(nothing, f"Disk: {verdict.NO_ROW}: {found.why}")


def test_one_run_is_called_so(tmp_path: Path) -> None:
    found = verdict_of(judge(tmp_path / "c", runs("cpubench", "DP", 5e10)), "cpu")
    assert (found.confidence, found.why.partition(":")[0]) == ("one run", "measured once")


def test_a_cache_does_not_stand_for_the_memory(tmp_path: Path) -> None:
    records = runs("rambench", "RS", 9e11, variant="block") + runs("rambench", "RS", 2e10)
    found = verdict_of(judge(tmp_path / "c", records), "memory")
    assert (found.what, found.measured) == ("RS of 1 MiB, 1 thread", "20.00 GB/s")


@pytest.mark.parametrize(
    ("rows", "word", "facts"),
    [
        ([(1, QUIET), (1, WILD)], "measured rows", ["Of 2 measured rows 1", "unsure"]),
        ([(1, WILD), (1, WILD), (0, QUIET)], "measured rows", ["1 is wrong", "2 are unsure"]),
        ([(1, QUIET)] * 4, "rows", ["all 4 rows, n = 3"]),
    ],
)
def test_wrong_and_unsure_rows_are_counted(
    tmp_path: Path, rows: list[tuple[float, Sequence[float]]], word: str, facts: list[str]
) -> None:
    records: Records = []
    for place, (moved, wobble) in enumerate(rows):
        records += disk(4096 << place, 1e9, moved, wobble)
    (caveat,) = caveats_with(judge(tmp_path / "c", records), word)
    assert all(fact in caveat for fact in facts)
    assert ("wrong" in caveat) == any("wrong" in fact for fact in facts)


def test_memory_on_all_cores_speaks_before_one_thread_with_a_reference(tmp_path: Path) -> None:
    """Of as many threads as the best row has, one with a reference."""

    def of(name: str, *rows: tuple[str, int, float, bool]) -> Analysis:
        records: Records = []
        for workload, threads, value, has_reference in rows:
            for tool in ("rambench", "likwid-bench") if has_reference else ("rambench",):
                place = {"subsystem": "memory", "concurrency": threads}
                values, context = times(value, QUIET), placed(threads, 4)
                records += runs(tool, workload, *values, context=context, **place)
        return judge(tmp_path / name, records)

    one = ("RWS", 1, 20e9, True)
    best = verdict_of(of("one", one, ("WR", 4, 45e9, False)), "memory")
    assert (best.what, best.reference) == ("WR of 1 MiB, 4 threads", "")
    two = [("WR", 2, 45e9, False), ("RWS", 2, 38e9, True)]
    with_reference = of("both", one, *two, ("WR", 4, 40e9, False), ("WS", 4, 30e9, False))
    best = verdict_of(with_reference, "memory")
    assert best.what == "RWS of 1 MiB, 2 threads"
    assert best.reference.startswith("1.00 × likwid-bench")
    (why,) = caveats_with(with_reference, "2 of the node's 4 cores")
    assert "slower" in why and "a reference" in why


@pytest.mark.parametrize(
    ("wobble", "hole", "why"),
    [(WILD, False, "in doubt"), (None, True, "not measured"), (None, False, "[cores]")],
)
def test_why_rows_of_more_threads_do_not_speak_is_said(
    tmp_path: Path, wobble: Sequence[float] | None, hole: bool, why: str
) -> None:
    records = runs("cpubench", "DP", *times(5e10, QUIET), context=placed(1, 2))
    values = times(1e11, wobble or ())
    records += runs("cpubench", "DP", *values, concurrency=2, context=placed(2, 2))
    more = make.cell("cpubench", "DP", subsystem="cpu", concurrency=2)
    of = judge(tmp_path / "c", records, planned=[more] if hole else [])
    (caveat,) = caveats_with(of, "1 of the node")
    assert why in caveat


def test_what_most_rows_share_is_said_once_and_of_the_row_that_speaks(tmp_path: Path) -> None:
    records: Records = []
    for threads in range(1, 9):
        details = {"cpu_share": 0.5 if threads > 2 else 1.0}
        records += runs(
            "cpubench", "DP", 5e10 * threads, 5e10 * threads, concurrency=threads, details=details
        )
    of = judge(tmp_path / "c", records)
    (caveat,) = caveats_with(of, "threads lost")
    assert caveat.startswith("In 6 of 8 rows") and "50.0%" in caveat
    found = verdict_of(of, "cpu")
    assert found.confidence == SHARED and "threads lost" in found.why
    (number,) = verdict.telling_numbers(of.rows)
    assert number.confidence == SHARED and "threads lost" in number.specific_warnings[0]


def test_a_disk_that_reads_from_its_hosts_memory_is_not_without_doubt(tmp_path: Path) -> None:
    moved = {"work": 8e8, "device_bytes": 8e8}
    records = runs("diskbench", "RS", *near(3e9, 3), details=moved)
    records += runs("diskbench", "WS", *near(1e9, 3), details=moved | {"flush_seconds": 1e-4})
    of = judge(tmp_path / "c", records, facts={"cpu": {"virtualised": "KVM"}})
    found = verdict_of(of, "disk")
    assert (found.what, found.confidence) == ("RS of 1 MiB, 1 thread", SHARED)
    assert found.why and len(caveats_with(of, "In 1 of 2 rows, the disk")) == 1


@pytest.mark.parametrize(("n", "count"), [(3, 1), (6, 0)])
def test_too_few_repetitions_for_single_rows_are_told(tmp_path: Path, n: int, count: int) -> None:
    of = judge(tmp_path / "c", runs("cpubench", "DP", *near(5e10, n)))
    assert len(caveats_with(of, f"{n} repetitions")) == count


def test_of_a_latency_the_shortest_is_told(tmp_path: Path) -> None:
    records = runs("rambench", "LAT", 2e-9, block=16 * KIB)
    records += runs("rambench", "LAT", 3e-9, block=16 * KIB, concurrency=2)
    (number,) = verdict.telling_numbers(judge(tmp_path / "c", records).rows)
    assert (number.label, number.value) == ("Memory LAT of 16 KiB, 1 thread", "2.000 ns")
