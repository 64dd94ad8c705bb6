"""What a job asks for, and how a job and its cells find each other again."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from peakmark import slurm
from peakmark.cell import Cell
from peakmark.planning import durations
from peakmark.planning import plan as planning
from peakmark.planning.cluster import ANY, Cluster, settings_of
from peakmark.planning.grouping import alone, part, two_nodes

MARGIN = 3.0
GIVEN = {"slurm_partition": "partition", "slurm_account": "account", "qos": "qos", "constraint": "constraint"}
"""Names of Snakemake's --default-resources -> keys of the site file's section ``slurm``."""


def comment(made: planning.Plan, cells: Sequence[Cell], folder: Path | None = None) -> str:
    """What squeue, scontrol and sacct show of a job: its cell or its name, the checkout, and what it will measure.

    The last word changes with the cells' options: a job of an earlier run with the same comment measures the same.
    """
    name = made.job_of(cells[0])
    what = cells[0].id if name is None else f"nodes/{name}"
    return f"{made.campaign}/{what} {checkout(folder)}.{fingerprint(cells, made)[:8]}"


def checkout(folder: Path | None = None) -> str:
    """Eight letters that tell the folder with the campaigns from any other: its name may hold what a comment may not."""
    return hashlib.sha256(str((folder or Path.cwd()).resolve()).encode(errors="surrogateescape")).hexdigest()[:8]


def name(made: planning.Plan, cells: Sequence[Cell], settings: Mapping[str, Any]) -> str:
    """A readable name. Those of jobs that may not run at once are equal, as Slurm's ``singleton`` goes by the name."""
    first = cells[0]
    if any(alone(cell, settings) for cell in cells):
        return f"{made.campaign}.{part(first, settings)}{_lane(made, first, settings)}"
    return made.job_of(first) or f"{first.instrument}.{first.point}.{first.repetition}"


def _lane(made: planning.Plan, cell: Cell, settings: Mapping[str, Any]) -> str:
    """Pairs of nodes that share nothing, as the site says, measure side by side: so many at a time."""
    lanes = int(settings.get("pairs", 1))
    if not two_nodes(cell) or lanes == 1 or made.cluster is None or cell.node == ANY:
        return ""
    return str(made.cluster.nodes.index(cell.node) % lanes)


def fingerprint(cells: Iterable[Cell], made: planning.Plan) -> str:
    """Changes whenever what is to be measured changes, with what, or what decides how often."""
    cells = list(cells)
    criteria = sorted({f"{cell.row} {made.criteria[cell.row]}" for cell in cells if cell.row in made.criteria})
    words = sorted({" ".join(words_of(cell.instrument, made)) for cell in cells})
    return hashlib.sha256("\n".join([*(cell.spec() for cell in cells), *criteria, *words]).encode()).hexdigest()


def words_of(instrument: str, made: planning.Plan) -> list[str]:
    """The program and the modules that measure."""
    tool, modules = made.config["tools"].get(instrument), made.config["modules"].get(instrument, [])
    return [str(tool or "auto"), *(f"--module={name}" for name in modules)]


def threads(cells: Sequence[Cell], cluster: Cluster | None) -> int:
    """CPUs to ask for: as many as the hungriest cell has threads, but never more than its node has."""
    wanted = max(cell.concurrency for cell in cells)
    if cluster is None:
        return wanted
    most = _room(cells, cluster)[0]
    return most if any(cell.word for cell in cells) else min(wanted, most)


def _room(cells: Sequence[Cell], cluster: Cluster) -> tuple[int, int]:
    """CPUs and memory (MiB) that the job can have: those of its node, or of the smallest where there are two."""
    return (cluster.cpus, cluster.memory) if two_nodes(cells[0]) else cluster.size_of(cells[0].node)


def minutes(cells: Iterable[Cell], made: planning.Plan) -> int:
    """Time limit in minutes: the longest time with a generous margin, never below two, never above the partition's."""
    factor = float(settings_of(made.config).get("runtime_factor", 1.0))
    wanted = math.ceil((sum(map(made.durations.longest, cells)) * MARGIN / 60 + 1) * factor)
    limit = made.cluster.limit if made.cluster else None
    return max(2, wanted) if limit is None else max(1, min(max(2, wanted), limit))


def megabytes(cells: Sequence[Cell], made: planning.Plan) -> int:
    """Memory in MB (10^6 B): what is needed, at most the whole node."""
    wanted = _needed(cells, made)
    return min(wanted, _room(cells, made.cluster)[1]) if made.cluster else wanted


def _needed(cells: Iterable[Cell], made: planning.Plan) -> int:
    """Memory in MB: the estimate, and room for Python and the tool itself."""
    factor = float(settings_of(made.config).get("memory_factor", 1.0))
    return math.ceil((durations.largest(cells)[1] * 1.1 / 1e6 + 512) * factor)


def options(cells: Sequence[Cell], made: planning.Plan, given: Mapping[str, Any]) -> list[str]:
    """Options of sbatch for the job of these cells. ``given``: partition and the like of the command line."""
    settings = {**settings_of(made.config), **given}
    nodes = 2 if two_nodes(cells[0]) else 1
    words = [f"--{key}={settings[key]}" for key in ("partition", "account", "qos", "constraint") if key in settings]
    words += [f"--time={minutes(cells, made)}", f"--nodes={nodes}", "--ntasks-per-node=1", "--no-requeue"]
    # A job that has its node to itself takes all of it: Slurm binds to the CPUs and the memory that were asked for.
    words += ["--exclusive"] if settings.get("exclusive", True) else [f"--cpus-per-task={threads(cells, made.cluster)}"]
    words += _memory(cells, made, settings)
    if cells[0].node != ANY:
        peer = made.peers.get(cells[0].node) if nodes == 2 else None
        words.append(f"--nodelist={','.join(filter(None, (cells[0].node, peer)))}")
    elif nodes == 1 and made.cluster is not None:
        # A node of its own is all that Slurm would look for: the small ones are left out where others have what is needed.
        mib = math.ceil(_needed(cells, made) * 1e6 / (1 << 20))
        small = made.cluster.too_small(max(cell.concurrency for cell in cells), mib)
        words += [f"--exclude={slurm.hostlist(small)}"] if small else []
    if any(alone(cell, settings) for cell in cells):
        words.append("--dependency=singleton")
    return [*words, *str(settings.get("extra", "")).split()]


def _memory(cells: Sequence[Cell], made: planning.Plan, settings: Mapping[str, Any]) -> list[str]:
    how = settings.get("memory", "per_node")
    if how == "none":
        return []
    wanted = megabytes(cells, made)
    if how == "per_cpu":
        cpus = (
            _room(cells, made.cluster)[0]
            if made.cluster and settings.get("exclusive", True)
            else threads(cells, made.cluster)
        )
        return [f"--mem-per-cpu={math.ceil(wanted / cpus)}M"]
    return ["--mem=0"] if settings.get("exclusive", True) else [f"--mem={wanted}M"]


def resources(cells: Sequence[Cell], made: planning.Plan, given: Mapping[str, Any]) -> dict[str, Any]:
    """The same in the words of Snakemake's own Slurm executor, whose options may not be in ``slurm_extra``."""
    settings = {**settings_of(made.config), **given}
    extra = [
        word
        for word in options(cells, made, given)
        if word.startswith(("--exclusive", "--nodelist", "--exclude", "--dependency"))
    ]
    both = two_nodes(cells[0])
    return {
        "runtime": minutes(cells, made),
        "mem_mb": megabytes(cells, made),
        "slurm_extra": " ".join([*extra, *str(settings.get("extra", "")).split()]),
        "nodes": 2 if both else None,
        "tasks": 2 if both else None,
        "mpi": "srun" if both else None,
        **{resource: str(settings[key]) if key in settings else None for resource, key in GIVEN.items()},
    }
