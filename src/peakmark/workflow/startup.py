"""Start a run: check this machine, lock the campaign, and set aside records that do not count.

On a cluster, also take over the jobs of an earlier run, have Slurm check new jobs, and continue after the
terminal is closed. Each job checks its own node. An error of the user ends in one sentence.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import signal
import socket
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, TypeVar

import msgspec
from snakemake_interface_common.exceptions import ApiError

from peakmark import files, resources, slurm
from peakmark.cell import Cell
from peakmark.config.campaign import named
from peakmark.errors import ConfigError, ExitCode, PeakmarkError, sentence, tell
from peakmark.formatting import counted, duration, listed, natural, plural, short_name
from peakmark.plan import durations, jobs
from peakmark.plan.plan import Plan
from peakmark.run import job, kernel_build, mpi
from peakmark.run import lock as run_lock
from peakmark.slurm import commands, failures
from peakmark.storage import records
from peakmark.storage.records import Finding
from peakmark.storage.results import Results
from peakmark.tools import REFERENCES, REGISTRY
from peakmark.tools.base import Tool


def check(plan: Plan, cells: Iterable[Cell]) -> list[str]:
    """Check that this machine can measure the missing cells, and return warnings.

    The warnings are sentences on rows that stay empty although their tool is installed, one for each reason.

    Args:
        plan: the plan of the campaign.
        cells: missing cells; if there are none, the machine is not checked.

    Raises:
        ConfigError: cells would fail, because this machine lacks what the configuration names, or disk space.
    """
    rows = {cell.row: cell for cell in cells}
    reasons = {row: plan.impossible[row] for row in rows.keys() & plan.impossible.keys()}
    if rows and plan.cluster is None and plan.config.tools_on != "nodes":
        _check_machine(plan, rows.values())
    by_reason = defaultdict[str, list[str]](list)
    for row, reason in sorted(reasons.items()):
        by_reason[reason].append(row)
    lines = []
    for reason, names in by_reason.items():
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        lines.append(f"not possible: {names[0]}{more}: {reason}")
    return lines


def check_compiler(build: Path) -> None:
    """Check that the kernels can be compiled into ``build``.

    Raises:
        OSError: as for ``check_folder``.
        PeakmarkError: a program is missing. The message names the program's package.
    """
    check_folder(build)
    lacking = [program for program in ("gcc", "make") if shutil.which(program) is None]
    if lacking:
        raise PeakmarkError(
            f"the kernels are not compiled yet, and {listed(lacking)} is not here: "
            "on Debian apt-get install gcc make libc6-dev, on Fedora dnf install gcc make glibc-devel"
        )


def check_folder(folder: Path) -> None:
    """Check that a folder can be created and written to. Otherwise Snakemake would print a traceback.

    Raises:
        OSError: the path is a file or a broken link, or permissions are missing.
        PeakmarkError: the disk is full.
    """
    nearest = next(path for path in (folder, *folder.absolute().parents) if os.path.lexists(path))
    os.scandir(nearest).close()  # raises an OSError if it is no folder, or not readable
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(nearest))
    if full := files.full(nearest):
        raise PeakmarkError(full)


def _check_machine(plan: Plan, cells: Iterable[Cell]) -> None:
    """Check that this machine has what the configuration names, and disk space for the cells. Errors: ConfigError."""
    _check_interface(plan)
    _check_tools(plan)
    largest, _ = durations.largest(cells)
    if full := files.full(_check_scratch(plan), largest):
        raise ConfigError(full)


def _check_interface(plan: Plan) -> None:
    """Check that this machine has the interface to measure. Errors: ConfigError."""
    name = plan.config.interface
    known = [name for _, name in socket.if_nameindex()]
    if name is not None and name not in known:
        raise ConfigError(f"interface is {name!r}: this machine has {', '.join(known)}")


def _check_tools(plan: Plan) -> None:
    """Check that this machine has the programs in ``tools``. Errors: ConfigError.

    Programs of environment modules are on PATH only after the modules are loaded.
    """
    for name, path in plan.config.tools.items():
        if (
            path is not False
            and name not in plan.config.modules
            and shutil.which(str(path)) is None
        ):
            raise ConfigError(
                f"tools.{name} is {path!r}, which is no program here: give the path of one, or false to leave it out"
            )


def _check_scratch(plan: Plan) -> Path:
    """Return the scratch directory. Errors: ConfigError, if no file can be written there."""
    configured = plan.config.scratch
    place = files.scratch(configured)
    why = files.unusable(place)
    if why is None:
        return place
    which = f"scratch is {configured!r}" if configured else f"the scratch directory is {place}"
    raise ConfigError(
        f"{which}, which cannot be used ({why}): set scratch: to a directory on the disk that is measured"
    )


CANCEL_S = 120.0
"""Seconds that Slurm may take to end the jobs of an earlier run."""


def disable_rate_limit(scheduler: Any, arguments: Sequence[str]) -> None:
    """Remove Snakemake's default limit of a hundred jobs a second, unless the command line sets one.

    With a limit, each ended job leaves a timer with which Snakemake searches all open jobs every second,
    until the campaign ends. After 200 cells, this took an eighth of a CPU during measurements.

    Args:
        scheduler: Snakemake's scheduler, before it hands over the first job.
        arguments: words of the command line.
    """
    if not named(arguments, ("--max-jobs-per-timespan", "--max-jobs-per-second")):
        scheduler.job_rate_limiter = None


def keep_handlers(workflow: Any, names: Mapping[str, Any]) -> None:
    """Register the handlers (onstart, onsuccess, onerror) of the Snakefile whose globals are ``names``.

    Newer versions of Snakemake ignore the handlers of a Snakefile that another one includes as a module.
    Without ``onstart`` no campaign begins.
    """
    for name in {"onstart", "onsuccess", "onerror"} & names.keys():
        setattr(workflow, f"_{name}", names[name].func)


def lock(directory: Path) -> int:
    """Lock the campaign until this process ends, and return the descriptor of the lock.

    Raises:
        PeakmarkError: another process holds the lock. The message names the process.
        OSError: the lock file cannot be opened or written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "running"
    # Let the umask decide who may write this file, as it does for the campaign's folder.
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    # Use lockf instead of flock, because on a shared filesystem other nodes see only its locks.
    if not run_lock.take(fcntl.lockf, descriptor, path, f"start no second run of {directory}"):
        holder = os.read(descriptor, 200).decode(errors="replace").strip()
        os.close(descriptor)
        raise PeakmarkError(
            f"the campaign {directory} is being measured already by {holder or 'another process'}: "
            f"peakmark status {directory} shows how far it is"
        )
    with files.naming(path):
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode())
    return descriptor


# -- records of earlier runs

ASK_S = 20
"""Seconds within which idle nodes must start the job that asks for their tools."""
Tools = dict[str, Tool | None]
"""Name of a tool -> its path and version; None if it is absent."""


def survey(results: Results) -> dict[str, Finding]:
    """Return the state of each cell's record, by the cell's id.

    If the facts of a node are damaged, one of its cells counts as damaged too. It is then measured again,
    and its job collects the facts.
    """
    findings = dict(results.findings)
    # One cell of each node suffices.
    for host, reason in results.damaged_facts.items():
        for name, finding in findings.items():
            data = finding.data
            if finding.state == records.GOOD and data and data.context.host == host:
                findings[name] = Finding(records.DAMAGED, reason, data=data)
                break
    return findings


def other_tools(
    plan: Plan, findings: Mapping[str, Finding], overrides: Mapping[str, str]
) -> dict[str, Finding]:
    """Return cell id -> new state of its record, for impossible cells that may be possible now.

    A cell may be possible now if its reference tool has been installed or replaced on its node, or
    if the MPI settings of the site file have changed.

    Args:
        plan: the plan of the campaign.
        findings: cell id -> state of its record.
        overrides: partition, account and similar settings of the command line.
    """
    # Collect the impossible cells: those that were tried with other settings of MPI than now count at once. Others may
    # be possible if their node has another tool. ``stuck`` is the short name of each node -> ids of such cells.
    stuck = defaultdict[str, list[str]](list)
    found = {}
    settings = mpi.encoded(plan.config.site_facts.mpi)
    for cell in plan.cells:
        data = findings[cell.id].data
        if data is None or data.status != "unavailable":
            continue
        # Only impossible cells of MPI have settings in their record.
        tried_with = data.context.library.get("settings", settings)
        if tried_with != settings:
            found[cell.id] = Finding(records.OTHER_TOOL, data=data)
        elif REGISTRY[cell.instrument].reference:
            host = data.context.host
            stuck[records.node_name(host, plan.results.facts.get(host, {}))].append(cell.id)
    # Ask the nodes for their tools, and compare these with the tools of the records.
    names = sorted({cell.instrument for cell in plan.cells} & set(REFERENCES))
    now = _tools_on(plan, stuck, names, overrides) if stuck else {}
    for node, tools in now.items():
        for cell_id in stuck[node]:
            data = findings[cell_id].data
            if data and tools[data.cell.instrument] != data.context.tool:
                found[cell_id] = Finding(records.OTHER_TOOL, data=data)
    return found


def _tools_on(
    plan: Plan, nodes: Collection[str], names: Sequence[str], overrides: Mapping[str, str]
) -> dict[str, Tools]:
    """Return node -> its tools (``job.tools_here``), for this machine or the nodes idle in Slurm.

    Args:
        plan: the plan of the campaign.
        nodes: short names of the nodes on which some cells were not possible.
        names: names of the tools.
        overrides: partition, account and similar settings of the command line.
    """
    if plan.cluster is None:
        here = filter(slurm.is_here, nodes)
        return dict.fromkeys(here, job.tools_here(plan.results.plan, names, kernel_build.folder()))
    settings = msgspec.structs.replace(plan.config.site_facts.slurm, **overrides)
    found: dict[str, Tools] = {}
    try:
        known = slurm.nodes(plan.cluster.partition, settings.reservation)
        wanted = (node for node in known if short_name(node.name) in nodes)
        idle = [node.name for node in wanted if node.state == "idle"]
        if idle:
            # One job starts at once on all idle nodes. Each node prints a line.
            named = jobs.site_options(
                settings, len(idle), limit_min=1, cpu_count=1, memory_mb=durations.PROGRAMS_MB
            )
            named |= {"nodelist": ",".join(idle), "immediate": str(ASK_S)}
            path = plan.directory / "plan.json"
            words = resources.command("measure", "--plan", str(path), "--tools", *names)
            answers = commands.ask("srun", *jobs.command_line(named, settings), *words)
            for line in answers.splitlines():
                node, tools = msgspec.json.decode(line, type=tuple[str, Tools])
                found[short_name(node)] = tools
    except slurm.SlurmError as error:
        tell(f"the tools of the nodes are not known: {error}")
    if missing := sorted({*nodes} - found.keys(), key=natural):
        tell(
            f"{counted(missing)}: some cells were not possible there. Whether their tools are there now is "
            "asked by a run that starts while these nodes are idle"
        )
    return found


def is_unfit(finding: Finding) -> bool:
    """Return whether a cell has a record that does not count."""
    return finding.state in (records.DAMAGED, records.OTHER_OPTIONS, records.OTHER_TOOL)


def set_aside(plan: Plan, findings: Mapping[str, Finding]) -> None:
    """Set aside the records that do not count.

    Print how many cells are measured again, by the state of their records. The run must hold the lock of the campaign.
    """
    counts = Counter[str]()
    for cell in plan.results.cells:
        finding = findings[cell.id]
        # The record itself is good if only the facts of its node are damaged, or if only the tool
        # of the node is another one now. It is moved too. A record that is damaged or has other
        # options is moved only if no other run has replaced it by a good one since.
        move_good = finding.state != records.OTHER_OPTIONS and finding.data is not None
        if not is_unfit(finding) or records.set_aside(plan.directory, cell, good=move_good) is None:
            continue
        counts[finding.state] += 1
        if finding.state == records.DAMAGED:
            tell(finding.reason)
    for host in plan.results.damaged_facts:
        records.set_aside_facts(plan.directory, host)
    if counts:
        states = ", ".join(f"{count} {state}" for state, count in counts.items())
        tell(
            f"{plural(counts.total(), 'cell is', 'cells are')} measured again ({states}): the earlier records are kept "
            f"in {plan.directory / records.ASIDE}"
        )


# -- on a cluster


def ignore_sighup(log: Path) -> None:
    """Continue after the terminal is closed, and print to ``log`` from then on."""
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        return

    def hang_up(*_: object) -> None:
        """Let standard output and standard error print to ``log``."""
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            log.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        except OSError:  # a full disk must not end the run
            descriptor = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(descriptor, stream)
        os.close(descriptor)
        # print() may raise an error if the signal interrupts another print.
        os.write(2, b"peakmark: the terminal has gone, the campaign goes on\n")

    signal.signal(signal.SIGHUP, hang_up)


def adopt(plan: Plan) -> dict[str, str]:
    """Take over the jobs of a killed run that measure cells of this run, and end its other jobs.

    Return comment -> number of each job that is taken over.

    Raises:
        SlurmError: the other jobs do not end in time.
    """
    wanted = {jobs.comment(plan, cells) for cells in plan.jobs.values()}

    def queued() -> dict[str, str]:
        """Return number -> comment of each job of this campaign from this checkout."""
        mine = {}
        for one in slurm.jobs():
            if one.comment.startswith(f"{plan.campaign}/") and jobs.is_from(one.comment):
                mine[one.number] = one.comment
        return mine

    before = queued()
    # If two jobs measure the same cells, keep the first one: in reversed order it comes last, and replaces the other.
    kept = {comment: number for number, comment in reversed(before.items()) if comment in wanted}
    others = [number for number in before if number not in kept.values()]
    if kept:
        tell(f"jobs of an earlier run that are still in the queue and go on: {len(kept)}")
    if others:
        tell(f"jobs of an earlier run that measure something else and end now: {len(others)}")
        _end(others, queued)
    return kept


def _end(numbers: list[str], queued: Callable[[], dict[str, str]]) -> None:
    """End jobs, and wait until they have left the queue."""
    slurm.cancel(numbers)
    deadline = time.monotonic() + CANCEL_S
    while rest := [number for number in queued() if number in numbers]:
        if time.monotonic() > deadline:
            raise slurm.SlurmError(
                f"the jobs {', '.join(rest)} of an earlier run did not end within {CANCEL_S:.0f} s of scancel: "
                "see squeue, and start again when they are gone"
            )
        time.sleep(0.5)


def check_jobs(plan: Plan, overrides: Mapping[str, str], missing: Iterable[Cell]) -> None:
    """Have Slurm check one job of each kind before any is submitted, and warn of a job that would take too long.

    Args:
        plan: the plan of the campaign.
        overrides: partition, account and similar settings of the command line.
        missing: cells that are not measured yet.

    Raises:
        SlurmError: Slurm would refuse a kind of job.
    """
    missing_ids = {cell.id for cell in missing}
    # Find the job with the longest time limit of each kind: jobs of one kind differ only in the time limit and in the
    # names of their nodes. ``expected`` has the seconds that each job will probably measure, and the id of its first cell.
    longest: dict[tuple[tuple[str, str], ...], dict[str, str]] = {}
    expected = []
    for cells in plan.jobs.values():
        left = [cell for cell in cells if cell.id in missing_ids]
        if not left:
            continue
        expected.append((plan.durations.total(left), left[0].id))
        wanted = jobs.named_options(cells, plan, overrides)
        # Whether the job waits for others does not decide whether Slurm takes it.
        wanted.pop("dependency", None)
        kind = tuple((key, wanted[key]) for key in wanted if key not in ("time", "nodelist"))
        # ``time`` is in minutes.
        longest[kind] = max(longest.get(kind, wanted), wanted, key=lambda each: int(each["time"]))
    # Check jobs of one node first. If Slurm refuses only jobs of two nodes, this concerns network cells.
    for wanted in sorted(longest.values(), key=lambda wanted: int(wanted["nodes"])):
        options = jobs.command_line(wanted, plan.config.site_facts.slurm)
        refusal = failures.check(wanted, options)
        if refusal and not refusal.is_temporary:
            raise slurm.SlurmError(f"{refusal.text} (asked for: {' '.join(options)})")
    # Warn if the slowest job takes longer than the partition allows.
    seconds, first = max(expected, default=(0.0, ""))
    cluster = plan.cluster
    if cluster and cluster.limit is not None and seconds > cluster.limit * 60:
        tell(
            f"the job of {first} is expected to take {duration(seconds)}, and partition "
            f"{cluster.partition} ends jobs after {plural(cluster.limit, 'minute')} (MaxTime): "
            "slurm.partition in the site file names one with longer jobs"
        )


Result = TypeVar("Result")


class UserError(ApiError):
    """An error that Snakemake prints as one line.

    With a traceback, Snakemake would also print the line of the Snakefile.

    Attributes:
        exit_code: exit code of ``peakmark run`` if Snakemake fails.
    """

    exit_code: ClassVar[ExitCode] = ExitCode.ERROR

    @property
    def __traceback__(self) -> TracebackType | None:
        """Return None instead of the traceback that Python keeps, so that Snakemake prints only the message."""
        return None

    @__traceback__.setter
    def __traceback__(self, value: TracebackType | None) -> None:
        """Ignore the traceback that ``raise`` assigns, so that Snakemake prints none."""


def as_workflow_error(function: Callable[[], Result]) -> Result:
    """Call a function, and convert errors of the user or the machine, which Snakemake prints as one line.

    Raises:
        UserError: the function raised such an error.
    """
    try:
        return function()
    except PeakmarkError as error:
        # On the class, where ``peakmark run`` reads it: Snakemake ends with one code for all
        # failures.
        UserError.exit_code = error.exit_code
        raise UserError(str(error)) from None
    except OSError as error:
        raise UserError(sentence(error)) from None
