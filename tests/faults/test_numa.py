"""Threads, pages and limits on a machine with two sockets, two NUMA nodes and two threads a core.
Emulated: never for speed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bench import KERNELS, LIMIT_S
from benchmarks import guest
from benchmarks.guest import Machine

from peakmark import limits
from peakmark.cell import Cell

pytestmark = pytest.mark.trouble  # a minute or two of a core

HERE = Path(__file__).resolve().parent
# CPUs 0 to 3 are on socket 0; 0 and 1 are one core.
MACHINE = Machine(sockets=2, cores=2, threads=2, nodes=2)
ALL = list(range(8))
SITE = {"cpu": {"operations_per_cycle": {"DP": 4}}, "memory": {"bandwidth": 100e9}}

# What was asked for, CPUs of the job, placement -> the CPUs of the threads, cores, nodes.
EXPECTED = [
    (1, ALL, "compact", [0], 1, [0]),
    (2, ALL, "compact", [0, 2], 2, [0]),
    (2, ALL, "spread", [0, 4], 2, [0, 1]),
    ("numa", ALL, "compact", [0, 2], 2, [0]),
    ("socket", ALL, "spread", [0, 2], 2, [0]),
    ("cores", ALL, "compact", [0, 2, 4, 6], 4, [0, 1]),
    ("cpus", ALL, "compact", [0, 2, 4, 6, 1, 3, 5, 7], 4, [0, 1]),
    ("cores", [3, 4, 5, 6], "compact", [4, 6, 3], 3, [0, 1]),  # what a job was given
    ("cpus", [2, 3], "compact", [2, 3], 1, [0]),
]
PAGES = [([0, 2], {"0"}), ([4, 6], {"1"}), ([0, 4], {"0", "1"})]


def cell(asked: int | str, placement: str, repetition: int) -> dict[str, Any]:
    options = {"seconds": 0.02, "warmup": 0.0, "seed": 1, "isa": "sse2", "placement": placement}
    plain = Cell("cpu", "cpubench", "DP", "", None, 1, "any", repetition, options).to_json()
    return plain | {"concurrency": asked}


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    if reason := guest.why_not(MACHINE):
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("numa").resolve()
    cells = [
        {"cell": cell(asked, how, number), "cpus": cpus}
        for number, (asked, cpus, how, *_) in enumerate(EXPECTED)
    ]
    order = {"cells": cells, "pages": [cpus for cpus, _ in PAGES]}
    (*records, last), facts = in_machine(folder, "numa_tasks:measured", order, 4 * LIMIT_S)
    return {"records": records, "facts": facts, "pages": last["pages"]}


def in_machine(folder: Path, function: str, order: dict[str, Any], limit_s: float) -> Any:
    """What the function returns in the emulated machine, and the facts that were collected there."""
    order |= {"folder": str(folder), "kernels": str(KERNELS)}
    where: dict[str, Any] = {"machine": MACHINE, "path": [HERE], "shown": [KERNELS]}
    found = guest.call(folder, function, order, limit_s=limit_s, **where)
    (facts,) = (json.loads(path.read_text()) for path in (folder / "machine").glob("*.json"))
    return found, facts


@pytest.mark.parametrize(
    "number", range(len(EXPECTED)), ids=lambda n: f"{EXPECTED[n][0]}-{EXPECTED[n][2]}-{n}"
)
def test_threads_sit_where_they_should_and_the_limit_is_theirs(
    number: int, seen: dict[str, Any]
) -> None:
    _, given, _, cpus, cores, nodes = EXPECTED[number]
    record, facts = seen["records"][number], seen["facts"]
    context = record["context"]
    assert context["allowed"]["cpus"] == given and context["allowed"]["node_cores"] == 4
    placed = context["placed"]
    assert (placed["cpus"], placed["cores"], placed["numa_nodes"]) == (cpus, cores, nodes)
    argv = context["commands"][0]["argv"]
    assert argv[argv.index("--cpus") + 1] == ",".join(map(str, cpus))
    threads = record["measurements"][0]["concurrency"]
    assert threads == len(cpus)
    limit = limits.for_row("cpu", "DP", "", None, threads, "rate", facts, SITE, 1e9, placed=placed)
    assert limit.value == pytest.approx(cores * 4e9)
    memory = limits.for_row(
        "memory", "RWS", "pool", 1 << 20, threads, "throughput", facts, SITE, placed=placed
    )
    assert memory.value == pytest.approx(100e9 * len(nodes) / 2)


def test_facts_are_those_of_the_whole_machine(seen: dict[str, Any]) -> None:
    cpu = seen["facts"]["cpu"]
    assert (cpu["sockets"], cpu["cores"], cpu["threads"]) == (2, 4, 8)
    assert (cpu["numa_nodes"], cpu["smt"]) == (2, True)
    assert [node["cpus"] for node in cpu["numa"]] == ["0-3", "4-7"]


def test_pages_lie_on_the_nodes_of_the_threads(seen: dict[str, Any]) -> None:
    """As the kernel lists its mappings, and as it answers for each page (move_pages)."""
    for way in ("maps", "moved"):
        assert [set(found[way]) for found in seen["pages"]] == [nodes for _, nodes in PAGES]
        both = seen["pages"][2][way]
        assert min(both.values()) == pytest.approx(max(both.values()), rel=0.2)
