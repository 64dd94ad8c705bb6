"""Group cells into jobs, and find the cells that use more than one node."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from peakmark.cell import Cell
from peakmark.plan.cluster import ANY, Settings, settings_of
from peakmark.tools import REGISTRY
from peakmark.tools.base import Coverage


def two_nodes(cell: Cell) -> bool:
    """Return whether the cell needs a second node on a cluster."""
    return REGISTRY[cell.instrument].two_nodes


def uses_shared_resource(cell: Cell, settings: Settings) -> bool:
    """Return whether the cell uses the network or a shared disk, so that it must run alone."""
    return resource_of(cell, settings) != "own"


def resource_of(cell: Cell, settings: Settings) -> str:
    """Return which resource a cell uses: ``own`` (only its node), a shared ``disk``, a ``pair`` of nodes."""
    if two_nodes(cell):
        return "pair"
    if cell.subsystem == "disk" and (settings.get("scratch_shared") or cell.is_together):
        return "disk"
    return "own"


def multi_row_tools(cells: Iterable[Cell]) -> set[str]:
    """Return the programs that measure several rows in one execution."""
    tools = set()
    for instrument, workload in {(cell.instrument, cell.workload) for cell in cells}:
        executions = [row.cell for row in REGISTRY[instrument].rows]
        if workload in executions:
            tools.add(instrument)
    return tools


def same_node_key(cell: Cell, tools: Collection[str] = ()) -> str:
    """Return a key that is equal for all cells that must run on the same node.

    All repetitions of a row, by every program, must run on the same node.

    Args:
        cell: the cell.
        tools: programs that measure several rows in one execution. Such rows must also run on the same
            node.
    """
    rows: list[Coverage] = []
    for name in tools:
        rows += [row for row in REGISTRY[name].rows if _measures_both(row, cell)]
    if not rows:
        return f"{cell.subsystem}/{cell.point}/{cell.node}"
    workloads = ",".join(rows[0].workloads)
    block = concurrency = ""
    if all(row.per_block for row in rows):
        block = str(cell.block)
    if all(row.per_concurrency for row in rows):
        concurrency = str(cell.asked)
    return f"{cell.subsystem}/{workloads}-{cell.variant}_{block}_x{concurrency}/{cell.node}"


def _measures_both(row: Coverage, cell: Cell) -> bool:
    """Return whether one run of the tool measures both ``row`` and the row of the cell.

    This also holds if the cell is the combined one (such as ALL), whose single run measures several
    rows.
    """
    if row.cell is None or row.subsystem != cell.subsystem or cell.variant not in row.variants:
        return False
    executions = [other.cell for other in REGISTRY[cell.instrument].rows]
    return cell.workload in row.workloads or cell.workload in executions


def _together_key(cell: Cell) -> str:
    """Return the name of the job of a cell that is measured together with others."""
    of_what = cell.options.get("first")
    if cell.peer:
        of_what = f"round{cell.options['round']}"
    return f"{cell.instrument}.{cell.point}.{of_what}.{cell.repetition}.together"


def group(cells: Sequence[Cell], config: Settings) -> dict[str, list[Cell]]:
    """Return the cells of each job, by its name, in running order.

    If Slurm chooses the node, cells that must run on the same node are in one job. The nodes, or the
    pairs of a round, that are measured together are one job.
    """
    fan_out, settings, tools = config["fan_out"], settings_of(config), multi_row_tools(cells)
    # Collect units: places in the running order of cells that must be in one job.
    units: dict[str, list[int]] = {}
    for place, cell in enumerate(cells):
        key = cell.id
        if cell.is_together:
            key = _together_key(cell)
        elif cell.node == ANY:
            key = same_node_key(cell, tools)
        units.setdefault(key, []).append(place)
    jobs: dict[str, list[int]] = {}
    batches: dict[str, int] = {}
    for key, unit in units.items():
        first = cells[unit[0]]
        if first.is_together:
            jobs[key] = unit
            continue
        name = f"{first.place}.{resource_of(first, settings)}"
        if fan_out != "node":
            # Start a new batch if the unit does not fit into the current one.
            batch = batches.setdefault(name, 0)
            size = len(jobs.get(f"{name}.{batch}", ()))
            if size and size + len(unit) > fan_out["batch"]:
                batch += 1
            batches[name] = batch
            name = f"{name}.{batch}"
        jobs.setdefault(name, []).extend(unit)
    grouped = {}
    for name, places in jobs.items():
        grouped[name] = [cells[place] for place in sorted(places)]
    return grouped
