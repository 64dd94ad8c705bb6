"""Compute the values that ``peakmark plan`` prints with the template ``data/plan.txt.j2``."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

from peakmark import data
from peakmark.catalogue import SUBSYSTEMS
from peakmark.cell import Cell
from peakmark.formatting import format_size, gigabytes, listing, plural
from peakmark.plan import durations
from peakmark.plan.cluster import ANY, Cluster, EqualNodes, settings_of
from peakmark.plan.job_groups import two_nodes, uses_shared_resource
from peakmark.plan.plan import Plan

JOB_S, CELL_S = 0.5, 0.4
"""Overhead of each job and of each cell in seconds, without measuring and without Slurm."""


class Load(NamedTuple):
    """Seconds that a campaign takes on a cluster; jobs that share nothing run at once.

    Attributes:
        node_seconds: seconds of all nodes together.
        wall: seconds from the start of the first job to the end of the last.
        one_at_a_time: seconds of cells that run one after the other: they use the network or a shared
            disk.
    """

    node_seconds: float
    wall: float
    one_at_a_time: float


def describe(plan: Plan, every_cell: bool = False) -> str:
    """Describe the cells, reference tools, disk space and expected time of a plan."""
    times, cluster = plan.durations, plan.cluster
    missing = plan.results.missing
    disk, memory = durations.largest(plan.cells)
    values = {
        "plan": plan,
        "times": times,
        "every_cell": every_cell,
        "missing": missing,
        "measured": len(plan.cells) - len(missing),
        "SUBSYSTEMS": SUBSYSTEMS,
        "points": _points,
        "disk": disk,
        "memory": memory,
    }
    if cluster is not None:
        values |= {
            "nodes": node_names(cluster),
            "jobs": len(plan.jobs),
            "load": _load(plan, cluster),
            "pairs": len({cell.place for cell in plan.cells if cell.peer}),
            "too_small": list(_too_small(plan, cluster)),
            "left_out": [f"{name} ({state})" for name, state in cluster.left_out.items()],
        }
    return data.rendered("plan.txt.j2", **values)


def _points(cells: Sequence[Cell]) -> Iterator[tuple[str, list[str]]]:
    """Yield each instrument with its workloads, blocks, concurrency and repetitions."""
    groups: dict[tuple[str, str], list[Cell]] = defaultdict(list)
    for cell in sorted(cells, key=attrgetter("id")):
        groups[cell.instrument, cell.variant].append(cell)
    for (instrument, variant), group in sorted(groups.items()):
        heading = instrument
        if variant:
            heading = f"{instrument} ({variant})"
        workloads = dict.fromkeys(cell.workload for cell in group)
        sizes = sorted({cell.block for cell in group if cell.block})
        blocks = list(map(format_size, sizes))
        if any(cell.automatic for cell in group):
            blocks.append("auto")
        # Numbers before words.
        concurrency = sorted({(bool(cell.word), cell.asked) for cell in group})
        counts = Counter((cell.workload, cell.block, cell.asked) for cell in group)
        columns = [
            " ".join(workloads),
            " ".join(blocks),
            "x" + " ".join(str(value) for _, value in concurrency),
            plural(max(counts.values()), "repetition"),
        ]
        yield heading, columns


def _load(plan: Plan, cluster: Cluster) -> Load:
    """Return the times of a campaign. Each cell gets its share of its job's overhead."""
    settings = settings_of(plan.config)
    usable = 1
    if plan.config["fan_out"] != "node":
        usable = max(1, cluster.count)
    jobs = len(plan.jobs)
    overhead = CELL_S + JOB_S * jobs / max(1, len(plan.cells))
    one_at_a_time = node_seconds = 0.0
    per_node: dict[str, float] = defaultdict(float)
    for cell in plan.cells:
        seconds = plan.durations.expected(cell) + overhead
        if uses_shared_resource(cell, settings) and not cell.options.get("part"):
            one_at_a_time += seconds
        node_seconds += seconds
        if two_nodes(cell):
            node_seconds += seconds
        if cell.node == ANY:
            seconds /= usable
        per_node[cell.node] += seconds
    wall = max([one_at_a_time, *per_node.values()])
    return Load(node_seconds, wall, one_at_a_time)


def _too_small(plan: Plan, cluster: Cluster) -> Iterator[tuple[EqualNodes, int, int]]:
    """Yield the classes of nodes with too few CPUs or too little memory for some row.

    Each class is followed by the CPUs and the memory in MiB that its rows need.
    """
    for kind in cluster.kinds:
        nodes = kind.nodes
        if kind.chosen:
            # With ``nodes: any``, cells run on the chosen class, and ``any`` is their node.
            nodes = [ANY]
        cells = [cell for cell in plan.cells if cell.node in nodes and not two_nodes(cell)]
        cpus, memory = durations.needs(cells, plan.config)
        if cpus > kind.cpus or memory > kind.memory:
            yield kind, cpus, memory


def node_names(cluster: Cluster) -> str:
    """Return the nodes of the campaign as a phrase."""
    chosen = cluster.chosen
    if chosen is None:
        return listing(cluster.nodes)
    size = f"{plural(chosen.cpus, 'CPU')} and {gigabytes(chosen.memory << 20)}"
    text = f"any of {listing(chosen.nodes)}, equal nodes of {size}"
    excluded = cluster.excluded(1)
    if excluded:
        text += f"; not used: {listing(excluded)}"
    return text
