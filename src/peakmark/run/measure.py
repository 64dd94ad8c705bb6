"""Measure one cell and write its record; a failed attempt leaves a record of its own below
``attempts/``.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import cache
from pathlib import Path
from socket import gethostname
from typing import TYPE_CHECKING, Any

from peakmark import files, machine
from peakmark.cell import Cell
from peakmark.errors import PeakmarkError, RecordError, sentence
from peakmark.machine import allowed, topology
from peakmark.machine.host import Host
from peakmark.machine.topology import Topology
from peakmark.reasons import MeasurementError, Unavailable
from peakmark.run import (
    code,
    execute,
    lock,
    modules,
    noise,
    pinning,
    record_writer,
    scratch,
    watchdog,
)
from peakmark.storage import records
from peakmark.tools import REGISTRY
from peakmark.tools.base import (
    Command,
    Completed,
    Cost,
    Instrument,
    Invocation,
    Parsed,
    Workspace,
    last_line,
)

if TYPE_CHECKING:
    from peakmark.run.pair import Peer

NOT_POSSIBLE = 77
STACK_BYTES = 16 << 20
FILE_BYTES, ALL_FILES_BYTES = 64 << 20, 256 << 20
"""What one file of a cell, and all of them together, may have beside twice its estimate."""


@dataclass(frozen=True)
class Request:
    """One cell to measure.

    output    path of the record, ``results/<campaign>/cells/<cell id>.json``
    campaign  folder of the campaign, for attempts and machine facts
    kernels   folder of the compiled kernels
    tool      configured path of a reference tool, None to look on PATH
    pair      the far end runs on the second node of this Slurm job; otherwise everything stays on
              this machine
    modules   environment modules that bring the tool
    node_bytes  memory that Slurm has of this node, where the plan tells it
    far_end   brings a server up elsewhere, given the command and a directory; None: on this
              machine, over loopback
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
    context = record_writer.Context(
        host=gethostname(),
        started=datetime.now().astimezone().isoformat(timespec="milliseconds"),
        peakmark=code.running(request.campaign),
        load_before=os.getloadavg()[0],
        job_id=os.environ.get("SLURM_JOB_ID"),
    )
    clock = time.monotonic()
    completed: list[Completed] = []
    parsed = Parsed(())
    failure: PeakmarkError | None = None
    try:
        # The guard after the lock: the next measurement begins when this one's remains are gone.
        with (
            lock.held(_lock_name()),
            watchdog.standing(),
            modules.loaded(request.modules),
            noise.monitor_load() as context.noise,
        ):
            parsed = _attempt(request, context, completed)
    except PeakmarkError as error:
        failure = error
    except (
        OSError
    ) as error:  # a disk that is full or broken below the campaign or the scratch directory
        failure = MeasurementError("system", why=sentence(error))
    context.seconds = time.monotonic() - clock
    context.load_after = os.getloadavg()[0]
    record = record_writer.record(cell, failure, parsed, context)
    if failure is not None and not isinstance(failure, Unavailable):
        try:
            kept = f"attempt kept in {record_writer.attempt(request.campaign, cell, record, completed)}"
        except (OSError, RecordError) as error:
            kept = f"and the attempt could not be kept: {error}"
        raise MeasurementError(
            f"{cell.id} failed on {context.host}: {failure} ({kept})"
        ) from failure
    if REGISTRY[cell.instrument].reference:
        record["raw"] = record_writer.raw(request.output, cell, completed)
    records.write(request.output, record)
    return record


def _attempt(
    request: Request, context: record_writer.Context, completed: list[Completed]
) -> Parsed:
    cell = request.cell
    instrument = REGISTRY.get(cell.instrument)
    if instrument is None:
        raise MeasurementError("no-instrument", name=cell.instrument, known=sorted(REGISTRY))
    path = instrument.locate(request.kernels, request.tool)
    tool = instrument.find(path)
    context.tool = asdict(tool)
    with workspace(request, instrument) as space:
        context.cpus = list(space.cpus)
        cpu_locations = _cpu_locations(tuple(sorted(space.cpus)))
        context.allowed = pinning.allowed(Host(), space.facts["limits"], cpu_locations)
        cell = pinning.resolve_cell(cell, cpu_locations, context.cpus, space.memory_bytes)
        context.placed = pinning.placed(cell, cpu_locations, context.cpus)
        request = replace(request, cell=cell)
        if cell.subsystem == "disk":
            context.scratch = str(space.directory.parent)
            context.io_limits = allowed.io_limits(Host(), space.facts["storage"]["members"] or ())
        invocation = instrument.prepare(cell, tool, space)
        _execute(request, invocation, space, context, completed)
        parsed = instrument.parse(cell, completed[-1])
    if parsed.version and tool.version in ("", "unknown"):
        context.tool["version"] = parsed.version
    context.library = dict(parsed.library)
    details = parsed.measurements[0].details if parsed.measurements else {}
    context.clock_hz_before = details.get("clock_hz_before")
    context.clock_hz_after = details.get("clock_hz_after")
    return parsed


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
            _cpu_locations(tuple(sorted(os.sched_getaffinity(0)))),
        )
        facts["limits"] = limits = pinning.granted(facts["limits"], request.node_bytes)
        cpus = limits["cpus_allowed"]
        yield Workspace(
            directory=directory,
            cpus=tuple(
                topology.order(
                    _cpu_locations(tuple(sorted(cpus))), cpus, pinning.placement_of(request.cell)
                )
            ),
            memory_bytes=int(limits["memory_bytes"]),
            facts=facts,
        )


@cache
def _cpu_locations(cpus: tuple[int, ...]) -> Topology:
    """Where the CPUs of this node sit: nothing that changes while a job runs."""
    return topology.read(Host(), cpus)


def _far_end(
    request: Request, invocation: Invocation, space: Workspace, stack: ExitStack
) -> Peer | None:
    """The peer of the cell, if it needs one, up until the stack is left."""
    if request.cell.subsystem != "network":
        return None
    from peakmark.run import pair

    server = invocation.server
    if request.pair:
        interface = request.cell.options.get("interface")
        cpus = max(1, min(request.cell.concurrency, len(space.cpus)))
        return stack.enter_context(
            pair.across(server, space.directory, str(interface) if interface else None, cpus)
        )
    if server is None:
        return pair.target()
    if request.far_end is not None:
        return stack.enter_context(request.far_end(server, space.directory))
    return stack.enter_context(
        pair.serving(pinning.other_end(request.cell, server, space.cpus), space.directory)
    )


def _execute(
    request: Request,
    invocation: Invocation,
    space: Workspace,
    context: record_writer.Context,
    completed: list[Completed],
) -> None:
    """Run the command, beside the server if there is one; ``completed`` gets it when it has ended,
    however it did.

    Errors: MeasurementError, Unavailable (exit code 77).
    """
    cost = REGISTRY[request.cell.instrument].estimate(request.cell)
    with ExitStack() as stack:
        values: Mapping[str, str] = {}
        peer = _far_end(request, invocation, space, stack)

        def trouble() -> execute.Trouble | None:
            gone = peer.ended() if peer else None
            if gone:
                return "server-ended", {"server": gone}
            wrote = scratch.too_much(space.directory, 2 * cost.disk_bytes + ALL_FILES_BYTES)
            return ("wrote-too-much", {"wrote": wrote}) if wrote else None

        if peer is not None:
            values, context.server_host, context.server_noise = peer.values, peer.host, peer.noise
            from peakmark.machine import network
            from peakmark.run import interfaces

            link = None if peer.interface == "lo" else network.collect(Host(), peer.interface)
            context.network = {
                **peer.to_json(),
                "shaping": interfaces.shaping(peer.interface),
                "link": link,
            }
        command = pinning.pinned(request.cell, invocation.command, space.cpus)
        folder = space.directory / "run0"
        folder.mkdir()
        killed = allowed.oom_kills(Host())
        try:
            done = execute.run(
                command, folder, values, trouble, _limits(cost, request.cell.concurrency)
            )
        except MeasurementError:
            completed.append(execute.left_by(command, folder, command.argv, -signal.SIGKILL))
            raise
        completed.append(done)
        shown = {name: value for name, value in command.env.items() if "{key}" not in value}
        entry = {"argv": list(done.argv), "env": shown, "returncode": done.returncode}
        context.commands.append({**entry, "seconds": round(done.elapsed_s, 6)})
        if done.returncode in command.ok_codes:
            return
        if done.returncode == NOT_POSSIBLE:
            refusal = f"{execute.program(done.argv)} says that this machine cannot do it"
            raise Unavailable("not-here", said=last_line(done.stderr) or refusal)
        how = f"ended with {execute.how_ended(done.returncode)}"
        raise execute.failed(
            done.argv, how, folder, _out_of_memory(killed) or trouble() or ("exit", {})
        )


def _out_of_memory(before: int | None) -> execute.Trouble | None:
    """When the kernel has ended processes of this job since it had ended ``before``."""
    host = Host()
    after = allowed.oom_kills(host)
    if before is None or after is None or after <= before:
        return None
    limit = allowed.collect(host)
    if limit["memory_limited_by"] is None:
        return "memory-of-node", {"host": gethostname()}
    return "memory-of-job" if os.environ.get("SLURM_JOB_ID") else "memory-used", {
        "limit": limit["memory_bytes"]
    }


def _limits(cost: Cost, threads: int) -> execute.Limits:
    """What each process of a cell may have: its estimate with ample room, as a stack of every
    thread counts too.
    """
    memory = 4 * cost.memory_bytes + threads * STACK_BYTES + (2 << 30)
    return execute.Limits(memory, 2 * cost.disk_bytes + FILE_BYTES, fills_disk=cost.disk_bytes > 0)


def _lock_name() -> str:
    """The lock that keeps two measurements apart. Nodes of a cluster may share one /tmp: there each
    has its own.
    """
    return f"node-{gethostname()}" if os.environ.get("SLURM_JOB_ID") else "cell"
