"""The cells of a preset as rows of the table: what ships is what is compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.kernels.pairs import AS_MUCH, Row
from benchmarks.kernels.ratios import Target
from peakmark import yamlfile
from peakmark.cell import Cell
from peakmark.instruments import REGISTRY
from peakmark.machine.topology import Topology
from peakmark.measuring.pinning import resolve_cell
from peakmark.planning import plan
from peakmark.reasons import Unavailable

PRESETS = Path("config/presets")
GROUPS = ("cpu", "memory")
"""Of disk and network a preset's cells depend on what lies around them: their rows are those of
``pairs``.
"""


def rows(name: str, cpu_locations: Topology, cpus: list[int], memory: int) -> list[Row]:
    """Each own cell of the preset's cpu and memory beside each reference of its row, once; the
    CPU's beside its peak too.

    seats, cpus, memory  as ``placing.settled`` takes them: words of the preset become numbers.
                         Errors: Unavailable.
    """
    path = PRESETS / f"{name}.yaml"
    if not path.is_file():
        known = ", ".join(sorted(one.stem for one in PRESETS.glob("*.yaml")))
        raise Unavailable(f"--preset {name!r} is none: choose one of {known}")
    cells = [
        cell
        for cell in plan.make(yamlfile.read(path)).cells
        if cell.repetition == 0 and cell.subsystem in GROUPS
    ]
    return list(_beside([resolve_cell(cell, cpu_locations, cpus, memory) for cell in cells]))


def _beside(cells: Sequence[Cell]) -> Iterator[Row]:
    for ours in cells:
        if REGISTRY[ours.instrument].reference:
            continue
        metric = (
            "rate"
            if ours.subsystem == "cpu"
            else "latency"
            if ours.workload == "LAT"
            else "throughput"
        )
        target = Target(0.95, 1.05) if metric == "latency" else AS_MUCH
        bundle = f"{ours.subsystem} {ours.point}"
        if ours.subsystem == "cpu":
            peak = Target(low=0.97 if ours.workload == "DP" else 0.95)
            yield Row(ours, None, metric, peak, bundle=bundle, quick=True)
        for other in cells:
            if REGISTRY[other.instrument].reference and _place(other) == _place(ours):
                yield Row(ours, other, metric, target, bundle=bundle, quick=True)


def _place(cell: Cell) -> tuple[object, ...]:
    return (cell.subsystem, cell.workload, cell.variant, cell.block, cell.concurrency)
