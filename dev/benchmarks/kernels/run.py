"""One execution of one side: what ``peakmark measure`` does for a cell, without a record."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from benchmarks.kernels.namespaces import Namespaces
from benchmarks.kernels.pairs import Row
from benchmarks.kernels.references import CoreToCore, LoadedLatency
from benchmarks.kernels.table import Pair
from peakmark import limits
from peakmark.cell import Cell
from peakmark.errors import MeasurementError, ParseError, Unavailable
from peakmark.run import execute, lock, pair, pinning
from peakmark.tools import REGISTRY
from peakmark.tools.base import Measurement, Tool, Workspace, last_line
from peakmark.tools.programs import pmbw

NOT_POSSIBLE = 77
INSTRUMENTS = {**REGISTRY, **{tool.name: tool for tool in (LoadedLatency(), CoreToCore())}}

Clocks = tuple[float, float, float]


def clocks() -> Clocks:
    """Now: seconds, CPU seconds of all programs, CPU seconds of our ended children. Interrupts are
    left out, as our own network runs cause many.
    """
    every, own = psutil.cpu_times(), os.times()
    everybody = every.user + every.nice + every.system + every.steal
    return time.monotonic(), everybody, own.children_user + own.children_system


def share_of_others(before: Clocks, cpus: int) -> float:
    """Share of ``cpus`` CPUs, 0 to 1, that others used since ``before``."""
    seconds, everybody, ours = (now - then for now, then in zip(clocks(), before, strict=True))
    return min(1.0, max(0.0, (everybody - ours) / (seconds * cpus))) if seconds > 0 else 0.0


@dataclass(frozen=True)
class Run:
    """What one execution gave: all its measurements, or the sentence why it gave none.

    routines  of pmbw's scans, B/s by name
    """

    measurements: tuple[Measurement, ...] = ()
    routines: Mapping[str, float] = field(default_factory=dict)
    error: str = ""
    others: float = 0.0

    def value(self, row: Row) -> float | None:
        """The reference's value of a row, None when the run failed."""
        if row.routine:
            ends = (self.routines[name] for name in self.routines if name.endswith(row.routine))
            return next(ends, None)
        cell = row.reference if row.working_set and row.reference else row.ours
        found = self.of(cell, row.metric)
        return None if found is None else found.value

    def at(self, working_set: int) -> float | None:
        """The point of a ladder at so many bytes, None when it has none."""
        points = (point for one in self.measurements for point in one.details["points"])
        return next((value for size, value in points if size == working_set), None)

    def of(self, cell: Cell, metric: str) -> Measurement | None:
        """The measurement that belongs to a cell's row; a tool may fill several rows."""
        wanted = (cell.workload, cell.block, cell.concurrency, metric)
        for one in self.measurements:
            if (one.workload, one.block, one.concurrency, one.metric) == wanted:
                return one
        return None


@dataclass
class Runner:
    """Runs cells on this machine.

    facts       of this machine, ``peakmark.machine.facts.collect``
    paths       reference tool by instrument name, where it is not to be looked for on PATH
    namespaces  for the rows with that route; None: they cannot be measured
    """

    kernels: Path
    scratch: Path
    facts: Mapping[str, Any]
    paths: Mapping[str, str]
    namespaces: Namespaces | None = None
    tools: dict[str, Tool] = field(default_factory=dict)

    @property
    def cpus(self) -> tuple[int, ...]:
        return tuple(self.facts["limits"]["cpus_allowed"])

    def tool(self, name: str) -> Tool:
        """The program of an instrument. Errors: Unavailable."""
        if name not in self.tools:
            instrument = INSTRUMENTS[name]
            path = instrument.locate(self.kernels, self.paths.get(name))
            self.tools[name] = instrument.find(path)
        return self.tools[name]

    def run(self, cell: Cell, route: str) -> Run:
        """Execute a cell once. Errors: Unavailable when this machine cannot; any other failure is
        in the result.
        """
        instrument, tool = INSTRUMENTS[cell.instrument], self.tool(cell.instrument)
        names = self.namespaces if route == "namespaces" else None
        if route == "namespaces" and names is None:
            raise Unavailable("there are no network namespaces here: they need root and ip")
        with tempfile.TemporaryDirectory(prefix="peakmark-", dir=self.scratch) as name:
            directory = Path(name)
            memory = int(self.facts["limits"]["memory_bytes"])
            space = Workspace(directory, self.cpus, memory, self.facts)
            instrument.check(cell)
            invocation = instrument.prepare(cell, tool, space)
            before = clocks()
            try:
                with ExitStack() as stack:
                    values: Mapping[str, str] = {}
                    if invocation.server is not None:
                        server = pinning.pinned_server(cell, invocation.server, space.cpus)
                        if names is not None:
                            values = stack.enter_context(names.serving(server, directory))
                        else:
                            values = stack.enter_context(pair.serving(server, directory)).values
                    folder = directory / "run"
                    folder.mkdir()
                    command = pinning.pinned(cell, invocation, space.cpus)
                    command = command if names is None else names.inside(names.client, command)
                    done = execute.run(command, folder, values)
                    if done.returncode == NOT_POSSIBLE:
                        raise Unavailable(last_line(done.stderr) or "exit 77")
                    if done.returncode not in command.ok_codes:
                        said = execute.last_lines(folder)
                        raise MeasurementError(f"exit code {done.returncode}{said}")
                parsed = instrument.parse(cell, done)
            except (MeasurementError, ParseError) as error:
                return Run(error=str(error), others=share_of_others(before, len(self.cpus)))
            others = share_of_others(before, len(self.cpus))
            routines = {}
            if cell.instrument == "pmbw":
                results = pmbw.read_results(done.files[pmbw.STATS])
                routines = {name: float(result["bandwidth"]) for name, result in results.items()}
            return Run(parsed.measurements, routines, others=others)

    def turn(self, rows: Sequence[Row]) -> list[tuple[Pair, str]]:
        """One turn of a bundle: every cell once, in the order of the rows. A pair and what went
        wrong, for each row.

        Errors: Unavailable names what a whole bundle lacks; PeakmarkError when somebody else
        measures here.
        """
        runs: dict[str, Run] = {}

        def once(cell: Cell, route: str) -> Run:
            key = cell.spec() + route
            if key not in runs:
                with lock.held("cell"):
                    runs[key] = self.run(cell, route)
            return runs[key]

        results = []
        for row in rows:
            ours = once(row.ours, row.route)
            try:
                theirs = None if row.reference is None else once(row.reference, row.route)
                results.append(self._pair(row, ours, theirs))
            except Unavailable as error:
                results.append((Pair(None, None), f"n/a: {error}"))
        return results

    def _pair(self, row: Row, ours: Run, theirs: Run | None) -> tuple[Pair, str]:
        mine = ours.of(row.ours, "rate" if row.metric == "clock" else row.metric)
        if row.metric == "clock":
            return _clock_pair(mine, ours)
        value = None if mine is None else mine.value
        if row.working_set:
            value = ours.at(row.working_set)
        if theirs is not None:
            pair = Pair(value, theirs.value(row), max(ours.others, theirs.others))
            return pair, "; ".join(filter(None, (ours.error, theirs.error)))
        if mine is not None and (held_up := mine.details.get("held_up")):
            why = f"something else used the pipes of {held_up} of its cores"
            return Pair(None, None, ours.others), why
        limit = None if mine is None else self._limit(row, mine)
        return Pair(value, limit, ours.others), ours.error

    def _limit(self, row: Row, mine: Measurement) -> float:
        """Limit of the instruction at the clock under the work, or else before and after it.
        Errors: Unavailable.
        """
        under_work = mine.details.get("clock_hz_loaded")
        whens = ("loaded",) if under_work else ("before", "after")
        seen = [float(clock) for when in whens if (clock := mine.details.get(f"clock_hz_{when}"))]
        if not seen:
            raise Unavailable("cpubench told no clock")
        cell = row.ours
        point = (cell.subsystem, cell.workload, cell.variant, cell.block, cell.concurrency)
        clock = sum(seen) / len(seen)
        loaded = bool(under_work)
        asked = limits.Question(*point, row.metric, self.facts, clock_hz=clock, clock_loaded=loaded)
        limit = limits.for_row(asked)
        if limit.value is None:
            raise Unavailable(limit.reason or "no limit is known")
        return limit.value


def _clock_pair(mine: Measurement | None, ours: Run) -> tuple[Pair, str]:
    """The clock under the work beside the mean of the clocks before and after it, Hz."""
    details = {} if mine is None else mine.details
    clocks_hz = [details.get(f"clock_hz_{when}") for when in ("loaded", "before", "after")]
    loaded, before, after = (float(clock or 0.0) for clock in clocks_hz)
    if not all(clocks_hz):
        why = ours.error or "the kernel told no clock under the work"
        return Pair(None, None, ours.others), why
    return Pair(loaded, (before + after) / 2, ours.others), ours.error
