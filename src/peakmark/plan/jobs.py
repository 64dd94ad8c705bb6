"""Name, comment and sbatch options of a job. A later run recognises the job by its comment."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from peakmark import slurm
from peakmark.cell import Cell
from peakmark.plan import durations
from peakmark.plan.cluster import ANY, Cluster, Settings, settings_of
from peakmark.plan.job_groups import resource_of, two_nodes, uses_shared_resource
from peakmark.plan.plan import Plan

MARGIN = 3.0
"""A job's time limit as a multiple of its longest time."""
OVERRIDES = {
    "slurm_partition": "partition",
    "slurm_account": "account",
    "qos": "qos",
    "constraint": "constraint",
}
"""Names of Snakemake's --default-resources -> keys of the site file's section ``slurm``."""


def comment(plan: Plan, cells: Sequence[Cell], folder: Path | None = None) -> str:
    """Return the comment that squeue, scontrol and sacct show: cell or name, checkout, fingerprint.

    A job of an earlier run with the same comment measures the same.
    """
    job = plan.job_of(cells[0])
    what = f"nodes/{job}"
    if job is None:
        what = cells[0].id
    return f"{plan.campaign}/{what} {checkout(folder)}.{fingerprint(cells, plan)[:8]}"


def checkout(folder: Path | None = None) -> str:
    """Return eight letters for the folder of the campaigns: its name may not fit into a comment."""
    path = str((folder or Path.cwd()).resolve())
    return hashlib.sha256(path.encode(errors="surrogateescape")).hexdigest()[:8]


def name(plan: Plan, cells: Sequence[Cell], settings: Settings) -> str:
    """Return a readable name.

    Jobs that may not run at once have the same name: Slurm's ``singleton`` compares names.
    """
    first = cells[0]
    if any(uses_shared_resource(cell, settings) for cell in cells):
        return f"{plan.campaign}.{resource_of(first, settings)}"
    return plan.job_of(first) or f"{first.instrument}.{first.point}.{first.repetition}"


def fingerprint(cells: Iterable[Cell], plan: Plan) -> str:
    """Return a text that changes with the cells and with the programs that measure them."""
    lines = []
    programs = set()
    for cell in cells:
        lines.append(cell.spec())
        programs.add(" ".join(program(cell.instrument, plan)))
    lines += sorted(programs)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def program(instrument: str, plan: Plan) -> list[str]:
    """Return the program and the modules that an instrument takes."""
    tool = plan.config["tools"].get(instrument)
    modules = plan.config["modules"].get(instrument, [])
    return [str(tool or "auto"), *(f"--module={module}" for module in modules)]


def threads(cells: Sequence[Cell], plan: Plan) -> int:
    """Return the CPUs to ask for: those of the most demanding cell, at most those of the node."""
    wanted = max(cell.concurrency for cell in cells)
    if plan.cluster is None:
        return wanted
    cpus, _ = _node_size(cells, plan.cluster)
    if any(cell.word for cell in cells):
        return cpus
    return min(wanted, cpus)


def _node_size(cells: Sequence[Cell], cluster: Cluster) -> tuple[int, int]:
    """Return CPUs and memory (MiB) of the smallest node on which the job may run."""
    node = cells[0].node
    if two_nodes(cells[0]) and (node != ANY or not cluster.excluded(2)):
        return cluster.cpus, cluster.memory
    return cluster.size_of(node)


def eligible(cells: Sequence[Cell], plan: Plan) -> tuple[tuple[str, ...], int]:
    """Return the nodes on which Slurm may run a job, and how many of them it takes."""
    count = _node_count(cells)
    if plan.cluster is None:
        return (), count
    if cells[0].node == ANY:
        return tuple(plan.cluster.eligible(count)), count
    nodes = _named_nodes(cells, plan)
    return nodes, len(nodes)


def _node_count(cells: Sequence[Cell]) -> int:
    if two_nodes(cells[0]):
        return 2
    return 1


def _named_nodes(cells: Sequence[Cell], plan: Plan) -> tuple[str, ...]:
    """Return the job's node, and its peer where the cells need two."""
    node, peer = cells[0].node, cells[0].peer
    if not peer and two_nodes(cells[0]):
        peer = plan.peers.get(node, "")
    if not peer:
        return (node,)
    return (node, peer)


def minutes(cells: Sequence[Cell], plan: Plan) -> int:
    """Return the time limit in minutes, from two to the partition's limit.

    It is the longest time with a margin, and the time for measuring again. Where jobs share a node,
    a job may wait there for as many others as fit on the node.
    """
    settings = settings_of(plan.config)
    seconds, jobs = sum(map(plan.durations.longest, cells)), 1
    if plan.cluster is not None and not settings.get("exclusive", True):
        cpus, _ = _node_size(cells, plan.cluster)
        seconds, jobs = max(seconds, plan.longest), max(1, cpus // threads(cells, plan))
    again = plan.durations.repeated(cells)
    factor = float(settings.get("runtime_factor", 1.0))
    wanted = max(2, math.ceil(((seconds * MARGIN + again) * jobs / 60 + 1) * factor))
    if plan.cluster is None:
        return wanted
    nodes: tuple[str, ...] = ()
    if cells[0].node != ANY:
        nodes = _named_nodes(cells, plan)
    return clip_minutes(wanted, plan.cluster.limit_of(nodes))


def clip_minutes(wanted: int, limit: int | None) -> int:
    """Return the minutes that a job may ask for in a partition with this limit."""
    if limit is None:
        return wanted
    return max(1, min(wanted, limit))


def megabytes(cells: Sequence[Cell], plan: Plan) -> int:
    """Return the memory in MB (10^6 B), at most that of the node.

    A word of ``concurrency`` may mean all CPUs of the node.
    """
    if plan.cluster is None:
        return durations.megabytes(cells, plan.config)
    cpus, memory = _node_size(cells, plan.cluster)
    numbers = []
    for cell in cells:
        if cell.word:
            numbers.append(replace(cell, concurrency=cpus, word=""))
        else:
            numbers.append(cell)
    return min(durations.megabytes(numbers, plan.config), memory)


def options(cells: Sequence[Cell], plan: Plan, overrides: Settings) -> list[str]:
    """Return sbatch's options for the job of these cells; ``overrides`` are the command line's."""
    return command_line(named_options(cells, plan, overrides), settings_of(plan.config))


def command_line(named: Mapping[str, str], settings: Settings) -> list[str]:
    """Return the options as sbatch takes them, with the site's ``extra`` ones."""
    extra = str(settings.get("extra", "")).split()
    excludes = [word for word in extra if word.startswith("--exclude=")]
    if excludes and "exclude" in named:  # sbatch heeds only the last --exclude.
        extra = [word for word in extra if word not in excludes]
        hosts = [word.removeprefix("--exclude=") for word in excludes]
        named = {**named, "exclude": ",".join([named["exclude"], *hosts])}
    arguments = []
    for option, value in named.items():
        argument = f"--{option}"
        if value:
            argument += f"={value}"
        arguments.append(argument)
    return arguments + extra


def named_options(cells: Sequence[Cell], plan: Plan, overrides: Settings) -> dict[str, str]:
    """Return sbatch's options by name, with the empty text for an option without a value."""
    settings = {**settings_of(plan.config), **overrides}
    nodes = _node_count(cells)

    def size() -> Size:
        count = cpus = threads(cells, plan)
        if plan.cluster is not None and settings.get("exclusive", True):
            cpus, _ = _node_size(cells, plan.cluster)
        return Size(count, cpus, megabytes(cells, plan))

    named = site_options(settings, nodes, minutes(cells, plan), size)
    if cells[0].node != ANY:
        named["nodelist"] = ",".join(_named_nodes(cells, plan))
    elif plan.cluster is not None and (excluded := plan.cluster.excluded(nodes)):
        named["exclude"] = slurm.hostlist(excluded)
    if any(uses_shared_resource(cell, settings) for cell in cells):
        named["dependency"] = "singleton"
    return named


class Size(NamedTuple):
    """Needs of a job on a node; its memory is divided among ``cpus``."""

    threads: int
    cpus: int
    megabytes: int


def site_options(
    settings: Settings, nodes: int, minutes: int, size: Callable[[], Size]
) -> dict[str, str]:
    """Return sbatch's options by name that the site decides, for a campaign and for doctor.

    Args:
        settings: section ``slurm`` of the site file.
        nodes: number of nodes.
        minutes: time limit.
        size: called where the job does not take its whole node.
    """
    keys = (*OVERRIDES.values(), "reservation")
    named = {key: str(settings[key]) for key in keys if key in settings}
    if "partition" in named:  # sbatch takes no blanks
        named["partition"] = ",".join(slurm.partition_names(named["partition"]))
    named["time"] = str(minutes)
    named["nodes"] = str(nodes)
    named["ntasks-per-node"] = "1"
    named["no-requeue"] = ""
    exclusive = settings.get("exclusive", True)
    if exclusive:  # No CPUs are named: Slurm binds to what was asked for.
        named["exclusive"] = ""
    else:
        named["cpus-per-task"] = str(size().threads)
    memory = settings.get("memory", "per_node")
    if memory == "per_cpu":
        needed = size()
        named["mem-per-cpu"] = f"{math.ceil(needed.megabytes / needed.cpus)}M"
    elif memory != "none":
        named["mem"] = "0"
        if not exclusive:
            named["mem"] = f"{size().megabytes}M"
    return named
