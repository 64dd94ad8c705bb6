"""``peakmark measure`` and ``serve``: cells of a plan, and the server of a cell of two nodes."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from socket import gethostname
from typing import Any

from peakmark.command import end_cleanly
from peakmark.run import build


def add(commands: Any) -> None:
    """Declare the commands."""
    measure = commands.add_parser(
        "measure", help="measure one cell of a plan, or the cells of one job"
    )
    measure.add_argument("--plan", required=True, type=Path, help="results/<campaign>/plan.json")
    what = measure.add_mutually_exclusive_group(required=True)
    what.add_argument("--cell", metavar="ID", help="as peakmark plan --cells lists it")
    what.add_argument(
        "--job", metavar="NAME", help="a job of several cells: measure those without a record"
    )
    measure.add_argument(
        "--kernels", type=Path, default=build.folder(), help="folder of the compiled kernels"
    )
    measure.set_defaults(run=_measure)

    serve = commands.add_parser(
        "serve", help="run the server of a two-node cell (started by measure)"
    )
    serve.set_defaults(run=_serve)


def _measure(options: argparse.Namespace) -> int:
    from peakmark import output
    from peakmark.run import job
    from peakmark.run.measure import measure
    from peakmark.storage import planfile

    if options.cell is None:
        part = planfile.job(options.plan, options.job)
    else:
        part = planfile.cell(options.plan, options.cell)
    first = job.request(part, part.cells[0], options.kernels)
    if first.pair:
        _move_to(first.cell.node)
    end_cleanly()
    if options.cell is None:
        job.run(part, options.job, options.kernels)
        return 0
    record = measure(first)
    if record["status"] != "ok":
        output.tell(f"{options.cell} is {record['status']}: {record['reason']}")
    return 0


def _move_to(node: str) -> None:
    """Become the same command on another node of this job, if this is not the right one."""
    from peakmark import resources
    from peakmark.run import pair

    if node not in ("any", gethostname(), gethostname().partition(".")[0]):
        argv = [*pair.step(node, len(os.sched_getaffinity(0))), *resources.command(*sys.argv[1:])]
        os.execvpe(argv[0], argv, pair.environment())  # noqa: S606 - no shell is wanted


def _serve(_: argparse.Namespace) -> int:
    from peakmark.run import pair

    end_cleanly()
    return pair.serve()
