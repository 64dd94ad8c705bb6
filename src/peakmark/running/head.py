"""What the controlling process of a campaign on a cluster does beside Snakemake, before and while jobs run."""

from __future__ import annotations

import fcntl
import os
import shlex
import shutil
import socket
import stat
import sys
import time
from pathlib import Path

from peakmark import slurm
from peakmark.errors import PeakmarkError
from peakmark.formatting import plural
from peakmark.planning import jobs
from peakmark.planning.plan import Plan

SHORTEST_MEMORY_S = 30
"""A job that Slurm forgets sooner after its end could be missed between two looks of the executor plugin."""
GONE_S = 120.0
COMMANDS = ("srun", "squeue", "scontrol")


def prepare() -> None:
    """What jobs must find in the environment they inherit. Errors: PeakmarkError, SlurmError.

    The plugin's job step removes SLURM_CONF before it calls srun, which then fails wherever the configuration is not at
    its default place: commands of the same names, which put it back, stand before Slurm's own on PATH.
    """
    check_folder(Path.cwd())
    place = os.environ.get("SLURM_CONF")
    if not place or slurm.CONFIG_VARIABLE in os.environ:
        return
    os.environ[slurm.CONFIG_VARIABLE] = place
    folder = Path(".snakemake/peakmark-bin").resolve()
    folder.mkdir(parents=True, exist_ok=True)
    for name in COMMANDS:
        program = shutil.which(name)
        if program:
            path = folder / name
            path.write_text(f'#!/bin/sh\nSLURM_CONF={shlex.quote(place)} exec {shlex.quote(program)} "$@"\n')
            path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"


def check_folder(folder: Path) -> None:
    """Errors: PeakmarkError when a job's commands could not name this folder.

    Snakemake 9.27 quotes paths in the commands of jobs as Python does (repr), which a shell reads otherwise where there
    is a single quote, a backslash or a control character; Slurm takes % in the name of a job's log for a pattern.
    """
    wrong = [letter for letter in str(folder) if letter in "'\\%" or not letter.isprintable()]
    if wrong:
        raise PeakmarkError(
            f"the folder {str(folder)!r} has {wrong[0]!r} in its name, which the commands of Slurm jobs cannot carry: "
            "rename it, or move the checkout to another one"
        )


def check() -> None:
    """Errors: SlurmError when this Slurm forgets jobs before anybody can have seen how they ended."""
    age = slurm.setting("MinJobAge")
    words = (age or "").split()
    if words and words[0].isdigit() and int(words[0]) < SHORTEST_MEMORY_S:
        raise slurm.SlurmError(
            f"this Slurm forgets a job {words[0]} s after its end (MinJobAge in slurm.conf), too soon to learn how it "
            f"ended: ask the administrators for at least {SHORTEST_MEMORY_S} s (Slurm's own default is 300 s)"
        )


def lock(directory: Path) -> int:
    """Hold the campaign until this process ends, however it ends. Returns the descriptor that holds it.

    Errors: PeakmarkError that names the holder.
    """
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "running"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        # Not flock: on a shared filesystem these are the locks that other nodes see.
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = os.read(descriptor, 200).decode(errors="replace").strip()
        os.close(descriptor)
        raise PeakmarkError(
            f"the campaign {directory} is being measured already by {holder or 'another process'}: "
            f"peakmark status {directory} shows how far it is"
        ) from None
    os.ftruncate(descriptor, 0)
    os.write(descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode())
    return descriptor


def cancel_left_over(made: Plan) -> list[str]:
    """End the jobs that a killed run of this campaign left in the queue, and wait until they are gone.

    They would measure the same cells a second time, beside this run's jobs. Returns their numbers.
    Errors: SlurmError when they do not end in time.
    """
    own = {jobs.comment(made.campaign, cell) for cell in made.cells}
    own |= {jobs.node_comment(made.campaign, node, part) for node, part in jobs.groups(made)}
    prefixes = (f"rule_measure_wildcards_{made.campaign}_", f"rule_measure_node_wildcards_{made.campaign}_")

    def left() -> list[str]:
        here = Path.cwd().resolve()
        return [job.number for job in slurm.jobs(here) if job.comment in own or job.comment.startswith(prefixes)]

    numbers = left()
    if not numbers:
        return []
    print(
        f"{plural(len(numbers), 'job of an earlier run is', 'jobs of an earlier run are')} still in the queue: ending them",
        file=sys.stderr,
    )
    slurm.cancel(numbers)
    deadline = time.monotonic() + GONE_S
    while rest := left():
        if time.monotonic() > deadline:
            raise slurm.SlurmError(
                f"the jobs {', '.join(rest)} of an earlier run did not end within {GONE_S:.0f} s of scancel: "
                "see squeue, and start again when they are gone"
            )
        time.sleep(0.5)
    return numbers
