"""Compute the resources of the rules that measure, from the plan.

Snakemake's executors other than peakmark's submit a job from them. Their names are those of
snakemake-executor-plugin-slurm; a submit command of cluster-generic names those that its scheduler
knows.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from peakmark.cell import Cell
from peakmark.plan import jobs
from peakmark.plan.cluster import Settings, settings_of
from peakmark.plan.job_groups import resource_of, uses_shared_resource
from peakmark.plan.plan import Plan

Values = dict[str, int | str]
"""Name of a resource -> its value for one job."""

STEP = ("nodes", "tasks", "cpus_per_task")
"""Resources that snakemake-executor-plugin-slurm-jobstep reads inside a job."""
_REPLACED = (
    *("time", "nodes", "ntasks-per-node", "cpus-per-task", "mem", "mem-per-cpu", "gres"),
    "dependency",
)
"""Options of sbatch that follow from other resources. Snakemake's scheduler replaces the dependency."""


def of_job(cells: Sequence[Cell], plan: Plan, overrides: Settings) -> Values:
    """Return the resources of the job that measures the cells.

    The resources of all jobs of a plan have the same names, because Snakemake's rule states the names.

    Args:
        cells: cells of the job.
        plan: plan of the campaign.
        overrides: settings from the command line, which override the site file.
    """
    settings = {**settings_of(plan.config), **overrides}
    named = jobs.named_options(cells, plan, overrides)
    values = of_step(cells, plan, settings) | shared(cells, plan)
    values |= {"runtime": int(named["time"]), "mem_mb": jobs.megabytes(cells, plan)}
    # Sites may forbid jobs to request memory, or take it by CPU.
    if settings.get("memory") == "none":
        values["mem_mb"] = 0
    if "mem-per-cpu" in named:
        values["mem_mb_per_cpu"] = int(named["mem-per-cpu"].rstrip("M"))
    if any(cell.subsystem == "gpu" for cell in plan.cells):
        # Without tasks_per_gpu, the plugin would start a task for each GPU.
        values |= {"gres": named.get("gres", ""), "tasks_per_gpu": 0}
    for resource, option in jobs.OVERRIDES.items():
        if option in named:
            values[resource] = named.pop(option)
    for option in _REPLACED:
        named.pop(option, None)
    values["slurm_extra"] = shlex.join(jobs.command_line(named, settings))
    return values


def of_step(cells: Sequence[Cell], plan: Plan, settings: Settings) -> Values:
    """Return the nodes of a job and the CPUs that it uses on each, without reading the campaign's records."""
    _, nodes = jobs.eligible(cells, plan)
    return {"nodes": nodes, "tasks": nodes, "cpus_per_task": jobs.cpus(cells, plan, settings)}


def shared(cells: Sequence[Cell], plan: Plan) -> Values:
    """Return the resources that only one job at a time may use: 1 if this job uses it, else 0."""
    settings = settings_of(plan.config)
    used = {resource_of(cell, settings) for cell in cells if uses_shared_resource(cell, settings)}
    return {"network": int("pair" in used), "shared_disk": int("disk" in used)}
