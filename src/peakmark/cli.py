"""The command line: the commands with their options, put together."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from peakmark import __version__, resources
from peakmark.command import outcome
from peakmark.commands import machine, measure, report, run


def build_parser() -> argparse.ArgumentParser:
    """All commands with their options."""
    parser = argparse.ArgumentParser(
        prog="peakmark",
        description="How close a cluster node comes to its physical limits. To measure: peakmark run",
    )
    parser.add_argument("--version", action="version", version=f"peakmark {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    for module in (run, measure, machine, report):
        module.add(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit code: 0, 1 (failed), 2 (wrong use)."""

    words = list(sys.argv[1:] if arguments is None else arguments)
    end = words.index("--") if words[:1] == ["run"] and "--" in words else len(words)

    def execute() -> int:
        resources.keep_matplotlib()
        options = build_parser().parse_args(words[:end])
        options.snakemake = words[end + 1 :]
        return int(options.run(options) or 0)

    return outcome(execute)
