"""``peakmark measure``: one cell of a plan, or those of one job. Its own module, as a cell's process loads no more than this."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from peakmark import output, resources
from peakmark.command import end_cleanly
from peakmark.lean import dataclass, host_name
from peakmark.measuring import job
from peakmark.measuring.measure import measure
from peakmark.storage import planfile

KERNELS = resources.of_checkout("build/kernels")


@dataclass(frozen=True)
class Order:
    """What is to be measured: the cell ``name`` of a plan, or with ``job`` all cells of the job of that name."""

    plan: Path
    name: str
    job: bool
    kernels: Path = KERNELS


def order(arguments: Sequence[str]) -> Order | None:
    """What the rules' own words ask for; None for any others, which the parser of the command line reads."""
    match list(arguments):
        case ["measure", "--plan", plan, ("--cell" | "--job") as what, name] if name:
            return Order(Path(plan), name, what == "--job")
    return None


def run(order: Order) -> int:
    """Returns the exit code. Errors: PeakmarkError."""
    if not order.job:
        gc.disable()  # what measures one cell leaves no garbage that is worth a search
    part = (planfile.job if order.job else planfile.cell)(order.plan, order.name)
    first = job.request(part, part.cells[0], order.kernels)
    if first.pair:
        _on(first.cell.node)
    end_cleanly()
    if order.job:
        job.run(part, order.name, order.kernels)
        return 0
    record = measure(first)
    if record["status"] != "ok":
        output.tell(f"{order.name} is {record['status']}: {record['reason']}")
    return 0


def _on(node: str) -> None:
    """Become the same command on another node of this job, if this is not the one that is meant."""
    from peakmark.measuring import pair

    if node not in ("any", host_name(), host_name().partition(".")[0]):
        argv = [*pair.step(node, len(os.sched_getaffinity(0))), *resources.command(*sys.argv[1:])]
        os.execvpe(argv[0], argv, pair.environment())  # noqa: S606 - no shell is wanted
