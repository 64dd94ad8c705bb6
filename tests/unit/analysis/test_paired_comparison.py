"""Conclusions over many rows of few repetitions: those that the numbers carry, and no others."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.unit import campaign_data as make

from peakmark.analysis import findings
from peakmark.catalogue import KERNELS


def sentences(folder: Path, records: list[dict[str, Any]], topic: str, **more: Any) -> list[str]:
    """What is said under a heading of the one table that has rows."""
    (rows,) = (table for table in make.judge(folder, records, **more).rows.values() if table)
    return [one.text for one in findings.conclusions(rows) if one.heading == topic]


def test_equal_workloads_are_not_compared_in_words(tmp_path: Path) -> None:
    random = np.random.default_rng(6)
    records = []
    for workload in ("RS", "RR"):
        for threads in (1, 2, 4, 8):
            values = 4e8 * random.lognormal(0, 0.03, 3)
            records += make.runs("diskbench", workload, *values.tolist(), concurrency=threads)
    assert sentences(tmp_path / "c", records, "Workloads") == []


def test_what_has_shorter_times_comes_first_and_what_is_left_open_last(tmp_path: Path) -> None:
    records = []
    for threads, slower in ((1, 1.0), (2, 1.005)):
        for block, value in {1 << 14: 2e-9, 1 << 20: 6e-9, 1 << 25: 2e-8, 1 << 30: 2e-7}.items():
            values = [value * (slower + 0.01 * number) for number in range(3)]
            records += make.runs("rambench", "LAT", *values, block=block, concurrency=threads)
    size, *_ = sentences(tmp_path / "c", records, "Block size")
    assert re.match("16 KiB has shorter times than 1 MiB", size)
    (undecided,) = sentences(tmp_path / "c", records, "Not told apart")
    assert re.search(r"1 thread .* than 2 threads at 4 of 4 .*0\.2\)", undecided)


@pytest.mark.parametrize(
    ("gain", "words"), [(2.0, "8 threads are faster than 1"), (0.5, "1 thread is faster than 8")]
)
def test_the_verb_is_that_of_the_one_that_is_ahead(tmp_path: Path, gain: float, words: str) -> None:
    records = []
    for number, workload in enumerate(("RS", "WS", "RR", "WR"), 1):
        for threads, factor in ((1, 1.0), (8, gain)):
            values = make.near(1e8 * number * factor, 3)
            records += make.runs("diskbench", workload, *values, concurrency=threads)
    (text,) = sentences(tmp_path / "c", records, "Threads")
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
    place = {"block": None if subsystem == "cpu" else 1 << 20}
    records = []
    for workload, factor in zip(pair, (ahead, 1.0), strict=True):
        for threads in (1, 2):
            values = make.near(1e-3 * factor)
            records += make.runs(
                KERNELS[subsystem], workload, *values, concurrency=threads, **place
            )
    (text,) = sentences(tmp_path / "c", records, "Workloads")
    first, second = (name.removeprefix("LAT-") for name in pair)
    assert re.match(rf"\S*{first} is (faster|shorter) than \S*{second} at both", text), text


def test_the_share_of_the_limit_is_said_of_each_program(tmp_path: Path) -> None:
    shares: dict[str, Sequence[float]] = {
        "diskbench": [0.5] * 6, "iozone": [0.5, 0.6, 0.7, 0.8, 0.9, 2.0],
    }  # fmt: skip
    records = []
    for instrument, of_tool in shares.items():
        for threads, share in zip((1, 2, 3, 4, 6, 8), of_tool, strict=True):
            records += make.runs(instrument, "RS", *[4e8 * share] * 3, concurrency=threads)
    site = {"site_facts": {"disk": {"throughput": {"RS": 4e8}}}}
    own, theirs, above = sentences(tmp_path / "c", records, "Limit", config=site)
    assert "50.0 % in the median of 6 rows" in own
    ends = "50.0 % (RS of 1 MiB, 1 thread) to 90.0 % (RS of 1 MiB, 6 threads)"
    assert ends in theirs and "70.0 % in the median of 5 rows" in theirs
    assert above.startswith("1 row ")


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
    (text,) = sentences(tmp_path / "c", records, "Reference")
    assert re.match(r"MyDiskBench .*1\.20 times .*5 rows; from 1\.01 to 1\.20; n = 3;", text)
    assert "other way round: RS of 1 MiB, 5 threads)" in text
    assert re.search("MyDiskBench says more .*5 points", text)
