"""Measure one cell and write its record; a failed attempt leaves a record of its own below ``attempts/``."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cache
from pathlib import Path

from peakmark import files, lean, machine
from peakmark.cell import Cell
from peakmark.errors import (
    MORE_MEMORY,
    OUT_OF_MEMORY,
    MeasurementError,
    PeakmarkError,
    RecordError,
    Unavailable,
    sentence,
)
from peakmark.instruments import REGISTRY
from peakmark.instruments.base import Command, Completed, Instrument, Invocation, Parsed, Tool, Workspace
from peakmark.instruments.common import last_line, on_path
from peakmark.lean import TYPE_CHECKING, Any, asdict, dataclass, replace
from peakmark.machine import allowed, topology
from peakmark.machine.host import Host
from peakmark.machine.topology import Topology
from peakmark.measuring import code, execute, guard, keeping, kernels, known, lock, modules, noise, placing, scratch
from peakmark.storage import records
from peakmark.units import format_size

if TYPE_CHECKING:
    from peakmark.measuring.pair import Peer

NOT_POSSIBLE = 77
STACK_BYTES = 16 << 20


@dataclass(frozen=True)
class Request:
    """One cell to measure.

    output    path of the record, ``results/<campaign>/cells/<cell id>.json``
    campaign  folder of the campaign, for attempts and machine facts
    kernels   folder of the compiled kernels
    tool      configured path of a reference tool, None to look on PATH
    pair      the far end runs on the second node of this Slurm job; otherwise everything stays on this machine
    modules   environment modules that bring the tool
    node_bytes  memory that Slurm has of this node, where the plan tells it
    far_end   brings a server up elsewhere, given the command and a directory; None: on this machine, over loopback
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


def measure(request: Request) -> dict[str, Any]:
    """Measure and write the record. Returns it.

    Errors: PeakmarkError after a failed attempt was stored; the output then does not exist.
    """
    cell = request.cell
    full = files.full(request.campaign)
    if full:
        raise MeasurementError(f"{cell.id} was not measured: {full}")
    context = keeping.Context(
        host=lean.host_name(),
        started=lean.now(),
        peakmark=code.running(request.campaign),
        load_before=_load(),
        job_id=os.environ.get("SLURM_JOB_ID"),
    )
    clock = time.monotonic()
    completed: list[Completed] = []
    status, reason, parsed = "ok", None, Parsed(())
    failure: PeakmarkError | None = None
    try:
        # The guard after the lock: the next measurement begins when this one's remains are gone.
        with (
            lock.held(_lock_name()),
            guard.standing(),
            modules.loaded(request.modules),
            noise.around() as context.noise,
        ):
            parsed = _attempt(request, context, completed)
    except Unavailable as error:
        status, reason = "unavailable", str(error)
    except PeakmarkError as error:
        status, reason, failure = "failed", str(error), error
    except OSError as error:  # a disk that is full or broken below the campaign or the scratch directory
        status, reason, failure = "failed", sentence(error), MeasurementError(sentence(error))
    context.seconds = time.monotonic() - clock
    context.load_after = _load()
    record = keeping.record(cell, status, reason, parsed, context)
    if failure is not None:
        try:
            kept = f"attempt kept in {keeping.attempt(request.campaign, cell, record, completed)}"
        except (OSError, RecordError) as error:
            kept = f"and the attempt could not be kept: {error}"
        raise MeasurementError(f"{cell.id} failed on {context.host}: {reason} ({kept})") from failure
    if REGISTRY[cell.instrument].reference:
        record["raw"] = keeping.raw(request.output, cell, completed)
    records.write(request.output, record)
    return record


def _attempt(request: Request, context: keeping.Context, completed: list[Completed]) -> Parsed:
    cell = request.cell
    instrument = REGISTRY.get(cell.instrument)
    if instrument is None:
        raise MeasurementError(f"unknown instrument {cell.instrument!r}: known are {', '.join(sorted(REGISTRY))}")
    tool = known.tool(request.campaign, instrument.name, _locate(instrument, request), instrument.find)
    context.tool = asdict(tool)
    with workspace(request, instrument) as space:
        context.cpus = list(space.cpus)
        seats = _seats(tuple(sorted(space.cpus)))
        context.allowed = placing.allowed(Host(), space.facts["limits"], seats)
        cell = placing.settled(cell, seats, context.cpus, space.memory_bytes)
        context.placed = placing.placed(cell, seats, context.cpus)
        request = replace(request, cell=cell)
        if cell.subsystem == "disk":
            context.scratch = str(space.directory.parent)
            context.io_limits = allowed.io_limits(Host(), space.facts["storage"]["members"] or ())
        invocation = instrument.prepare(cell, tool, space)
        _execute(request, invocation, space, context, completed)
        parsed = instrument.parse(cell, completed)
    if parsed.version and tool.version in ("", "unknown"):
        context.tool["version"] = parsed.version
    context.library = dict(parsed.library)
    details = parsed.measurements[0].details if parsed.measurements else {}
    context.clock_hz_before = details.get("clock_hz_before")
    context.clock_hz_after = details.get("clock_hz_after")
    return parsed


def _locate(instrument: Instrument, request: Request) -> str:
    """Path of the program: own kernels from the build folder, references as configured or from PATH."""
    if not instrument.reference:
        return str(kernels.program(request.kernels, instrument.executables[0]))
    candidates = [request.tool] if request.tool else list(instrument.executables)
    found = on_path(candidates)
    if found is not None:
        return found
    fix = f"; install the package {instrument.package}" if instrument.package else "; give its path in tools:"
    raise Unavailable(f"{' or '.join(candidates)} not found on {lean.host_name()}{fix}")


@contextmanager
def workspace(request: Request, instrument: Instrument) -> Iterator[Workspace]:
    """A private directory on the scratch filesystem, removed afterwards, and what the job may use.

    Errors: MeasurementError when scratch cannot be used or has too little free space.
    """
    place = files.scratch(request.cell.options.get("scratch"))
    need = instrument.estimate(request.cell).disk_bytes
    # What was ended together with its guard, as where memory ran out, could put nothing away.
    for leftover in scratch.leftovers(place):
        scratch.remove(leftover)
    with scratch.private(place, request.cell.id) as directory:
        reason = files.no_room(place, need, "the cell")
        if reason:
            raise MeasurementError(reason)
        facts = machine.cached(
            request.campaign / "machine",
            place,
            request.kernels,
            lambda: _tools(request.kernels),
            _seats(tuple(sorted(os.sched_getaffinity(0)))),
        )
        facts["limits"] = limits = placing.granted(facts["limits"], request.node_bytes)
        cpus = limits["cpus_allowed"]
        yield Workspace(
            directory=directory,
            cpus=tuple(topology.order(_seats(tuple(sorted(cpus))), cpus, placing.placement_of(request.cell))),
            memory_bytes=int(limits["memory_bytes"]),
            kernels=request.kernels,
            facts=facts,
        )


def _tools(folder: Path) -> Mapping[str, Tool]:
    from peakmark.measuring import tools  # late: only the first cell on a node looks for all

    return tools.present(folder)


@cache
def _seats(cpus: tuple[int, ...]) -> Topology:
    """Where the CPUs of this node sit: nothing that changes while a job runs."""
    return topology.read(Host(), cpus)


def _far_end(request: Request, invocation: Invocation, space: Workspace, stack: ExitStack) -> Peer | None:
    """The peer of the cell, if it needs one, up until the stack is left."""
    if invocation.server is None and request.cell.subsystem != "network":
        return None
    from peakmark.measuring import pair

    if request.pair and pair.wanted(invocation):
        interface = request.cell.options.get("interface")
        cpus = max(1, min(request.cell.concurrency, len(space.cpus)))
        return stack.enter_context(
            pair.across(invocation.server, space.directory, str(interface) if interface else None, cpus)
        )
    if invocation.server is not None and request.far_end is not None:
        return stack.enter_context(request.far_end(invocation.server, space.directory))
    if invocation.server is not None:
        server = placing.other_end(request.cell, invocation.server, space.cpus)
        return stack.enter_context(pair.serving(server, space.directory))
    return pair.target() if pair.wanted(invocation) else None


def _execute(
    request: Request, invocation: Invocation, space: Workspace, context: keeping.Context, completed: list[Completed]
) -> None:
    """Run the commands, beside the server if there is one; ``completed`` gets each that has ended, however it did.

    Errors: MeasurementError, Unavailable (exit code 77).
    """
    bounds = _limits(request.cell)
    with ExitStack() as stack:
        values: Mapping[str, str] = {}
        peer = _far_end(request, invocation, space, stack)

        def trouble() -> str | None:
            reason = peer.ended() if peer else None
            return f"the server {reason}" if reason else scratch.too_much(space.directory, _disk_limit(request.cell))

        if peer is not None:
            values, context.server_host, context.server_noise = peer.values, peer.host, peer.noise
            from peakmark.machine import network
            from peakmark.measuring import interfaces

            link = None if peer.interface == "lo" else network.collect(Host(), peer.interface)
            context.network = {**peer.to_json(), "shaping": interfaces.shaping(peer.interface), "link": link}
        for number, prepared in enumerate(invocation.commands):
            command = placing.pinned(request.cell, prepared, space.cpus)
            folder = space.directory / f"run{number}"
            folder.mkdir()
            killed = allowed.oom_kills(Host())
            try:
                done = execute.run(command, folder, values, trouble, bounds)
            except MeasurementError:
                completed.append(execute.left_by(command, folder, command.argv, -signal.SIGKILL))
                raise
            completed.append(done)
            context.commands.append(
                {
                    "argv": list(done.argv),
                    "env": {name: value for name, value in command.env.items() if "{key}" not in value},
                    "returncode": done.returncode,
                    "seconds": round(done.elapsed_s, 6),
                }
            )
            if done.returncode == NOT_POSSIBLE and NOT_POSSIBLE not in command.ok_codes:
                raise Unavailable(
                    last_line(done.stderr) or f"{execute.program(done.argv)} says that this machine cannot do it"
                )
            if done.returncode not in command.ok_codes:
                reason = _out_of_memory(killed) or trouble()
                raise MeasurementError(
                    f"{execute.program(done.argv)} ended with {execute.how_ended(done.returncode)}"
                    f"{execute.last_lines(folder)}" + (f"; {reason}" if reason else "")
                )


def _out_of_memory(before: int | None) -> str | None:
    """A sentence when the kernel has ended processes of this job since it had ended ``before``."""
    host = Host()
    after = allowed.oom_kills(host)
    if before is None or after is None or after <= before:
        return None
    limit = allowed.collect(host)
    if limit["memory_limited_by"] is None:
        return f"{OUT_OF_MEMORY}: the memory of {lean.host_name()} ran out"
    granted = f"{OUT_OF_MEMORY}: the {format_size(limit['memory_bytes'])} that it may use were used up"
    return f"{granted}; {MORE_MEMORY}" if os.environ.get("SLURM_JOB_ID") else granted


def _limits(cell: Cell) -> execute.Limits:
    """What each process of a cell may have: its estimate with ample room, as a stack of every thread counts too."""
    cost = REGISTRY[cell.instrument].estimate(cell)
    stacks = cell.concurrency * STACK_BYTES
    file_bytes = 2 * cost.disk_bytes + (64 << 20)
    return execute.Limits(4 * cost.memory_bytes + stacks + (2 << 30), file_bytes, fills_disk=cost.disk_bytes > 0)


def _disk_limit(cell: Cell) -> int:
    """Bytes that all files of a cell together may have."""
    return 2 * REGISTRY[cell.instrument].estimate(cell).disk_bytes + (256 << 20)


def _lock_name() -> str:
    """The lock that keeps two measurements apart. Nodes of a cluster may share one /tmp: there each has its own."""
    return f"cell-{lean.host_name()}" if os.environ.get("SLURM_JOB_ID") else "cell"


def _load() -> float | None:
    """Load average over the last minute, None where the system has none."""
    try:
        return os.getloadavg()[0]
    except OSError:
        return None
