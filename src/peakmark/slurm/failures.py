"""Judge jobs that Slurm refuses or ends: whether to try again, and how to fix the cause.

The module also writes the attempt records of such jobs, which end before they can write them.
"""

from __future__ import annotations

import datetime
import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peakmark import __version__, files, slurm
from peakmark.cell import Cell
from peakmark.errors import MORE_MEMORY, OUT_OF_MEMORY, PeakmarkError, RecordError, sentence, tell
from peakmark.slurm import SlurmError, commands
from peakmark.storage import records
from peakmark.storage.record_types import Record, RecordContext

_CAUSE = re.compile(r"(?:submission failed|allocation failure): (.*?)(?=\s*sbatch: |$)")
"""Pattern of the cause that ended a submission. Lines before it come from the site or earlier tries."""
_LIMIT = re.compile(r"\b(?:QOS|Assoc)(?:Max|Min|Grp|Time|Job|NotAllowed|Resource|Usage)\w*")
"""Pattern of Slurm's names of limits, such as QOSMaxNodePerJobLimit. The text after a name is general."""
_OTHER_JOBS = re.compile(r"Submit|Jobs|QOSJobLimit")
"""Part of the name of a limit on the number of jobs in the queue: when jobs end, there is room again."""
_MY_JOBS = re.compile(r"MaxSubmitJobs?(?!.*PerAccount)")
"""Part of the name of a limit on the jobs of only this user. A limit of 0 refuses every job."""
_UNNAMED = re.compile(r"Job violates accounting(/QOS)? policy")
"""Message of Slurm if any limit of an account or a QOS refuses a job.

It is the same for limits that pass when jobs end and for limits that stay.
"""
_LATER = re.compile(
    r"Unable to contact slurm controller|Unable to create job record, try again|Rate limit exceeded"
    r"|Slurm backup controller in standby mode|Controller is in standby mode"
    r"|System submissions disabled|Slurm temporarily unable to accept job|Slurm job queue full"
    r"|Resource temporarily unavailable|I/O error writing script/environment to file"
    r"|Connection refused|No route to host|(Network|Host) is (unreachable|down)"
    r"|Protocol authentication error|(Munge|auth_munge).*(failed|error)|Invalid authentication credential"
    r"|(Job )?[Cc]redential (replayed|expired)|Unable to (process|read) configuration file"
    r"|.*(configuration source|while reconfiguring|Temporary failure in name resolution)"
    r"|Unable to establish controller machine"
)
"""Beginnings of error messages after which Slurm may take the job later (src/common/slurm_errno.c).

The last four lines: the authentication failed, a credential is too old, or the configuration is
being changed and the controller cannot be found meanwhile.
"""
_UNANSWERED = re.compile(
    r"Socket timed out on send/recv operation|Zero Bytes were transmitted or received"
    r"|Unable to contact slurm controller \((receive|shutdown) failure\)"
    r"|Communication (connection|shutdown) failure|Message (send|receive) failure"
    r"|Unexpected missing socket error|Header lengths are longer than data received"
    r"|Connection (timed out|reset by peer)|Broken pipe|Interrupted system call"
    r"|Transport endpoint is not connected"
)
"""Beginnings of error messages after which Slurm may have taken the job already."""
_WAITS = re.compile(
    r"Requested nodes are busy|Required nodes? not available|ReqNodeNotAvail"
    r"|Job can not start (immediately|due to maintenance reservation)"
    r"|Immediate execution impossible|Licenses currently unavailable"
    r"|Switch resources currently not available|Requested reservation (is in use|not usable now)"
)
"""Beginnings of what ``sbatch --test-only`` says of a job that waits in the queue."""
NO_NETWORK = (
    "only the cells of network and MPI take two nodes: network: [] and mpi: [] in the configuration, or "
    "--config network=[] mpi=[], leave them out"
)
_ADVICE = {
    "(Max|Grp)Node(Per|Limit)": NO_NETWORK,
    "(?i)wall|minutes|time limit is": "slurm.runtime_factor in the site file asks for less time",
    "(?i)mem|CPU count per node": "slurm.memory in the site file asks for it in another way",
    "(?i)cpu|processors|exclusive": "slurm.exclusive: false in the site file asks for less of a node",
    "(?i)account|qos|assoc": "slurm.account or slurm.qos names another; sacctmgr show assoc,qos lists them",
    "(?i)partition|permission|node": "slurm.partition in the site file names another; sinfo lists them",
    "": "slurm.extra in the site file changes what is asked for",
}
"""Pattern of the name of a limit or, without a name, of a cause -> what to do.

The first pattern that matches decides.
"""


@dataclass(frozen=True)
class Refusal:
    """The reason why Slurm refuses a job. If ``is_temporary``, Slurm may take the same job later."""

    text: str
    is_temporary: bool = False


def _is_cause(pattern: re.Pattern[str], error: SlurmError) -> bool:
    """Return whether the cause that Slurm names for a failed submission begins with a pattern.

    Words of a site, such as *standby*, may follow Slurm's sentence. Without a cause, the pattern may be
    anywhere in the message.
    """
    causes: list[str] = _CAUSE.findall(error.reason)
    if causes:
        return bool(pattern.match(causes[-1]))
    return bool(pattern.search(error.reason))


def counts_my_jobs(error: SlurmError) -> bool:
    """Return whether the reached limit may be a limit on the submitted jobs of this user.

    A message without the name of a limit counts too, because it may be about this limit.
    """
    limit = _LIMIT.search(error.reason)
    if limit is not None:
        return bool(_MY_JOBS.search(limit[0]))
    return _is_cause(_UNNAMED, error)


def is_temporary(error: SlurmError, has_jobs: bool = True) -> bool:
    """Return whether the same submission may succeed later.

    It may succeed if the queue was full or the controller did not answer.

    Args:
        error: error of sbatch.
        has_jobs: whether this user has jobs in the queue. Without jobs, their number cannot be at a limit.
    """
    if counts_my_jobs(error):
        return has_jobs
    limit = _LIMIT.search(error.reason)
    if limit is not None:
        return bool(_OTHER_JOBS.search(limit[0]))
    return is_unanswered(error) or _is_cause(_LATER, error)


def is_unanswered(error: SlurmError) -> bool:
    """Return whether only the answer was lost, so that Slurm may have taken the job.

    Then sbatch got no answer in time (``silent``), or its message says so.
    """
    return error.silent or _is_cause(_UNANSWERED, error)


def may_succeed_later(error: SlurmError, has_jobs: bool = False) -> bool:
    """Return whether the same submission may succeed later, see ``is_temporary``.

    If that depends on whether the user has jobs, and the caller knows of none, Slurm is asked.
    """
    if counts_my_jobs(error) and not has_jobs:
        with suppress(SlurmError):
            has_jobs = bool(slurm.jobs())
    return is_temporary(error, has_jobs)


def text(error: SlurmError) -> str:
    """Return the message of sbatch as one line: semicolons join its parts, each without ``sbatch: error:`` before it."""
    stripped = re.sub(r"^(sbatch: )?(error: )?", "", error.reason or error.fact)
    return re.sub(r"\s*sbatch: (error: )?|\s+(?=allocation failure:)", "; ", stripped).strip("; ")


def refusal(error: SlurmError) -> str:
    """Return the message of sbatch and how to fix the cause."""
    limit = _LIMIT.search(error.reason)
    subject = limit[0] if limit else error.reason
    advice = next(advice for pattern, advice in _ADVICE.items() if re.search(pattern, subject))
    return f"Slurm takes no such job: {text(error)}; {advice}"


def check(wanted: Mapping[str, str], options: Sequence[str]) -> Refusal | None:
    """Return why Slurm refuses a job or would never start it; None if the job can start.

    Args:
        wanted: options of sbatch by name: ``partition``, ``time`` in minutes and ``nodes``.
        options: all options as arguments of sbatch.
    """
    # Check the partitions, because sbatch takes jobs for a partition that is DOWN and, with
    # EnforcePartLimits=NO, jobs beyond its limits.
    partitions: list[slurm.Partition] = []
    with suppress(SlurmError):  # sbatch is then asked without this check
        partitions = slurm.partitions(wanted.get("partition"))
    errors = [_partition_error(partition, wanted) for partition in partitions]
    if errors and all(errors):
        return Refusal(errors[0])
    try:
        commands.ask("sbatch", "--test-only", *options, text="#!/bin/sh\n")
    except SlurmError as error:
        if _is_cause(_WAITS, error):  # such a job waits in the queue
            return None
        if may_succeed_later(error):
            return Refusal(text(error), is_temporary=True)
        refused = refusal(error)
        # A single partition has been asked already.
        names = _refusing(partitions, options) if len(partitions) > 1 else []
        if 0 < len(names) < len(partitions):
            refused = f"{refused} (alone refused by: {', '.join(names)})"
        # Cells of two nodes can be left out of the configuration.
        if wanted["nodes"] == "2" and NO_NETWORK not in refused:
            refused = f"{refused}; {NO_NETWORK}"
        return Refusal(refused)
    return None


def _refusing(partitions: Sequence[slurm.Partition], options: Sequence[str]) -> list[str]:
    """Return the names of the partitions that refuse the job if it asks for no other partition."""
    others = [option for option in options if not option.startswith("--partition=")]
    names = []
    for partition in partitions:
        argv = ["sbatch", "--test-only", f"--partition={partition.name}", *others]
        try:
            commands.ask(*argv, text="#!/bin/sh\n")
        except SlurmError:
            names.append(partition.name)
    return names


def _partition_error(partition: slurm.Partition, wanted: Mapping[str, str]) -> str:
    """Return why the job never starts in the partition; empty if it may start."""
    if partition.state != "up":
        another = "slurm.partition in the site file names another, sinfo lists them"
        return f"no job starts in partition {partition.name}, which is {partition.state}: {another}"
    if partition.nodes is not None and int(wanted["nodes"]) > partition.nodes:
        return f"MaxNodes of partition {partition.name} is {partition.nodes}: {NO_NETWORK}"
    return ""


_ENDS = {
    "TIMEOUT": (
        "it passed its time limit: runtime_factor in the site file's section slurm makes limits longer"
    ),
    "CANCELLED": "somebody cancelled it",
    "NODE_FAIL": "its node was lost",
    "PREEMPTED": "another job took its node",
    "BOOT_FAIL": "its node did not start",
    slurm.LAUNCH_FAILED: "its node could not start it, for example because its Prolog failed",
}
"""State of an ended job -> its meaning and the remedy."""
_HELD = re.compile("launch[ _]failed[ _]requeued[ _]held")
"""Reason of a job that waits because its node could not start it."""
LOG_BYTES = 1 << 20
"""Number of bytes at the end of a job's log that are searched for slurmstepd's message."""
_OUT_OF_MEMORY = re.compile(r"oom[-_]kill event|exceeded memory limit", re.IGNORECASE)
"""Words of slurmstepd in the log of a job that ran out of memory: under control groups, and under
OverMemoryKill.
"""


def keep(
    campaign: Path, cell: Cell | None, number: str, state: str, details: Mapping[str, str]
) -> bool:
    """Write a failed attempt of the cell that a job was measuring, unless the job has written one.

    If the disk cannot be written, print this once: the campaign continues.

    Args:
        campaign: folder of the campaign.
        cell: cell that the job was measuring; None if it is unknown.
        number: number of the job.
        state: state of the job, as Slurm names it.
        details: fields of ``scontrol show job``.

    Returns:
        Whether this function has written an attempt.
    """
    if cell is None or has_attempt(campaign, [cell], number):
        return False
    code, log = details.get("ExitCode", ""), details.get("StdOut", "")
    if state == OUT_OF_MEMORY or (state == "FAILED" and _memory_ran_out(log)):
        how = f"{OUT_OF_MEMORY}: {_memory_granted(details)}"
    elif state in _ENDS:
        how = f"{state}: {_ENDS[state]}{_drained(state, details)}"
    else:
        # Slurm prints CODE:SIGNAL.
        how = f"{state}, exit code {code.partition(':')[0] or 'unknown'}"
    # The job's script ran on the first node that is known.
    names = (details.get("BatchHost"), details.get("NodeList"))
    host = next((name for name in names if name and name != "(null)"), "unknown")
    reason = f"Slurm ended job {number}: {how}"
    return _store(campaign, cell, reason, host.partition(".")[0], job_id=number, job_log=log)


def _drained(state: str, details: Mapping[str, str]) -> str:
    """Return `` (NODE is STATE)`` for the node that could not start a job; empty if unknown."""
    nodes = details.get("NodeList", "(null)")
    found: dict[str, str] = {}
    if state == slurm.LAUNCH_FAILED and nodes != "(null)":
        with suppress(SlurmError):
            found = slurm.nodes_unavailable([nodes])
    return "".join(f" ({name} is {why})" for name, why in found.items())


def end_of(job: slurm.Job, is_reserved: bool) -> str:
    """Return the state of a job: LAUNCH_FAILED if its node could not start it.

    Slurm drains the node and cancels the job, or holds the job where the site requeues such jobs.

    Args:
        job: the job.
        is_reserved: see ``slurm.nodes_unavailable``.
    """
    if _HELD.match(job.reason):
        return slurm.LAUNCH_FAILED
    if job.state not in ("CANCELLED", "FAILED"):
        return job.state
    details = slurm.job(job.number)
    nodes = details.get("NodeList", "(null)")
    if details.get("RunTime") == "00:00:00" and nodes != "(null)":
        with suppress(SlurmError):  # without an answer, the job's own state is returned
            if slurm.nodes_unavailable([nodes], is_reserved):
                return slurm.LAUNCH_FAILED
    return job.state


def store_refused(campaign: Path, cells: Iterable[Cell], reason: str) -> None:
    """Write a failed attempt of each of these cells, because their job never ran."""
    for cell in cells:
        _store(campaign, cell, reason, cell.node)


def has_attempt(campaign: Path, cells: Iterable[Cell], number: str) -> bool:
    """Return whether the job has left an attempt of one of its cells."""
    for cell in cells:
        for path in records.attempts(campaign, cell):
            with suppress(OSError, RecordError):
                if records.read(path).context.job_id == number:
                    return True
    return False


def _memory_granted(details: Mapping[str, str]) -> str:
    """Return how much memory was granted to a job that ran out of memory, and how it can get more."""
    # Slurm has one such field up to 22.05, and two since 23.02.
    fields = (details.get(name, "") for name in ("AllocTRES", "TRES", "ReqTRES"))
    total = re.search(r"\bmem=([\w.]+)", " ".join(fields))
    amount = f" ({total[1]})" if total else ""
    # --mem=0, which an exclusive job asks for, grants all memory of its node.
    if details.get("MinMemoryNode", "").startswith("0"):
        advice = "a smaller pool:, smaller blocks: or nodes with more memory"
        return f"it used all memory that Slurm gives of its node{amount}: {advice}"
    return f"it used more memory than it had been granted{amount}: {MORE_MEMORY}"


def _memory_ran_out(log: str) -> bool:
    """Return whether the log of a job shows that a step ran out of memory.

    If only a step ran out of memory, and not the job's script, the state of the job is FAILED.
    sacct shows the state of the step, but needs slurmdbd, which a site may lack.
    """
    try:
        with Path(log).open("rb") as stream:
            size = stream.seek(0, 2)  # to the end of the file
            stream.seek(max(0, size - LOG_BYTES))
            tail = stream.read().decode(errors="replace")
    except OSError:
        return False
    return bool(_OUT_OF_MEMORY.search(tail))


def _store(campaign: Path, cell: Cell, reason: str, host: str, **known: Any) -> bool:
    """Write a failed attempt, and return whether this was possible.

    Args:
        campaign: folder of the campaign.
        cell: cell of the attempt.
        reason: why it failed.
        host: node of the job, or of the cell if the job never ran.
        known: further keys of the record's context.
    """
    context = RecordContext(
        host=host,
        started=datetime.datetime.now().astimezone().isoformat(timespec="milliseconds"),
        seconds=0.0,
        peakmark=__version__,
        **known,
    )
    record = Record(cell=cell.keys, status="failed", reason=reason, context=context)
    try:
        records.write(records.new_attempt(campaign, cell), record)
    except (OSError, PeakmarkError) as error:
        why_not = sentence(error) if isinstance(error, OSError) else str(error)
        _tell_once(files.full(campaign) or f"how jobs ended cannot be kept: {why_not}")
        return False
    return True


@functools.cache
def _tell_once(line: str) -> None:
    """Print a text, but only once: further calls return the cached result."""
    tell(line)
