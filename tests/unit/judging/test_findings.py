"""What the rows say: each sentence from its numbers, and no sentence that they do not carry."""

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

from peakmark.config import layouts
from peakmark.judging import findings, ranking
from peakmark.judging.row import Row
from peakmark.judging.rows import build as build_rows
from peakmark.reporting import document
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
    for instrument, given_values in (("diskbench", values), ("iozone", iozone or {})):
        for (workload, block, threads), value in given_values.items():
            runs = (
                [value * factor for factor in WOBBLE[:repetitions]]
                if isinstance(value, float | int)
                else value
            )
            for number, run in enumerate(runs):
                of = make.cell(
                    instrument, workload, subsystem="disk", variant="psync", block=block, concurrency=threads,
                    repetition=number,
                )  # fmt: skip
                records.append(make.record(of, [make.measurement(of, metric, run)]))
    rows = build_rows(Results.read(make.write(folder, records, config=config)))
    return rows["disk_latency" if metric == "latency" else "disk_throughput"]


def said(rows: Sequence[Row], topic: str) -> list[str]:
    return [finding.text for finding in findings.of(rows) if finding.heading == topic]


GRID = {
    ("WS", 64 * KIB, 1): 10e6,
    ("WS", 64 * KIB, 8): 20e6,
    ("WS", 16 * MIB, 1): 300e6,
    ("WS", 16 * MIB, 8): 400e6,
}


def test_best_and_worst_are_named_with_what_makes_the_difference(tmp_path: Path) -> None:
    (text,) = said(disk(tmp_path / "c", GRID), "Best and worst")
    assert text == (
        "WS: best with 16 MiB, 8 threads (400.4 MB/s); worst with 64 KiB, 1 thread (10.01 MB/s), a factor of 40.0. "
        "The block size alone, at 8 threads, makes a factor of 20.0; the number of threads alone, at 16 MiB, makes a "
        "factor of 1.33."
    )


def test_a_cause_without_a_shown_difference_is_not_called_one(tmp_path: Path) -> None:
    (text,) = said(disk(tmp_path / "c", {**GRID, ("WS", 16 * MIB, 1): 399e6}), "Best and worst")
    assert "from which 16 MiB, 1 thread is not shown to differ" in text
    assert "the number of threads alone, at 16 MiB, makes no difference that is shown" in text


def test_the_same_number_of_threads_leaves_the_block_size_as_the_only_difference(
    tmp_path: Path,
) -> None:
    (text,) = said(
        disk(tmp_path / "c", {("RR", 64 * KIB, 2): 1e8, ("RR", MIB, 2): 2e8}), "Best and worst"
    )
    assert (
        text
        == "RR: best with 1 MiB (200.2 MB/s); worst with 64 KiB (100.1 MB/s), a factor of 2.00. The two differ in the block size alone."
    )


def test_of_a_latency_the_lowest_is_best(tmp_path: Path) -> None:
    rows = disk(
        tmp_path / "c", {("RR", 4 * KIB, 1): 1e-4, ("RR", 4 * KIB, 8): 3e-4}, metric="latency"
    )
    assert said(rows, "Best and worst") == [
        "RR: best with 1 thread (100.1 µs); worst with 8 threads (300.3 µs), a factor of 3.00."
    ]
    assert said(rows, "Threads") == ["RR: grows from 8 threads on."]


def test_rows_that_overlap_are_not_ranked(tmp_path: Path) -> None:
    rows = disk(
        tmp_path / "c", {("RS", MIB, threads): 1e8 * (1 + threads / 1000) for threads in (1, 2, 4)}
    )
    (text,) = said(rows, "Best and worst")
    assert text.startswith("RS: no configuration is shown to be better than another")
    assert said(rows, "Threads") == ["RS: no gain from more than 1 thread is shown."]


def test_three_repetitions_claim_nothing_of_single_rows(tmp_path: Path) -> None:
    rows = disk(
        tmp_path / "c",
        GRID,
        iozone={key: 0.9 * value for key, value in GRID.items()},
        repetitions=3,
    )
    found = findings.of(rows)
    assert {finding.heading for finding in found} == {
        "Block size",
        "Threads",
        "Reference",
        "Not claimed",
    }
    assert "n = 3: too few repetitions" in said(rows, "Not claimed")[0]
    assert "shown" not in said(rows, "Reference")[0]


@pytest.mark.parametrize(
    ("speeds", "text"),
    [
        (
            (1.0, 2.0, 4.0, 8.0),
            "RS: gains up to 8 threads, the most that was measured: 8.00 times the rate of 1 thread.",
        ),
        (
            (1.0, 2.0, 2.0, 2.0),
            "RS: gains up to 2 threads, no further gain is shown: 2.00 times the rate of 1 thread.",
        ),
        (
            (1.0, 2.0, 2.0, 1.0),
            "RS: gains up to 2 threads, falls from 8 on: 2.00 times the rate of 1 thread.",
        ),
        ((1.0, 0.5, 0.5, 0.4), "RS: falls from 2 threads on."),
        ((1.0, 1.0, 1.0, 1.0), "RS: no gain from more than 1 thread is shown."),
    ],
)
def test_where_scaling_stops(tmp_path: Path, speeds: Sequence[float], text: str) -> None:
    values = {
        ("RS", MIB, threads): 1e8 * speed
        for threads, speed in zip((1, 2, 4, 8), speeds, strict=True)
    }
    assert said(disk(tmp_path / "c", values), "Threads") == [text]


def test_blocks_that_scale_alike_share_a_sentence(tmp_path: Path) -> None:
    values = {
        ("RS", block, threads): 1e8 * gain * threads
        for block, gain in ((64 * KIB, 1.0), (MIB, 1.5))
        for threads in (1, 2)
    }
    values |= {("RS", 16 * MIB, threads): 4e8 for threads in (1, 2)}
    assert said(disk(tmp_path / "c", values), "Threads") == [
        "RS: gains up to 2 threads, the most that was measured: 2.00 times the rate of 1 thread (64 KiB, 1 MiB); no gain from more than 1 "
        "thread is shown (16 MiB)."
    ]


def test_the_smallest_block_that_none_beats_is_the_one_that_pays(tmp_path: Path) -> None:
    values = {("RS", 64 * KIB, 1): 1e8, ("RS", MIB, 1): 3e8, ("RS", 16 * MIB, 1): 3.01e8}
    assert said(disk(tmp_path / "a", values), "Block size") == [
        "RS: the smallest block that no other is shown to beat is 1 MiB."
    ]
    more = {**values, ("RS", 64 * KIB, 2): 3e8, ("RS", MIB, 2): 3e8, ("RS", 16 * MIB, 2): 4e8}
    assert said(disk(tmp_path / "b", more), "Block size") == [
        "RS: the smallest block that no other is shown to beat is 1 MiB with 1 thread, 16 MiB with 2 threads."
    ]
    level = {("RS", 64 * KIB, 1): 1e8, ("RS", MIB, 1): 1e8}
    assert said(disk(tmp_path / "c", level), "Block size") == [
        "RS: no block size is shown to be faster than another."
    ]


def test_the_reference_is_judged_row_by_row(tmp_path: Path) -> None:
    mine = {("RS", MIB, threads): 1e8 for threads in (1, 2, 4)}
    theirs = {("RS", MIB, 1): 2e8, ("RS", MIB, 2): 1e8, ("RS", MIB, 4): 5e7}
    assert said(disk(tmp_path / "a", mine, iozone=theirs), "Reference") == [
        "MyDiskBench measured 1.00 times what IOZone did (median of 3 rows; from 0.500 to 2.00; n = 6); shown to be better in 1, "
        "worse in 1, neither in 1 of 3 rows."
    ]
    few = {**theirs, ("RS", MIB, 1): [2e8]}
    (text,) = said(disk(tmp_path / "b", mine, iozone=few), "Reference")
    assert "shown to be better in 1, neither in 1 of 2 rows with enough repetitions." in text


def test_a_derived_figure_is_no_reference(tmp_path: Path) -> None:
    mine = [
        make.cell("rambench", "RWS", subsystem="memory", variant="pool", block=MIB, repetition=n)
        for n in range(6)
    ]
    theirs = make.cell("pmbw", "RWS", subsystem="memory", variant="pool", block=MIB)
    records = [make.record(of, [make.measurement(of, "throughput", 1e10)]) for of in mine]
    details = {"estimate": True}
    records.append(
        make.record(theirs, [make.measurement(theirs, "throughput", 2e10, details=details)])
    )
    rows = build_rows(Results.read(make.write(tmp_path / "c", records)))["memory_throughput"]
    assert said(rows, "Reference") == []


def test_the_share_of_the_limit_and_what_is_above_it(tmp_path: Path) -> None:
    config = {"site_facts": {"disk": {"throughput": {"WS": 2e8}}}}
    rows = disk(tmp_path / "c", GRID, config=config)
    assert said(rows, "Limit") == [
        "MyDiskBench reaches 5.00 % (WS of 64 KiB, 1 thread) to 10.0 % (WS of 64 KiB, 8 threads) of the limit.",
        "2 rows are above the limit, which cannot be: the limit or the figure is wrong, as the notes say.",
    ]
    (text,) = said(rows, "Doubt")
    assert text == (
        "2 of 4 rows are wrong (WS of 16 MiB, 1 thread; WS of 16 MiB, 8 threads): used for no claim; the notes say why."
    )
    assert "400.4 MB/s" not in said(rows, "Best and worst")[0]


def test_working_sets_and_nodes_are_never_compared_with_each_other(tmp_path: Path) -> None:
    records = []
    for variant, rate in (("pool", 1e10), ("block", 9e10)):
        for number in range(6):
            of = make.cell(
                "rambench", "RS", subsystem="memory", variant=variant, block=MIB, repetition=number
            )
            records.append(
                make.record(of, [make.measurement(of, "throughput", rate * WOBBLE[number])])
            )
    rows = build_rows(Results.read(make.write(tmp_path / "c", records)))["memory_throughput"]
    assert said(rows, "Best and worst") == []


def test_nothing_measured_says_nothing(tmp_path: Path) -> None:
    assert findings.of([]) == []
    hole = make.cell("cpubench", "DP", subsystem="cpu")
    rows = build_rows(Results.read(make.write(tmp_path / "c", [], planned=[hole])))["cpu"]
    assert len(rows) == 1
    assert findings.of(rows) == []


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
    texts = " ".join(finding.text for finding in findings.of(rows))
    pairs = [
        (one, other)
        for one in rows
        for other in rows
        if ranking.apart(one.measured, other.measured)
    ]
    if not pairs:
        assert not re.search(
            r"best with|gains up to|falls from|shown to be (better in|worse in)", texts
        )
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
    data = document.build(results, build_rows(results), {}, None, partial=True)
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
        for finding in findings.of(rows, layout_table=layout_table)
    ]
    assert "best with 16MB, 8 threads" in parts[1]["findings"][0]["text"]
    tables.build(tmp_path / "c")
    frame = pd.read_csv(tmp_path / "c" / "tables" / "findings.csv")
    assert list(frame.columns) == ["table", "topic", "sentence"]
    assert list(frame["sentence"]) == [finding.text for finding in findings.of(rows)]


def test_programs_that_disagree_are_a_finding_and_a_mark_on_the_row(tmp_path: Path) -> None:
    values = {("RS", MIB, 1): 100e6, ("RS", MIB, 2): 200e6}
    rows = disk(tmp_path / "apart", values, iozone={("RS", MIB, 1): 30e6, ("RS", MIB, 2): 190e6})
    (text,) = said(rows, "Disagreement")
    assert (
        "MyDiskBench and IOZone are more than a factor of 1.5 apart in 1 of 2 rows, at most 3.33"
        in text
    )
    assert "RS of 1 MiB, 1 thread" in text and "about the measurement" in text
    assert [
        any("a factor of 3.3" in note.text for note in row.specific_warnings) for row in rows
    ] == [True, False]
    assert [row.measured.centre for row in rows] == [
        pytest.approx(100e6, rel=0.01),
        pytest.approx(200e6, rel=0.01),
    ]
    together = disk(
        tmp_path / "together", values, iozone={("RS", MIB, 1): 90e6, ("RS", MIB, 2): 190e6}
    )
    assert said(together, "Disagreement") == []


def test_they_speak_as_the_headings_of_a_layout_do(tmp_path: Path) -> None:
    lab = layouts.load("file-io-lab").layout_tables[0]
    rows = disk(tmp_path / "lab", GRID, iozone={key: 0.5 * value for key, value in GRID.items()})
    texts = [finding.text for finding in findings.of(rows, ",", lab)]
    assert texts[0].startswith("WS: best with 16MB, 8 threads (400,4 MB/s")
    assert "worst with 64KB, 1 thread (10,01 MB/s" in texts[0]
    assert any(text.startswith("FileIO measured 2,00 times what IOZone did") for text in texts)
    six = next(
        layout_table
        for layout_table in layouts.load("six-core-evaluation").layout_tables
        if layout_table.name == "disk"
    )
    rows = disk(tmp_path / "six", {("WS", KIB, 1): 10e6, ("WS", KIB, 2): 20e6})
    assert next(finding.text for finding in findings.of(rows, layout_table=six)).startswith(
        "Write: best with 2 threads (20.02 MB/s)"
    )


def test_factors_are_of_medians_as_the_tests_are(tmp_path: Path) -> None:
    one_outlier = [100e6, 100.1e6, 100.2e6, 100.3e6, 100.4e6, 160e6]  # their mean is 110
    values: Values = {
        ("WS", 64 * KIB, 1): [10e6, 10.1e6, 10.2e6, 9.9e6, 9.8e6, 10e6],
        ("WS", 64 * KIB, 2): one_outlier,
    }
    rows = disk(tmp_path / "c", values, config={"report": {"summary": "mean"}})
    assert rows[1].measured.centre == pytest.approx(110.17e6, rel=1e-3)
    assert ["a factor of 10.0." in text for text in said(rows, "Best and worst")] == [True]
    assert [text.rpartition(": ")[2] for text in said(rows, "Threads")] == [
        "10.0 times the rate of 1 thread."
    ]


@pytest.mark.parametrize("seed", [26, 37, 41])
def test_among_many_equal_rows_none_is_called_best(tmp_path: Path, seed: int) -> None:
    """Of twelve equal rows with thirty repetitions the extremes lie apart in every fourth case, as
    in these; a test of all rows sees through.
    """
    draw = random.Random(seed)  # noqa: S311
    records = []
    for threads in range(1, 13):
        for number in range(30):
            of = make.cell(
                "cpubench", "DP", subsystem="cpu", concurrency=threads, repetition=number
            )
            records.append(
                make.record(of, [make.measurement(of, "rate", 1e10 * draw.lognormvariate(0, 0.03))])
            )
    rows = build_rows(Results.read(make.write(tmp_path / "c", records)))["cpu"]
    ordered = sorted(rows, key=lambda row: row.measured.centre)
    assert ranking.better(ordered[-1], ordered[0])  # two rows alone would be told apart
    assert [
        "no configuration is shown to be better" in text for text in said(rows, "Best and worst")
    ] == [True]
