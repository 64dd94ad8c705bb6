"""Compute name, comment and sbatch options of a job, and its resources for other executors.

Later runs recognise a job by its comment.
"""

from __future__ import annotations

import hashlib
import math
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from peakmark import slurm
from peakmark.catalogue import GPUS
from peakmark.cell import Cell
from peakmark.config.types import SiteSlurm
from peakmark.plan import durations
from peakmark.plan.cluster import ANY, Cluster
from peakmark.plan.plan import Plan, node_count, resource_of, two_nodes, uses_shared_resource

MARGIN = 3.0
"""Time limit of a job, as a multiple of the longest expected time."""
RESOURCE_SETTINGS = {
    "slurm_partition": "partition",
    "slurm_account": "account",
    "qos": "qos",
    "constraint": "constraint",
}
"""Name in Snakemake's --default-resources -> key in the section ``slurm`` of the site file."""


def comment(plan: Plan, cells: Sequence[Cell], folder: Path | None = None) -> str:
    """Return the comment of a job, ``CAMPAIGN/NAME CHECKOUT.FINGERPRINT``.

    NAME is the id of the only cell or, if jobs may have several cells, ``nodes/`` and the job's
    name. CHECKOUT is the digest of ``_checkout``, and FINGERPRINT the start of the job's
    fingerprint. A job of an earlier run with the same comment measures the same cells with the same
    programs.
    """
    what = plan.job_of(cells[0])
    if plan.is_grouped:
        what = f"nodes/{what}"
    return f"{plan.campaign}/{what} {_checkout(folder)}.{fingerprint(cells, plan)[:8]}"


def is_from(text: str, folder: Path | None = None) -> bool:
    """Return whether the job with the comment ``text`` belongs to ``folder``, the folder of all campaigns."""
    return f" {_checkout(folder)}." in text


def _checkout(folder: Path | None = None) -> str:
    """Return a digest that stands for the folder of all campaigns: its path may be too long for a comment."""
    path = str((folder or Path.cwd()).resolve())
    return hashlib.sha256(path.encode(errors="surrogateescape")).hexdigest()[:8]


def name(plan: Plan, cells: Sequence[Cell], settings: SiteSlurm) -> str:
    """Return a readable name of a job.

    Jobs that may not run at the same time have the same name, because Slurm's ``singleton`` compares names.
    """
    first = cells[0]
    if any(uses_shared_resource(cell, settings) for cell in cells):
        return f"{plan.campaign}.{resource_of(first, settings)}"
    if plan.is_grouped:
        return plan.job_of(first)
    return f"{first.instrument}.{first.point}.{first.repetition}"


def fingerprint(cells: Iterable[Cell], plan: Plan) -> str:
    """Return a digest of the cells and of the programs that measure them."""
    lines = []
    programs = set()
    for cell in cells:
        lines.append(cell.spec())
        programs.add(" ".join(program(cell.instrument, plan)))
        if plan.cluster is not None and two_nodes(cell):
            programs.add("two nodes")  # without a cluster, the same cell measures loopback
    lines += sorted(programs)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def program(instrument: str, plan: Plan) -> list[str]:
    """Return words that identify how an instrument is found.

    They are its configured program or ``auto``, then ``--module=NAME`` for each configured module.
    """
    tool = plan.config.tools.get(instrument)
    modules = plan.config.modules.get(instrument, [])
    return [str(tool or "auto"), *(f"--module={module}" for module in modules)]


def threads(cells: Sequence[Cell], plan: Plan) -> int:
    """Return the number of CPUs that a job needs: as many as its largest cell, at most all of the node.

    A cell with a word such as ``cores`` needs all CPUs, because only the node knows the number.
    """
    wanted = max(cell.concurrency for cell in cells)
    if plan.cluster is None:
        return wanted
    available, _ = _node_size(cells, plan.cluster)
    if any(cell.word not in ("", GPUS) for cell in cells):
        return available
    return min(wanted, available)


def cpus(cells: Sequence[Cell], plan: Plan, settings: SiteSlurm) -> int:
    """Return the number of CPUs that a job gets on each node. An exclusive job gets all CPUs of the node."""
    if plan.cluster is not None and settings.exclusive:
        count, _ = _node_size(cells, plan.cluster)
        return count
    return threads(cells, plan)


def gpus(cells: Sequence[Cell], plan: Plan) -> int:
    """Return the number of GPUs that a job needs: as many as its largest cell, 0 without GPU cells."""
    wanted = [0]
    for cell in cells:
        if cell.word == GPUS and plan.cluster is not None:
            wanted.append(plan.cluster.gpus_of(cell.node))
        elif cell.subsystem == "gpu":
            wanted.append(cell.concurrency)
    return max(wanted)


def _node_size(cells: Sequence[Cell], cluster: Cluster) -> tuple[int, int]:
    """Return the CPUs and the memory in MiB of the smallest node on which the job may run."""
    node = cells[0].node
    # The second node of a named node may be of another class. A job on ``any`` nodes gets only
    # nodes of the chosen class, unless that class has too few: the job then excludes no node.
    if two_nodes(cells[0]) and (node != ANY or not cluster.excluded(node_count(cells[0]))):
        return cluster.cpus, cluster.memory
    return cluster.size_of(node)


def eligible(cells: Sequence[Cell], plan: Plan) -> tuple[tuple[str, ...], int]:
    """Return the nodes on which Slurm may run a job (none without a cluster), and how many the job needs."""
    count = _node_count(cells)
    if plan.cluster is None:
        return (), count
    if cells[0].node == ANY:
        return tuple(plan.cluster.eligible(count)), count
    nodes = _named_nodes(cells, plan)
    return nodes, len(nodes)


def _node_count(cells: Sequence[Cell]) -> int:
    """Return the number of nodes that the job of these cells needs."""
    if cells[0].is_together:
        return len(_nodes_of(cells))
    return node_count(cells[0])


def _named_nodes(cells: Sequence[Cell], plan: Plan) -> tuple[str, ...]:
    """Return the nodes of a job: one, a pair, or all that are measured together."""
    nodes = _nodes_of(cells)
    first = cells[0].node
    # Only cells of named pairs state their second node. For others it follows from the plan.
    if two_nodes(cells[0]) and len(nodes) == 1 and first in plan.peers:
        return (first, plan.peers[first])
    return nodes


def _nodes_of(cells: Sequence[Cell]) -> tuple[str, ...]:
    """Return the nodes that cells name: the nodes of clients, of servers, and of MPI's ranks."""
    names = []
    for cell in cells:
        names += [cell.node, cell.peer, *str(cell.options.get("nodes", "")).split()]
    return tuple(dict.fromkeys(filter(None, names)))


def minutes(cells: Sequence[Cell], plan: Plan) -> int:
    """Return the time limit of a job in minutes, at least two and at most the limit of its nodes.

    The limit includes a margin and the time of repetitions. If jobs share nodes, a job may have to
    wait for as many other jobs as fit on its node. All of them are assumed to take equally long: as
    this job, or as the longest cell of the campaign if that takes longer.
    """
    settings = plan.config.site_facts.slurm
    seconds = sum(map(plan.durations.longest, cells))
    jobs = 1
    if plan.cluster is not None and not settings.exclusive:
        available, _ = _node_size(cells, plan.cluster)
        seconds = max(seconds, plan.longest)
        jobs = max(1, available // threads(cells, plan))
    repeated_s = plan.durations.repeated(cells)
    # The added minute matters to short jobs, whose margin is only seconds.
    longest_min = (seconds * MARGIN + repeated_s) * jobs / 60 + 1
    wanted = max(2, math.ceil(longest_min * settings.runtime_factor))
    if plan.cluster is None:
        return wanted
    return clip_minutes(wanted, plan.cluster.limit_of(_named_nodes(cells, plan)))


def clip_minutes(wanted: int, limit: int | None) -> int:
    """Return the ``wanted`` minutes, at most ``limit``; None means no limit."""
    if limit is None:
        return wanted
    return max(1, min(wanted, limit))


def megabytes(cells: Sequence[Cell], plan: Plan) -> int:
    """Return the memory that a job asks for in MB, at most the memory of the node.

    ``durations.megabytes`` estimates the memory from cells whose concurrency is a number. Here
    the word ``gpus`` therefore counts as the number of GPUs, and any other word as all CPUs.
    """
    if plan.cluster is None:
        return durations.megabytes(cells, plan.config)
    node_cpus, memory = _node_size(cells, plan.cluster)
    with_numbers = []
    for cell in cells:
        if cell.word == GPUS:
            count = max(1, gpus([cell], plan))
            with_numbers.append(replace(cell, concurrency=count, word=""))
        elif cell.word:
            with_numbers.append(replace(cell, concurrency=node_cpus, word=""))
        else:
            with_numbers.append(cell)
    # The estimate is in MB, but Slurm reads the result as MiB: a job gets 5 % more than estimated.
    # The node's memory is in MiB already, so the job never asks for more than the node has.
    return min(durations.megabytes(with_numbers, plan.config), memory)


def options(cells: Sequence[Cell], plan: Plan, overrides: Mapping[str, str]) -> list[str]:
    """Return sbatch's options for the job of these cells.

    Args:
        cells: cells of the job.
        plan: plan of the campaign.
        overrides: settings from the command line, which override the site file.
    """
    return command_line(named_options(cells, plan, overrides), plan.config.site_facts.slurm)


def command_line(named: Mapping[str, str], settings: SiteSlurm) -> list[str]:
    """Return the options as arguments of sbatch, followed by the site's ``extra`` options."""
    extra = settings.extra.split()
    excludes = [word for word in extra if word.startswith("--exclude=")]
    if excludes and "exclude" in named:  # sbatch uses only the last --exclude
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


def named_options(
    cells: Sequence[Cell], plan: Plan, overrides: Mapping[str, str]
) -> dict[str, str]:
    """Return sbatch's options by name. Options without a value have an empty text."""
    settings = msgspec.structs.replace(plan.config.site_facts.slurm, **overrides)
    nodes = _node_count(cells)
    of_site = site_options(
        settings,
        nodes=nodes,
        limit_min=minutes(cells, plan),
        cpu_count=cpus(cells, plan, settings),
        memory_mb=megabytes(cells, plan),
    )
    named = {"no-requeue": "", **of_site}
    if cells[0].node != ANY:
        named["nodelist"] = ",".join(_named_nodes(cells, plan))
    elif plan.cluster is not None and (excluded := plan.cluster.excluded(nodes)):
        named["exclude"] = ",".join(excluded)
    if any(uses_shared_resource(cell, settings) for cell in cells):
        # Jobs on a shared resource have one name, so that they run one after the other.
        named["dependency"] = "singleton"
    if count := gpus(cells, plan):
        named["gres"] = f"{plan.config.site_facts.gpus.gres}:{count}"
    return named


def site_options(
    settings: SiteSlurm, nodes: int, limit_min: int, cpu_count: int, memory_mb: int
) -> dict[str, str]:
    """Return the options of sbatch, srun and salloc that depend on the site, by name.

    ``peakmark doctor`` uses them for its own jobs too.

    Args:
        settings: section ``slurm`` of the site file.
        nodes: number of nodes.
        limit_min: time limit in minutes.
        cpu_count: CPUs that the job gets on each node. ``--mem-per-cpu`` is the memory divided by
            this number.
        memory_mb: memory that the job needs on each node, in MB.
    """
    keys = (*RESOURCE_SETTINGS.values(), "reservation")
    named = {key: str(getattr(settings, key)) for key in keys if getattr(settings, key)}
    if settings.partition:  # sbatch allows no spaces
        named["partition"] = ",".join(slurm.partition_names(settings.partition))
    named |= {"time": str(limit_min), "nodes": str(nodes), "ntasks-per-node": "1"}
    # Without --cpus-per-task, because Slurm would bind the job to that number of CPUs.
    if settings.exclusive:
        named["exclusive"] = ""
    else:
        named["cpus-per-task"] = str(cpu_count)
    if settings.memory == "per_cpu":
        named["mem-per-cpu"] = f"{math.ceil(memory_mb / cpu_count)}M"
    elif settings.memory == "per_node":
        # 0 asks for all memory of the node.
        named["mem"] = "0" if settings.exclusive else f"{memory_mb}M"
    return named


# -- resources of jobs that other executors than peakmark's submit
# Their names are those of snakemake-executor-plugin-slurm. A submit command of cluster-generic uses those that
# its scheduler knows.

Values = dict[str, int | str]
"""Name of a resource -> its value for one job."""

STEP = ("nodes", "tasks", "cpus_per_task")
"""Resources that snakemake-executor-plugin-slurm-jobstep reads inside a job."""
_REPLACED = (
    *("time", "nodes", "ntasks-per-node", "cpus-per-task", "mem", "mem-per-cpu", "gres"),
    "dependency",
)
"""Options of sbatch that are not repeated in ``slurm_extra``.

The Slurm plugin of Snakemake makes all of them from resources, except ``dependency``. Jobs that
share a resource need no dependency, because Snakemake's scheduler lets them take turns.
"""


def resources(cells: Sequence[Cell], plan: Plan, overrides: Mapping[str, str]) -> Values:
    """Return the resources of the job that measures the cells.

    The resources of all jobs of a plan have the same names, because Snakemake's rule states the names. So
    the conditions below depend on the plan and its settings, not on the cells.

    Args:
        cells: cells of the job.
        plan: plan of the campaign.
        overrides: settings from the command line, which override the site file.
    """
    settings = msgspec.structs.replace(plan.config.site_facts.slurm, **overrides)
    named = named_options(cells, plan, overrides)
    values = step_resources(cells, plan, settings) | shared_resources(cells, plan)
    values |= {"runtime": int(named["time"]), "mem_mb": megabytes(cells, plan)}
    # Sites may forbid jobs to request memory, or accept it only for each CPU.
    if settings.memory == "none":
        values["mem_mb"] = 0
    if "mem-per-cpu" in named:
        values["mem_mb_per_cpu"] = int(named["mem-per-cpu"].rstrip("M"))
    if any(cell.subsystem == "gpu" for cell in plan.cells):
        # Without tasks_per_gpu, the plugin would start a task for each GPU.
        values |= {"gres": named.get("gres", ""), "tasks_per_gpu": 0}
    # Some options of sbatch are resources of their own.
    for resource, option in RESOURCE_SETTINGS.items():
        if option in named:
            values[resource] = named.pop(option)
    # The rest becomes ``slurm_extra``, without what other resources say already.
    for option in _REPLACED:
        named.pop(option, None)
    values["slurm_extra"] = shlex.join(command_line(named, settings))
    return values


def step_resources(cells: Sequence[Cell], plan: Plan, settings: SiteSlurm) -> Values:
    """Return number of nodes, number of tasks and CPUs for each task (``STEP``) of a job.

    This function reads no records, because ``RunInJob`` calls it in each job.
    """
    _, nodes = eligible(cells, plan)
    return {"nodes": nodes, "tasks": nodes, "cpus_per_task": cpus(cells, plan, settings)}


def shared_resources(cells: Sequence[Cell], plan: Plan) -> Values:
    """Return name -> 1 for each shared resource that this job uses, and 0 for the others.

    Only one job at a time may use such a resource.
    """
    settings = plan.config.site_facts.slurm
    used = {resource_of(cell, settings) for cell in cells if uses_shared_resource(cell, settings)}
    return {"network": int("pair" in used), "shared_disk": int("disk" in used)}
