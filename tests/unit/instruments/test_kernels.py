"""cpubench, rambench and what all own kernels share: options given on, JSON checked against the
cell.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from tests.unit.instruments import samples

from peakmark.cell import Cell
from peakmark.errors import ConfigError, ParseError
from peakmark.instruments import REGISTRY
from peakmark.reasons import Unavailable

KERNEL_CASES = [
    case for case in samples.CASES if case.split("bench/")[0] in ("cpu", "ram", "disk", "net")
]


def argv(cell: Cell) -> str:
    tool = samples.tool(cell.instrument)
    return " ".join(REGISTRY[cell.instrument].prepare(cell, tool, samples.workspace()).command.argv)


def test_cpubench_commands() -> None:
    assert argv(
        samples.cell("cpu", "cpubench", "QP", "", None, 3, seconds=0.5, warmup=0.1, seed=9)
    ) == (
        "/usr/bin/cpubench --workload QP --threads 3 --cpus 0,1 --warmup 0.1 --seed 9 --seconds 0.5"
    )
    words = argv(
        samples.cell("cpu", "cpubench", "DP", "", None, 1, operations=1e12, seconds=1, isa="scalar")
    )
    assert words.endswith("--operations 1000000000000 --isa scalar")
    with pytest.raises(ConfigError, match="isa='mmx'"):
        argv(samples.cell("cpu", "cpubench", "DP", "", None, 1, isa="mmx"))


def test_rambench_commands() -> None:
    assert argv(
        samples.cell("memory", "rambench", "RWR", "pool", 1 << 20, 2, pool="256MiB", seconds=1)
    ) == (
        "/usr/bin/rambench --workload RWR --block 1048576 --pool 268435456 --seconds 1 --threads 2 --cpus 0,1"
    )
    assert "--pool block --total 100000000000" in argv(
        samples.cell("memory", "rambench", "RS", "block", 64, 1, total=10**11)
    )
    assert argv(samples.cell("memory", "rambench", "LAT", "", 1 << 20, 1, accesses=1e8)) == (
        "/usr/bin/rambench --workload LAT --block 1048576 --accesses 100000000 --threads 1 --cpus 0"
    )
    assert "--huge-pages off" in argv(
        samples.cell("memory", "rambench", "LAT", "", 1 << 20, 1, huge_pages=False)
    )
    assert "--store libc" in argv(
        samples.cell("memory", "rambench", "RWS", "block", 1024, 1, store="libc")
    )


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        (samples.cell("memory", "rambench", "RS", "", 1024, 1), "variant block or pool"),
        (samples.cell("memory", "rambench", "LAT", "pool", 1024, 1), "no variant"),
        (
            samples.cell("memory", "rambench", "RS", "pool", 1024, 1, pool="16GiB"),
            "make the pool smaller",
        ),
    ],
)
def test_what_rambench_cannot_do(cell: Cell, words: str) -> None:
    with pytest.raises(Unavailable, match=words):
        argv(cell)


@pytest.mark.parametrize("case", KERNEL_CASES)
@pytest.mark.parametrize(
    "key",
    ["instrument", "version", "workload", "threads", "value", "unit", "seconds", "per_thread"],
)
def test_shared_keys_are_needed(case: str, key: str) -> None:
    cell, completed = samples.load(case)
    document = json.loads(completed.stdout)
    del document[key]
    with pytest.raises(ParseError, match=key):
        REGISTRY[cell.instrument].parse(
            cell, dataclasses.replace(completed, stdout=json.dumps(document))
        )


@pytest.mark.parametrize("case", KERNEL_CASES)
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("instrument", "other"),
        ("unit", "GB/s"),
        ("threads", 99),
        ("value", 0),
        ("value", -1.0),
        ("value", "1"),
        ("seconds", 0),
    ],
)
def test_wrong_values_are_refused(case: str, key: str, value: Any) -> None:
    cell, completed = samples.load(case)
    text = json.dumps({**json.loads(completed.stdout), key: value})
    with pytest.raises(ParseError, match=key):
        REGISTRY[cell.instrument].parse(cell, dataclasses.replace(completed, stdout=text))


def test_a_rate_that_is_not_work_by_time_is_refused() -> None:
    for case in (
        "cpubench/dp-x2",
        "rambench/rs-block-x1",
        "diskbench/rr-psync-x2",
        "netbench/tcp-x1",
    ):
        cell, completed = samples.load(case)
        document = json.loads(completed.stdout)
        document["work"] *= 2
        with pytest.raises(ParseError, match="contradicts itself"):
            REGISTRY[cell.instrument].parse(
                cell, dataclasses.replace(completed, stdout=json.dumps(document))
            )


def test_only_one_line_is_a_result() -> None:
    cell, completed = samples.load("cpubench/dp-x2")
    twice = dataclasses.replace(completed, stdout=completed.stdout * 2)
    with pytest.raises(ParseError, match="more than its one line"):
        REGISTRY["cpubench"].parse(cell, twice)


def test_details_of_a_kernel() -> None:
    details = samples.only(samples.parse("cpubench/dp-x2")).details
    assert details["isa"] == "avx2"
    assert details["instruction"] == "vfmadd213pd"
    assert details["clock_hz_before"] > 1e9
    assert "per_thread" not in details
    details = samples.only(samples.parse("rambench/rws-pool-x2")).details
    assert (details["working_set"], details["store"], details["pool"]) == (
        "pool",
        "non-temporal",
        64 << 20,
    )
