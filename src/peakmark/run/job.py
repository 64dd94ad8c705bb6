"""Measure the cells of a job: one after the other, or all at one moment, each on its own node.

With ``fan_out: cell`` a job has one cell. Cells that are measured at one moment are the pairs of a
round, or nodes that share a file system. The job's first node starts ``peakmark measure --wait``
for each of them, on the node of the cell. Such a process first starts the server of its pair, or
writes the files of its disk cell. It then prints ``ready`` and waits. When all processes are ready,
each gets the line ``go``.
"""

from __future__ import annotations

import json
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
from peakmark.errors import MeasurementError, PeakmarkError, tell
from peakmark.run import cleanup, execute
from peakmark.run.measure import Request, measure
from peakmark.storage import records
from peakmark.storage.planfile import Part
from peakmark.storage.record_types import PlanFile
from peakmark.tools import REGISTRY
from peakmark.tools.base import Tool

NODES = "nodes"
"""Folder of a campaign that holds the outputs of jobs with several cells."""
GO = "go"
"""Line that tells a waiting process to start measuring."""


def output_path(directory: Path, name: str) -> Path:
    """Return the path of the file that a job writes after it has measured all its cells."""
    return directory / NODES / name


def current_path(directory: Path, name: str) -> Path:
    """Return the path of the file that names the cell a job is measuring.

    If Slurm ends the job, the file shows which cell was interrupted.
    """
    return directory / NODES / f"{name}.now"


def request(part: Part, cell: Cell, kernels: Path) -> Request:
    """Return the request to measure a cell of a plan.

    The server of a network cell runs on a second node only on a cluster. Without a cluster, it runs on this machine.
    """
    config = part.plan.config
    tool = config.tools.get(cell.instrument)
    repeats = config.repeat_disturbed
    if cell.is_together:
        repeats = 0  # a node or pair that is measured again would be alone
    return Request(
        cell=cell,
        output=_record_path(part, cell),
        campaign=part.directory,
        kernels=kernels,
        tool=str(tool) if tool else None,
        pair=part.plan.cluster is not None and REGISTRY[cell.instrument].nodes(cell) > 1,
        modules=tuple(config.modules.get(cell.instrument, ())),
        node_bytes=_node_bytes(part.plan),
        repeats=repeats,
    )


def _record_path(part: Part, cell: Cell) -> Path:
    return part.directory / "cells" / f"{cell.id}.json"


def _node_bytes(plan: PlanFile) -> int | None:
    """Return the memory of this node that Slurm reported when the campaign was planned, if known."""
    node = os.environ.get("SLURMD_NODENAME")
    if plan.cluster is None:
        return None
    for kind in plan.cluster["kinds"]:
        if node in kind["nodes"]:
            return int(kind["memory"]) << 20  # sinfo prints MiB
    return None


def run(part: Part, name: str, kernels: Path) -> None:
    """Measure every cell of a job that is not measured yet, in the plan's order.

    Write the job's output file if no cell failed.

    Raises:
        MeasurementError: some cells failed. All other cells have been measured.
    """
    done = output_path(part.directory, name)
    done.unlink(missing_ok=True)  # it may be that of an earlier run
    current = current_path(part.directory, name)
    if part.cells[0].is_together:
        _measure_together(part, name, kernels)
        return
    tried: list[Cell] = []
    failed: list[Cell] = []
    # Continue with the next cell after a failure.
    for cell in part.cells:
        if _is_measured(part, cell, kernels):
            continue
        tried.append(cell)
        _write_current(current, cell)
        # The record may have been damaged since the run began.
        records.set_aside(part.directory, cell)
        try:
            measure(request(part, cell, kernels))
        except PeakmarkError as error:
            failed.append(cell)
            tell(str(error))
    current.unlink(missing_ok=True)
    _finish(part, name, len(tried), failed)


def _is_measured(part: Part, cell: Cell, kernels: Path) -> bool:
    """Return whether a valid record has values from the program that would measure the cell now."""
    # A cell that was not possible is tried again: its record has another status than ok.
    finding = records.look(_record_path(part, cell), cell)
    if finding.state != records.GOOD or finding.data is None or finding.data.status != "ok":
        return False
    wanted = request(part, cell, kernels).tool
    if wanted is None:  # the plan names no program, so that any may have measured
        return True
    try:
        path = REGISTRY[cell.instrument].locate(kernels, wanted)
    except PeakmarkError:
        return False
    used = finding.data.context.tool
    return used is not None and used.path == path


def tools_here(plan: PlanFile, names: Iterable[str], kernels: Path) -> dict[str, Tool | None]:
    """Return name -> path and version of each of these tools on this node; None for an absent tool."""
    found: dict[str, Tool | None] = {}
    for name in names:
        instrument, choice = REGISTRY[name], plan.config.tools.get(name)
        found[name] = None
        with (
            suppress(PeakmarkError),
            execute.modules_loaded(plan.config.modules.get(name, ())),
        ):
            path = instrument.locate(kernels, str(choice) if choice else None)
            found[name] = instrument.find(path)
    return found


def _measure_together(part: Part, name: str, kernels: Path) -> None:
    """Measure all cells of a job at one moment, also those with a record. Errors as for ``run``."""
    for cell in part.cells:
        records.set_aside(part.directory, cell)
    failed = _start_together(part.directory / "plan.json", part.cells, kernels)
    _finish(part, name, len(part.cells), failed)


def _finish(part: Part, name: str, tried: int, failed: list[Cell]) -> None:
    """Write the output file of a job. It exists only if no cell failed.

    Raises:
        MeasurementError: some of the ``tried`` cells failed.
    """
    if failed:
        raise MeasurementError(
            f"{len(failed)} of {tried} cells of {name} failed: {failed[0].id}, ..."
        )
    done = output_path(part.directory, name)
    text = json.dumps({"cells": [cell.id for cell in part.cells]}, indent=1)
    files.write_text(done, text + "\n")


def _write_current(path: Path, cell: Cell) -> None:
    """Write the id of the cell that is being measured, for ``peakmark status`` and after a lost job.

    The file is replaced atomically, without fsync: after a loss of power it is not needed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.write_text(cell.id + "\n", encoding="utf-8")
    temporary.replace(path)


# -- several nodes at one moment


def _start_together(plan: Path, cells: Sequence[Cell], kernels: Path) -> list[Cell]:
    """Measure cells at one moment, each in a separate process. Return the cells that failed.

    Args:
        plan: the plan's file.
        cells: cells of disjoint pairs of nodes, or of different nodes, of this job.
        kernels: folder of the compiled kernels.

    Raises:
        MeasurementError: a cell did not become ready in time. Then no cell was measured.
    """
    from peakmark.run import pair  # late: few jobs have several nodes

    with ExitStack() as stack:
        options = ["--plan", str(plan), "--kernels", str(kernels), "--wait"]
        # Nodes that use one disk together write into one folder on it.
        if cells[0].subsystem == "disk":
            options += ["--shared", str(_shared_folder(cells[0], stack))]
        processes = []
        for cell in cells:
            argv = pair.step(cell.node, len(os.sched_getaffinity(0)))
            argv += [*resources.command("measure"), "--cell", cell.id, *options]
            # At the end, ``finish`` stops the process, then Popen as a context closes its pipes.
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


def _wait_until_ready(cells: Sequence[Cell], processes: Iterable[Popen[bytes]]) -> None:
    """Wait until every process has started its server, or written the files that its cell reads.

    Raises:
        MeasurementError: a process took too long, or it ended.
    """
    from peakmark.run import pair  # late: few jobs have several nodes

    # srun starts each process on its node. The process of a network cell then starts its server,
    # also with srun. Writing the files of a disk cell takes at most as long as measuring with them.
    start_s = 2 * pair.START_S
    filling_s = REGISTRY[cells[0].instrument].estimate(cells[0]).work_s
    deadline = time.monotonic() + start_s + filling_s
    for cell, process in zip(cells, processes, strict=True):
        if not pair.prints(process, execute.READY, deadline - time.monotonic()):
            raise MeasurementError(
                f"{cell.place} did not become ready, so that no cell of its job was measured"
            )


def _tell_to_go(process: Popen[bytes]) -> None:
    assert process.stdin is not None  # noqa: S101 - it is a pipe
    with suppress(BrokenPipeError):  # the process has ended: its exit code tells how
        process.stdin.write(f"{GO}\n".encode())


def waiting(alone: Request, shared: Path | None) -> Request:
    """Return a request that starts together with the other cells of its job.

    The new request announces to the process of the job that its cell is ready, then waits for the
    start.

    Args:
        alone: request to measure a cell alone.
        shared: folder that all nodes of the job must see; None if they share none.
    """
    return replace(
        alone,
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
    """Report that this cell is ready, and wait until all other cells of the job are ready too.

    Raises:
        MeasurementError: standard input ended, because another cell of the job failed.
    """
    announce(shared)
    if sys.stdin.readline().strip() != GO:
        raise MeasurementError("another cell of the same job did not become ready")
