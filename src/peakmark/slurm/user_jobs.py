"""The jobs of this user: list, submit and cancel them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from peakmark.errors import OUT_OF_MEMORY
from peakmark.slurm import commands
from peakmark.slurm.commands import SlurmError
from peakmark.slurm.inventory import hostnames

NODE_LOST = frozenset(["BOOT_FAIL", "NODE_FAIL", "PREEMPTED"])
"""Final states for which neither the job nor its cells are the cause."""
ENDED_BADLY = NODE_LOST | {
    *("CANCELLED", "DEADLINE", "FAILED", OUT_OF_MEMORY, "REVOKED", "SPECIAL_EXIT", "TIMEOUT")
}
"""All final states of a job except COMPLETED. In every other state the job waits or runs."""
WAITING = frozenset(["PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESV_DEL_HOLD"])
_JOB = re.compile(r"(\d[\d_+*\[\],%-]*)\|([A-Z_]+)\|([^|]*)\|([^|]*)\|([^|]*)\|(.*)")
"""Pattern of a line of squeue, because a site's wrapper may print other lines too."""
CANCELLED_AT_ONCE = 500
"""Largest number of jobs in one call of scancel."""


@dataclass(frozen=True)
class Job:
    """A line of squeue. ``reason`` is the reason why the job waits."""

    number: str
    state: str
    nodes: str
    elapsed: str
    comment: str
    reason: str

    @property
    def waits(self) -> bool:
        return self.state in WAITING


def jobs(of: str | None = None) -> list[Job]:
    """Return this user's jobs that have not ended; with ``"all"`` also ended jobs that Slurm remembers.

    squeue prints text, because for 150 jobs Slurm 22.05 writes 8 KB of text but 484 KB of JSON.

    Raises:
        SlurmError: Slurm does not answer.
    """
    more = [f"--states={of}"] if of else []
    fields = "--format=%i|%T|%N|%M|%k|%r"
    output = commands.ask("squeue", "--all", "--me", "--noheader", fields, *more)
    matches = map(_JOB.fullmatch, output.splitlines())
    return [Job(*match.groups()) for match in matches if match]


def job(number: str) -> dict[str, str]:
    """Return the fields of ``scontrol show job``; empty if Slurm forgot the job or does not answer."""
    try:
        text = commands.ask("scontrol", "--oneliner", "show", "job", number)
    except SlurmError:
        return {}
    # A value ends before the next field's name, because paths may contain spaces.
    return dict(re.findall(r"(\S+?)=(.*?)(?=\s+[A-Z][\w/:]*=|\s*$)", text))


def job_nodes(number: str) -> list[str]:
    """Return the host names of a running job's nodes, with the batch script's node first.

    Raises:
        SlurmError: Slurm does not answer.
    """
    output = commands.ask("squeue", "--all", "--noheader", f"--jobs={number}", "--format=%i|%N")
    found = re.search(rf"(?m)^{re.escape(number)}\|(\S+)$", output)
    return hostnames(found[1]) if found else []


def submit(options: Sequence[str], script: str) -> str:
    """Submit a script through the standard input of sbatch, and return the number of the job.

    Raises:
        SlurmError: sbatch failed. The error has sbatch's message, and is ``silent`` if Slurm may have the
            job.
    """
    output = commands.ask("sbatch", "--parsable", *options, text=script)
    # A line has a number, and may have a cluster. A site's wrapper may print other lines.
    numbers = re.findall(r"(?m)^(\d+)(?:;[\w.-]+)?$", output)
    if not numbers:
        fact = f"sbatch printed no number of a job, but {output.strip()!r}"
        raise SlurmError(fact, reason=fact, silent=True)
    return str(numbers[-1])


def cancel(numbers: Sequence[str]) -> None:
    """End jobs. Errors: SlurmError."""
    for first in range(0, len(numbers), CANCELLED_AT_ONCE):
        commands.ask("scancel", *numbers[first : first + CANCELLED_AT_ONCE])
