"""Run ``peakmark check`` for people, Slurm's prolog and HealthCheckProgram, and NHC."""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from socket import gethostname

from peakmark import output
from peakmark.check.arguments import BY_HAND, CALLERS, DETAILS, HELP, add_arguments
from peakmark.check.verdict import Verdict, check
from peakmark.errors import ConfigError, ExitCode, PeakmarkError, Unavailable, sentence
from peakmark.resources import PACKAGE
from peakmark.run import build

SCONTROL_LIMIT_S = 4.0
"""Seconds that scontrol may take to drain the node."""
NHC_LIMIT_S = 29
"""Seconds after which NHC ends the check."""


def main(words: Sequence[str] | None = None) -> int:
    """Run this command as a program of its own, without loading peakmark's other commands."""
    output.open_streams()
    parser = argparse.ArgumentParser(prog="peakmark check", description=f"{HELP}. {DETAILS}")
    add_arguments(parser)
    return run(parser.parse_args(words))


def run(options: argparse.Namespace) -> int:
    """Check this node, print one line, and return the exit code."""
    try:
        verdict = _verdict(options)
        output.say(verdict.text)
        if options.drain and verdict.code == ExitCode.DIFFERENT:
            _drain(verdict.text)
        code = verdict.code
    except ConfigError as error:
        code = _failed(str(error), ExitCode.USAGE)
    except PeakmarkError as error:
        code = _failed(str(error), ExitCode.ERROR)
    except OSError as error:
        output.drop()  # Python would try to print again, and end with another code
        code = _failed(sentence(error), ExitCode.ERROR)
    except Exception as error:  # a traceback ends with 1, which would drain the node
        code = _failed(f"defect of peakmark: {error!r}", ExitCode.ERROR)
    if options.caller and code != ExitCode.DIFFERENT:
        return ExitCode.GOOD
    return code


def _failed(text: str, code: ExitCode) -> ExitCode:
    """Print why the check failed, and return its exit code."""
    output.tell(text)
    return code


def _verdict(options: argparse.Namespace) -> Verdict:
    """Check the options, then the node."""
    caller = CALLERS.get(options.caller, BY_HAND)
    seconds = options.seconds
    if seconds is None:
        seconds = caller.usual_s
    if not 1 <= seconds <= caller.most_s:
        raise ConfigError(f"--seconds {seconds:g} is not allowed: give 1 to {caller.most_s:g}")
    if options.drain and options.caller != "health":
        raise ConfigError(
            "--drain needs --for health: Slurm itself drains nodes whose prolog fails"
        )
    kernels = options.kernels or build.folder()
    try:
        return check(options.campaign, kernels, seconds, options.rows)
    except Unavailable as error:
        return Verdict(ExitCode.CANNOT_TELL, f"cannot tell: {error}")


def _drain(reason: str) -> None:
    """Drain this node in Slurm. If that fails, print why."""
    node = os.environ.get("SLURMD_NODENAME") or gethostname().partition(".")[0]
    argv = ["scontrol", "update", f"nodename={node}", "state=drain", f"reason=peakmark: {reason}"]
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SCONTROL_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        output.tell(f"{node} is not drained: {error}")
        return
    if done.returncode:
        output.tell(f"{node} is not drained: {done.stderr.strip()}")


def nhc_line(campaign: Path) -> str:
    """Return the line of nhc.conf that checks every node against a campaign.

    Source: LBNL Node Health Check, README, ``check_cmd_status``.
    """
    python = Path(sys.executable).resolve()  # without an environment, which a node may not see
    argv = [str(python), "-IBS", str(PACKAGE / "check"), str(campaign.resolve()), "--for", "nhc"]
    argv += ["--kernels", str(build.folder().resolve())]
    return f"* || check_cmd_status -t {NHC_LIMIT_S} -r 0 {shlex.join(argv)}"
