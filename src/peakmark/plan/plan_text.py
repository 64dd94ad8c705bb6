"""Compute the values that ``peakmark plan`` prints with the template ``data/plan.txt.j2``."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from operator import attrgetter

from peakmark import data
from peakmark.catalogue import HPL, SUBSYSTEMS, nodes_of_ranks
from peakmark.cell import Cell
from peakmark.formatting import counted, duration, format_size, gigabytes, plural, quantity
from peakmark.plan import durations, grids
from peakmark.plan.cluster import ANY, Cluster
from peakmark.plan.plan import Plan, node_count, uses_shared_resource
from peakmark.storage.results import rate_of_one_node
from peakmark.tools.programs import hpl

JOB_S, CELL_S = 0.5, 0.4
"""Seconds that each job and each cell take besides the measurement, without the time that Slurm takes."""


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
        "systems": list(_systems(plan)),
        "disk": disk,
        "memory": memory,
    }
    if cluster is not None:
        node_seconds, wall = _times(plan, cluster)
        values |= {
            "nodes": node_names(cluster),
            "jobs": len(plan.jobs),
            "node_seconds": node_seconds,
            "wall": wall,
            "pairs": len({cell.place for cell in plan.cells if cell.peer}),
            "left_out": [f"{name} ({state})" for name, state in cluster.left_out.items()],
        }
    return data.rendered("plan.txt.j2", **values)


def _points(cells: Sequence[Cell]) -> Iterator[tuple[str, list[str]]]:
    """Yield (heading, texts) for each instrument and variant.

    The texts are its workloads, its blocks, its concurrency and its number of repetitions.
    """
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
        # Sort numbers before words: False comes before True.
        concurrency = sorted({(bool(cell.word), cell.asked) for cell in group})
        counts = Counter((cell.workload, cell.block, cell.asked) for cell in group)
        columns = [
            " ".join(workloads),
            " ".join(blocks),
            "x" + " ".join(str(value) for _, value in concurrency),
            plural(max(counts.values()), "repetition"),
        ]
        yield heading, columns


def _systems(plan: Plan) -> Iterator[str]:
    """Yield a text for each number of nodes on which HPL solves a system: its size and the expected time.

    The size follows from a guess of the rate of one node: by its clock and instruction sets or, if no job has
    described the node yet, from an ordinary core. The time follows from the measured rate once there is one.
    The plan counts one process a node: it does not know the sockets.
    """
    hpcc = any(tool.instrument == "hpl" and hpl.is_hpcc(str(tool.path)) for tool in plan.references)
    cells = [cell for cell in plan.cells if cell.workload == HPL and cell.repetition == 0]
    for cell in sorted(cells, key=lambda cell: (nodes_of_ranks(cell.variant), cell.node)):
        cores = plan.cluster.size_of(cell.node)[0] if plan.cluster else grids.threads_of("cores")
        facts = plan.results.facts_for(cell.node)
        guess, source = hpl.PLANNED_RATE * cores, "assumed"
        if cpu := facts.get("cpu"):
            cores = min(cores, cpu.get("cores") or cores)
            guess, source = hpl.guess_rate(cpu, frozenset(cpu["isa"]), cores), "by its clock"
        rate = rate_of_one_node(plan.directory, cell)
        if rate is not None:
            source = "measured"
        nodes = nodes_of_ranks(cell.variant)
        n = hpl.size_of_system(cell, guess, hpl.node_bytes(cell), hpcc, nodes)
        if n is None:
            continue
        seconds = hpl.solution_seconds(n, (rate or guess) * nodes)
        of_one = quantity(rate or guess, "FLOP/s", 3)
        where = plural(nodes, "node")
        if "nodes" in cell.options:
            where += f" ({counted(str(cell.options['nodes']).split())})"
        yield f"HPL, {where}: N = {n} in about {duration(seconds)}, if one reaches {of_one} ({source})"


def _times(plan: Plan, cluster: Cluster) -> tuple[float, float]:
    """Return the seconds summed over all nodes, and the seconds from the first job's start to the last end.

    Jobs that share no resource run at the same time. Each cell gets its share of its job's overhead.
    """
    settings = plan.config.site_facts.slurm
    # With ``fan_out: node``, one node measures all cells for which Slurm chooses the node.
    usable = 1
    if plan.config.fan_out != "node":
        usable = max(1, cluster.count)
    overhead = CELL_S + JOB_S * len(plan.jobs) / max(1, len(plan.cells))
    node_seconds = 0.0
    # The seconds of each node, and of all cells that use a shared resource, one after the other. The longest of
    # these queues ends last.
    queues: dict[str, float] = defaultdict(float)
    shared = [cell for cell in plan.cells if uses_shared_resource(cell, settings)]
    # Nodes or pairs that are measured together take the time of one.
    queues["one at a time"] = plan.durations.total(shared) + overhead * len(shared)
    for cell in plan.cells:
        seconds = plan.durations.expected(cell) + overhead
        node_seconds += seconds * node_count(cell)
        if cell.node == ANY:  # Slurm spreads such cells over the usable nodes
            seconds /= usable
        queues[cell.node] += seconds
    return node_seconds, max(queues.values(), default=0.0)


def node_names(cluster: Cluster) -> str:
    """Return the nodes of the campaign as a phrase, such as ``n1, n2 and 3 more``.

    If Slurm chooses the nodes, the phrase also has the size of a node, and the nodes that are not used.
    """
    chosen = cluster.chosen
    if chosen is None:
        return counted(cluster.nodes)
    size = f"{plural(chosen.cpus, 'CPU')} and {gigabytes(chosen.memory << 20)}"
    text = f"any of {counted(chosen.nodes)}, equal nodes of {size}"
    if chosen.stopped:
        states = [f"{name} ({state})" for name, state in chosen.stopped.items()]
        text += f"; not usable now: {counted(states)}"
    excluded = cluster.excluded(count=1)
    if excluded:
        text += f"; not used: {counted(excluded)}"
    return text
