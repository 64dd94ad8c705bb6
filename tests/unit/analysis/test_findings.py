"""What the rows of a table say: each finding from its numbers, and none that they do not carry."""

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
from peakmark.tables import tables

KIB, MIB = 1 << 10, 1 << 20
Values = Mapping[tuple[str, int, int], float | Sequence[float]]


def disk(
    folder: Path, values: Values, *, iozone: Values | None = None, n: int = 6, **more: Any
) -> list[Row]:
    """Rows of a disk: (workload, block, threads) -> value in SI units, or its repetitions."""
    records = []
    metric = more.pop("metric", "throughput")
    for tool, of_tool in (("diskbench", values), ("iozone", iozone or {})):
        for (workload, block, threads), value in of_tool.items():
            every = make.near(value, n) if isinstance(value, float | int) else value
            place = {"metric": metric, "block": block, "concurrency": threads}
            records += make.runs(tool, workload, *every, **place)
    return list(make.judge(folder, records, **more).rows[f"disk_{metric}"])


def sentences(rows: Sequence[Row], topic: str) -> list[str]:
    return [finding.text for finding in findings.conclusions(rows) if finding.heading == topic]


def names(text: str, *facts: str) -> bool:
    """Whether a sentence names these, in this order."""
    return bool(re.search(".*".join(map(re.escape, facts)), text))


GRID = {
    ("WS", 64 * KIB, 1): 10e6,
    ("WS", 64 * KIB, 8): 20e6,
    ("WS", 16 * MIB, 1): 300e6,
    ("WS", 16 * MIB, 8): 400e6,
}
BEST = "16 MiB, 8 threads (400.4 MB/s)"
LIKE = {**GRID, ("WS", 16 * MIB, 1): 399e6}
EDGES = {("RS", 64 * KIB, 1): 1e8, ("RS", MIB, 1): 3e8, ("RS", 16 * MIB, 1): 3.01e8}
AT_TWO = {("RS", 64 * KIB, 2): 3e8, ("RS", MIB, 2): 3e8, ("RS", 16 * MIB, 2): 4e8}


def threads(*speeds: float) -> Values:
    """Rows of 1, 2, 4 ... threads that are so fast."""
    return {("RS", MIB, 2**power): 1e8 * speed for power, speed in enumerate(speeds)}


@pytest.mark.parametrize(
    ("topic", "values", "facts"),
    [
        ("Best and worst", GRID, ["WS: ", f"best with {BEST}", "worst with 64 KiB, 1 thread (10.01 MB/s)", "40.0", "8 threads", "20.0", "16 MiB", "1.33"]),
        ("Best and worst", LIKE, ["WS: ", BEST, "16 MiB, 1 thread", "not shown", "worst", "20.0", "no difference"]),
        ("Best and worst", {("WS", 64 * KIB, 2): 1e8, ("WS", MIB, 2): 2e8}, ["best with 1 MiB (", "worst with 64 KiB (", "2.00", "block size alone"]),
        ("Best and worst", threads(1.0, 1.001, 1.002), ["no configuration"]),
        ("Threads", threads(1.0, 2.0, 4.0, 8.0), ["RS: ", "gains up to 8", "the most", "8.00 times"]),
        ("Threads", threads(1.0, 2.0, 2.0, 2.0), ["gains up to 2", "no further gain", "2.00 times"]),
        ("Threads", threads(1.0, 2.0, 2.0, 1.0), ["gains up to 2", "falls from 8", "2.00 times"]),
        ("Threads", threads(1.0, 0.5, 0.5, 0.4), ["falls from 2"]),
        ("Threads", threads(1.0, 1.0, 1.0, 1.0), ["no gain", "1 thread"]),
        ("Block size", EDGES, ["RS: ", "smallest", "is 1 MiB."]),
        ("Block size", {**EDGES, **AT_TWO}, ["smallest", "1 MiB with 1 thread, 16 MiB with 2 threads."]),
        ("Block size", {("RS", 64 * KIB, 1): 1e8, ("RS", MIB, 1): 1e8}, ["no block size"]),
    ],
)  # fmt: skip
def test_what_makes_the_difference_is_named(
    tmp_path: Path, topic: str, values: Values, facts: list[str]
) -> None:
    (text,) = sentences(disk(tmp_path / "c", values), topic)
    assert names(text, *facts), text


def test_of_a_latency_the_lowest_is_best(tmp_path: Path) -> None:
    values = {("RR", 4 * KIB, 1): 1e-4, ("RR", 4 * KIB, 8): 3e-4}
    rows = disk(tmp_path / "c", values, metric="latency")
    (best,) = sentences(rows, "Best and worst")
    assert names(best, "best with 1 thread (100.1 µs)", "worst with 8 threads (300.3 µs)", "3.00.")
    (text,) = sentences(rows, "Threads")
    assert names(text, "grows from 8")


def test_three_repetitions_claim_nothing_of_single_rows(tmp_path: Path) -> None:
    iozone = {key: 0.9 * value for key, value in GRID.items()}
    rows = disk(tmp_path / "c", GRID, iozone=iozone, n=3)
    topics = {finding.heading for finding in findings.conclusions(rows)}
    assert topics == {"Block size", "Threads", "Reference", "Not claimed"}
    assert "n = 3" in sentences(rows, "Not claimed")[0]
    assert "shown" not in sentences(rows, "Reference")[0]


def test_blocks_that_scale_alike_share_a_sentence(tmp_path: Path) -> None:
    rates = {64 * KIB: (1.0, 2.0), MIB: (1.5, 3.0), 16 * MIB: (4.0, 4.0)}
    values = {
        ("RS", block, count): 1e8 * rate
        for block, both in rates.items()
        for count, rate in zip((1, 2), both, strict=True)
    }
    (text,) = sentences(disk(tmp_path / "c", values), "Threads")
    gains, none = text.split("; ")
    assert names(gains, "gains up to 2", "2.00", "(64 KiB, 1 MiB)")
    assert names(none, "no gain", "(16 MiB)")


def test_the_reference_is_judged_row_by_row(tmp_path: Path) -> None:
    theirs: Values = {("RS", MIB, 1): 2e8, ("RS", MIB, 2): 1e8, ("RS", MIB, 4): 5e7}
    (text,) = sentences(disk(tmp_path / "a", threads(1, 1, 1), iozone=theirs), "Reference")
    assert names(text, "MyDiskBench", "1.00 times", "IOZone", "3 rows; from 0.500 to 2.00; n = 6")
    assert names(text, "better in 1, worse in 1, neither in 1 of 3 rows.")
    few = {**theirs, ("RS", MIB, 1): [2e8]}
    (text,) = sentences(disk(tmp_path / "b", threads(1, 1, 1), iozone=few), "Reference")
    assert names(text, "better in 1", "neither in 1 of 2") and "worse" not in text


def test_the_share_of_the_limit_and_what_is_above_it(tmp_path: Path) -> None:
    config = {"site_facts": {"disk": {"throughput": {"WS": 2e8}}}}
    rows = disk(tmp_path / "c", GRID, config=config)
    share, above = sentences(rows, "Limit")
    assert names(share, "5.00 % (WS of 64 KiB, 1 thread)", "10.0 % (WS of 64 KiB, 8 threads)")
    assert above.startswith("2 rows")
    (doubt,) = sentences(rows, "Doubt")
    assert names(doubt, "2 of 4", "wrong", "(WS of 16 MiB, 1 thread; WS of 16 MiB, 8 threads)")
    assert "400.4 MB/s" not in sentences(rows, "Best and worst")[0]


def test_working_sets_are_never_compared_with_each_other(tmp_path: Path) -> None:
    records = make.runs("rambench", "RS", *make.near(1e10), variant="pool")
    records += make.runs("rambench", "RS", *make.near(9e10), variant="block")
    rows = make.judge(tmp_path / "c", records).rows["memory_throughput"]
    assert sentences(rows, "Best and worst") == []


def test_nothing_measured_says_nothing(tmp_path: Path) -> None:
    assert findings.conclusions([]) == []
    hole = make.only_row(tmp_path / "c", [], planned=[make.cell("cpubench", "DP", subsystem="cpu")])
    assert findings.conclusions([hole]) == []


samples = st.lists(st.floats(min_value=0.8, max_value=1.25), min_size=1, max_size=8)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(samples, min_size=2, max_size=4))
def test_a_difference_is_only_claimed_between_rows_that_are_apart(
    tmp_path_factory: pytest.TempPathFactory, samples: list[list[float]]
) -> None:
    values = {
        ("RS", MIB, 2**power): [1e8 * one for one in sample] for power, sample in enumerate(samples)
    }
    rows = disk(tmp_path_factory.mktemp("results") / "c", values)
    texts = " ".join(finding.text for finding in findings.conclusions(rows))
    apart = [
        sorted((one.measured.summary, other.measured.summary), key=lambda each: each.median)
        for one in rows
        for other in rows
        if findings.apart(one.measured, other.measured)
    ]
    assert apart or not re.search(r"best with|gains|falls|(better|worse) in", texts)
    for first, second in apart:
        assert first.high < second.low and min(first.n, second.n) >= 6


def test_the_report_shows_them_once_below_their_table(tmp_path: Path) -> None:
    rows = disk(tmp_path / "c", GRID, config={"report": {"tables": "disk-patterns-2020"}})
    data = document.build(Analysis.of(tmp_path / "c"), {})
    runs, final = [part for section in data["sections"] for part in section["parts"]]
    assert [part["table"]["name"] for part in (runs, final)] == ["ws_runs", "ws_final"]
    printed = layouts.load("disk-patterns-2020").layout_tables
    table = next(each for each in printed if each.name == "ws_final")
    expected = findings.conclusions(rows, layout_table=table)
    assert runs["findings"] == []
    assert [each["text"] for each in final["findings"]] == [each.text for each in expected]
    assert "best with 16MB, 8 threads" in final["findings"][0]["text"]
    tables.build(tmp_path / "c")
    frame = pd.read_csv(tmp_path / "c" / "tables" / "findings.csv")
    assert list(frame.columns) == ["table", "topic", "sentence"]
    assert list(frame["sentence"]) == [finding.text for finding in findings.conclusions(rows)]


@pytest.mark.parametrize(("theirs", "apart"), [(30e6, True), (90e6, False)])
def test_programs_that_disagree_are_a_finding(tmp_path: Path, theirs: float, apart: bool) -> None:
    iozone = {("RS", MIB, 1): theirs, ("RS", MIB, 2): 190e6}
    texts = sentences(disk(tmp_path / "c", threads(1, 2), iozone=iozone), "Disagreement")
    facts = ["MyDiskBench and IOZone", "1.5", "1 of 2 rows", "3.33", "RS of 1 MiB, 1 thread"]
    assert [names(text, *facts) for text in texts] == [True] * apart


def test_they_speak_as_the_headings_of_a_layout_do(tmp_path: Path) -> None:
    lab = layouts.load("file-io-lab").layout_tables[0]
    rows = disk(tmp_path / "lab", GRID, iozone={key: 0.5 * value for key, value in GRID.items()})
    best, *others = [finding.text for finding in findings.conclusions(rows, layout_table=lab)]
    assert names(best, "16MB, 8 threads (400.4 MB/s", "64KB, 1 thread (10.01 MB/s")
    assert any(names(text, "FileIO", "2.00 times", "IOZone") for text in others)
    (six,) = (
        one for one in layouts.load("six-core-evaluation").layout_tables if one.name == "disk"
    )
    rows = disk(tmp_path / "six", {("WS", KIB, 1): 10e6, ("WS", KIB, 2): 20e6})
    best, *_ = [finding.text for finding in findings.conclusions(rows, layout_table=six)]
    assert names(best, "Write: ", "2 threads (20.02 MB/s)")


def test_factors_are_of_medians_as_the_tests_are(tmp_path: Path) -> None:
    one_outlier = [100e6, 100.1e6, 100.2e6, 100.3e6, 100.4e6, 160e6]  # their mean is 110
    values: Values = {
        ("WS", 64 * KIB, 1): [10e6, 10.1e6, 10.2e6, 9.9e6, 9.8e6, 10e6],
        ("WS", 64 * KIB, 2): one_outlier,
    }
    rows = disk(tmp_path / "c", values, config={"report": {"summary": "mean"}})
    assert rows[1].measured.centre == pytest.approx(110.17e6, rel=1e-3)
    for topic in ("Best and worst", "Threads"):
        (text,) = sentences(rows, topic)
        assert re.search(r"\b10\.0\b(?! MB)", text), text


@pytest.mark.parametrize("seed", [26, 37, 41])
def test_among_many_equal_rows_none_is_called_best(tmp_path: Path, seed: int) -> None:
    """Of twelve equal rows with thirty repetitions the extremes lie apart in every fourth case, as
    in these; a test of all rows sees through.
    """
    draw = random.Random(seed)  # noqa: S311
    records = []
    for count in range(1, 13):
        values = [1e10 * draw.lognormvariate(0, 0.03) for _ in range(30)]
        records += make.runs("cpubench", "DP", *values, concurrency=count)
    rows = make.judge(tmp_path / "c", records).rows["cpu"]
    ordered = sorted(rows, key=lambda row: row.measured.centre)
    assert findings.better(ordered[-1], ordered[0])  # two rows alone would be told apart
    (text,) = sentences(rows, "Best and worst")
    assert "no configuration" in text
