"""Measure several cells at one moment, in one Slurm job that has the nodes of all cells.

The cells are the pairs of a round, or nodes that share a file system.

The job's first node starts ``peakmark measure --wait`` for each cell, on the node of the cell. The
process prints ``ready`` when the server of its pair runs, or the files of its disk cell are filled, and
waits. When all are ready, all get the line ``go``.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from socket import gethostname
from subprocess import Popen

from peakmark import files, resources
from peakmark.cell import Cell
from peakmark.errors import MeasurementError
from peakmark.run import cleanup, execute, pair
from peakmark.run.measure import Request
from peakmark.tools import REGISTRY

GO = "go"
READY_S = 2 * pair.START_S
"""Longest time, in seconds, until all cells are ready, besides the time to fill files: each cell starts
two steps, one after the other.
"""


def measure(plan: Path, cells: Sequence[Cell], kernels: Path) -> list[Cell]:
    """Measure cells at one moment, each in a separate process. Return the cells that failed.

    Args:
        plan: the plan's file.
        cells: cells of disjoint pairs of nodes, or of different nodes, of this job.
        kernels: folder of the compiled kernels.

    Raises:
        MeasurementError: a cell did not become ready in time. Then no cell was measured.
    """
    with ExitStack() as stack:
        options = ["--plan", str(plan), "--kernels", str(kernels), "--wait"]
        if cells[0].subsystem == "disk":
            options += ["--shared", str(_shared_folder(cells[0], stack))]
        processes = []
        for cell in cells:
            argv = [*pair.step(cell.node, len(os.sched_getaffinity(0)))]
            argv += [*resources.command("measure"), "--cell", cell.id, *options]
            process = stack.enter_context(pair.started(argv))
            stack.callback(pair.finish, process)
            processes.append(process)
        _wait_until_ready(cells, processes)
        for process in processes:
            _tell_to_go(process)
        failed = []
        for cell, process in zip(cells, processes, strict=True):
            if process.wait() != 0:
                failed.append(cell)
        return failed


def _shared_folder(cell: Cell, stack: ExitStack) -> Path:
    """Return a new folder on the scratch filesystem, which is removed when the stack is closed."""
    place = files.scratch(cell.options.get("scratch"))
    return stack.enter_context(cleanup.private_directory(place))


def waiting(request: Request, shared: Path | None) -> Request:
    """Return a request that starts together with the other cells of its job.

    Args:
        request: request to measure a cell alone.
        shared: folder that all nodes of the job must see; None if they share none.
    """
    return replace(
        request,
        wait=partial(wait_for_start, shared),
        announce=partial(announce, shared),
        shared=shared,
    )


def announce(shared: Path | None) -> None:
    """Report on standard output that this cell is ready.

    Raises:
        MeasurementError: this node does not see the folder ``shared``.
    """
    if shared is not None and not shared.is_dir():
        raise MeasurementError(
            f"on {gethostname()}, {shared.parent} is not the folder of the job's first node",
            "set scratch to a folder on a file system that all nodes share",
        )
    print(execute.READY, flush=True)


def wait_for_start(shared: Path | None) -> None:
    """Report that this cell is ready, and wait until all others are ready too.

    Raises:
        MeasurementError: standard input ended, because another cell of the job failed.
    """
    announce(shared)
    if sys.stdin.readline().strip() != GO:
        raise MeasurementError("another cell of the same job did not become ready")


def _wait_until_ready(cells: Sequence[Cell], processes: Iterable[Popen[bytes]]) -> None:
    """Wait until every cell has prepared its work, such as written the files that it will read.

    Raises:
        MeasurementError: a cell took too long, or its program ended.
    """
    # To write the files takes at most about as long as the timed work on them.
    filling_s = REGISTRY[cells[0].instrument].estimate(cells[0]).work_s
    deadline = time.monotonic() + READY_S + filling_s
    for cell, process in zip(cells, processes, strict=True):
        if not pair.prints(process, execute.READY, deadline - time.monotonic()):
            raise MeasurementError(
                f"{cell.place} did not become ready, so that no cell of its job was measured"
            )


def _tell_to_go(process: Popen[bytes]) -> None:
    assert process.stdin is not None  # noqa: S101 - it is a pipe
    with suppress(BrokenPipeError):
        process.stdin.write(f"{GO}\n".encode())
