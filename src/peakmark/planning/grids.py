"""The grids of a configuration -> cells: the own kernel's points, and the references beside them."""

from __future__ import annotations

import functools
import os
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from peakmark.catalogue.references import REFERENCES, Coverage
from peakmark.catalogue.subsystems import SUBSYSTEMS
from peakmark.catalogue.workloads import AUTO, KERNELS, POOLS
from peakmark.cell import Cell, Scalar
from peakmark.config import campaign as configuration
from peakmark.config import repetitions
from peakmark.config.repetitions import Criterion
from peakmark.errors import ConfigError, PeakmarkError
from peakmark.instruments import REGISTRY
from peakmark.machine import topology
from peakmark.machine.host import Host
from peakmark.reasons import Unavailable
from peakmark.units import parse_size

DEFAULT_SIZE = 1 << 30
MOST_CELLS = 1_000_000  # weeks of measuring on a hundred nodes
READS = ("RS", "RR")  # workloads of a disk for which it does not matter how files are written
SHORTEST_S = 0.01  # what a scaled time is never below
SHORTEST_HPL_S = 3.0  # the same of HPL: in less it solves nothing, and its column stays empty
Planned = tuple[Cell, Criterion | None]


def cells(config: Mapping[str, Any], node: str, on_this_machine: bool, largest: Mapping[str, int]) -> Iterator[Planned]:
    """The cells of a completed configuration on one node, each with what may end its repetitions sooner.

    on_this_machine  words of ``concurrency`` mean what they mean here
    largest          reference tool -> largest block in bytes that its build takes

    Errors: ConfigError.
    """
    for subsystem in SUBSYSTEMS:
        for index, asked in enumerate(config[subsystem]):
            where = f"{subsystem}[{index}]"
            same = alike(asked["concurrency"], on_this_machine)
            grid = {**asked, "concurrency": list(dict.fromkeys(same.values()))}
            for planned in _own_cells(config, subsystem, grid, node):
                _check_possible(where, planned[0])
                yield planned
            for name, narrow in grid.get("references", {}).items():
                if "concurrency" in narrow:
                    chosen = dict.fromkeys(same.get(asked_for, asked_for) for asked_for in narrow["concurrency"])
                    narrow = {**narrow, "concurrency": list(chosen)}  # noqa: PLW2901 - as the grid has it
                beside = list(_beside(config, subsystem, grid, name, narrow, node, largest))
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
    """Repetition by repetition, each in its own seeded order: slow drift of the machine then spreads over all cells
    instead of becoming a difference between two of them (Hoefler and Belli 2015, rule 9; google/benchmark's
    random interleaving)."""
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
    """Each concurrency of a grid -> the one that stands for it: on the machine that measures (``on_this_machine``) a word that says
    a number which is there already is not measured twice.
    """
    if not on_this_machine:
        return {value: value for value in asked}
    first: dict[int, int | str] = {value: value for value in asked if isinstance(value, int)}
    # Of words for the same number the one that says most: all cores of a node with one socket are not just a socket.
    for word in (word for word in ("cores", "socket", "numa", "cpus") if word in asked):
        first.setdefault(here(word), word)
    return {value: first[here(value)] if isinstance(value, str) else value for value in asked}


def _check_possible(where: str, cell: Cell) -> None:
    """Errors: ConfigError for a cell that its own kernel can do nowhere."""
    if cell.repetition == 0:
        try:
            REGISTRY[cell.instrument].check(cell)
        except Unavailable as error:
            raise ConfigError(f"{where} asks for {cell.row}, which is not possible: {error}") from error


def _covered(name: str, subsystem: str) -> str:
    """What a tool has: ``it has RS, WS, RWS (block or pool)``."""
    parts = []
    for coverage in REFERENCES[name].rows:
        if coverage.subsystem == subsystem:
            named = [variant for variant in coverage.variants if variant]
            variants = f" ({' or '.join(named)})" if named else ""
            parts.append(f"{', '.join(coverage.workloads)}{variants}")
    return f"it has {'; '.join(parts)}"


def _points(subsystem: str, grid: Mapping[str, Any]) -> Iterator[tuple[str, str, int | None, int | str]]:
    """(workload, variant, block, concurrency as it was asked for) of a grid, in table order."""
    asked = [AUTO] if subsystem == "cpu" else grid["blocks"]
    blocks = [None if block == AUTO else parse_size(block) for block in asked]
    for workload in grid["workloads"]:
        variants = grid.get("variants", [SUBSYSTEMS[subsystem].default])
        if subsystem == "memory" and workload == "LAT":
            variants = [""]
        yield from product([workload], variants, blocks, grid["concurrency"])


def _own_cells(config: Mapping[str, Any], subsystem: str, grid: Mapping[str, Any], node: str) -> Iterator[Planned]:
    count, criterion = _repetitions(grid.get("repetitions", config["repetitions"]))
    for point, repetition in product(list(_points(subsystem, grid)), range(count)):
        workload, _, block, asked = point
        concurrency = asked if isinstance(asked, int) else 1
        round_of = _round(subsystem, workload, block, concurrency)
        options = _options(config, subsystem, workload, grid, repetition, round_of)
        if "total" in grid:
            key = _total_key(subsystem, workload)
            total = configuration.parse_total(f"{subsystem} total", grid["total"])
            options[key] = _scaled_count(config, total, round_of if key == "total" else concurrency)
        kernel = KERNELS[subsystem]
        yield _cell(subsystem, kernel, point, node, repetition, options), criterion


def _beside(
    config: Mapping[str, Any],
    subsystem: str,
    grid: Mapping[str, Any],
    name: str,
    narrow: Mapping[str, Any],
    node: str,
    largest: Mapping[str, int],
) -> Iterator[Planned]:
    """Cells of one reference beside one grid; where its build takes no such block, those of the tool that fills the rows,
    with as much data, unless the grid has that one beside it anyway."""
    instead, limit = REFERENCES[name].instead, largest.get(name)
    asked = narrow.get("blocks", grid.get("blocks", ()))
    above = [block for block in asked if limit is not None and block != AUTO and parse_size(block) > limit]
    if len(above) < len(asked) or not asked:
        fitting = {**narrow, "blocks": [block for block in asked if block not in above]} if above else narrow
        yield from _reference_cells(config, subsystem, grid, name, fitting, node)
    if above and instead is not None and instead not in grid["references"]:
        filling = {key: value for key, value in narrow.items() if key not in ("ops", "seconds")}
        for cell, criterion in _reference_cells(config, subsystem, grid, instead, {**filling, "blocks": above}, node):
            options = {**cell.options, "total": cell.options["size"], "instead_of": name}
            yield replace(cell, options=options), criterion


def _reference_cells(
    config: Mapping[str, Any], subsystem: str, grid: Mapping[str, Any], name: str, narrow: Mapping[str, Any], node: str
) -> Iterator[Planned]:
    """Cells of one reference beside one grid: only the points the tool can stand beside."""
    narrowed = {
        **grid,
        **{key: narrow[key] for key in ("workloads", "concurrency", "blocks", "variants") if key in narrow},
    }
    count, criterion = _repetitions(narrow.get("repetitions", config["reference_repetitions"]))
    seen: set[tuple[str, str, int | None, int | str]] = set()
    for workload, variant, block, asked in _points(subsystem, narrowed):
        coverage = _coverage(name, subsystem, workload, variant)
        if coverage is None:
            continue
        point = (
            coverage.cell or workload,
            variant,
            block if coverage.per_block else None,
            asked if coverage.per_concurrency else 1,
        )
        if point in seen:
            continue
        seen.add(point)
        for repetition in range(count):
            round_of = _round(subsystem, workload, block, asked if isinstance(asked, int) else 1)
            options = _options(config, subsystem, point[0], {**grid, **narrow}, repetition, round_of)
            for key in ("budget_s", "nb", "ops", "count"):
                if key in narrow:
                    options[key] = narrow[key]
            if "budget_s" in narrow:
                options["budget_s"] = _scaled(config, narrow["budget_s"], min(narrow["budget_s"], SHORTEST_HPL_S))
            if "count" in narrow:
                options["count"] = _scaled_count(config, narrow["count"])
            yield _cell(subsystem, name, point, node, repetition, options), criterion


def _coverage(name: str, subsystem: str, workload: str, variant: str) -> Coverage | None:
    for coverage in REFERENCES[name].rows:
        fits = (
            coverage.subsystem == subsystem
            and workload in coverage.workloads
            and (not coverage.variants or variant in coverage.variants)
        )
        if fits:
            return coverage
    return None


def _cell(
    subsystem: str,
    instrument: str,
    point: tuple[str, str, int | None, int | str],
    node: str,
    repetition: int,
    options: Mapping[str, Scalar],
) -> Cell:
    workload, variant, block, asked = point
    threads, word = (1, asked) if isinstance(asked, str) else (asked, "")
    return Cell(subsystem, instrument, workload, variant, block, threads, node, repetition, options, word)


def _options(
    config: Mapping[str, Any], subsystem: str, workload: str, grid: Mapping[str, Any], repetition: int, round_of: int
) -> dict[str, Scalar]:
    """Options that all instruments share; ``round_of``: bytes that all threads move when each handles one block."""
    options: dict[str, Scalar] = {
        "seconds": _scaled(config, grid.get("seconds", config["seconds"]), SHORTEST_S),
        "warmup": _scaled(config, grid.get("warmup", config["warmup"])),
        "seed": config["seed"] + repetition,
    }
    pinned = SUBSYSTEMS[subsystem].pinned
    if pinned:
        options["isa"] = grid.get("isa", config["isa"])
    if subsystem == "memory":
        pool = grid.get("pool", AUTO)
        options["pool"] = AUTO if pool == AUTO else parse_size(pool)
        if pool == AUTO and workload != "LAT" and _with_pmbw(grid):  # it measures no other sizes
            options["power_of_two"] = True
        if "store" in grid:  # only where it was asked for: cells of before keep their options
            options["store"] = grid["store"]
    if pinned and config["placement"] != "compact":
        options["placement"] = config["placement"]
    if subsystem == "disk":
        options["size"] = _scaled_count(config, parse_size(grid.get("size", DEFAULT_SIZE)), round_of)
        options["scratch"] = config["scratch"]
        if workload not in READS:
            options |= {key: grid[key] for key in ("sync", "fill") if key in grid}
    if subsystem == "network" and config["interface"] is not None:
        options["interface"] = config["interface"]
    return options


def _with_pmbw(grid: Mapping[str, Any]) -> bool:
    """Whether pmbw stands beside a grid's pools."""
    narrow = grid.get("references", {}).get("pmbw")
    variants = grid.get("variants", [SUBSYSTEMS["memory"].default])
    return narrow is not None and not set(POOLS).isdisjoint(narrow.get("variants", variants))


def _repetitions(value: Any) -> tuple[int, Criterion | None]:
    """How many repetitions to plan, and what may end them sooner."""
    criterion = repetitions.parse("repetitions", value)
    return (int(value), None) if criterion is None else (criterion.most, criterion)


def _total_key(subsystem: str, workload: str) -> str:
    if workload == "LAT":
        return "accesses"
    if workload.startswith("LAT-"):
        return "round_trips"
    return SUBSYSTEMS[subsystem].total


def _scaled(config: Mapping[str, Any], value: float, least: float = 0.0) -> float:
    """A time in seconds, made shorter by ``scale``."""
    return value if config["scale"] == 1 else max(value * config["scale"], least)


def _scaled_count(config: Mapping[str, Any], value: int, unit: int = 1) -> int:
    """An amount of work or bytes, made shorter by ``scale``, in whole ``unit``s of which one is left at least."""
    return value if config["scale"] == 1 else max(1, round(value * config["scale"] / unit)) * unit


def _round(subsystem: str, workload: str, block: int | None, concurrency: int) -> int:
    """Bytes that all threads move when each handles one block: a copy in memory reads and writes it."""
    return (block or 1) * concurrency * (2 if subsystem == "memory" and workload in ("RWS", "RWR") else 1)
