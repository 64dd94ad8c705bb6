"""What the rows say: each finding from its numbers, and none that they do not carry."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit import campaign_data as make

from peakmark.analysis import findings
from peakmark.analysis.analysis import Analysis
from peakmark.analysis.row import Row
from peakmark.config import layouts
from peakmark.report import document
from peakmark.storage.results import Results
from peakmark.tables import tables

# Six repetitions within 2 % of each other: their interval is the whole range.
WOBBLE = (1.0, 1.01, 0.99, 1.004, 0.996, 1.002)
KIB, MIB = 1 << 10, 1 << 20

Values = Mapping[tuple[str, int, int], float | Sequence[float]]


def disk(
    folder: Path,
    values: Values,
    *,
    iozone: Values | None = None,
    repetitions: int = 6,
    config: Mapping[str, Any] | None = None,
    metric: str = "throughput",
) -> list[Row]:
    """Rows of a disk: (workload, block, threads) -> value in SI units, or its repetitions."""
    records = []
    for tool, of_tool in (("diskbench", values), ("iozone", iozone or {})):
        for (workload, block, threads), value in of_tool.items():
            single = isinstance(value, float | int)
            every = [value * by for by in WOBBLE[:repetitions]] if single else value
            records += make.runs(
                tool, workload, *every, metric=metric, block=block, concurrency=threads
            )
    rows = make.judge(folder, records, config=config).rows
    return list(rows["disk_latency" if metric == "latency" else "disk_throughput"])


def said(rows: Sequence[Row], topic: str) -> list[str]:
    return [finding.text for finding in findings.conclusions(rows) if finding.heading == topic]


def holds(text: str, *facts: str) -> bool:
    """Whether a sentence names these, in this order."""
    return bool(re.search(".*".join(map(re.escape, facts)), text))


GRID = {
    ("WS", 64 * KIB, 1): 10e6,
    ("WS", 64 * KIB, 8): 20e6,
    ("WS", 16 * MIB, 1): 300e6,
    ("WS", 16 * MIB, 8): 400e6,
}
BEST = "16 MiB, 8 threads (400.4 MB/s)"


@pytest.mark.parametrize(
    ("values", "facts"),
    [
        (
            GRID,
            [f"best with {BEST}", "worst with 64 KiB, 1 thread (10.01 MB/s)", "40.0",
             "8 threads", "20.0", "16 MiB", "1.33"],
        ),
        (
            {**GRID, ("WS", 16 * MIB, 1): 399e6},
            [BEST, "16 MiB, 1 thread", "not shown", "worst", "20.0", "no difference"],
        ),
        (
            {("WS", 64 * KIB, 2): 1e8, ("WS", MIB, 2): 2e8},
            ["best with 1 MiB (", "worst with 64 KiB (", "2.00", "block size alone"],
        ),
        (
            {("WS", MIB, threads): 1e8 * (1 + threads / 1000) for threads in (1, 2, 4)},
            ["no configuration"],
        ),
    ],
)  # fmt: skip
def test_best_and_worst_are_named_with_what_makes_the_difference(
    tmp_path: Path, values: Values, facts: list[str]
) -> None:
    (text,) = said(disk(tmp_path / "c", values), "Best and worst")
    assert holds(text, "WS: ", *facts), text


def test_of_a_latency_the_lowest_is_best(tmp_path: Path) -> None:
    values = {("RR", 4 * KIB, 1): 1e-4, ("RR", 4 * KIB, 8): 3e-4}
    rows = disk(tmp_path / "c", values, metric="latency")
    (best,) = said(rows, "Best and worst")
    assert holds(best, "best with 1 thread (100.1 µs)", "worst with 8 threads (300.3 µs)", "3.00.")
    (threads,) = said(rows, "Threads")
    assert holds(threads, "grows from 8")


def test_three_repetitions_claim_nothing_of_single_rows(tmp_path: Path) -> None:
    iozone = {key: 0.9 * value for key, value in GRID.items()}
    rows = disk(tmp_path / "c", GRID, iozone=iozone, repetitions=3)
    assert {finding.heading for finding in findings.conclusions(rows)} == {
        "Block size", "Threads", "Reference", "Not claimed",
    }  # fmt: skip
    assert "n = 3" in said(rows, "Not claimed")[0]
    assert "shown" not in said(rows, "Reference")[0]


@pytest.mark.parametrize(
    ("speeds", "facts"),
    [
        ((1.0, 2.0, 4.0, 8.0), ["gains up to 8", "the most", "8.00 times"]),
        ((1.0, 2.0, 2.0, 2.0), ["gains up to 2", "no further gain", "2.00 times"]),
        ((1.0, 2.0, 2.0, 1.0), ["gains up to 2", "falls from 8", "2.00 times"]),
        ((1.0, 0.5, 0.5, 0.4), ["falls from 2"]),
        ((1.0, 1.0, 1.0, 1.0), ["no gain", "1 thread"]),
    ],
)
def test_where_scaling_stops(tmp_path: Path, speeds: Sequence[float], facts: list[str]) -> None:
    values = {
        ("RS", MIB, threads): 1e8 * speed
        for threads, speed in zip((1, 2, 4, 8), speeds, strict=True)
    }
    (text,) = said(disk(tmp_path / "c", values), "Threads")
    assert holds(text, "RS: ", *facts), text


def test_blocks_that_scale_alike_share_a_sentence(tmp_path: Path) -> None:
    values = {
        ("RS", block, threads): 1e8 * gain * threads
        for block, gain in ((64 * KIB, 1.0), (MIB, 1.5))
        for threads in (1, 2)
    }
    values |= {("RS", 16 * MIB, threads): 4e8 for threads in (1, 2)}
    (text,) = said(disk(tmp_path / "c", values), "Threads")
    gains, none = text.split("; ")
    assert holds(gains, "gains up to 2", "2.00", "(64 KiB, 1 MiB)")
    assert holds(none, "no gain", "(16 MiB)")


EDGES = {("RS", 64 * KIB, 1): 1e8, ("RS", MIB, 1): 3e8, ("RS", 16 * MIB, 1): 3.01e8}
AT_TWO = {("RS", 64 * KIB, 2): 3e8, ("RS", MIB, 2): 3e8, ("RS", 16 * MIB, 2): 4e8}


@pytest.mark.parametrize(
    ("values", "facts"),
    [
        (EDGES, ["smallest", "is 1 MiB."]),
        ({**EDGES, **AT_TWO}, ["smallest", "1 MiB with 1 thread, 16 MiB with 2 threads."]),
        ({("RS", 64 * KIB, 1): 1e8, ("RS", MIB, 1): 1e8}, ["no block size"]),
    ],
)
def test_the_smallest_block_that_none_beats_is_the_one_that_pays(
    tmp_path: Path, values: Values, facts: list[str]
) -> None:
    (text,) = said(disk(tmp_path / "c", values), "Block size")
    assert holds(text, "RS: ", *facts), text


def test_the_reference_is_judged_row_by_row(tmp_path: Path) -> None:
    mine = {("RS", MIB, threads): 1e8 for threads in (1, 2, 4)}
    theirs = {("RS", MIB, 1): 2e8, ("RS", MIB, 2): 1e8, ("RS", MIB, 4): 5e7}
    assert said(disk(tmp_path / "a", mine, iozone=theirs), "Reference") == [
        "MyDiskBench measured 1.00 times what IOZone did (median of 3 rows; from 0.500 to 2.00; n = 6); shown to be better in 1, "
        "worse in 1, neither in 1 of 3 rows."
    ]
    few = {**theirs, ("RS", MIB, 1): [2e8]}
    (text,) = said(disk(tmp_path / "b", mine, iozone=few), "Reference")
    assert holds(text, "better in 1", "neither in 1 of 2") and "worse" not in text


def test_a_derived_figure_is_no_reference(tmp_path: Path) -> None:
    records = make.runs("rambench", "RWS", *[1e10] * 6)
    records += make.runs("pmbw", "RWS", 2e10, details={"estimate": True})
    assert said(make.judge(tmp_path / "c", records).rows["memory_throughput"], "Reference") == []


def test_the_share_of_the_limit_and_what_is_above_it(tmp_path: Path) -> None:
    config = {"site_facts": {"disk": {"throughput": {"WS": 2e8}}}}
    rows = disk(tmp_path / "c", GRID, config=config)
    share, above = said(rows, "Limit")
    assert holds(share, "5.00 % (WS of 64 KiB, 1 thread)", "10.0 % (WS of 64 KiB, 8 threads)")
    assert above.startswith("2 rows")
    (doubt,) = said(rows, "Doubt")
    assert holds(doubt, "2 of 4", "wrong", "(WS of 16 MiB, 1 thread; WS of 16 MiB, 8 threads)")
    assert "400.4 MB/s" not in said(rows, "Best and worst")[0]


def test_working_sets_and_nodes_are_never_compared_with_each_other(tmp_path: Path) -> None:
    records = []
    for variant, rate in (("pool", 1e10), ("block", 9e10)):
        values = [rate * factor for factor in WOBBLE]
        records += make.runs("rambench", "RS", *values, variant=variant)
    rows = make.judge(tmp_path / "c", records).rows["memory_throughput"]
    assert said(rows, "Best and worst") == []


def test_nothing_measured_says_nothing(tmp_path: Path) -> None:
    assert findings.conclusions([]) == []
    hole = make.cell("cpubench", "DP", subsystem="cpu")
    rows = make.judge(tmp_path / "c", [], planned=[hole]).rows["cpu"]
    assert len(rows) == 1
    assert findings.conclusions(rows) == []


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.lists(st.floats(min_value=0.8, max_value=1.25), min_size=1, max_size=8),
        min_size=2,
        max_size=4,
    )
)
def test_a_difference_is_only_claimed_between_rows_that_are_apart(
    tmp_path_factory: pytest.TempPathFactory, samples: list[list[float]]
) -> None:
    values = {
        ("RS", MIB, 2**power): [1e8 * one for one in sample] for power, sample in enumerate(samples)
    }
    rows = disk(tmp_path_factory.mktemp("results") / "c", values)
    texts = " ".join(finding.text for finding in findings.conclusions(rows))
    pairs = [
        (one, other)
        for one in rows
        for other in rows
        if findings.apart(one.measured, other.measured)
    ]
    if not pairs:
        assert not re.search(r"best with|gains|falls|(better|worse) in", texts)
    for one, other in pairs:
        assert max(min(one.measured.values), min(other.measured.values)) > 0
        first, second = sorted(
            (one.measured.summary, other.measured.summary), key=lambda summary: summary.median
        )
        assert first.high < second.low
        assert min(first.n, second.n) >= 6


def test_the_report_shows_them_once_below_their_table(tmp_path: Path) -> None:
    rows = disk(tmp_path / "c", GRID, config={"report": {"tables": "disk-patterns-2020"}})
    results = Results.read(tmp_path / "c")
    data = document.build(Analysis(results), {})
    parts = [part for section in data["sections"] for part in section["parts"]]
    assert [part["table"]["name"] for part in parts] == ["ws_runs", "ws_final"]
    assert parts[0]["findings"] == []
    layout_table = next(
        layout_table
        for layout_table in layouts.load("disk-patterns-2020").layout_tables
        if layout_table.name == "ws_final"
    )
    assert parts[1]["findings"] == [
        {"topic": finding.heading, "text": finding.text}
        for finding in findings.conclusions(rows, layout_table=layout_table)
    ]
    assert "best with 16MB, 8 threads" in parts[1]["findings"][0]["text"]
    tables.build(tmp_path / "c")
    frame = pd.read_csv(tmp_path / "c" / "tables" / "findings.csv")
    assert list(frame.columns) == ["table", "topic", "sentence"]
    assert list(frame["sentence"]) == [finding.text for finding in findings.conclusions(rows)]


def test_programs_that_disagree_are_a_finding_and_a_mark_on_the_row(tmp_path: Path) -> None:
    values = {("RS", MIB, 1): 100e6, ("RS", MIB, 2): 200e6}
    rows = disk(tmp_path / "apart", values, iozone={("RS", MIB, 1): 30e6, ("RS", MIB, 2): 190e6})
    (text,) = said(rows, "Disagreement")
    assert holds(text, "MyDiskBench and IOZone", "1.5", "1 of 2 rows", "3.33")
    assert "RS of 1 MiB, 1 thread" in text
    warnings = [note for row in rows for note in row.warnings if note.code == "disagreement"]
    assert [dict(note.values)["factor"] for note in warnings] == [pytest.approx(3.33, rel=0.01)]
    assert [row.measured.centre for row in rows] == pytest.approx([100e6, 200e6], rel=0.01)
    iozone = {("RS", MIB, 1): 90e6, ("RS", MIB, 2): 190e6}
    assert said(disk(tmp_path / "together", values, iozone=iozone), "Disagreement") == []


def test_they_speak_as_the_headings_of_a_layout_do(tmp_path: Path) -> None:
    lab = layouts.load("file-io-lab").layout_tables[0]
    rows = disk(tmp_path / "lab", GRID, iozone={key: 0.5 * value for key, value in GRID.items()})
    best, *others = [finding.text for finding in findings.conclusions(rows, lab)]
    assert holds(best, "16MB, 8 threads (400.4 MB/s", "64KB, 1 thread (10.01 MB/s")
    assert any(holds(text, "FileIO", "2.00 times", "IOZone") for text in others)
    six = next(
        one for one in layouts.load("six-core-evaluation").layout_tables if one.name == "disk"
    )
    rows = disk(tmp_path / "six", {("WS", KIB, 1): 10e6, ("WS", KIB, 2): 20e6})
    best, *_ = [finding.text for finding in findings.conclusions(rows, layout_table=six)]
    assert holds(best, "Write: ", "2 threads (20.02 MB/s)")


def test_factors_are_of_medians_as_the_tests_are(tmp_path: Path) -> None:
    one_outlier = [100e6, 100.1e6, 100.2e6, 100.3e6, 100.4e6, 160e6]  # their mean is 110
    values: Values = {
        ("WS", 64 * KIB, 1): [10e6, 10.1e6, 10.2e6, 9.9e6, 9.8e6, 10e6],
        ("WS", 64 * KIB, 2): one_outlier,
    }
    rows = disk(tmp_path / "c", values, config={"report": {"summary": "mean"}})
    assert rows[1].measured.centre == pytest.approx(110.17e6, rel=1e-3)
    for topic in ("Best and worst", "Threads"):
        (text,) = said(rows, topic)
        assert re.search(r"\b10\.0\b(?! MB)", text), text


@pytest.mark.parametrize("seed", [26, 37, 41])
def test_among_many_equal_rows_none_is_called_best(tmp_path: Path, seed: int) -> None:
    """Of twelve equal rows with thirty repetitions the extremes lie apart in every fourth case, as
    in these; a test of all rows sees through.
    """
    draw = random.Random(seed)  # noqa: S311
    records = []
    for threads in range(1, 13):
        values = [1e10 * draw.lognormvariate(0, 0.03) for _ in range(30)]
        records += make.runs("cpubench", "DP", *values, concurrency=threads)
    rows = make.judge(tmp_path / "c", records).rows["cpu"]
    ordered = sorted(rows, key=lambda row: row.measured.centre)
    assert findings.better(ordered[-1], ordered[0])  # two rows alone would be told apart
    (text,) = said(rows, "Best and worst")
    assert "no configuration" in text
