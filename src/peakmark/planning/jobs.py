"""What a cell's job asks for, and how a job and its cells find each other again.

The executor plugin keeps a job's name for itself and makes its comment from rule and wildcards: the comment is the one
thing by which squeue, scontrol and sacct tell which cell a job measures.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from typing import Any

from peakmark.cell import Cell
from peakmark.instruments import REGISTRY
from peakmark.planning import plan as planning
from peakmark.planning.cluster import ANY, Cluster, settings_of

MARGIN = 3.0
PARTS = ("own", "disk", "pair")
"""Jobs of a node in ``fan_out: node``: its own cells, those on a shared disk, those that need a second node."""


def two_nodes(cell: Cell) -> bool:
    """Whether the cell talks to a second node when there is one."""
    return REGISTRY[cell.instrument].two_nodes


def alone(cell: Cell, settings: Mapping[str, Any]) -> bool:
    """Whether the cell uses what lies beyond its node, so that no other such cell may run at the same time."""
    return two_nodes(cell) or (cell.subsystem == "disk" and bool(settings.get("scratch_shared")))


def part(cell: Cell, settings: Mapping[str, Any]) -> str:
    """The job of its node that measures the cell in ``fan_out: node``."""
    if two_nodes(cell):
        return "pair"
    return "disk" if alone(cell, settings) else "own"


def groups(made: planning.Plan) -> dict[tuple[str, str], list[Cell]]:
    """(node, part) -> its cells in running order."""
    settings = settings_of(made.config)
    found: dict[tuple[str, str], list[Cell]] = {}
    for cell in made.cells:
        found.setdefault((cell.node, part(cell, settings)), []).append(cell)
    return found


def comment(campaign: str, cell: Cell) -> str:
    """The comment of the cell's own job."""
    words = (campaign, cell.subsystem, cell.instrument, cell.point, cell.node, str(cell.repetition))
    return f"rule_measure_wildcards_{'_'.join(words)}"


def node_comment(campaign: str, node: str, its_part: str) -> str:
    """The comment of a job that measures a node's cells one after the other."""
    return f"rule_measure_node_wildcards_{campaign}_{node}_{its_part}"


def fingerprint(cells: Iterable[Cell], made: planning.Plan) -> str:
    """Changes whenever what is to be measured changes, or what decides how often."""
    cells = list(cells)
    criteria = sorted({f"{cell.row} {made.criteria[cell.row]}" for cell in cells if cell.row in made.criteria})
    return hashlib.sha256("\n".join([*(cell.spec() for cell in cells), *criteria]).encode()).hexdigest()


def threads(cells: Iterable[Cell], cluster: Cluster | None) -> int:
    """CPUs to ask for: as many as the hungriest cell has threads, but never more than a node has."""
    cells = list(cells)
    wanted = max(cell.concurrency for cell in cells)
    if cluster is None:
        return wanted
    return cluster.cpus if any(cell.word for cell in cells) else min(wanted, cluster.cpus)


def milliseconds(cells: Iterable[Cell]) -> int:
    """Expected time for the progress bar; Snakemake's resources are whole numbers."""
    return round(planning.total_cost(cells).seconds * 1000)


def minutes(cells: Iterable[Cell], made: planning.Plan) -> int:
    """Time limit in minutes: the estimate with a generous margin, never below two, never above the partition's."""
    factor = float(settings_of(made.config).get("runtime_factor", 1.0))
    wanted = math.ceil((planning.total_cost(cells).seconds * MARGIN / 60 + 1) * factor)
    limit = made.cluster.limit if made.cluster else None
    return max(2, wanted) if limit is None else max(1, min(max(2, wanted), limit))


def megabytes(cells: Iterable[Cell], made: planning.Plan) -> int:
    """Memory in MB (10^6 B): the estimate and room for Python and the tool itself; at most the whole node."""
    factor = float(settings_of(made.config).get("memory_factor", 1.0))
    wanted = math.ceil((planning.total_cost(cells).memory_bytes * 1.1 / 1e6 + 512) * factor)
    return min(wanted, made.cluster.memory) if made.cluster else wanted


def extra(cells: Iterable[Cell], made: planning.Plan) -> str:
    """Further options of sbatch: the node to itself, the node that is meant, and after every other such job."""
    cells = list(cells)
    settings = settings_of(made.config)
    words = ["--exclusive"]
    if cells[0].node != ANY:
        words.append(f"--nodelist={cells[0].node}")
    if any(alone(cell, settings) for cell in cells):
        # The plugin gives all jobs of a run one name: of those that say singleton, Slurm runs one at a time.
        words.append("--dependency=singleton")
    return " ".join([*words, *([str(settings["extra"])] if "extra" in settings else [])])


def site_resources(made: planning.Plan) -> dict[str, str]:
    """What the site file wants every job to say, as resources of the plugin."""
    settings = settings_of(made.config)
    names = {"partition": "slurm_partition", "account": "slurm_account", "qos": "qos", "constraint": "constraint"}
    return {resource: str(settings[name]) for name, resource in names.items() if name in settings}
