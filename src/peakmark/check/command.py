"""Run ``peakmark check`` for people, Slurm's prolog and HealthCheckProgram, and NHC."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from peakmark.check.verdict import Verdict, compare_node
from peakmark.errors import ConfigError, ExitCode, PeakmarkError, Unavailable, mute, sentence, tell
from peakmark.run import build

BY_HAND = (20.0, 3600.0)
"""Seconds that a check may take by default, and the most that ``--seconds`` may allow."""
CALLERS = {"prolog": (5.0, 60.0), "health": (20.0, 55.0), "nhc": (10.0, 28.0)}
"""Program that calls the check -> its values instead of ``BY_HAND``.

A job waits for its prolog. slurmd kills HealthCheckProgram after 60 s, and NHC ends itself after 30 s.
"""


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
        "--kernels", type=Path, help="folder of the compiled kernels; default: of this installation"
    )


def main(words: Sequence[str] | None = None) -> int:
    """Run this command as a program of its own, without loading peakmark's other commands."""
    parser = argparse.ArgumentParser(prog="peakmark check", description=check.__doc__)
    add_arguments(parser)
    return check(parser.parse_args(words))


def check(options: argparse.Namespace) -> int:
    """Check on a node whether it is as good as its class was in a campaign.

    Exit code 1 means slow, 3 means cannot tell. Python's standard library suffices:
    python3 -IBS .../peakmark/check results/NAME does the same without an environment.
    """
    try:
        verdict = _verdict(options)
        print(verdict.text, flush=True)
        code = verdict.code
    except PeakmarkError as error:
        code = _failed(str(error), error.exit_code)
    except OSError as error:
        mute()  # Python would try to print again, and end with another code
        code = _failed(sentence(error), ExitCode.ERROR)
    except Exception as error:  # a traceback ends with 1, which would drain the node
        code = _failed(f"defect of peakmark: {error!r}", ExitCode.ERROR)
    # A prolog that ends with another code than 0 drains its node. Only a slow node deserves that.
    if options.caller and code != ExitCode.DIFFERENT:
        return ExitCode.GOOD
    return code


def _failed(text: str, code: ExitCode) -> ExitCode:
    """Print why the check failed, and return its exit code."""
    tell(text)
    return code


def _verdict(options: argparse.Namespace) -> Verdict:
    """Check the options, then the node, and return the verdict. Errors: PeakmarkError, OSError."""
    usual_s, most_s = CALLERS.get(options.caller, BY_HAND)
    seconds = options.seconds
    if seconds is None:
        seconds = usual_s
    if not 1 <= seconds <= most_s:
        raise ConfigError(f"--seconds {seconds:g} is not allowed: give 1 to {most_s:g}")
    kernels = options.kernels or build.folder()
    try:
        return compare_node(options.campaign, kernels, seconds, options.rows)
    except Unavailable as error:
        return Verdict(ExitCode.CANNOT_TELL, f"cannot tell: {error}")
