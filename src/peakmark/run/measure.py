"""Measure one cell and write its record. Failed attempts are recorded below ``attempts/``."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from pathlib import Path
from socket import gethostname
from typing import TYPE_CHECKING

import msgspec

from peakmark import files
from peakmark.catalogue import KERNELS, NOT_POSSIBLE, SUBSYSTEMS
from peakmark.cell import Cell
from peakmark.errors import (
    MORE_MEMORY,
    OUT_OF_MEMORY,
    MeasurementError,
    PeakmarkError,
    RecordError,
    Sentence,
    Unavailable,
    sentence,
)
from peakmark.formatting import format_size
from peakmark.machine import gpu, job_limits, network, topology
from peakmark.machine.facts import cached
from peakmark.machine.host import Facts, Host
from peakmark.machine.topology import Topology
from peakmark.run import cleanup, execute, kernel_build, lock, noise, pinning
from peakmark.storage import activity, planfile, records
from peakmark.storage.activity import Noise
from peakmark.storage.record_types import (
    CommandRun,
    DisturbedAttempt,
    DisturbedContext,
    NetworkUsed,
    Record,
    RecordContext,
)
from peakmark.tools import REGISTRY
from peakmark.tools.base import (
    Command,
    Completed,
    Cost,
    Instrument,
    Parsed,
    Tool,
    Workspace,
    last_line,
)

if TYPE_CHECKING:
    from peakmark.run.pair import Peer

STACK_BYTES = 16 << 20
"""Bytes of memory that are allowed for the stack of each thread."""
FILE_BYTES = 64 << 20
"""Bytes that the largest file of a cell may have in addition to twice the estimate."""


@dataclass(frozen=True)
class Request:
    """Request to measure one cell.

    Attributes:
        output: path of the record, ``results/<campaign>/cells/<cell id>.json``.
        campaign: folder of the campaign, which holds attempts and machine facts.
        kernels: folder of the compiled kernels.
        tool: configured path of a reference tool; None to search PATH.
        pair: whether the server runs on the second node of this job instead of this machine.
        modules: environment modules that provide the tool.
        node_bytes: memory of this node as Slurm reports it, if the plan holds it.
        far_end: function that starts the server on another machine; None to start it on this machine.
        repeats: largest number of times that a disturbed measurement is repeated.
        wait: function that waits until other nodes may start too, called right before the program.
        announce: function that reports that a held program (``Command.is_held``) waits for its start.
        shared: folder for the common files of nodes that are measured at the same moment; None if the
            node is measured alone.
    """

    cell: Cell
    output: Path
    campaign: Path
    kernels: Path
    tool: str | None = None
    pair: bool = False
    modules: tuple[str, ...] = ()
    node_bytes: int | None = None
    far_end: Callable[[Command, Path], AbstractContextManager[Peer]] | None = None
    repeats: int = 0
    wait: Callable[[], None] = lambda: None
    announce: Callable[[], None] = lambda: None
    shared: Path | None = None


@dataclass
class _Attempt:
    """State and results of one attempt to measure a cell.

    Attributes:
        context: the record's context.
        server_noise: load on the server's node; empty until the server has ended, and if the cell
            has no such node.
        completed: commands that have ended.
        parsed: measured values.
        spare: number of CPUs that the measurement does not use.
        disturbances: disturbances that ``activity.find_disturbances`` found.
    """

    context: RecordContext
    server_noise: Facts = field(default_factory=dict)
    completed: list[Completed] = field(default_factory=list)
    parsed: Parsed = field(default_factory=lambda: Parsed(()))
    spare: float = 0.0
    disturbances: dict[str, float] = field(default_factory=dict)

    @property
    def disturbed(self) -> DisturbedAttempt:
        """Return the parts of this attempt that a record keeps if the attempt was disturbed."""
        names = DisturbedContext.__struct_fields__
        context = DisturbedContext(**{name: getattr(self.context, name) for name in names})
        return DisturbedAttempt(self.disturbances, context, self.parsed.measurements)


def measure(request: Request) -> Record:
    """Measure a cell, write the record of its least disturbed attempt, and return the record.

    Raises:
        PeakmarkError: the disk of the campaign is full, or the first attempt failed and was stored below
            ``attempts/``. In both cases there is no record.
    """
    cell = request.cell
    full = files.full(request.campaign)
    if full:
        raise MeasurementError(f"{cell.id} was not measured: {full}")
    attempts, failure = _measure_until_quiet(request)
    # Store a failed attempt, which is the last one. The cell fails only if its first attempt failed. If the
    # machine cannot measure the cell, this is no failed attempt: its record states the reason.
    is_impossible = len(attempts) == 1 and isinstance(failure, Unavailable)
    if failure is not None and not is_impossible:
        kept = _keep_failed(request, failure, attempts.pop())
        if not attempts:
            raise MeasurementError(
                f"{cell.id} failed on {gethostname()}: {failure} ({kept})"
            ) from failure
        failure = None
    best = min(attempts, key=_largest_disturbance)
    # A failure that is left means that the machine cannot measure the cell.
    if failure is not None and cell.subsystem == "mpi":
        from peakmark.run import mpi  # late: most cells need no MPI

        # The cell is measured again when the site file has other settings.
        best.context.library["settings"] = mpi.encoded(mpi.compiled(request.campaign).settings)
    record = _record(cell, failure, best)
    record.disturbed = tuple(attempt.disturbed for attempt in attempts if attempt is not best)
    if REGISTRY[cell.instrument].reference:
        record.raw = _write_raw(request.output.with_suffix(".raw"), best.completed)
    records.write(request.output, record)
    return record


def _measure_until_quiet(request: Request) -> tuple[list[_Attempt], PeakmarkError | None]:
    """Measure a cell, and repeat the measurement while it is disturbed, at most ``request.repeats`` times.

    Return all attempts, and the error of the last one; None if it did not fail.
    """
    attempts = [_Attempt(_new_context(request.campaign))]
    try:
        # The lock is entered first and released last, so that the next measurement starts after cleanup.
        with (
            lock.held(_lock_name()),
            _library_loaded(request.cell, request.campaign),
            execute.modules_loaded(request.modules),
        ):
            # ``_try`` writes its results into the attempt, also if it fails.
            _try(request, attempts[0])
            # Repeat a disturbed measurement when other programs have released the CPUs.
            # ``patience`` is the seconds for which the cell may still wait, over all repetitions.
            patience = planfile.WAIT_S
            while len(attempts) <= request.repeats and attempts[-1].disturbances:
                waited = noise.wait_for_others(request.campaign, attempts[-1].spare, patience)
                if waited is None:
                    break
                patience -= waited
                attempts.append(_Attempt(_new_context(request.campaign)))
                _try(request, attempts[-1])
    except PeakmarkError as error:
        return attempts, error
    except OSError as error:  # the disk of the campaign or of scratch is full or broken
        return attempts, MeasurementError(sentence(error))
    return attempts, None


def _library_loaded(cell: Cell, campaign: Path) -> AbstractContextManager[None]:
    """Load the MPI library of a campaign, if the cell measures MPI."""
    if cell.subsystem != "mpi":
        return nullcontext()
    from peakmark.run import mpi  # late: most cells need no MPI

    return mpi.library_loaded(campaign)


def _largest_disturbance(attempt: _Attempt) -> float:
    return max(attempt.disturbances.values(), default=0.0)


def _keep_failed(request: Request, failure: PeakmarkError, attempt: _Attempt) -> str:
    """Store a failed attempt. Return a phrase that says where, or why it could not be stored."""
    record = _record(request.cell, failure, attempt)
    try:
        path = records.new_attempt(request.campaign, request.cell)
        record.raw = _write_raw(path.with_suffix(".raw"), attempt.completed)
        records.write(path, record)
    except (OSError, RecordError) as error:
        return f"and the attempt could not be kept: {error}"
    return f"attempt kept in {path}"


def _new_context(campaign: Path) -> RecordContext:
    """Return the parts of a record's context that are known before the attempt."""
    return RecordContext(
        host=gethostname(),
        started=datetime.now().astimezone().isoformat(timespec="milliseconds"),
        seconds=0.0,
        peakmark=kernel_build.running_version(campaign),
        job_id=job_limits.job_id(),
    )


def _record(cell: Cell, failure: PeakmarkError | None, attempt: _Attempt) -> Record:
    """Return the record of an attempt, without checksums of the tool's raw output."""
    record = Record(
        cell=cell.keys,
        status="ok",
        reason=None,
        context=attempt.context,
        warnings=attempt.parsed.warnings,
    )
    if failure is None:
        record.measurements = attempt.parsed.measurements
        return record
    record.status, record.reason = "failed", str(failure)
    if isinstance(failure, Unavailable):
        record.status = "unavailable"
    return record


def _write_raw(folder: Path, completed: Sequence[Completed]) -> dict[str, str]:
    """Write the output of programs into ``folder``.

    Returns:
        File name, relative to the record's folder -> its SHA-256.
    """
    checksums = {}
    shutil.rmtree(folder, ignore_errors=True)
    for number, done in enumerate(completed):
        texts = {"stdout": done.stdout, "stderr": done.stderr, **done.files}
        for name, text in texts.items():
            if text:
                path = folder / f"{number}.{name}"
                files.write_text(path, text)
                checksums[f"{folder.name}/{path.name}"] = hashlib.sha256(text.encode()).hexdigest()
    return checksums


def _try(request: Request, attempt: _Attempt) -> None:
    """Measure a cell once, and find out what disturbed the measurement."""
    began, context = time.monotonic(), attempt.context
    # Counters of the GPUs' errors and throttling.
    counters = gpu.read_counters(Host()) if request.cell.subsystem == "gpu" else {}
    before = noise.read_now()
    try:
        _measure_once(request, attempt)
    finally:
        context.noise = noise.since(before)
        context.seconds = time.monotonic() - began
        if attempt.server_noise:
            context.server_noise = msgspec.convert(attempt.server_noise, Noise)
    # ``moved`` has the counters that have increased.
    if counters and context.noise.during:
        moved = noise.moved_counters(counters, gpu.read_counters(Host()))
        context.noise.during.moved |= moved
    measurements = attempt.parsed.measurements
    details: Mapping[str, object] = {}
    if measurements:
        details = measurements[0].details
    near, far = context.activity  # on this node, and on the server's
    attempt.disturbances = activity.find_disturbances(
        request.cell.subsystem,
        near,
        far,
        details,
        is_crowded=context.is_crowded,
        spare=attempt.spare,
    )


def _measure_once(request: Request, attempt: _Attempt) -> None:
    """Run the instrument of the cell in a private directory, and parse its output."""
    cell, context = request.cell, attempt.context
    instrument = REGISTRY[cell.instrument]
    tool = instrument.find(instrument.locate(_kernels(request), request.tool))
    context.tool = tool
    with workspace(request, instrument) as space:
        request = _resolve(request, space, context)
        cell, cpus = request.cell, space.facts["cpu"].get("threads")
        attempt.spare = activity.spare_cpus(cell.subsystem, cell.concurrency, cpus)
        instrument.check(cell)
        command = instrument.prepare(cell, tool, space)
        context.core_to_core_before = _core_to_core(request, space, context)
        _execute(request, command, space, attempt)
        context.core_to_core_after = _core_to_core(request, space, context)
        attempt.parsed = instrument.parse(cell, attempt.completed[-1])
    _add_results(context, tool, attempt.parsed)


def _kernels(request: Request) -> Path:
    """Return the folder of the compiled kernels. mpibench is in the folder of its MPI library."""
    if request.cell.subsystem != "mpi":
        return request.kernels
    from peakmark.run import mpi  # late: most cells need no MPI

    return Path(mpi.compiled(request.campaign).folder)


def _core_to_core(request: Request, space: Workspace, context: RecordContext) -> float | None:
    """Return the seconds that a cache line takes between the first two CPUs of a reference tool's cell.

    The time shows whether a hypervisor has moved the CPUs. It is None on a machine that is not virtual, for one
    thread, and if it cannot be measured. peakmark's kernels measure it by themselves.
    """
    cpus = context.placed.cpus[:2] if context.placed else ()
    is_reference = request.cell.instrument not in KERNELS.values()
    is_placed = SUBSYSTEMS[request.cell.subsystem].pinned and len(cpus) == 2
    if not (is_reference and is_placed and space.facts["cpu"]["virtualised"]):
        return None
    words = "--workload C2C --warmup 0 --threads 2 --cpus"
    argv = [str(request.kernels.absolute() / "rambench"), *words.split(), ",".join(map(str, cpus))]
    return (Host().run_json(argv) or {}).get("value")


def _resolve(request: Request, space: Workspace, context: RecordContext) -> Request:
    """Replace words in the cell, such as ``cores``, by numbers, and return the new request.

    Write the job's limits, and the CPUs that the cell takes, into the record's context.
    """
    cpus = list(space.cpus)
    locations = _cpu_locations()
    cell = pinning.resolve_cell(request.cell, locations, cpus, space.memory_bytes, space.facts)
    context.cpus = space.cpus
    context.allowed = pinning.allowed(space.facts["limits"], locations)
    context.placed = pinning.placed(cell, locations, cpus)
    if cell.subsystem == "disk":
        context.scratch = str(space.directory.parent)
        disks = space.facts["storage"]["members"] or ()
        context.io_limits = job_limits.io_limits(Host(), disks)
    return replace(request, cell=cell)


def _add_results(context: RecordContext, tool: Tool, parsed: Parsed) -> None:
    """Write the tool's version, libraries and clocks from its output into the record's context."""
    if parsed.version and tool.version in ("", "unknown"):
        context.tool = Tool(tool.name, tool.path, parsed.version)
    context.library |= parsed.library
    if parsed.measurements:
        details = parsed.measurements[0].details
        context.clock_hz_before = details.get("clock_hz_before")
        context.clock_hz_after = details.get("clock_hz_after")


@contextmanager
def workspace(request: Request, instrument: Instrument) -> Iterator[Workspace]:
    """Yield a private directory on the scratch filesystem together with the facts and limits of the
    job, and remove the directory afterwards.

    Raises:
        MeasurementError: scratch cannot be used or has too little free space.
    """
    cell = request.cell
    place = files.scratch(cell.options.get("scratch"))
    # If the system kills a measurement and its guard, for lack of memory, files are left behind.
    cleanup.remove_leftovers(place)
    with cleanup.private_directory(place) as directory:
        reason = files.full(place, instrument.estimate(cell).disk_bytes)
        if reason:
            raise MeasurementError(reason)
        # Read the facts of the node, and replace the limits by those of this job.
        locations = _cpu_locations()
        facts = cached(request.campaign / "machine", place, request.kernels, locations)
        facts["limits"] = limits = pinning.granted(facts["limits"], request.node_bytes)
        ordered = topology.order(locations, limits["cpus_allowed"])
        memory = int(limits["memory_bytes"] or 0)
        yield Workspace(directory, tuple(ordered), memory, facts, request.shared)


@cache
def _cpu_locations() -> Topology:
    """Return core, socket and NUMA node of each CPU. They do not change while a job runs."""
    return topology.read(Host(), os.sched_getaffinity(0))


def _bring_up_peer(
    request: Request, server: Command | None, space: Workspace, stack: ExitStack
) -> Peer:
    """Start the peer of a network cell, and return it. It runs until the stack is closed."""
    from peakmark.run import pair  # late: most cells need no peer

    cell = request.cell
    # The job has a second node, where the server runs.
    if request.pair:
        interface = str(cell.options.get("interface") or "") or None
        cpus = max(1, min(cell.concurrency, len(space.cpus)))
        return stack.enter_context(pair.across(server, space.directory, interface, cpus, cell.peer))
    # The program needs only an address, as ping does.
    if server is None:
        return pair.target()
    # A function starts the server, for example in another network namespace.
    if request.far_end is not None:
        return stack.enter_context(request.far_end(server, space.directory))
    # The server runs on this machine.
    server = pinning.pinned_server(cell, server, space.cpus)
    return stack.enter_context(pair.serving(server, space.directory))


def _describe_network(peer: Peer, transport: str) -> NetworkUsed:
    """Return the ``network`` part of the record's context.

    Args:
        peer: peer of the cell.
        transport: transport that the MPI library reported; empty if the cell does not measure MPI.
            If it names an interface, the result describes this interface instead of the one on the
            route to the peer.
    """
    host = Host()
    name = network.interface_of_transport(host, transport) or peer.interface
    link = None
    if name != "lo":
        link = network.collect(host, name)
        if transport:
            link["transport"] = transport
    known = peer.to_json() | {"interface": name}
    return NetworkUsed(**known, shaping=network.shaping(host, name), link=link)


def _execute(request: Request, command: Command, space: Workspace, attempt: _Attempt) -> None:
    """Run the command of a cell, with its server if it has one.

    Add the output to the attempt, also after a failure.

    Raises:
        MeasurementError: the command exceeded a limit, or ended with a bad exit code.
        Unavailable: the exit code is ``NOT_POSSIBLE``.
    """
    cell, context = request.cell, attempt.context
    cost = REGISTRY[cell.instrument].estimate(cell)
    command = pinning.pinned(cell, command, space.cpus)
    if command.ranks:
        command = _started(request, command, space, context)
    if cell.subsystem == "gpu":
        near = pinning.cpus_near_gpus(cell, space.facts, _cpu_locations(), space.cpus)
        command = replace(command, cpus=near)
    # The program runs here, and prints into files of this folder.
    folder = space.directory / "run0"
    folder.mkdir()
    with ExitStack() as stack:
        # Start the server of a network cell.
        values: Mapping[str, str] = {}
        peer: Peer | None = None
        if cell.subsystem == "network" or (request.pair and cell.subsystem == "mpi"):
            peer = _bring_up_peer(request, command.server, space, stack)
            values = peer.values
            attempt.server_noise = peer.noise
            context.server_host = peer.host
            transport = context.library.get("transport") or ""
            context.network = _describe_network(peer, str(transport))
        watch = _Watch(request, command, folder, peer)
        limits = _limits(cost, cell.concurrency)
        if command.preparation is not None:
            _run_preparation(command.preparation, folder, watch.trouble, limits)
        # Run the client, or the only program if the cell has no server.
        kills = job_limits.oom_kills(Host())
        # Nodes that are measured together start at one moment. A held program waits for it by itself, after its
        # preparation.
        if not command.is_held:
            request.wait()
        try:
            done = execute.run(command, folder, values, watch.trouble, limits)
        except MeasurementError:  # the program was ended: keep what it has printed
            killed = execute.collect_output(
                command, folder, command.argv, returncode=-signal.SIGKILL
            )
            attempt.completed.append(killed)
            raise
        attempt.completed.append(done)
        context.commands = (_describe_command(command, done),)
        _check_exit_code(done, watch, kills, context)


def _started(
    request: Request, command: Command, space: Workspace, context: RecordContext
) -> Command:
    """Return the command that starts the ranks of an MPI program, and describe it in the record's context.

    Raises:
        Unavailable: no launcher starts them.
    """
    from peakmark.run import mpi  # late: most cells need no MPI

    cell = request.cell
    count = REGISTRY[cell.instrument].nodes(cell)
    starter = mpi.starter(request.campaign, count, cell.peer)
    launch = starter.launch(space.directory / "launch")
    context.library |= {
        "launch": launch.text,
        "launch_failed": launch.failed or None,
        "transport": launch.transport or None,
    }
    return starter.start(command, launch)


@dataclass
class _Watch:
    """Watch over the running program of a cell.

    Attributes:
        request: request to measure the cell.
        command: command of the program.
        folder: folder of the program, in the private directory of the cell.
        peer: server of a network cell; None for other cells.
        is_announced: whether a held program was announced.
    """

    request: Request
    command: Command
    folder: Path
    peer: Peer | None
    is_announced: bool = False

    def trouble(self) -> Sentence | None:
        """Return a reason to end the program, or None.

        A held program is ready, yet waits for a signal before it measures. Announce it once when it is ready.
        """
        if self.command.is_held and not self.is_announced and execute.is_ready(self.folder):
            self.is_announced = True
            self.request.announce()
        if self.peer:
            ended = self.peer.ended()
            if ended:
                return Sentence(f"the server {ended}")
        return None


def _check_exit_code(
    done: Completed, watch: _Watch, kills: int | None, context: RecordContext
) -> None:
    """Check the exit code of a cell's program. The error has the most specific reason that is known.

    Args:
        done: the ended program.
        watch: watch over the program.
        kills: number of processes that the system had killed before the program started, if known.
        context: the record's context, in which a core that computed a wrong result is written.

    Raises:
        MeasurementError: the exit code is bad.
        Unavailable: the exit code is ``NOT_POSSIBLE``.
    """
    if done.returncode == NOT_POSSIBLE:
        raise Unavailable(last_line(done.stderr) or "the kernel cannot measure this cell here")
    if watch.command.ranks:
        from peakmark.run import mpi  # late: most cells need no MPI

        mpi.check(done, watch.command.ok_codes)
    if done.returncode in watch.command.ok_codes:
        return
    how = f"ended with {execute.describe_end(done.returncode)}"
    reason = _out_of_memory(kills) or watch.trouble()
    core = _wrong_core(done)
    if reason is None and core is not None:
        context.wrong_core = core
        reason = Sentence(
            "",
            f"run it again; if the core of CPU {core} on {gethostname()} is wrong again,"
            " test it or drain the node",
        )
    raise execute.failure(done.argv, how, watch.folder, reason)


def _run_preparation(
    command: Command,
    folder: Path,
    trouble: Callable[[], Sentence | None],
    limits: execute.Limits,
) -> None:
    """Run a command that prepares for the one that measures. Errors: MeasurementError if it fails."""
    done = execute.run(command, folder, {}, trouble, limits)
    if done.returncode not in command.ok_codes:
        how = f"could not prepare: {execute.describe_end(done.returncode)}"
        raise execute.failure(done.argv, how, folder)


def _describe_command(command: Command, done: Completed) -> CommandRun:
    """Describe a command for the record, without the secret key of its server."""
    env = {name: value for name, value in command.env.items() if "{key}" not in value}
    return CommandRun(done.argv, done.returncode, round(done.elapsed_s, 6), env)


def _out_of_memory(before: int | None) -> Sentence | None:
    """Return the cause and its remedy if a process of this job was killed for lack of memory.

    Args:
        before: number of processes that the system had killed before the command started.
    """
    host = Host()
    after = job_limits.oom_kills(host)
    if before is None or after is None or after <= before:
        return None
    limits = job_limits.collect(host)
    if limits["memory_limited_by"] is None:
        return Sentence(f"{OUT_OF_MEMORY}: the memory of {gethostname()} ran out")
    limit = format_size(limits["memory_bytes"])
    remedy = MORE_MEMORY if os.environ.get("SLURM_JOB_ID") else ""
    return Sentence(f"{OUT_OF_MEMORY}: it used up its limit of {limit}", remedy)


def _wrong_core(done: Completed) -> int | None:
    """Return the first CPU of the core that computed a wrong result, or None.

    peakmark's kernels check their results, and list the CPUs with wrong results in their output.
    """
    try:
        cpu = json.loads(done.stdout)["wrong_cpus"][0]
        return _cpu_locations()[cpu].core
    except (ValueError, LookupError):
        return None


def _limits(cost: Cost, threads: int) -> execute.Limits:
    """Return the limits of each process of a cell.

    They are a few times the cell's estimate plus a margin (2 GiB of memory, stacks,
    ``FILE_BYTES``), so that a correct program never reaches them. They stop a program that would
    take all memory or disk space.
    """
    memory = 4 * cost.memory_bytes + threads * STACK_BYTES + (2 << 30)
    return execute.Limits(memory, 2 * cost.disk_bytes + FILE_BYTES, fills_disk=cost.disk_bytes > 0)


def _lock_name() -> str:
    """Return the name of the lock that a measurement on this machine holds.

    In a job the name contains the host, because nodes of a cluster may share /tmp.
    """
    return f"node-{gethostname()}" if job_limits.job_id() else "cell"
