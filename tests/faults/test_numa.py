"""Threads, pages and limits on a machine with two sockets, two NUMA nodes and two threads a core,
without and with a Slurm that binds jobs (task/affinity, task/cgroup). Emulated: never for speed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numa_tasks
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
WHOLE = ["--exclusive", "--cpus-per-task=8"]
PROGRAMS = {"slurmctld": "slurmctld", "slurmd": "slurmd", "srun": "slurm-client", "munged": "munge"}
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
# Options of srun, what the cell asks for -> the job's cpuset (task/cgroup), its affinity
# (task/affinity), CPUs of the threads, cores, nodes.
IN_JOBS: list[tuple[list[str], int | str, str, list[int], list[int], int, list[int]]] = [
    # A core is never shared: both its threads are the job's.
    (["--cpus-per-task=1"], "cpus", "0-1", [0, 1], [0, 1], 1, [0]),
    (["--cpus-per-task=4"], "cores", "0-3", [0, 1, 2, 3], [0, 2], 2, [0]),
    ([*WHOLE, "--cpu-bind=mask_cpu:0x33"], "cores", "0-7", [0, 1, 4, 5], [0, 4], 2, [0, 1]),
    (WHOLE, "cores", "0-7", list(range(8)), [0, 2, 4, 6], 4, [0, 1]),
]
WITH_PAGES = 2
PAGES = [([0, 2], {"0"}), ([4, 6], {"1"}), ([0, 4], {"0", "1"})]


def cell(asked: int | str, placement: str, repetition: int) -> dict[str, Any]:
    options = {"seconds": 0.02, "warmup": 0.0, "seed": 1, "isa": "sse2", "placement": placement}
    plain = Cell("cpu", "cpubench", "DP", "", None, 1, "any", repetition, options).to_json()
    return plain | {"concurrency": asked}


def in_machine(
    factory: pytest.TempPathFactory, function: str, limit_s: float, **order: Any
) -> tuple[Any, dict[str, Any]]:
    """What the function returns in the emulated machine, and the facts that were collected there."""
    if reason := guest.why_not(MACHINE):
        pytest.skip(reason)
    folder = factory.mktemp("numa").resolve()
    order |= {"folder": str(folder), "kernels": str(KERNELS)}
    where: dict[str, Any] = {"machine": MACHINE, "path": [HERE], "shown": [KERNELS]}
    seen = guest.call(folder, f"numa_tasks:{function}", order, limit_s=limit_s, **where)
    (facts,) = (json.loads(path.read_text()) for path in (folder / "machine").glob("*.json"))
    return seen, facts


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    cells = [
        {"cell": cell(concurrency, placement, number), "cpus": cpus}
        for number, (concurrency, cpus, placement, *_) in enumerate(EXPECTED)
    ]
    order = {"cells": cells, "pages": [cpus for cpus, _ in PAGES]}
    (*records, last), facts = in_machine(tmp_path_factory, "on_cpus", 4 * LIMIT_S, **order)
    return {"records": records, "facts": facts, "pages": last["pages"]}


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    if reason := guest.common.missing(PROGRAMS):
        pytest.skip(reason)
    orders = [
        {
            "words": words,
            "cell": cell(concurrency, "compact", number),
            "pages": number == WITH_PAGES,
        }
        for number, (words, concurrency, *_) in enumerate(IN_JOBS)
    ]
    seen, facts = in_machine(tmp_path_factory, "in_jobs", 10 * LIMIT_S, jobs=orders)
    return {**seen, "facts": facts}


def assert_placed(
    record: dict[str, Any], facts: dict[str, Any], allowed: list[int], cpus: list[int], cores: int, nodes: list[int]
) -> None:  # fmt: skip
    """Threads sit on these CPUs, and the limits are those of their cores and nodes."""
    context = record["context"]
    assert context["allowed"]["cpus"] == allowed and context["allowed"]["node_cores"] == 4
    placed = context["placed"]
    assert (placed["cpus"], placed["cores"], placed["numa_nodes"]) == (cpus, cores, nodes)
    argv = context["commands"][0]["argv"]
    assert argv[argv.index("--cpus") + 1] == ",".join(map(str, cpus))
    threads = record["measurements"][0]["concurrency"]
    assert threads == len(cpus)
    row = ("cpu", "DP", "", None, threads, "rate")
    limit = limits.for_row(*row, facts, SITE, 1e9, placed=placed)
    assert limit.value == pytest.approx(cores * 4e9)
    row = ("memory", "RWS", "pool", 1 << 20, threads, "throughput")
    memory = limits.for_row(*row, facts, SITE, placed=placed)
    assert memory.value == pytest.approx(100e9 * len(nodes) / 2)


@pytest.mark.parametrize("number", range(len(EXPECTED)))
def test_threads_sit_where_they_should(number: int, seen: dict[str, Any]) -> None:
    _, given, _, cpus, cores, nodes = EXPECTED[number]
    assert_placed(seen["records"][number], seen["facts"], given, cpus, cores, nodes)


@pytest.mark.parametrize("number", range(len(IN_JOBS)))
def test_a_jobs_cells_have_its_cores(number: int, jobs: dict[str, Any]) -> None:
    _, _, cpuset, given, cpus, cores, nodes = IN_JOBS[number]
    job = jobs["jobs"][number]
    assert (job["cpuset"], job["affinity"]) == (cpuset, given)
    assert_placed(job["record"], jobs["facts"], given, cpus, cores, nodes)


def test_a_jobs_pages_lie_on_the_nodes_of_its_cores(jobs: dict[str, Any]) -> None:
    found = jobs["jobs"][WITH_PAGES]["pages"]
    assert set(found["maps"]) == set(found["moved"]) == {"0", "1"}
    assert sum(found["moved"].values()) >= numa_tasks.POOL // numa_tasks.PAGE


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
