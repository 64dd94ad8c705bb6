"""Arguments of ``peakmark check``, apart from its modules, so that other commands start fast."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple


class Caller(NamedTuple):
    """Times of a program that calls the check.

    Attributes:
        usual_s: seconds that a check may take unless ``--seconds`` is given.
        most_s: most seconds that ``--seconds`` may set.
    """

    usual_s: float
    most_s: float


BY_HAND = Caller(20.0, 3600.0)
CALLERS = {"prolog": Caller(5.0, 60.0), "health": Caller(20.0, 55.0), "nhc": Caller(10.0, 28.0)}
"""Program -> times of its check.

A job waits for its prolog. slurmd kills HealthCheckProgram after 60 s, and NHC ends itself after 30 s.
"""
HELP = "Check on a node whether it is as good as its class was in a campaign"
DETAILS = (
    "Exit code 1 means slow, 3 means cannot tell. Python's standard library suffices:"
    " python3 -IBS .../peakmark/check results/NAME does the same without an environment."
)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to a parser."""
    command.add_argument(
        "campaign",
        type=Path,
        help="folder of the campaign with rows/ and cells/, e.g. results/quick",
    )
    command.add_argument(
        "--seconds",
        type=float,
        metavar="SECONDS",
        help="time for the whole check; default: 20, for a prolog 5, for NHC 10",
    )
    command.add_argument(
        "--rows",
        action="append",
        default=[],
        metavar="WORDS",
        help="check the rows with these words in their name instead of the headline rows, e.g. 'DP x1'; may be repeated",
    )
    command.add_argument(
        "--for",
        dest="caller",
        choices=list(CALLERS),
        help="for Slurm's prolog or HealthCheckProgram, or for NHC: exit with 0 unless the node is slow (1)",
    )
    command.add_argument(
        "--drain",
        action="store_true",
        help="with --for health: drain a slow node by scontrol, with the reason; default: never",
    )
    command.add_argument(
        "--kernels", type=Path, help="folder of the compiled kernels; default: of this installation"
    )
