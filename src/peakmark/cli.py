"""The command line: the commands with their options, put together."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from peakmark import __version__, resources
from peakmark.command import outcome
from peakmark.commands import machine, measure, report


def build_parser() -> argparse.ArgumentParser:
    """All commands with their options."""
    parser = argparse.ArgumentParser(
        prog="peakmark",
        description="How close a cluster node comes to its physical limits. To measure: snakemake --profile local",
    )
    parser.add_argument("--version", action="version", version=f"peakmark {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    for module in (measure, machine, report):
        module.add(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit code: 0, 1 (failed), 2 (wrong use)."""

    def run() -> int:
        resources.keep_matplotlib()
        options = build_parser().parse_args(arguments)
        return int(options.run(options) or 0)

    return outcome(run)
