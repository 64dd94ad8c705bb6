"""Conclusions over many rows of few repetitions: those that the numbers carry, and no others."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.unit import campaign_data as make

from peakmark import statistics
from peakmark.analysis import findings
from peakmark.analysis.row import Row
from peakmark.catalogue import KERNELS
from peakmark.config import published

APART = ([1.0, 2.0, 3.0], [4.0, 5.0, 6.0])


def told(found: Sequence[Row], topic: str) -> list[str]:
    return [one.text for one in findings.conclusions(found) if one.heading == topic]


@pytest.mark.parametrize("count", [1, 2, 7])
def test_pairs_that_all_agree_are_as_rare_as_counted(count: int) -> None:
    assert statistics.rank_test([APART] * count) == pytest.approx(2 / 20**count)


def test_pairs_that_disagree_say_nothing() -> None:
    assert statistics.rank_test([APART, (APART[1], APART[0])]) == 1.0


def test_many_values_give_nearly_what_is_counted() -> None:
    random = np.random.default_rng(4)
    pairs = [(random.normal(0, 1, 6), random.normal(0.3, 1, 6)) for _ in range(30)]
    exact = statistics.rank_test(pairs)
    assert statistics.rank_test([*pairs, *[([1.0], [1.0])] * 30]) == pytest.approx(exact, rel=0.15)


def test_equal_choices_are_seldom_told_apart() -> None:
    random = np.random.default_rng(5)
    wrong = sum(
        statistics.rank_test([(random.normal(0, 1, 3), random.normal(0, 1, 3)) for _ in range(7)])
        <= 0.05
        for _ in range(400)
    )
    assert wrong <= 400 * 0.05 + 4 * (400 * 0.05 * 0.95) ** 0.5


def rows(folder: Path, records: list[dict[str, Any]], **more: Any) -> Sequence[Row]:
    """The rows of the one table that has some."""
    (found,) = (table for table in make.judge(folder, records, **more).rows.values() if table)
    return found


def test_the_conclusions_of_the_report_of_2020_are_carried_by_its_runs(tmp_path: Path) -> None:
    """Its authors: large records beat small ones in all patterns, at every number of threads, in
    three runs each.
    """
    records = []
    runs = published.load("disk-patterns-2020").runs
    for (table, workload, block, threads, instrument), values in runs.items():
        if table == "disk_throughput" and instrument == "diskbench" and len(values) == 3:
            records += make.runs("diskbench", workload, *values, block=block, concurrency=threads)
    found = rows(tmp_path / "c", records)
    sizes = told(found, "Block size")
    assert any(text.startswith("1 MiB is faster than 64 KiB") for text in sizes), sizes
    assert all("chance" in text for text in sizes)
    assert told(found, "Workloads")
    assert told(found, "Not claimed")


def test_equal_workloads_are_not_compared_in_words(tmp_path: Path) -> None:
    random = np.random.default_rng(6)
    records = []
    for workload in ("RS", "RR"):
        for threads in (1, 2, 4, 8):
            values = 4e8 * random.lognormal(0, 0.03, 3)
            records += make.runs("diskbench", workload, *values.tolist(), concurrency=threads)
    assert told(rows(tmp_path / "c", records), "Workloads") == []


AREAS = {16 << 10: 2e-9, 1 << 20: 6e-9, 32 << 20: 2e-8, 1 << 30: 2e-7}


def test_what_is_turned_round_and_what_has_shorter_times(tmp_path: Path) -> None:
    """The one that is ahead comes first; an area is not shorter than another, it has shorter times."""
    records = []
    for threads, slower in ((1, 1.0), (2, 1.005)):
        for block, value in AREAS.items():
            values = [value * (slower + 0.01 * number) for number in range(3)]
            records += make.runs("rambench", "LAT", *values, block=block, concurrency=threads)
    found = rows(tmp_path / "c", records)
    size, *_ = told(found, "Block size")
    assert re.match("16 KiB has shorter times than 1 MiB", size)
    (undecided,) = told(found, "Not told apart")
    assert re.search(r"1 thread .* than 2 threads at 4 of 4 .*0\.2\)", undecided)


@pytest.mark.parametrize(
    ("gain", "words"), [(2.0, "8 threads are faster than 1"), (0.5, "1 thread is faster than 8")]
)
def test_the_verb_is_that_of_the_one_that_is_ahead(tmp_path: Path, gain: float, words: str) -> None:
    records = []
    for number, workload in enumerate(("RS", "WS", "RR", "WR"), 1):
        for threads, factor in ((1, 1.0), (8, gain)):
            values = [1e8 * number * factor * (1 + 0.01 * run) for run in range(3)]
            records += make.runs("diskbench", workload, *values, concurrency=threads)
    (text,) = told(rows(tmp_path / "c", records), "Threads")
    assert text.startswith(words) and "all 4 points" in text


COMPARED = {
    "cpu": ("QP HP", "HP SP", "SP DP"),
    "memory": ("RS RR", "WS WR", "RWS RWR", "RS WS"),
    "disk": ("RS RR", "WS WR", "RS WS", "RR WR"),
    "network": ("TCP UDP", "LAT-TCP LAT-UDP"),
}


@pytest.mark.parametrize(
    ("subsystem", "pair"),
    [(subsystem, pair.split()) for subsystem, pairs in COMPARED.items() for pair in pairs],
)
def test_each_pair_that_readers_compare_is_compared(
    tmp_path: Path, subsystem: str, pair: list[str]
) -> None:
    """The first is made the better one, six runs of each at two numbers of threads."""
    ahead = 0.5 if pair[0].startswith("LAT") else 2.0
    block = None if subsystem == "cpu" else 1 << 20
    records = []
    for workload, factor in zip(pair, (ahead, 1.0), strict=True):
        values = [1e-3 * factor * (1 + 0.001 * run) for run in range(6)]
        for threads in (1, 2):
            records += make.runs(
                KERNELS[subsystem], workload, *values, concurrency=threads, block=block
            )
    (text,) = told(rows(tmp_path / "c", records), "Workloads")
    first, second = (name.removeprefix("LAT-") for name in pair)
    assert re.match(rf"\S*{first} is (faster|shorter) than \S*{second} at both", text), text


THREADS = (1, 2, 3, 4, 6, 8)
LIMIT = 4e8
SITE = {"site_facts": {"disk": {"throughput": {"RS": LIMIT}}}}


def beside_a_limit(folder: Path, own: Sequence[float], iozone: Sequence[float]) -> list[str]:
    """What is said of shares of the limit, of two programs at six numbers of threads."""
    records = []
    for instrument, shares in (("diskbench", own), ("iozone", iozone)):
        for threads, share in zip(THREADS, shares, strict=False):
            records += make.runs(instrument, "RS", *[LIMIT * share] * 3, concurrency=threads)
    return told(rows(folder, records, config=SITE), "Limit")


def test_the_share_of_the_limit_is_said_of_each_program(tmp_path: Path) -> None:
    own, theirs, above = beside_a_limit(tmp_path / "c", [0.5] * 6, [0.5, 0.6, 0.7, 0.8, 0.9, 2.0])
    assert own.endswith("of the limit, 50.0 % in the median of 6 rows.")
    assert theirs == (
        "IOZone reaches 50.0 % (RS of 1 MiB, 1 thread) to 90.0 % (RS of 1 MiB, 6 threads) of the "
        "limit, 70.0 % in the median of 5 rows."
    )
    assert above.startswith("1 row is above the limit")


def test_what_is_said_of_a_reference_at_all_points_is_of_the_rounds_that_its_ratio_is_of(
    tmp_path: Path,
) -> None:
    """One sentence with two figures: of a row whose medians are the other way round."""
    ahead = ((1.2e9, 1.3e9, 1.1e9), (1e9, 1e9, 1e9))
    turned = ((1e9, 0.9e9, 0.61e9), (0.99e9, 0.95e9, 0.6e9))  # 1.01, 0.947 and 1.02 times
    records = []
    for threads, (ours, theirs) in enumerate((ahead, ahead, ahead, ahead, turned), 1):
        records += make.runs("diskbench", "RS", *ours, concurrency=threads)
        records += make.runs("fio", "RS", *theirs, concurrency=threads)
    (text,) = told(rows(tmp_path / "c", records), "Reference")
    assert re.match(r"MyDiskBench .*1\.20 times .*5 rows; from 1\.01 to 1\.20; n = 3;", text)
    assert "other way round: RS of 1 MiB, 5 threads)" in text
    assert re.search("MyDiskBench says more .*5 points", text)
