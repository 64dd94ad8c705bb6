"""The grids of a configuration -> cells: the own kernel's points, and the references beside them."""

from __future__ import annotations

import functools
import os
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple

from peakmark.catalogue import AUTO, KERNELS, POOLS, SUBSYSTEMS
from peakmark.cell import Cell, Scalar
from peakmark.config import campaign as configuration
from peakmark.config.types import Criterion
from peakmark.errors import ConfigError, PeakmarkError
from peakmark.machine import topology
from peakmark.machine.host import Host
from peakmark.reasons import Unavailable
from peakmark.tools import REGISTRY
from peakmark.units import parse_size

DEFAULT_SIZE = 1 << 30
MOST_CELLS = 1_000_000  # weeks of measuring on a hundred nodes
READS = ("RS", "RR")  # workloads of a disk for which it does not matter how files are written
SHORTEST_S = 0.01  # what a scaled time is never below
SHORTEST_HPL_S = 3.0  # the same of HPL: in less it solves nothing, and its column stays empty
_POINTS = ("workloads", "concurrency", "blocks", "variants")
"""Keys of a grid that say which points it has."""
Planned = tuple[Cell, Criterion | None]


def cells(
    config: Mapping[str, Any], node: str, on_this_machine: bool, largest: Mapping[str, int]
) -> Iterator[Planned]:
    """The cells of a completed configuration on one node, each with what may end its repetitions
    sooner.

    on_this_machine  words of ``concurrency`` mean what they mean here
    largest          reference tool -> largest block in bytes that its build takes

    Errors: ConfigError.
    """
    for subsystem in SUBSYSTEMS:
        for index, asked in enumerate(config[subsystem]):
            where = f"{subsystem}[{index}]"
            same = alike(asked["concurrency"], on_this_machine)
            keys = {**asked, "concurrency": list(dict.fromkeys(same.values()))}
            grid = _Grid(config, subsystem, keys, node)
            for planned in grid.own():
                _check_possible(where, planned[0])
                yield planned
            for name, narrow in keys.get("references", {}).items():
                if "concurrency" in narrow:
                    chosen = dict.fromkeys(
                        same.get(asked_for, asked_for) for asked_for in narrow["concurrency"]
                    )
                    narrow = {**narrow, "concurrency": list(chosen)}  # noqa: PLW2901 - as the grid has it
                beside = list(grid.beside(name, narrow, largest.get(name)))
                if not beside:
                    raise ConfigError(
                        f"{where}.references has {name}, which can stand beside none of the grid's rows: "
                        f"{_covered(name, subsystem)}; remove it, or put such rows into a grid of their own"
                    )
                yield from beside


def check_number(config: Mapping[str, Any], nodes: int) -> None:
    """Errors: ConfigError before more cells are made than anybody can wait for."""
    count = 0
    for subsystem in SUBSYSTEMS:
        for grid in config[subsystem]:
            repeated = _repetitions(grid.get("repetitions", config["repetitions"]))[0]
            count += nodes * repeated * sum(1 for _ in _points(subsystem, grid))
    if count > MOST_CELLS:
        raise ConfigError(
            f"the configuration asks for {count} cells of the own kernels: allowed are at most {MOST_CELLS}; "
            "shorten its lists, or make repetitions or nodes fewer"
        )


def impossible(cells: Iterable[Cell]) -> dict[str, str]:
    """Row -> why the reference tool that is asked for it can do it nowhere."""
    reasons = {}
    for cell in cells:
        if cell.repetition == 0 and REGISTRY[cell.instrument].reference:
            try:
                REGISTRY[cell.instrument].check(cell)
            except PeakmarkError as error:
                reasons[cell.row] = str(error)
    return reasons


def interleaved(cells: Iterable[Cell], seed: int) -> list[Cell]:
    """Repetition by repetition, each in its own seeded order: slow drift of the machine then
    spreads over all cells instead of becoming a difference between two of them (Hoefler and
    Belli 2015, rule 9; google/benchmark's random interleaving).
    """
    by_repetition: dict[int, list[Cell]] = {}
    for cell in cells:
        by_repetition.setdefault(cell.repetition, []).append(cell)
    ordered: list[Cell] = []
    for repetition in sorted(by_repetition):
        group = sorted(by_repetition[repetition], key=lambda cell: cell.id)
        random.Random(f"{seed}/{repetition}").shuffle(group)  # noqa: S311 - an order, not a secret
        ordered += group
    return ordered


@functools.cache
def here(word: str) -> int:
    """How many threads a word means on the machine that plans, by what this process may use."""
    cpus = os.sched_getaffinity(0)
    return topology.resolve(topology.read(Host(), cpus), cpus, word)


def alike(asked: Sequence[int | str], on_this_machine: bool) -> dict[int | str, int | str]:
    """Each concurrency of a grid -> the one that stands for it: on the machine that measures
    (``on_this_machine``) a word that says a number which is there already is not measured twice.
    """
    if not on_this_machine:
        return {value: value for value in asked}
    first: dict[int, int | str] = {value: value for value in asked if isinstance(value, int)}
    # Of words for the same number the one that says most: all cores of a node with one socket are
    # not just a socket.
    for word in (word for word in ("cores", "socket", "numa", "cpus") if word in asked):
        first.setdefault(here(word), word)
    return {value: first[here(value)] if isinstance(value, str) else value for value in asked}


def _check_possible(where: str, cell: Cell) -> None:
    """Errors: ConfigError for a cell that its own kernel can do nowhere."""
    if cell.repetition == 0:
        try:
            REGISTRY[cell.instrument].check(cell)
        except Unavailable as error:
            raise ConfigError(
                f"{where} asks for {cell.row}, which is not possible: {error}"
            ) from error


def _covered(name: str, subsystem: str) -> str:
    """What a tool has: ``it has RS, WS, RWS (block or pool)``."""
    parts = []
    for row in (row for row in REGISTRY[name].rows if row.subsystem == subsystem):
        named = " or ".join(filter(None, row.variants))
        parts.append(", ".join(row.workloads) + (f" ({named})" if named else ""))
    return f"it has {'; '.join(parts)}"


class _Point(NamedTuple):
    """``asked``: the concurrency as it was asked for."""

    workload: str
    variant: str
    block: int | None
    asked: int | str

    @property
    def threads(self) -> int:
        return self.asked if isinstance(self.asked, int) else 1


def _points(subsystem: str, keys: Mapping[str, Any]) -> Iterator[_Point]:
    """The points of a grid, in table order."""
    asked = [AUTO] if subsystem == "cpu" else keys["blocks"]
    blocks = [None if block == AUTO else parse_size(block) for block in asked]
    for workload in keys["workloads"]:
        variants = keys.get("variants", [SUBSYSTEMS[subsystem].default])
        if subsystem == "memory" and workload == "LAT":
            variants = [""]
        yield from map(_Point._make, product([workload], variants, blocks, keys["concurrency"]))


@dataclass(frozen=True)
class _Grid:
    """A grid on one node, with the ``keys`` that the configuration gives it."""

    config: Mapping[str, Any]
    subsystem: str
    keys: Mapping[str, Any]
    node: str

    def own(self) -> Iterator[Planned]:
        """Cells of the own kernel."""
        count, criterion = _repetitions(self.keys.get("repetitions", self.config["repetitions"]))
        for point, repetition in product(list(_points(self.subsystem, self.keys)), range(count)):
            options = self._options(point, point.workload, self.keys, repetition)
            if "total" in self.keys:
                latency = {"LAT": "accesses", "LAT-TCP": "round_trips", "LAT-UDP": "round_trips"}
                key = latency.get(point.workload, SUBSYSTEMS[self.subsystem].total)
                total = configuration.parse_total(f"{self.subsystem} total", self.keys["total"])
                options[key] = self._count(
                    total, self._round(point) if key == "total" else point.threads
                )
            yield self._cell(KERNELS[self.subsystem], point, repetition, options), criterion

    def beside(
        self, name: str, narrow: Mapping[str, Any], largest: int | None
    ) -> Iterator[Planned]:
        """Cells of one reference; where its build takes no such block, those of the tool that fills
        the rows, with as much data, unless the grid has that one beside it anyway.
        """
        instead = REGISTRY[name].instead
        asked = narrow.get("blocks", self.keys.get("blocks", ()))
        above = [
            block
            for block in asked
            if largest is not None and block != AUTO and parse_size(block) > largest
        ]
        if len(above) < len(asked) or not asked:
            fitting = (
                {**narrow, "blocks": [block for block in asked if block not in above]}
                if above
                else narrow
            )
            yield from self._reference(name, fitting)
        if above and instead is not None and instead not in self.keys["references"]:
            filling = {key: value for key, value in narrow.items() if key not in ("ops", "seconds")}
            for cell, criterion in self._reference(instead, {**filling, "blocks": above}):
                options = {**cell.options, "total": cell.options["size"], "instead_of": name}
                yield replace(cell, options=options), criterion

    def _reference(self, name: str, narrow: Mapping[str, Any]) -> Iterator[Planned]:
        """Only the points that the tool can stand beside."""
        narrowed = {**self.keys, **{key: value for key, value in narrow.items() if key in _POINTS}}
        count, criterion = _repetitions(
            narrow.get("repetitions", self.config["reference_repetitions"])
        )
        seen: set[_Point] = set()
        for beside in _points(self.subsystem, narrowed):
            rows = (row for row in REGISTRY[name].rows if row.subsystem == self.subsystem)
            filled = (row for row in rows if beside.workload in row.workloads)
            coverage = next(
                (row for row in filled if not row.variants or beside.variant in row.variants), None
            )
            if coverage is None:
                continue
            point = _Point(
                coverage.cell or beside.workload,
                beside.variant,
                beside.block if coverage.per_block else None,
                beside.asked if coverage.per_concurrency else 1,
            )
            for repetition in range(count) if point not in seen else ():
                options = self._options(beside, point.workload, {**self.keys, **narrow}, repetition)
                options |= {key: narrow[key] for key in ("nb", "ops") if key in narrow}
                if "budget_s" in narrow:
                    options["budget_s"] = self._time(
                        narrow["budget_s"], min(narrow["budget_s"], SHORTEST_HPL_S)
                    )
                if "count" in narrow:
                    options["count"] = self._count(narrow["count"])
                for key in REGISTRY[name].unused:
                    options.pop(key, None)
                yield self._cell(name, point, repetition, options), criterion
            seen.add(point)

    def _cell(
        self, instrument: str, point: _Point, repetition: int, options: Mapping[str, Scalar]
    ) -> Cell:
        word = point.asked if isinstance(point.asked, str) else ""
        point = point._replace(asked=point.threads)
        return Cell(self.subsystem, instrument, *point, self.node, repetition, options, word)  # type: ignore[arg-type] # a number now

    def _options(
        self, point: _Point, workload: str, keys: Mapping[str, Any], repetition: int
    ) -> dict[str, Scalar]:
        """Options that all instruments share. ``workload``: that of the cell, which may fill more
        than the point.
        """
        config = self.config
        options: dict[str, Scalar] = {
            "seconds": self._time(keys.get("seconds", config["seconds"]), SHORTEST_S),
            "warmup": self._time(keys.get("warmup", config["warmup"])),
            "seed": config["seed"] + repetition,
        }
        pinned = SUBSYSTEMS[self.subsystem].pinned
        if pinned:
            options["isa"] = keys.get("isa", config["isa"])
        if self.subsystem == "memory":
            pool = keys.get("pool", AUTO)
            options["pool"] = AUTO if pool == AUTO else parse_size(pool)
            if (
                pool == AUTO and workload != "LAT" and _with_pmbw(keys)
            ):  # it measures no other sizes
                options["power_of_two"] = True
            if "store" in keys:  # only where it was asked for: cells of before keep their options
                options["store"] = keys["store"]
        if pinned and config["placement"] != "compact":
            options["placement"] = config["placement"]
        if self.subsystem == "disk":
            options["size"] = self._count(
                parse_size(keys.get("size", DEFAULT_SIZE)), self._round(point)
            )
            options["scratch"] = config["scratch"]
            if workload not in READS:
                options |= {key: keys[key] for key in ("sync", "fill") if key in keys}
        if self.subsystem == "network" and config["interface"] is not None:
            options["interface"] = config["interface"]
        return options

    def _round(self, point: _Point) -> int:
        """Bytes that all threads move when each handles one block: a copy in memory reads and
        writes it.
        """
        copies = self.subsystem == "memory" and point.workload in ("RWS", "RWR")
        return (point.block or 1) * point.threads * (2 if copies else 1)

    def _time(self, value: float, least: float = 0.0) -> float:
        """A time in seconds, made shorter by ``scale``."""
        return value if self.config["scale"] == 1 else max(value * self.config["scale"], least)

    def _count(self, value: int, unit: int = 1) -> int:
        """An amount of work or bytes, made shorter by ``scale``, in whole ``unit``s of which one is
        left at least.
        """
        return (
            value
            if self.config["scale"] == 1
            else max(1, round(value * self.config["scale"] / unit)) * unit
        )


def _with_pmbw(keys: Mapping[str, Any]) -> bool:
    """Whether pmbw stands beside a grid's pools."""
    narrow = keys.get("references", {}).get("pmbw")
    variants = keys.get("variants", [SUBSYSTEMS["memory"].default])
    return narrow is not None and not set(POOLS).isdisjoint(narrow.get("variants", variants))


def _repetitions(value: Any) -> tuple[int, Criterion | None]:
    """How many repetitions to plan, and what may end them sooner."""
    criterion = configuration.criterion("repetitions", value)
    return (int(value), None) if criterion is None else (criterion.most, criterion)
