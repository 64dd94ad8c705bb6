"""``peakmark measure`` and ``serve``: one cell of a plan, or its far end; a rule asks without this parser, see ``__main__``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from peakmark.command import end_cleanly
from peakmark.measuring.build import BUILD


def add(commands: Any) -> None:
    """Declare the commands."""
    measure = commands.add_parser("measure", help="measure one cell of a plan, or those of one job (what a rule calls)")
    measure.add_argument("--plan", required=True, type=Path, help="results/<campaign>/plan.json")
    what = measure.add_mutually_exclusive_group(required=True)
    what.add_argument("--cell", metavar="ID", help="as peakmark plan --cells lists it")
    what.add_argument("--job", metavar="NAME", help="a job of several cells: measure what it still lacks")
    measure.add_argument("--kernels", type=Path, default=BUILD, help="folder of the compiled kernels")
    measure.set_defaults(run=_measure)

    serve = commands.add_parser("serve", help="far end of a two-node cell (what measure calls)")
    serve.set_defaults(run=_serve)


def _measure(options: argparse.Namespace) -> int:
    from peakmark.measuring import command

    name = options.cell or options.job
    return command.run(command.Order(options.plan, name, options.cell is None, options.kernels))


def _serve(_: argparse.Namespace) -> int:
    from peakmark.measuring import serve

    end_cleanly()
    return serve.main()
