"""Configuration -> the cells to measure, in the order in which they shall run."""

from __future__ import annotations

import functools
import os
import random
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

from peakmark import fonts
from peakmark.catalogue import DEFAULT_VARIANTS, KERNELS, REFERENCES, Coverage
from peakmark.cell import SUBSYSTEMS, Cell, Scalar
from peakmark.errors import ConfigError, PeakmarkError, Unavailable
from peakmark.instruments import REGISTRY
from peakmark.instruments.base import Cost
from peakmark.instruments.rambench import AUTO
from peakmark.judging import published
from peakmark.machine import topology
from peakmark.machine.host import Host
from peakmark.planning import adaptive, grouping, inputs, site
from peakmark.planning import config as configuration
from peakmark.planning.adaptive import Criterion
from peakmark.planning.cluster import Cluster, on_this_machine, peers
from peakmark.storage import integrity
from peakmark.tables import layouts
from peakmark.units import format_size, parse_size

RESULTS = Path("results")
DEFAULT_SIZE = 1 << 30
MOST_CELLS = 1_000_000  # weeks of measuring on a hundred nodes
SHORTEST_S = 0.01  # what a scaled time is never below
TOTALS = {"cpu": "operations", "memory": "total", "disk": "total", "network": "total"}


@dataclass(frozen=True)
class Reference:
    """A reference tool of the plan: where it was found, or why its column stays empty and what would fill it."""

    instrument: str
    executable: str
    path: str | None
    reason: str | None
    package: str | None

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(frozen=True)
class Plan:
    """A campaign: completed configuration, cells in running order, reference tools, the cluster if there is one.

    criteria    row -> what decides how many of its planned repetitions are made; rows with a fixed number have no entry
    impossible  row -> why a reference tool, asked for it, can do it on no machine: measured as not possible
    """

    config: Mapping[str, Any]
    cells: tuple[Cell, ...]
    references: tuple[Reference, ...]
    cluster: Cluster | None = None
    criteria: Mapping[str, Criterion] = field(default_factory=dict)
    impossible: Mapping[str, str] = field(default_factory=dict)

    @property
    def campaign(self) -> str:
        return str(self.config["campaign"])

    @property
    def directory(self) -> Path:
        """Folder of the campaign, relative to the working directory."""
        return RESULTS / self.campaign

    def record_path(self, cell: Cell) -> Path:
        return Path(self.record_name(cell))

    def record_name(self, cell: Cell) -> str:
        """The path as text; for tens of thousands of cells, Path objects would be felt."""
        return f"{RESULTS}/{self.campaign}/cells/{cell.id}.json"

    def is_measured(self, cell: Cell) -> bool:
        """Whether the cell has a whole, unchanged record that was made with its present options."""
        return integrity.look(self.record_path(cell), cell).state == integrity.GOOD

    def wanted(self) -> list[Cell]:
        """The cells that are asked for by now, in running order: repetitions that may prove needless come later."""
        if not self.criteria:
            return list(self.cells)
        decisions = adaptive.standing(self.directory, self.criteria)

        def asked(cell: Cell) -> bool:
            criterion = self.criteria.get(cell.row)
            if criterion is None or cell.repetition < criterion.least:
                return True
            return cell.row in decisions and cell.repetition < decisions[cell.row].asked

        return [cell for cell in self.cells if asked(cell)]

    def surely(self) -> list[Cell]:
        """The cells that are measured in any case, in running order; all others may be spared."""
        return adaptive.in_round(self.cells, self.criteria, 0)

    @cached_property
    def peers(self) -> dict[str, str]:
        """Node -> the other end of its network cells; none where Slurm chooses it, or only one node is measured."""
        nodes = self.cluster.nodes if self.cluster else ()
        return peers(nodes, str(self.config["peers"]), int(self.config["seed"]))

    @cached_property
    def jobs(self) -> dict[str, list[Cell]]:
        """Name -> cells of the jobs that measure several; empty where each cell has a job, or there is no cluster."""
        return grouping.jobs(self.cells, self.config, self.criteria) if self.cluster else {}

    @cached_property
    def _job_names(self) -> dict[str, str]:
        return {cell.id: name for name, cells in self.jobs.items() for cell in cells}

    def job_of(self, cell: Cell) -> str | None:
        """The job that measures the cell together with others, None when it has one of its own."""
        return self._job_names.get(cell.id)

    def _job_of(self, cell: Cell) -> dict[str, str]:
        name = self.job_of(cell)
        return {} if name is None else {"job": name}

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": 1,
            "campaign": self.campaign,
            "config": self.config,
            "cluster": self.cluster.to_json() if self.cluster else None,
            "peers": self.peers,
            "cells": [{"id": cell.id, **self._job_of(cell), **cell.to_json()} for cell in self.cells],
            "references": [reference.to_json() for reference in self.references],
            "adaptive": {row: criterion.to_json() for row, criterion in sorted(self.criteria.items())},
        }


def complete(config: Mapping[str, Any], on_cluster: bool = False, checked: bool = False) -> dict[str, Any]:
    """The configuration with defaults and the site's facts filled in. Errors: ConfigError.

    On a cluster the reference tools are looked for on the nodes, unless ``tools_on`` says otherwise. ``checked``: a job
    need not check again what the process that submitted it has checked.
    """
    completed = configuration.complete({**({"tools_on": "nodes"} if on_cluster else {}), **config}, checked)
    if completed["site"] is not None:
        completed["site_facts"] = site.load(completed["site"], completed["formula_set"])
    if completed["report"]["tables"] is not None:
        layouts.load(completed["report"]["tables"])  # what is wrong here is said before anything is measured
    for name in completed["report"]["published"]:
        published.load(name)
    if not checked:
        fonts.check(completed["report"])
    inputs.check_logo(completed["report"]["logo"])
    return completed


def make(config: Mapping[str, Any], cluster: Cluster | None = None) -> Plan:
    """The plan of a configuration. Errors: ConfigError before anything runs."""
    return build(complete(config, cluster is not None), cluster)


def build(completed: Mapping[str, Any], cluster: Cluster | None = None) -> Plan:
    """The plan of a completed configuration. Errors: ConfigError before anything runs."""
    nodes = cluster.nodes if cluster else on_this_machine(completed["nodes"])
    _check_number(completed, len(nodes))
    references = tuple(_references(completed))
    missing = {reference.instrument for reference in references if reference.path is None}
    cells: dict[str, Cell] = {}
    criteria: dict[str, Criterion | None] = {}
    for cell, criterion in (one for node in nodes for one in _cells(completed, node, cluster is None)):
        if cell.instrument in missing:
            continue
        if criteria.setdefault(cell.row, criterion) != criterion:
            raise ConfigError(
                f"two grids of {cell.subsystem} ask for {cell.row} with different repetitions, of which one ends when "
                "its interval is narrow: give both the same, or put them in one grid"
            )
        other = cells.setdefault(cell.id, cell)
        if other != cell:
            raise ConfigError(
                f"two grids of {cell.subsystem} ask for {cell.id} with different options: "
                "give them different blocks, variants or concurrency, or put them in one grid"
            )
    ordered = tuple(_interleaved(cells.values(), completed["seed"]))
    adaptive_rows = {row: criterion for row, criterion in criteria.items() if criterion is not None}
    return Plan(completed, ordered, references, cluster, adaptive_rows, _impossible(ordered))


def _check_number(config: Mapping[str, Any], nodes: int) -> None:
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


def cost(cell: Cell) -> Cost:
    """Expected cost of one cell; where a word says how many threads, as many as it means on this machine."""
    if cell.word:
        cell = replace(cell, concurrency=_here(cell.word))
    return REGISTRY[cell.instrument].estimate(cell)


@functools.cache
def _here(word: str) -> int:
    """How many threads a word means on the machine that plans, by what this process may use."""
    cpus = os.sched_getaffinity(0)
    return topology.resolve(topology.read(Host(), cpus), cpus, word)


def alike(asked: Sequence[int | str], here: bool) -> dict[int | str, int | str]:
    """Each concurrency of a grid -> the one that stands for it: on the machine that measures (``here``) a word that says
    a number which is there already is not measured twice.
    """
    if not here:
        return {one: one for one in asked}
    first: dict[int, int | str] = {one: one for one in asked if isinstance(one, int)}
    # Of words for the same number the one that says most: all cores of a node with one socket are not just a socket.
    for word in (word for word in ("cores", "socket", "numa", "cpus") if word in asked):
        first.setdefault(_here(word), word)
    return {one: first[_here(one)] if isinstance(one, str) else one for one in asked}


def total_cost(cells: Iterable[Cell]) -> Cost:
    """Seconds add up; disk and memory are those of the hungriest cell, as only one runs at a time on a node."""
    seconds, disk, memory = 0.0, 0, 0
    for cell in cells:
        one = cost(cell)
        seconds += one.seconds
        disk, memory = max(disk, one.disk_bytes), max(memory, one.memory_bytes)
    return Cost(seconds, disk, memory)


def _references(config: Mapping[str, Any]) -> Iterator[Reference]:
    """Every reference tool that a grid asks for. On nodes of a cluster each node answers for itself."""
    wanted = {name for subsystem in SUBSYSTEMS for grid in config[subsystem] for name in grid.get("references", {})}
    for name in sorted(wanted):
        instrument = REGISTRY[name]
        choice = config["tools"].get(name)
        executables = instrument.executables
        path, reason = None, None
        if choice is False:
            reason = f"left out by tools.{name}"
        elif config["tools_on"] == "nodes":
            path = str(choice or executables[0])
        else:
            candidates = [str(choice)] if choice else list(executables)
            path = next((found for found in map(shutil.which, candidates) if found), None)
            if path is None:
                reason = f"{' or '.join(candidates)} not found"
                if not choice:
                    reason += " on PATH"
        yield Reference(name, executables[0], path, reason, instrument.package)


Planned = tuple[Cell, Criterion | None]


def _cells(config: Mapping[str, Any], node: str, here: bool) -> Iterator[Planned]:
    for subsystem in SUBSYSTEMS:
        for index, asked in enumerate(config[subsystem]):
            where = f"{subsystem}[{index}]"
            same = alike(asked["concurrency"], here)
            grid = {**asked, "concurrency": list(dict.fromkeys(same.values()))}
            for planned in _own_cells(config, subsystem, grid, node):
                _check_possible(where, planned[0])
                yield planned
            for name, narrow in grid.get("references", {}).items():
                if "concurrency" in narrow:
                    chosen = dict.fromkeys(same.get(one, one) for one in narrow["concurrency"])
                    narrow = {**narrow, "concurrency": list(chosen)}  # noqa: PLW2901 - as the grid has it
                beside = list(_reference_cells(config, subsystem, grid, name, narrow, node))
                if not beside:
                    raise ConfigError(
                        f"{where}.references has {name}, which can stand beside none of the grid's rows: "
                        f"{_covered(name, subsystem)}; remove it, or put such rows into a grid of their own"
                    )
                yield from beside


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
    for one in REFERENCES[name]:
        if one.subsystem == subsystem:
            named = [variant for variant in one.variants if variant]
            limit = f" up to {format_size(one.max_block)}" if one.max_block else ""
            variants = f" ({' or '.join(named)})" if named else ""
            parts.append(f"{', '.join(one.workloads)}{variants}{limit}")
    return f"it has {'; '.join(parts)}"


def _impossible(cells: Iterable[Cell]) -> dict[str, str]:
    """Row -> why the reference tool that is asked for it can do it nowhere."""
    found = {}
    for cell in cells:
        if cell.repetition == 0 and REGISTRY[cell.instrument].reference:
            try:
                REGISTRY[cell.instrument].check(cell)
            except PeakmarkError as error:
                found[cell.row] = str(error)
    return found


def _points(subsystem: str, grid: Mapping[str, Any]) -> Iterator[tuple[str, str, int | None, int | str]]:
    """(workload, variant, block, concurrency as it was asked for) of a grid, in table order."""
    blocks = [None] if subsystem == "cpu" else [parse_size(block) for block in grid["blocks"]]
    for workload in grid["workloads"]:
        variants = grid.get("variants", [DEFAULT_VARIANTS[subsystem]])
        if subsystem == "memory" and workload == "LAT":
            variants = [""]
        yield from product([workload], variants, blocks, grid["concurrency"])


def _scaled(config: Mapping[str, Any], value: float, least: float = 0.0) -> float:
    """A time in seconds, made shorter by ``scale``."""
    return value if config["scale"] == 1 else max(value * config["scale"], least)


def _scaled_count(config: Mapping[str, Any], value: int, unit: int = 1) -> int:
    """An amount of work or bytes, made shorter by ``scale``, in whole ``unit``s of which one is left at least."""
    return value if config["scale"] == 1 else max(1, round(value * config["scale"] / unit)) * unit


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


def _round(subsystem: str, workload: str, block: int | None, concurrency: int) -> int:
    """Bytes that all threads move when each handles one block: a copy in memory reads and writes it."""
    return (block or 1) * concurrency * (2 if subsystem == "memory" and workload in ("RWS", "RWR") else 1)


def _options(
    config: Mapping[str, Any], subsystem: str, grid: Mapping[str, Any], repetition: int, round_of: int
) -> dict[str, Scalar]:
    """Options that all instruments share; ``round_of``: bytes that all threads move when each handles one block."""
    options: dict[str, Scalar] = {
        "seconds": _scaled(config, grid.get("seconds", config["seconds"]), SHORTEST_S),
        "warmup": _scaled(config, grid.get("warmup", config["warmup"])),
        "seed": config["seed"] + repetition,
    }
    if subsystem in ("cpu", "memory"):
        options["isa"] = config["isa"]
    if subsystem == "memory":
        pool = grid.get("pool", AUTO)
        options["pool"] = AUTO if pool == AUTO else parse_size(pool)
        if "store" in grid:  # only where it was asked for: cells of before keep their options
            options["store"] = grid["store"]
    if subsystem in ("cpu", "memory") and config["placement"] != "compact":
        options["placement"] = config["placement"]
    if subsystem == "disk":
        options["size"] = _scaled_count(config, parse_size(grid.get("size", DEFAULT_SIZE)), round_of)
        options["scratch"] = config["scratch"]
    if subsystem == "network" and config["interface"] is not None:
        options["interface"] = config["interface"]
    return options


def _total_key(subsystem: str, workload: str) -> str:
    if workload == "LAT":
        return "accesses"
    if workload.startswith("LAT-"):
        return "round_trips"
    return TOTALS[subsystem]


def _own_cells(config: Mapping[str, Any], subsystem: str, grid: Mapping[str, Any], node: str) -> Iterator[Planned]:
    count, criterion = _repetitions(grid.get("repetitions", config["repetitions"]))
    for point, repetition in product(list(_points(subsystem, grid)), range(count)):
        workload, _, block, asked = point
        concurrency = asked if isinstance(asked, int) else 1
        round_of = _round(subsystem, workload, block, concurrency)
        options = _options(config, subsystem, grid, repetition, round_of)
        if "total" in grid:
            key = _total_key(subsystem, workload)
            total = configuration.parse_total(f"{subsystem} total", grid["total"])
            options[key] = _scaled_count(config, total, round_of if key == "total" else concurrency)
        kernel = KERNELS[subsystem]
        yield _cell(subsystem, kernel, point, node, repetition, options), criterion


def _repetitions(value: Any) -> tuple[int, Criterion | None]:
    """How many repetitions to plan, and what may end them sooner."""
    criterion = adaptive.parse("repetitions", value)
    return (int(value), None) if criterion is None else (criterion.most, criterion)


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
        coverage = _coverage(name, subsystem, workload, variant, block)
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
            options = _options(config, subsystem, {**grid, **narrow}, repetition, round_of)
            for key in ("budget_s", "nb", "ops", "count"):
                if key in narrow:
                    options[key] = narrow[key]
            if "budget_s" in narrow:
                options["budget_s"] = _scaled(config, narrow["budget_s"], SHORTEST_S)
            if "count" in narrow:
                options["count"] = _scaled_count(config, narrow["count"])
            yield _cell(subsystem, name, point, node, repetition, options), criterion


def _coverage(name: str, subsystem: str, workload: str, variant: str, block: int | None) -> Coverage | None:
    for coverage in REFERENCES[name]:
        fits = (
            coverage.subsystem == subsystem
            and workload in coverage.workloads
            and (not coverage.variants or variant in coverage.variants)
            and (coverage.max_block is None or block is None or block <= coverage.max_block)
        )
        if fits:
            return coverage
    return None


def _interleaved(cells: Iterable[Cell], seed: int) -> list[Cell]:
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
