"""What a run does before its first cell: take the campaign, set aside records that do not count, and
on a cluster take over jobs, have Slurm check the others and outlive its terminal.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from peakmark import output, slurm
from peakmark.cell import Cell
from peakmark.config.overrides import named
from peakmark.errors import PeakmarkError
from peakmark.formatting import duration, plural
from peakmark.plan import jobs
from peakmark.plan.cluster import ANY, settings_of
from peakmark.plan.plan import Plan, two_nodes
from peakmark.slurm import submission
from peakmark.storage import decisions, facts, integrity
from peakmark.storage.integrity import Finding
from peakmark.storage.results import Results

CANCEL_S = 120.0
NAMED = 5
"""So many damaged records are named one by one."""


def disable_rate_limit(scheduler: Any, arguments: Sequence[str]) -> None:
    """Remove the limit of a hundred jobs a second that Snakemake sets by itself, not one that the
    command line names.

    With a limit, each job that has ended leaves a timer that makes Snakemake go through all open
    jobs again each second, until the campaign ends. After 200 cells that took an eighth of a CPU,
    beside what was measured. ``scheduler``: Snakemake's own, before it hands over the first job.
    """
    if not named(arguments, ("--max-jobs-per-timespan", "--max-jobs-per-second")):
        scheduler.job_rate_limiter = None


def keep_handlers(workflow: Any, names: Mapping[str, Any]) -> None:
    """Give a workflow the handlers of the Snakefile whose global ``names`` these are.

    Newer versions of Snakemake ignore those of a module, without which a campaign does not begin.
    """
    for name in ("onstart", "onsuccess", "onerror"):
        if name in names:
            setattr(workflow, f"_{name}", names[name].func)


def lock(directory: Path) -> int:
    """Hold the campaign until this process ends, however it ends; the descriptor of the lock.

    Raises:
        PeakmarkError: another process holds it; the message names that.
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


# -- records of earlier runs


def survey(results: Results) -> dict[str, Finding]:
    """Cell id -> finding. Where the facts of a node do not count, one of its cells does not either:
    whoever measures it again collects the facts again.
    """
    findings = dict(results.findings)
    for host, reason in results.damaged_facts.items():
        for name, finding in findings.items():
            data = finding.data
            if finding.state == integrity.GOOD and data and data["context"]["host"] == host:
                findings[name] = Finding(integrity.DAMAGED, reason, data=data)
                break
    return findings


def is_unfit(finding: Finding) -> bool:
    """Whether there is a record that does not count."""
    return finding.state in (integrity.DAMAGED, integrity.OTHER)


def set_aside(plan: Plan, findings: Mapping[str, Finding]) -> None:
    """Set aside the records that do not count, and say what is measured again and what stays.

    Called when the run has the campaign to itself.
    """
    counts = Counter[str]()
    for cell in plan.cells:
        finding = findings[cell.id]
        # Where it is the node's facts that are damaged, the record itself is whole.
        whole = finding.state == integrity.DAMAGED and finding.data is not None
        if not is_unfit(finding) or integrity.set_aside(plan.directory, cell, good=whole) is None:
            continue
        counts[finding.state] += 1
        if finding.state == integrity.DAMAGED and counts[integrity.DAMAGED] <= NAMED:
            output.tell(finding.reason)
    for host in plan.results.damaged_facts:
        facts.set_aside(plan.directory, host)
    decisions.set_aside(plan.directory)
    kept = f"kept in {plan.directory / integrity.ASIDE}"
    if damaged := counts[integrity.DAMAGED]:
        cells = plural(damaged, "cell is", "cells are")
        output.tell(f"{cells} measured again, the records as they were are {kept}")
    if changed := counts[integrity.OTHER]:
        good = sum(finding.state == integrity.GOOD for finding in findings.values())
        unchanged = "finished cell has not changed and stays"
        stay = plural(good, unchanged, "finished cells have not changed and stay")
        because = f"because {'its' if changed == 1 else 'their'} options have changed"
        cells = plural(changed, "cell is", "cells are")
        output.tell(f"{cells} measured anew {because}, the earlier records are {kept}; {stay}")
    if foreign := integrity.foreign(plan.directory, plan.cells):
        records = plural(len(foreign), "record is", "records are")
        output.tell(
            f"{records} of cells that the configuration does not ask for: kept, but in no table"
        )


# -- on a cluster


def ignore_sighup(log: Path) -> None:
    """A terminal that goes away ends nothing: what would have been printed there goes to ``log``."""
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        return

    def hang_up(*_: object) -> None:
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
        signal.signal(signal.SIGHUP, hang_up)


def check_allocation_overlap(plan: Plan) -> None:
    """A run that is itself a job must not hold the nodes that its jobs are to have alone: they
    would wait for its end.

    Raises:
        PeakmarkError: it does; the message names the nodes.
        SlurmError: Slurm does not answer.
    """
    number = os.environ.get("SLURM_JOB_ID")
    exclusive = settings_of(plan.config).get("exclusive", True)
    if number is None or plan.cluster is None or not exclusive:
        return
    known = {name for kind in plan.cluster.kinds for name in kind.nodes}
    held = known.intersection(slurm.job_nodes(number))
    wanted = {cell.node for cell in plan.cells} | set(plan.peers.values())
    most = max((2 if two_nodes(cell) else 1 for cell in plan.cells if cell.node == ANY), default=0)
    if held & wanted or (held and plan.cluster.count - len(held) < most):
        names = slurm.hostlist(held & wanted or held)
        raise PeakmarkError(
            f"this runs inside job {number}, which holds {names}, and the cells of {plan.campaign} want {names} for themselves: start "
            "it on a login node, as a job in a partition of other nodes, or leave those of its own out of nodes:"
        )


def groups(plan: Plan) -> Iterable[Sequence[Cell]]:
    """The cells of each job of the plan."""
    return plan.jobs.values() if plan.jobs else ([cell] for cell in plan.cells)


def adopt(plan: Plan) -> dict[str, str]:
    """Jobs of a killed run that measure what this one will: comment -> number, with their place in
    the queue. Those that measure anything else are ended.

    Raises:
        SlurmError: they do not end in time.
    """
    wanted = {jobs.comment(plan, cells) for cells in groups(plan)}
    mark = f" {jobs.checkout()}."

    def queued() -> dict[str, str]:
        return {
            job.number: job.comment
            for job in slurm.jobs()
            if job.comment.startswith(f"{plan.campaign}/") and mark in job.comment
        }

    before = queued()
    # Of two jobs for the same cells the first one stays.
    kept = {comment: number for number, comment in reversed(before.items()) if comment in wanted}
    others = [number for number in before if number not in kept.values()]
    if kept:
        count = plural(len(kept), "job of an earlier run is", "jobs of an earlier run are")
        output.tell(f"{count} still in the queue and {'goes' if len(kept) == 1 else 'go'} on")
    if others:
        count = plural(
            len(others), "job of an earlier run measures", "jobs of an earlier run measure"
        )
        output.tell(f"{count} something else, which ends now")
        _end(others, queued)
    return kept


def _end(numbers: list[str], queued: Callable[[], dict[str, str]]) -> None:
    slurm.cancel(numbers)
    deadline = time.monotonic() + CANCEL_S
    while rest := [number for number in queued() if number in numbers]:
        if time.monotonic() > deadline:
            raise slurm.SlurmError(
                f"the jobs {', '.join(rest)} of an earlier run did not end within {CANCEL_S:.0f} s of scancel: "
                "see squeue, and start again when they are gone"
            )
        time.sleep(0.5)


def check_jobs(
    plan: Plan, overrides: Mapping[str, str], is_measured: Callable[[Cell], bool]
) -> None:
    """Have Slurm check one job of each kind before any is submitted.

    Args:
        plan: the campaign's.
        overrides: partition, account and the like of the command line.
        is_measured: whether a cell needs no job.

    Raises:
        SlurmError: Slurm would not take some.
    """
    longest: dict[tuple[tuple[str, str], ...], dict[str, str]] = {}
    expected = []
    for cells in groups(plan):
        missing = [cell for cell in cells if not is_measured(cell)]
        if not missing:
            continue
        expected.append((plan.durations.total(missing), missing[0].id))
        wanted = jobs.named_options(cells, plan, overrides)
        wanted.pop("dependency", None)
        kind = tuple(item for item in wanted.items() if item[0] not in ("time", "nodelist"))
        if int(wanted["time"]) > int(longest.get(kind, {"time": "0"})["time"]):
            longest[kind] = wanted
    # Those of one node first: what is refused of two alone is a matter of the network cells.
    for wanted in sorted(longest.values(), key=lambda wanted: int(wanted["nodes"])):
        options = jobs.command_line(wanted, settings_of(plan.config))
        if why := submission.check(wanted, options):
            raise slurm.SlurmError(f"{why} (asked for: {' '.join(options)})")
    seconds, first = max(expected, default=(0.0, ""))
    limit = plan.cluster.limit if plan.cluster else None
    if plan.cluster and limit is not None and seconds > limit * 60:
        output.tell(
            f"the job of {first} is expected to take {duration(seconds)}, and partition "
            f"{plan.cluster.partition} ends jobs after {plural(limit, 'minute')} (MaxTime): "
            "slurm.partition in the site file names one with longer jobs"
        )
