"""Configuration -> the cells to measure, in running order, and the jobs that measure them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import Any

from peakmark.catalogue import SUBSYSTEMS
from peakmark.cell import Cell
from peakmark.config import campaign as configuration
from peakmark.config import layouts, site, texts
from peakmark.errors import ConfigError, Unavailable
from peakmark.plan import durations, grids
from peakmark.plan.cluster import (
    ANY,
    Behind,
    Cluster,
    Settings,
    Turns,
    behind,
    local_nodes,
    pair_turns,
    peers,
    settings_of,
    shares,
)
from peakmark.plan.durations import Durations
from peakmark.storage.results import Results
from peakmark.tools import REGISTRY
from peakmark.tools.base import Coverage
from peakmark.tools.programs import iozone

RESULTS = Path("results")


@dataclass(frozen=True)
class Reference:
    """A reference tool of the plan.

    Attributes:
        instrument: its name in the registry.
        executable: name of its program.
        path: where it was found; None where its column stays empty.
        reason: why its column stays empty.
        package: Debian package that has it.
        largest: largest block in bytes that its build takes; None without such a limit.
    """

    instrument: str
    executable: str
    path: str | None
    reason: str | None
    package: str | None
    largest: int | None = None


@dataclass(frozen=True)
class Plan:
    """A campaign: completed configuration, cells in running order, reference tools, cluster.

    Attributes:
        config: the completed configuration.
        cells: every planned cell, in running order.
        references: tools that the grids name.
        cluster: None without one.
        impossible: row -> why its reference tool can measure it on no machine.
    """

    config: Settings
    cells: tuple[Cell, ...]
    references: tuple[Reference, ...]
    cluster: Cluster | None = None
    impossible: Mapping[str, str] = field(default_factory=dict)

    @property
    def campaign(self) -> str:
        """Name of the campaign."""
        return str(self.config["campaign"])

    @property
    def directory(self) -> Path:
        """Folder of the campaign, relative to the working directory."""
        return RESULTS / self.campaign

    @cached_property
    def results(self) -> Results:
        """What the folder of the campaign holds."""
        return Results(self.directory, self.to_json(), self.cells)

    @cached_property
    def durations(self) -> Durations:
        """How long the cells take, by records as far as there are any."""
        return durations.of(self.config, self.cluster, self.results.findings)

    @cached_property
    def longest(self) -> float:
        """Seconds of the longest cell, see ``Durations.longest``."""
        return max(map(self.durations.longest, self.cells), default=0.0)

    def record_name(self, cell: Cell) -> str:
        """Path of a cell's record as text: Path objects cost time with ten thousand cells."""
        return f"{RESULTS}/{self.campaign}/cells/{cell.id}.json"

    @cached_property
    def peers(self) -> dict[str, str]:
        """Node -> the other end of its network cells; empty where Slurm chooses the nodes."""
        nodes = self.cluster.nodes if self.cluster else ()
        return peers(nodes, str(self.config["peers"]), int(self.config["seed"]))

    @cached_property
    def behind(self) -> Behind:
        """What nodes share: name -> nodes behind it; empty where no pairs are planned."""
        return behind(self.config, self.cluster) if self.cluster else {}

    def shares(self, cell: Cell) -> frozenset[str]:
        """What no other pair may use while the cell of a pair is measured."""
        if not cell.peer:
            return frozenset()
        return shares((cell.node, cell.peer), self.config, self.behind)

    @cached_property
    def jobs(self) -> dict[str, list[Cell]]:
        """Name -> cells of the jobs with several cells; empty with ``fan_out: cell``."""
        if self.cluster is None or self.config["fan_out"] == "cell":
            return {}
        return _jobs(self.cells, self.config)

    @cached_property
    def _job_names(self) -> dict[str, str]:
        return {cell.id: name for name, cells in self.jobs.items() for cell in cells}

    def job_of(self, cell: Cell) -> str | None:
        """The job that measures the cell with others, None when it has a job to itself."""
        return self._job_names.get(cell.id)

    def to_json(self) -> dict[str, Any]:
        """The plan as it is stored."""
        cells = []
        for cell in self.cells:
            job = self.job_of(cell)
            name = {"job": job} if job else {}
            cells.append({"id": cell.id, **name, **cell.to_json()})
        return {
            "schema": 1,
            "campaign": self.campaign,
            "config": self.config,
            "cluster": self.cluster.to_json() if self.cluster else None,
            "peers": self.peers,
            "cells": cells,
            "references": [asdict(reference) for reference in self.references],
        }


def complete(config: Settings, on_cluster: bool = False) -> dict[str, Any]:
    """The configuration with defaults and the site's facts filled in. Errors: ConfigError.

    Args:
        config: as the user wrote it.
        on_cluster: look for reference tools on the nodes, unless ``tools_on`` sets another place.
    """
    defaults = {"tools_on": "nodes"} if on_cluster else {}
    completed = configuration.complete({**defaults, **config})
    if completed["site"] is not None:
        completed["site_facts"] = site.load(completed["site"])
    report = completed["report"]
    if report["tables"] is not None:
        layouts.load(report["tables"])
    texts.check(report["text"])
    return completed


def make(config: Settings, cluster: Cluster | None = None) -> Plan:
    """The plan of a configuration. Errors: ConfigError before anything runs."""
    return build(complete(config, cluster is not None), cluster)


def build(completed: Settings, cluster: Cluster | None = None) -> Plan:
    """The plan of a completed configuration. Errors: ConfigError before anything runs."""
    nodes = cluster.nodes if cluster else local_nodes(completed["nodes"])
    turns = pair_turns(completed, nodes)
    grids.check_number(completed, len(nodes), turns)
    tools = _named_references(completed)
    largest = {name: tool.largest for name, tool in tools.items() if tool.largest is not None}
    cells: dict[str, Cell] = {}
    planned = [grids.cells(completed, node, cluster is None, largest) for node in nodes]
    for cell in chain(*planned, grids.pair_cells(completed, turns, largest)):
        name = cell.instrument
        if REGISTRY[name].reference:
            if name not in tools:  # It fills rows of another tool.
                tools[name] = _reference(completed, name)
            if tools[name].path is None:
                continue
        _add(cells, cell)
    turn = partial(_turn, turns, completed["seed"])
    ordered = grids.interleaved(cells.values(), completed["seed"])
    if cluster is not None:
        # A job that waits for two free nodes keeps one of them idle.
        ordered.sort(key=turn)
        single = [cell for cell in ordered if not two_nodes(cell)]
        cpus, memory = durations.needs(single, completed)
        cluster = cluster.choose(cpus, memory, len(single) < len(ordered))
    return Plan(
        config=completed,
        cells=tuple(ordered),
        references=tuple(tools[name] for name in sorted(tools)),
        cluster=cluster,
        impossible=grids.impossible(ordered),
    )


def _turn(turns: Turns, seed: int, cell: Cell) -> tuple[float, ...]:
    """Single nodes first, then two nodes, then pairs round by round: those of a round share no node."""
    if not cell.peer:
        return (two_nodes(cell),)
    number = min(of[cell.node, cell.peer] for of in turns.values() if (cell.node, cell.peer) in of)
    point = f"{seed}/{cell.repetition}/{number}/{cell.instrument}/{cell.point}"
    return 2, cell.repetition, number, random.Random(point).random()  # noqa: S311 - not a secret


def _add(cells: dict[str, Cell], cell: Cell) -> None:
    """Add a cell. Errors: ConfigError where another grid has it with different settings."""
    if cells.setdefault(cell.id, cell) != cell:
        raise ConfigError(
            f"two grids of {cell.subsystem} ask for {cell.id} with different options: give them "
            "different blocks, variants or concurrency, or put them in one grid"
        )


def _named_references(config: Settings) -> dict[str, Reference]:
    """The reference tools that the grids name."""
    tools: dict[str, Reference] = {}
    for subsystem in SUBSYSTEMS:
        for grid in config[subsystem]:
            for name in grid.get("references", {}):
                tools[name] = _reference(config, name)
    return tools


def _reference(config: Settings, name: str) -> Reference:
    """A reference tool; with ``tools_on: nodes`` each node finds out whether it has the tool."""
    instrument = REGISTRY[name]
    choice = config["tools"].get(name)
    executables = instrument.executables
    candidates = [str(choice)] if choice else list(executables)
    path: str | None = candidates[0]
    reason: str | None = None
    if choice is False:
        path, reason = None, f"left out by tools.{name}"
    elif config["tools_on"] != "nodes":
        path = instrument.on_path(str(choice) if choice else None)
        if path is None:
            where = "" if choice else " on PATH"
            reason = f"{' or '.join(candidates)} not found{where}"
    largest = None
    if name == iozone.Iozone.name and path is not None:
        largest = _largest_record(path, config["tools_on"] == "here")
    return Reference(name, executables[0], path, reason, instrument.package, largest)


def _largest_record(path: str, local: bool) -> int:
    """The largest record that a build of IOZone takes; IOZone reports it where it is ``local``."""
    with suppress(Unavailable):  # Its cells will report that.
        if local:
            return iozone.Iozone().largest(path)
    return iozone.USUAL_LARGEST


def two_nodes(cell: Cell) -> bool:
    """Whether the cell needs a second node on a cluster."""
    return REGISTRY[cell.instrument].two_nodes


def uses_shared_resource(cell: Cell, settings: Settings) -> bool:
    """Whether the cell uses what lies beyond its node: no other such cell may run then. What pairs
    share is known: ``Plan.shares``.
    """
    return resource_of(cell, settings) != "own" and not cell.peer


def resource_of(cell: Cell, settings: Settings) -> str:
    """What the cell uses: its ``own`` node, a shared ``disk``, or a ``pair`` of nodes."""
    if two_nodes(cell):
        return "pair"
    if cell.subsystem == "disk" and settings.get("scratch_shared"):
        return "disk"
    return "own"


def multi_row_tools(cells: Iterable[Cell]) -> frozenset[str]:
    """The cells' programs of which one execution fills several rows."""
    return frozenset(
        cell.instrument
        for cell in cells
        if any(row.cell == cell.workload for row in REGISTRY[cell.instrument].rows)
    )


def same_node_key(cell: Cell, tools: frozenset[str] = frozenset()) -> str:
    """What the cells share that belong on one node: a row's repetitions, of every program.

    Args:
        cell: the cell.
        tools: programs that fill several rows at once: such rows belong on one node too.
    """
    rows = [row for name in tools for row in REGISTRY[name].rows if _is_filled_with(row, cell)]
    if not rows:
        return f"{cell.subsystem}/{cell.point}/{cell.node}"
    workloads = ",".join(rows[0].workloads)
    block = str(cell.block) if all(row.per_block for row in rows) else ""
    concurrency = str(cell.asked) if all(row.per_concurrency for row in rows) else ""
    return f"{cell.subsystem}/{workloads}-{cell.variant}_{block}_x{concurrency}/{cell.node}"


def _is_filled_with(row: Coverage, cell: Cell) -> bool:
    """Whether one execution fills ``row`` and the cell's row, or the cell is such an execution."""
    if row.cell is None or row.subsystem != cell.subsystem or cell.variant not in row.variants:
        return False
    executions = [other.cell for other in REGISTRY[cell.instrument].rows]
    return cell.workload in row.workloads or cell.workload in executions


def _jobs(cells: Sequence[Cell], config: Settings) -> dict[str, list[Cell]]:
    """Name of a job -> its cells in running order.

    Where Slurm chooses the node, all cells that belong on one node are in one job.
    """
    fan_out, settings, tools = config["fan_out"], settings_of(config), multi_row_tools(cells)
    units: dict[str, list[int]] = {}
    for place, cell in enumerate(cells):
        key = same_node_key(cell, tools) if cell.node == ANY else cell.id
        units.setdefault(key, []).append(place)
    jobs: dict[str, list[int]] = {}
    batches: dict[str, int] = {}
    for unit in units.values():
        first = cells[unit[0]]
        name = f"{first.place}.{resource_of(first, settings)}"
        if fan_out != "node":
            batch = batches.setdefault(name, 0)
            size = len(jobs.get(f"{name}.{batch}", ()))
            if size and size + len(unit) > fan_out["batch"]:
                batch += 1
            batches[name] = batch
            name = f"{name}.{batch}"
        jobs.setdefault(name, []).extend(unit)
    return {name: [cells[place] for place in sorted(places)] for name, places in jobs.items()}
