"""Measure the pairs of nodes of a round at one moment, in one Slurm job that has all their nodes.

The job's first node starts ``peakmark measure --wait`` for each pair, on the node of its client. When
its server runs, the process prints ``ready`` and waits. When all are ready, all get the line ``go``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from subprocess import Popen

from peakmark import resources
from peakmark.cell import Cell
from peakmark.errors import MeasurementError
from peakmark.run import execute, pair

READY, GO = "ready", "go"
READY_S = 2 * pair.START_S
"""Longest time, in seconds, until all pairs are ready: each starts two steps, one after the other."""


def measure(plan: Path, cells: Sequence[Cell], kernels: Path) -> list[Cell]:
    """Measure cells at one moment, each in a separate process. Return the cells that failed.

    Args:
        plan: the plan's file.
        cells: cells of disjoint pairs of nodes of this job.
        kernels: folder of the compiled kernels.

    Raises:
        MeasurementError: a pair did not become ready in time. Then no pair was measured.
    """
    with ExitStack() as stack:
        processes = []
        for cell in cells:
            argv = [*pair.step(cell.node, len(os.sched_getaffinity(0)))]
            argv += resources.command("measure")
            argv += ["--plan", str(plan), "--cell", cell.id, "--kernels", str(kernels), "--wait"]
            process = stack.enter_context(_started(argv))
            stack.callback(_end, process)
            processes.append(process)
        _wait_until_ready(cells, processes)
        for process in processes:
            _tell_to_go(process)
        failed = []
        for cell, process in zip(cells, processes, strict=True):
            if process.wait() != 0:
                failed.append(cell)
        return failed


def wait_for_start() -> None:
    """Report on standard output that this pair is ready, and wait until all others are ready too.

    Raises:
        MeasurementError: standard input ended, because another pair of the round failed.
    """
    print(READY, flush=True)
    if sys.stdin.readline().strip() != GO:
        raise MeasurementError("another pair of the same round did not become ready")


def _started(argv: Sequence[str]) -> Popen[bytes]:
    return subprocess.Popen(
        argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
        env=pair.environment(),
        start_new_session=True,
    )


def _end(process: Popen[bytes]) -> None:
    """End a pair that is still waiting, or whose job was cancelled."""
    assert process.stdin is not None  # noqa: S101 - it is a pipe
    with suppress(BrokenPipeError):
        process.stdin.close()
    try:
        process.wait(pair.END_S)
    except subprocess.TimeoutExpired:
        execute.end(process, grace_s=pair.END_S)


def _wait_until_ready(cells: Iterable[Cell], processes: Iterable[Popen[bytes]]) -> None:
    deadline = time.monotonic() + READY_S
    for cell, process in zip(cells, processes, strict=True):
        if not pair.prints(process, READY, deadline - time.monotonic()):
            raise MeasurementError(
                f"{cell.place} did not become ready, so that no pair of its round was measured"
            )


def _tell_to_go(process: Popen[bytes]) -> None:
    assert process.stdin is not None  # noqa: S101 - it is a pipe
    with suppress(BrokenPipeError):
        process.stdin.write(f"{GO}\n".encode())
