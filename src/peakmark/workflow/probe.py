"""``peakmark doctor --slurm``: would Slurm take our jobs, and what do they find on a node of each
kind.
"""

from __future__ import annotations

import contextlib
import shlex
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from peakmark import interrupts, output, resources, slurm
from peakmark.errors import PeakmarkError
from peakmark.plan import durations, jobs
from peakmark.workflow import preflight, submission_errors
from peakmark.workflow.doctor import line

FOLDER = Path("results") / "doctor"
MINUTES = 5
"""Time limit of a doctor's job, where the partition allows as much."""
SIZE = jobs.Size(threads=1, cpus=1, megabytes=durations.PROGRAMS_MB)
ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that end doctor; its job is cancelled then."""


def examine(settings: Mapping[str, Any], scratch: Path | None, wait_s: float) -> tuple[str, bool]:
    """A submission of every kind that is only tested, then a job on one node of each size. Returns
    lines and whether all is well. Errors: SlurmError when Slurm does not answer at all.
    """
    kinds: dict[tuple[int, int, str], list[slurm.Node]] = {}
    nodes = slurm.nodes(settings.get("partition"))
    for node in nodes:
        kinds.setdefault((node.cpus, node.memory, " ".join(sorted(node.features))), []).append(node)
    lines = []
    for count, what in ((1, "one node"), (2, "two nodes")):
        asked = jobs.site_options(
            settings, count, jobs.clip_minutes(MINUTES, nodes[0].limit), lambda: SIZE
        )
        refusal = preflight.submission_error(asked, jobs.command_line(asked, settings))
        lines.append(
            line("missing" if refusal else "ok", what, refusal or "Slurm would take such a job")
        )
        if refusal and count == 1:
            return "\n".join(lines), False
    asked = jobs.site_options(settings, 1, jobs.clip_minutes(MINUTES, nodes[0].limit), lambda: SIZE)
    for (cpus, memory, _), equal in sorted(kinds.items()):
        usable = next((node for node in equal if node.usable), None)
        lines += [
            "",
            f"{len(equal)} x {cpus} CPUs, {memory} MiB: {', '.join(node.name for node in equal[:4])}",
        ]
        if usable is None:
            lines.append(line("note", "nodes", f"none can be used now ({equal[0].state})"))
            continue
        options = jobs.command_line({**asked, "nodelist": usable.name}, settings)
        lines.append(_probe(options, usable, scratch, wait_s))
    return "\n".join(lines), True


def _probe(options: list[str], node: slurm.Node, scratch: Path | None, wait_s: float) -> str:
    """What a job finds on the node, in the words of ``peakmark doctor`` there."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{node.name}.txt"
    path.unlink(missing_ok=True)
    where = ("--scratch", str(scratch)) if scratch else ()
    command = f"{shlex.join(resources.command('doctor', '--node', *where))} > {path}.part 2>&1; mv {path}.part {path}"
    options = [*options, "--job-name=peakmark-doctor", "--output=/dev/null"]
    number: str | None = None
    try:
        with interrupts.held(*ENDINGS):  # else nobody might know the number of a job in the queue
            number = slurm.submit(options, f"#!/bin/sh\n{command}\n")
        output.tell(
            f"job {number} asks {node.name}; it may wait {wait_s:g} s for its turn (--wait)"
        )
        return _answer(path, number, wait_s)
    except BaseException as error:
        with interrupts.held(*ENDINGS), contextlib.suppress(PeakmarkError):
            slurm.cancel([number] if number else [])
        if number is None and isinstance(error, slurm.SlurmError):
            return line("missing", "job", submission_errors.reason(error).text)
        raise


def _answer(path: Path, number: str, wait_s: float) -> str:
    deadline = time.monotonic() + wait_s
    while not path.exists() and time.monotonic() < deadline:
        mine = [job for job in slurm.jobs("all") if job.number == number]
        if mine and mine[0].state in slurm.ENDED_BADLY:
            return line("missing", "job", f"Slurm ended it: {mine[0].state} {mine[0].reason}")
        time.sleep(0.5)
    if not path.exists():
        slurm.cancel([number])
        return line(
            "note",
            "job",
            f"did not run within {wait_s:g} s and is cancelled; --wait gives it longer",
        )
    return path.read_text(encoding="utf-8").rstrip()
