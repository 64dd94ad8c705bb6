"""Threads, pages, limits and matrices on emulated machines with two NUMA nodes; never for speed."""

import json
from pathlib import Path

import pytest
from bench import KERNELS
from tests import guest
from tests.guest import Machine
from tests.programs import LIMIT_S

from peakmark import limits
from peakmark.catalogue import NUMA
from peakmark.cell import Cell
from peakmark.tools import REGISTRY
from peakmark.tools.base import Completed

pytestmark = pytest.mark.trouble  # a minute or two of a core

HERE = Path(__file__).resolve().parent
# CPUs 0 to 3 are on socket 0; 0 and 1 are one core.
MACHINE = Machine(sockets=2, cores=2, threads=2, nodes=2)
SMALL = Machine(sockets=2, cores=1, nodes=2, memory_mib=768)
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
    ("cores", [0, 1, 4, 5], "compact", [0, 4], 2, [0, 1]),
]
PAGES = [([0, 2], {"0"}), ([4, 6], {"1"}), ([0, 4], {"0", "1"})]


def cell(asked, placement, repetition):
    options = {"seconds": 0.02, "warmup": 0.0, "seed": 1, "isa": "sse2", "placement": placement}
    plain = Cell("cpu", "cpubench", "DP", "", None, 1, "any", repetition, options).to_json()
    return plain | {"concurrency": asked}


def in_machine(machine, folder, task, order):
    """What a task of ``numa_tasks`` gives in an emulated machine."""
    if reason := guest.why_not(machine):
        pytest.skip(reason)
    where = {"machine": machine, "path": [HERE], "shown": [KERNELS]}
    order |= {"folder": str(folder), "kernels": str(KERNELS)}
    return guest.call(folder, f"numa_tasks:{task}", order, limit_s=4 * LIMIT_S, **where)


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """Records, facts and places of pages from the emulated machine."""
    folder = tmp_path_factory.mktemp("numa").resolve()
    cells = [
        {"cell": cell(concurrency, placement, number), "cpus": cpus}
        for number, (concurrency, cpus, placement, *_) in enumerate(EXPECTED)
    ]
    order = {"cells": cells, "pages": [cpus for cpus, _ in PAGES]}
    (*records, last) = in_machine(MACHINE, folder, "on_cpus", order)
    (facts,) = (json.loads(path.read_text()) for path in (folder / "machine").glob("*.json"))
    return {"records": records, "facts": facts, "pages": last["pages"]}


def assert_placed(
    record, facts, allowed, cpus, cores, nodes
):  # fmt: skip
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
    limit = limits.for_row(limits.Question(*row, facts, SITE, 1e9, placed=placed))
    assert limit.value == pytest.approx(cores * 4e9)
    row = ("memory", "RWS", "pool", 1 << 20, threads, "throughput")
    memory = limits.for_row(limits.Question(*row, facts, SITE, placed=placed))
    assert memory.value == pytest.approx(100e9 * len(nodes) / 2)


@pytest.mark.parametrize("number", range(len(EXPECTED)))
def test_threads_sit_where_they_should(number, seen):
    _, given, _, cpus, cores, nodes = EXPECTED[number]
    assert_placed(seen["records"][number], seen["facts"], given, cpus, cores, nodes)


def test_facts_are_those_of_the_whole_machine(seen):
    cpu = seen["facts"]["cpu"]
    assert (cpu["sockets"], cpu["cores"], cpu["threads"]) == (2, 4, 8)
    assert (cpu["numa_nodes"], cpu["smt"]) == (2, True)
    assert [node["cpus"] for node in cpu["numa"]] == ["0-3", "4-7"]


def test_pages_lie_on_the_nodes_of_the_threads(seen):
    assert [set(found) for found in seen["pages"]] == [nodes for _, nodes in PAGES]
    both = seen["pages"][2]
    assert min(both.values()) == pytest.approx(max(both.values()), rel=0.2)


@pytest.fixture(scope="module")
def matrices(tmp_path_factory):
    """What rambench printed, and the nodes of its pages, from a smaller machine."""
    folder = tmp_path_factory.mktemp("matrix").resolve()
    return in_machine(SMALL, folder, "matrices", {"workloads": NUMA})


@pytest.mark.parametrize("number", range(len(NUMA)))
def test_a_matrix_goes_from_each_node_to_each(number, matrices):
    cell = Cell("memory", "rambench", NUMA[number], "", None, 2, "any", 0)
    done = Completed((), 0, matrices["printed"][number], "")
    rows = {row.variant: row for row in REGISTRY["rambench"].parse(cell, done).measurements}
    assert list(rows) == ["local", "other-socket"]
    for name, pairs in (("local", [[0, 0], [1, 1]]), ("other-socket", [[0, 1], [1, 0]])):
        points = rows[name].details["points"]
        assert [point[:2] for point in points] == pairs
        assert all(value > 0 for *_, value in points)


def test_each_node_holds_its_area(matrices):
    assert set(matrices["pages"]) == {"0", "1"}
    assert matrices["pages"]["0"] == pytest.approx(matrices["pages"]["1"], rel=0.1)
