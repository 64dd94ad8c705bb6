"""What a job asks for, and how a job and its cells find each other again."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from peakmark import slurm
from peakmark.cell import Cell
from peakmark.plan import durations
from peakmark.plan import plan as planning
from peakmark.plan.cluster import ANY, Cluster, settings_of
from peakmark.plan.grouping import alone, part, two_nodes

MARGIN = 3.0
OVERRIDES = {
    "slurm_partition": "partition",
    "slurm_account": "account",
    "qos": "qos",
    "constraint": "constraint",
}
"""Names of Snakemake's --default-resources -> keys of the site file's section ``slurm``."""


def comment(plan: planning.Plan, cells: Sequence[Cell], folder: Path | None = None) -> str:
    """What squeue, scontrol and sacct show of a job: its cell or its name, the checkout, and what
    it will measure.

    The last word changes with the cells' options: a job of an earlier run with the same comment
    measures the same.
    """
    name = plan.job_of(cells[0])
    what = cells[0].id if name is None else f"nodes/{name}"
    return f"{plan.campaign}/{what} {checkout(folder)}.{fingerprint(cells, plan)[:8]}"


def checkout(folder: Path | None = None) -> str:
    """Eight letters that tell the folder with the campaigns from any other: its name may hold what
    a comment may not.
    """
    return hashlib.sha256(
        str((folder or Path.cwd()).resolve()).encode(errors="surrogateescape")
    ).hexdigest()[:8]


def name(plan: planning.Plan, cells: Sequence[Cell], settings: Mapping[str, Any]) -> str:
    """A readable name. Those of jobs that may not run at once are equal, as Slurm's ``singleton``
    goes by the name.
    """
    first = cells[0]
    if any(alone(cell, settings) for cell in cells):
        return f"{plan.campaign}.{part(first, settings)}{_lane(plan, first, settings)}"
    return plan.job_of(first) or f"{first.instrument}.{first.point}.{first.repetition}"


def _lane(plan: planning.Plan, cell: Cell, settings: Mapping[str, Any]) -> str:
    """Pairs of nodes that share nothing, as the site says, measure side by side: so many at a time."""
    lanes = int(settings.get("pairs", 1))
    if not two_nodes(cell) or lanes == 1 or plan.cluster is None or cell.node == ANY:
        return ""
    return str(plan.cluster.nodes.index(cell.node) % lanes)


def fingerprint(cells: Iterable[Cell], plan: planning.Plan) -> str:
    """Changes whenever what is to be measured changes, with what, or what decides how often."""
    cells = list(cells)
    criteria = sorted(
        {f"{cell.row} {plan.criteria[cell.row]}" for cell in cells if cell.row in plan.criteria}
    )
    programs = sorted({" ".join(words_of(cell.instrument, plan)) for cell in cells})
    return hashlib.sha256(
        "\n".join([*(cell.spec() for cell in cells), *criteria, *programs]).encode()
    ).hexdigest()


def words_of(instrument: str, plan: planning.Plan) -> list[str]:
    """The program and the modules that measure."""
    tool, modules = plan.config["tools"].get(instrument), plan.config["modules"].get(instrument, [])
    return [str(tool or "auto"), *(f"--module={name}" for name in modules)]


def threads(cells: Sequence[Cell], plan: planning.Plan) -> int:
    """CPUs to ask for: as many as the hungriest cell has threads, but never more than its node has;
    a word may mean all.
    """
    wanted = max(cell.concurrency for cell in cells)
    if plan.cluster is None:
        return wanted
    there, _ = _size(cells, plan.cluster)
    return there if any(cell.word for cell in cells) else min(wanted, there)


def _size(cells: Sequence[Cell], cluster: Cluster) -> tuple[int, int]:
    """CPUs and memory (MiB) of the nodes on which the job may run: the least of all where two of
    any class must do.
    """
    node = cells[0].node
    if two_nodes(cells[0]) and (node != ANY or not cluster.excluded(2)):
        return cluster.cpus, cluster.memory
    return cluster.size_of(node)


def eligible(cells: Sequence[Cell], plan: planning.Plan) -> tuple[tuple[str, ...], int]:
    """The nodes on which Slurm may run a job, and how many of them it takes."""
    count = 2 if two_nodes(cells[0]) else 1
    if plan.cluster is None:
        return (), count
    node = cells[0].node
    if node == ANY:
        return tuple(plan.cluster.eligible(count)), count
    peer = plan.peers.get(node) if count == 2 else None
    return ((node,), 1) if peer is None else ((node, peer), 2)


def minutes(cells: Iterable[Cell], plan: planning.Plan) -> int:
    """Time limit in minutes: the longest time with a generous margin, never below two, never above
    the partition's.

    Where jobs share a node, a job may wait there for as many others as the node has room for.
    """
    cells = list(cells)
    settings = settings_of(plan.config)
    factor = float(settings.get("runtime_factor", 1.0))
    seconds = sum(map(plan.durations.longest, cells))
    if plan.cluster is not None and not settings.get("exclusive", True):
        cpus, _ = _size(cells, plan.cluster)
        seconds = max(seconds, plan.longest) * max(1, cpus // threads(cells, plan))
    wanted = math.ceil((seconds * MARGIN / 60 + 1) * factor)
    return clip_minutes(max(2, wanted), plan.cluster.limit if plan.cluster else None)


def clip_minutes(wanted: int, limit: int | None) -> int:
    """Minutes that a job may ask for in a partition with this limit."""
    return wanted if limit is None else max(1, min(wanted, limit))


def megabytes(cells: Sequence[Cell], plan: planning.Plan) -> int:
    """Memory in MB (10^6 B): what is needed, at most the whole node. A word may mean all CPUs of
    the node.
    """
    if plan.cluster is None:
        return durations.megabytes(cells, plan.config)
    cpus, memory = _size(cells, plan.cluster)
    counted = [replace(cell, concurrency=cpus, word="") if cell.word else cell for cell in cells]
    return min(durations.megabytes(counted, plan.config), memory)


def options(cells: Sequence[Cell], plan: planning.Plan, given: Mapping[str, Any]) -> list[str]:
    """Options of sbatch for the job of these cells. ``given``: partition and the like of the
    command line.
    """
    return command_line(asked(cells, plan, given), settings_of(plan.config))


def command_line(asked: Mapping[str, str], settings: Mapping[str, Any]) -> list[str]:
    """Options as sbatch takes them, with those that the site wants for every job."""
    extra = str(settings.get("extra", "")).split()
    also = [word.partition("=")[2] for word in extra if word.startswith("--exclude=")]
    if also and "exclude" in asked:  # the last --exclude is the only one that sbatch heeds
        extra = [word for word in extra if not word.startswith("--exclude=")]
        asked = {**asked, "exclude": ",".join([asked["exclude"], *also])}
    named = [f"--{name}={value}" if value else f"--{name}" for name, value in asked.items()]
    return [*named, *extra]


def asked(cells: Sequence[Cell], plan: planning.Plan, given: Mapping[str, Any]) -> dict[str, str]:
    """The same by name, empty where an option has no value."""
    settings = {**settings_of(plan.config), **given}
    nodes = 2 if two_nodes(cells[0]) else 1

    def size() -> Size:
        count = cpus = threads(cells, plan)
        if plan.cluster is not None and settings.get("exclusive", True):
            cpus, _ = _size(cells, plan.cluster)
        return Size(count, cpus, megabytes(cells, plan))

    named = site_options(settings, nodes, minutes(cells, plan), size)
    if cells[0].node != ANY:
        peer = plan.peers.get(cells[0].node) if nodes == 2 else None
        named["nodelist"] = ",".join(filter(None, (cells[0].node, peer)))
    elif plan.cluster is not None and (excluded := plan.cluster.excluded(nodes)):
        named["exclude"] = slurm.hostlist(excluded)
    if any(alone(cell, settings) for cell in cells):
        named["dependency"] = "singleton"
    return named


class Size(NamedTuple):
    """What a job needs of a node. ``cpus``: among which its memory is divided."""

    threads: int
    cpus: int
    megabytes: int


def site_options(
    settings: Mapping[str, Any], nodes: int, minutes: int, size: Callable[[], Size]
) -> dict[str, str]:
    """Options of sbatch, by name, that the site decides; the same for a campaign and for doctor.

    Args:
        settings: section ``slurm`` of the site file.
        nodes: number of nodes.
        minutes: time limit.
        size: called where the job does not take its whole node.
    """
    named = {
        key: str(settings[key])
        for key in ("partition", "account", "qos", "constraint")
        if key in settings
    }
    named |= {"time": str(minutes), "nodes": str(nodes), "ntasks-per-node": "1", "no-requeue": ""}
    # A job that has its node to itself takes all of it: Slurm binds to what was asked for.
    exclusive = settings.get("exclusive", True)
    named |= {"exclusive": ""} if exclusive else {"cpus-per-task": str(size().threads)}
    how = settings.get("memory", "per_node")
    if how == "per_cpu":
        needed = size()
        named["mem-per-cpu"] = f"{math.ceil(needed.megabytes / needed.cpus)}M"
    elif how != "none":
        named["mem"] = "0" if exclusive else f"{size().megabytes}M"
    return named


def resources(
    cells: Sequence[Cell], plan: planning.Plan, given: Mapping[str, Any]
) -> dict[str, Any]:
    """The same in the words of Snakemake's own Slurm executor, whose options may not be in
    ``slurm_extra``.
    """
    settings = {**settings_of(plan.config), **given}
    extra = {
        name: value
        for name, value in asked(cells, plan, given).items()
        if name in ("exclusive", "nodelist", "exclude", "dependency")
    }
    both = two_nodes(cells[0])
    return {
        "runtime": minutes(cells, plan),
        "mem_mb": megabytes(cells, plan),
        "slurm_extra": " ".join(command_line(extra, settings_of(plan.config))),
        "nodes": 2 if both else None,
        "tasks": 2 if both else None,
        "mpi": "srun" if both else None,
        **{
            resource: str(settings[key]) if key in settings else None
            for resource, key in OVERRIDES.items()
        },
    }
