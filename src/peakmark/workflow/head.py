"""What the process that runs a campaign on a cluster does before its first job: be alone, be seen,
outlive its terminal.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import socket
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from peakmark import output, slurm
from peakmark.cell import Cell
from peakmark.config.overrides import named
from peakmark.errors import PeakmarkError
from peakmark.formatting import plural
from peakmark.plan import jobs
from peakmark.plan.cluster import ANY, settings_of
from peakmark.plan.plan import Plan, two_nodes
from peakmark.workflow import preflight

GONE_S = 120.0


def disable_rate_limit(scheduler: Any, arguments: Sequence[str]) -> None:
    """Take away the limit of a hundred jobs a second that Snakemake sets by itself, not one that
    the command line names.

    While there is a limit, each job that has ended leaves a timer that makes Snakemake go through
    all open jobs again each second, until the campaign ends. After 200 cells that took an eighth of
    a CPU, beside what was measured. ``scheduler``: Snakemake's own, before it hands over the first
    job.
    """
    if not named(arguments, ("--max-jobs-per-timespan", "--max-jobs-per-second")):
        scheduler.job_rate_limiter = None


def lock(directory: Path) -> int:
    """Hold the campaign until this process ends, however it ends. Returns the descriptor that holds
    it.

    Errors: PeakmarkError that names the holder.
    """
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "running"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
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


def ignore_sighup(log: Path) -> None:
    """A terminal that goes away ends nothing: what would have been printed there goes to ``log``."""
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        return

    def hung_up(*_: object) -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            log.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError:  # a full disk is no reason to end either
            descriptor = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(descriptor, stream)
        os.close(descriptor)
        with contextlib.suppress(OSError):
            os.write(2, b"peakmark: the terminal has gone, the campaign goes on\n")

    with contextlib.suppress(ValueError):  # not in the main thread, as in tests
        signal.signal(signal.SIGHUP, hung_up)


def check_allocation_overlap(plan: Plan) -> None:
    """A run that is itself a job must not hold the nodes that its jobs are to have alone: they
    would wait for its end.

    Errors: PeakmarkError that names the nodes; SlurmError when Slurm does not answer.
    """
    number = os.environ.get("SLURM_JOB_ID")
    if (
        number is None
        or plan.cluster is None
        or not settings_of(plan.config).get("exclusive", True)
    ):
        return
    known = {name for kind in plan.cluster.kinds for name in kind.nodes}
    mine = {name for name in slurm.job_nodes(number) if name in known}
    wanted = {cell.node for cell in plan.cells} | set(plan.peers.values())
    most = max((2 if two_nodes(cell) else 1 for cell in plan.cells if cell.node == ANY), default=0)
    if mine & wanted or (mine and plan.cluster.count - len(mine) < most):
        names = slurm.hostlist(mine & wanted or mine)
        raise PeakmarkError(
            f"this runs inside job {number}, which holds {names}, and the cells of {plan.campaign} want {names} for themselves: start "
            "it on a login node, as a job in a partition of other nodes, or leave those of its own out of nodes:"
        )


def adopt(plan: Plan) -> dict[str, str]:
    """The jobs of a killed run of this campaign that measure what this one will: comment -> number,
    with their place in the queue. Those that measure anything else are ended. Errors: SlurmError
    when they do not end in time.
    """
    own = {jobs.comment(plan, cells) for cells in groups(plan)}
    start = f"{plan.campaign}/"
    mark = f" {jobs.checkout()}."

    def left() -> dict[str, str]:
        return {
            job.number: job.comment
            for job in slurm.jobs()
            if job.comment.startswith(start) and mark in job.comment
        }

    queued = left()
    # Of two jobs for the same cells the first one stays.
    kept = {comment: number for number, comment in reversed(queued.items()) if comment in own}
    over = [number for number in queued if number not in kept.values()]
    if kept:
        of_before = plural(len(kept), "job of an earlier run is", "jobs of an earlier run are")
        output.tell(f"{of_before} still in the queue and {'goes' if len(kept) == 1 else 'go'} on")
    if over:
        of_before = plural(
            len(over), "job of an earlier run measures", "jobs of an earlier run measure"
        )
        output.tell(f"{of_before} something else, which ends now")
        _end(over, left)
    return kept


def _end(numbers: list[str], left: Callable[[], dict[str, str]]) -> None:
    slurm.cancel(numbers)
    deadline = time.monotonic() + GONE_S
    while rest := [number for number in left() if number in numbers]:
        if time.monotonic() > deadline:
            raise slurm.SlurmError(
                f"the jobs {', '.join(rest)} of an earlier run did not end within {GONE_S:.0f} s of scancel: "
                "see squeue, and start again when they are gone"
            )
        time.sleep(0.5)


def groups(plan: Plan) -> Iterable[Sequence[Cell]]:
    """The cells of each job of the plan."""
    return plan.jobs.values() if plan.jobs else ([cell] for cell in plan.cells)


def check(plan: Plan, given: Mapping[str, str], is_measured: Callable[[Cell], bool]) -> None:
    """Let Slurm say of each kind of job whether it would take it, before any is handed over.

    ``given``: partition, account and the like of the command line.

    Errors: SlurmError, one sentence for all of them.
    """
    longest: dict[tuple[tuple[str, str], ...], dict[str, str]] = {}
    missing = []
    for cells in groups(plan):
        remaining = [cell for cell in cells if not is_measured(cell)]
        if not remaining:
            continue
        missing.append(remaining)
        asked = jobs.named_options(cells, plan, given)
        asked.pop("dependency", None)
        kind = tuple(
            (name, value) for name, value in asked.items() if name not in ("time", "nodelist")
        )
        if int(asked["time"]) > int(longest.get(kind, {"time": "0"})["time"]):
            longest[kind] = asked
    # Those of one node first: what is refused of two alone is a matter of the network cells.
    for asked in sorted(longest.values(), key=lambda asked: int(asked["nodes"])):
        options = jobs.command_line(asked, settings_of(plan.config))
        if why := preflight.submission_error(asked, options):
            raise slurm.SlurmError(f"{why} (asked for: {' '.join(options)})")
    if short := preflight.time_limit_warning(plan, missing):
        output.tell(short)
