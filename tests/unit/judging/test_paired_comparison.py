"""Conclusions over many rows of few repetitions: those that the numbers carry, and no others."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from tests.unit import campaign_data as make

from peakmark import statistics
from peakmark.catalogue.workloads import KERNELS
from peakmark.config import published
from peakmark.judging import findings, paired_comparison, rows
from peakmark.judging.row import Row
from peakmark.storage.results import Results

APART = ([1.0, 2.0, 3.0], [4.0, 5.0, 6.0])


def told(found: Sequence[Row], topic: str) -> list[str]:
    return [one.text for one in findings.of(found) if one.heading == topic]


@pytest.mark.parametrize("count", [1, 2, 7])
def test_pairs_that_all_agree_are_as_rare_as_counted(count: int) -> None:
    assert paired_comparison.chance([APART] * count) == pytest.approx(2 / 20**count)


def test_one_pair_is_the_rank_sum_test() -> None:
    random = np.random.default_rng(3)
    for _ in range(20):
        first, second = (
            random.integers(0, 8, 5).astype(float),
            random.integers(0, 8, 6).astype(float),
        )
        assert paired_comparison.chance([(first, second)]) == pytest.approx(
            statistics.rank_test(first, second)
        )


def test_pairs_that_disagree_say_nothing() -> None:
    assert paired_comparison.chance([APART, (APART[1], APART[0])]) == 1.0


def test_many_values_give_nearly_what_is_counted() -> None:
    random = np.random.default_rng(4)
    pairs = [(random.normal(0, 1, 6), random.normal(0.3, 1, 6)) for _ in range(30)]
    exact = paired_comparison.chance(pairs)
    assert paired_comparison.chance([*pairs, *[([1.0], [1.0])] * 30]) == pytest.approx(
        exact, rel=0.15
    )


def test_equal_choices_are_seldom_told_apart() -> None:
    random = np.random.default_rng(5)
    wrong = sum(
        paired_comparison.chance(
            [(random.normal(0, 1, 3), random.normal(0, 1, 3)) for _ in range(7)]
        )
        <= 0.05
        for _ in range(400)
    )
    assert wrong <= 400 * 0.05 + 4 * (400 * 0.05 * 0.95) ** 0.5


def test_the_conclusions_of_the_report_of_2020_are_carried_by_its_runs(tmp_path: Path) -> None:
    """Its authors: large records beat small ones in all patterns, at every number of threads, in
    three runs each.
    """
    records = []
    for (table, workload, block, threads, instrument), values in published.load(
        "disk-patterns-2020"
    ).runs.items():
        if table == "disk_throughput" and instrument == "diskbench" and len(values) == 3:
            for number, value in enumerate(values):
                of = make.cell(
                    "diskbench", workload, subsystem="disk", variant="psync", block=block, concurrency=threads,
                    repetition=number,
                )  # fmt: skip
                records.append(make.record(of, [make.measurement(of, "throughput", value)]))
    found = rows.build(Results.read(make.write(tmp_path / "c", records)))["disk_throughput"]
    sizes = told(found, "Block size")
    assert any(text.startswith("1 MiB is faster than 64 KiB at") for text in sizes), sizes
    assert all("by chance" in text for text in sizes)
    assert told(found, "Workloads")
    assert any(
        "too few repetitions to say of single ones" in text for text in told(found, "Not claimed")
    )


def test_equal_workloads_are_not_compared_in_words(tmp_path: Path) -> None:
    random = np.random.default_rng(6)
    records = []
    for workload in ("RS", "RR"):
        for threads in (1, 2, 4, 8):
            for number in range(3):
                of = make.cell(
                    "diskbench", workload, subsystem="disk", variant="psync", block=1 << 20, concurrency=threads,
                    repetition=number,
                )  # fmt: skip
                records.append(
                    make.record(
                        of, [make.measurement(of, "throughput", 4e8 * random.lognormal(0, 0.03))]
                    )
                )
    found = rows.build(Results.read(make.write(tmp_path / "c", records)))["disk_throughput"]
    assert told(found, "Workloads") == []


AREAS = {16 << 10: 2e-9, 1 << 20: 6e-9, 32 << 20: 2e-8, 1 << 30: 2e-7}


def test_what_is_turned_round_and_what_has_shorter_times(tmp_path: Path) -> None:
    """The one that is ahead comes first; an area is not shorter than another, it has shorter times."""
    records = []
    for threads in (1, 2):
        for number in range(3):
            for block, value in AREAS.items():
                of = make.cell(
                    "rambench",
                    "LAT",
                    subsystem="memory",
                    block=block,
                    concurrency=threads,
                    repetition=number,
                )
                slower = 1 + 0.01 * number + 0.005 * (threads == 2)
                records.append(make.record(of, [make.measurement(of, "latency", value * slower)]))
    found = rows.build(Results.read(make.write(tmp_path / "c", records)))["memory_latency"]
    size, *_ = told(found, "Block size")
    assert size.startswith("16 KiB has shorter times than 1 MiB at both points (")
    (left,) = told(found, "Not told apart")
    assert left.endswith(
        ": 1 thread has shorter times than 2 threads at 4 of 4 points (by chance 0.2)."
    )


@pytest.mark.parametrize(
    ("gain", "words"),
    [
        (2.0, "8 threads are faster than 1 thread at all 4 points"),
        (0.5, "1 thread is faster than 8 threads at all 4 points"),
    ],
)
def test_the_verb_is_that_of_the_one_that_is_ahead(tmp_path: Path, gain: float, words: str) -> None:
    records = []
    for number, workload in enumerate(("RS", "WS", "RR", "WR")):
        for threads in (1, 8):
            for run in range(3):
                of = make.cell(
                    "diskbench", workload, subsystem="disk", variant="psync", block=1 << 20, concurrency=threads,
                    repetition=run,
                )  # fmt: skip
                value = 1e8 * (1 + number) * (gain if threads == 8 else 1) * (1 + 0.01 * run)
                records.append(make.record(of, [make.measurement(of, "throughput", value)]))
    (text,) = told(
        rows.build(Results.read(make.write(tmp_path / "c", records)))["disk_throughput"], "Threads"
    )
    assert text.startswith(words)


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
    table = {
        "cpu": "cpu",
        "memory": "memory_throughput",
        "disk": "disk_throughput",
        "network": "network_throughput",
    }
    metric = {"cpu": "rate"}.get(subsystem, "throughput")
    name, ahead = table[subsystem], 2.0
    if pair[0].startswith("LAT"):
        name, metric, ahead = "network_latency", "latency", 0.5
    records = []
    for workload, factor in zip(pair, (ahead, 1.0), strict=True):
        for threads in (1, 2):
            for run in range(6):
                of = make.cell(
                    KERNELS[subsystem], workload, subsystem=subsystem, concurrency=threads, repetition=run,
                    variant={"memory": "pool", "disk": "psync"}.get(subsystem, ""), block=None if subsystem == "cpu" else 1 << 20,
                )  # fmt: skip
                records.append(
                    make.record(
                        of, [make.measurement(of, metric, 1e-3 * factor * (1 + 0.001 * run))]
                    )
                )
    found = rows.build(Results.read(make.write(tmp_path / "c", records)))[name]
    (text,) = told(found, "Workloads")
    first, second = (name.removeprefix("LAT-") for name in pair)
    assert re.match(rf"\S*{first} is (faster|shorter) than \S*{second} at both points", text), text


THREADS = (1, 2, 3, 4, 6, 8)
LIMIT = 4e8


def beside_a_limit(
    folder: Path, own: Sequence[float], iozone: Sequence[float], n: int = 3
) -> list[str]:
    """What is said of shares of the limit, of two programs at six numbers of threads."""
    records = []
    for instrument, shares in (("diskbench", own), ("iozone", iozone)):
        for threads, share in zip(THREADS, shares, strict=False):
            for number in range(n):
                of = make.cell(
                    instrument, "RS", subsystem="disk", variant="psync", block=1 << 20, concurrency=threads,
                    repetition=number,
                )  # fmt: skip
                records.append(make.record(of, [make.measurement(of, "throughput", LIMIT * share)]))
    config = {"site_facts": {"disk": {"throughput": {"RS": LIMIT}}}}
    return told(
        rows.build(Results.read(make.write(folder, records, config=config)))["disk_throughput"],
        "Limit",
    )


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
    ahead = ((1.2, 1.3, 1.1), (1.0, 1.0, 1.0))
    turned = ((1.0, 0.9, 0.61), (0.99, 0.95, 0.6))  # 1.01, 0.947 and 1.02 times
    records = []
    for threads, (ours, theirs) in enumerate((ahead, ahead, ahead, ahead, turned), 1):
        for tool, values in (("diskbench", ours), ("fio", theirs)):
            for number, value in enumerate(values):
                of = make.cell(tool, "RS", subsystem="disk", variant="psync", block=1 << 20, concurrency=threads,
                               repetition=number)  # fmt: skip
                records.append(make.record(of, [make.measurement(of, "throughput", 1e9 * value)]))
    found = rows.build(Results.read(make.write(tmp_path / "c", records)))["disk_throughput"]
    (text,) = told(found, "Reference")
    assert text.startswith(
        "MyDiskBench measured 1.20 times what fio did (median of 5 rows; from 1.01 to 1.20; n = 3;"
    )
    assert "; printed figures the other way round: RS of 1 MiB, 5 threads)" in text
    assert "; MyDiskBench says more at all 5 points, by chance " in text
