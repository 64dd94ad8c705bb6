"""``peakmark machine``, ``doctor`` and ``tools``: about this machine and this installation."""

from __future__ import annotations

import argparse
import json
import signal
from pathlib import Path
from typing import Any

from peakmark import output
from peakmark.commands import seconds
from peakmark.errors import ConfigError
from peakmark.interrupts import end_cleanly
from peakmark.run import build


def add(commands: Any) -> None:
    """Declare the commands."""
    machine = commands.add_parser(
        "machine", help="facts of this machine, as any user can read them (JSON)"
    )
    machine.add_argument(
        "--scratch", type=Path, default=None, help="directory whose disk is described"
    )
    machine.add_argument(
        "--kernels",
        type=Path,
        default=build.folder(),
        help="folder of the compiled kernels, for the clock",
    )
    machine.set_defaults(run=_machine)

    doctor = commands.add_parser(
        "doctor", help="what is here, what is missing, and the command that would mend it"
    )
    doctor.add_argument("--scratch", type=Path, default=None, help="directory for the disk cells")
    doctor.add_argument(
        "--slurm", action="store_true", help="the same by a job on one node of each kind"
    )
    doctor.add_argument(
        "--site", type=Path, help="site file with partition, account and the like, for --slurm"
    )
    doctor.add_argument(
        "--wait",
        type=seconds(0, 1e6),
        default=300.0,
        metavar="SECONDS",
        help="how long a job may wait, for --slurm",
    )
    doctor.add_argument("--node", action="store_true", help=argparse.SUPPRESS)
    doctor.set_defaults(run=_doctor)

    tools = commands.add_parser(
        "tools", help="where each reference tool is, its version, and lines that get it"
    )
    tools.set_defaults(run=_tools)


def _machine(options: argparse.Namespace) -> int:
    from peakmark import machine
    from peakmark.tools import present

    facts = machine.collect(
        options.scratch, tools=present(options.kernels), cpubench=options.kernels / "cpubench"
    )
    output.say(json.dumps(facts, indent=1, sort_keys=True))
    return 0


def _doctor(options: argparse.Namespace) -> int:
    from peakmark.config import site
    from peakmark.workflow import doctor

    if options.site and not options.slurm:
        raise ConfigError("--site says what Slurm is asked for: give --slurm too")
    if options.slurm:
        end_cleanly(signal.SIGHUP)
        facts = site.load(str(options.site), None) if options.site else {}
        settings = dict(facts.get("slurm") or {})
        text, healthy = doctor.examine_cluster(settings, options.scratch, options.wait)
    else:
        text, healthy = doctor.examine(options.scratch, build.folder(), options.node)
    output.say(text)
    return 0 if healthy else 1


def _tools(_: argparse.Namespace) -> int:
    from peakmark.workflow import doctor

    output.say(doctor.tools())
    return 0
