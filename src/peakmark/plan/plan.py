"""Configuration -> the cells to measure, in the order in which they shall run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from peakmark.catalogue import SUBSYSTEMS
from peakmark.cell import Cell
from peakmark.config import campaign as configuration
from peakmark.config import inputs, layouts, published, site
from peakmark.config.types import Criterion
from peakmark.errors import ConfigError
from peakmark.plan import adaptive, durations, grids, grouping
from peakmark.plan.cluster import Cluster, on_this_machine, peers
from peakmark.plan.durations import Durations
from peakmark.reasons import Unavailable
from peakmark.storage.results import Results
from peakmark.tools import REGISTRY
from peakmark.tools.programs import iozone

RESULTS = Path("results")


@dataclass(frozen=True)
class Reference:
    """A reference tool of the plan: where it was found, or why its column stays empty and what
    would fill it; the largest block in bytes that its build takes, None where there is no such
    limit.
    """

    instrument: str
    executable: str
    path: str | None
    reason: str | None
    package: str | None
    largest: int | None = None


@dataclass(frozen=True)
class Plan:
    """A campaign: completed configuration, cells in running order, reference tools, the cluster if
    there is one.

    criteria    row -> what decides how many of its planned repetitions are made; rows with a fixed
                number have no entry
    impossible  row -> why a reference tool, asked for it, can do it on no machine: measured as not
                possible
    resumes     whether what earlier runs have left in its folder counts: the jobs of this run need
                not look
    """

    config: Mapping[str, Any]
    cells: tuple[Cell, ...]
    references: tuple[Reference, ...]
    cluster: Cluster | None = None
    criteria: Mapping[str, Criterion] = field(default_factory=dict)
    impossible: Mapping[str, str] = field(default_factory=dict)
    resumes: bool = True

    @property
    def campaign(self) -> str:
        return str(self.config["campaign"])

    @property
    def directory(self) -> Path:
        """Folder of the campaign, relative to the working directory."""
        return RESULTS / self.campaign

    @cached_property
    def results(self) -> Results:
        """What is in that folder, each thing read when first asked for and then kept."""
        return Results(
            self.directory, self.to_json(), self.cells if self.resumes else (), self.criteria
        )

    @cached_property
    def durations(self) -> Durations:
        """How long its cells take, as far as its records tell, else by estimate."""
        return durations.of(self.config, self.cluster, self.directory, self.results.findings)

    @cached_property
    def longest(self) -> float:
        """Seconds of the longest cell, see ``Durations.longest``."""
        return max(map(self.durations.longest, self.cells), default=0.0)

    def record_name(self, cell: Cell) -> str:
        """The path as text; for tens of thousands of cells, Path objects would be felt."""
        return f"{RESULTS}/{self.campaign}/cells/{cell.id}.json"

    def wanted(self) -> list[Cell]:
        """The cells that are asked for by now, in running order: repetitions that may prove
        needless come later.
        """
        if not self.criteria:
            return list(self.cells)
        standing = self.results.decisions

        def asked(cell: Cell) -> bool:
            criterion = self.criteria.get(cell.row)
            if criterion is None or cell.repetition < criterion.least:
                return True
            return cell.row in standing and cell.repetition < standing[cell.row].asked

        return [cell for cell in self.cells if asked(cell)]

    def required_cells(self) -> list[Cell]:
        """The cells that are measured in any case, in running order; all others may be spared."""
        return adaptive.in_round(self.cells, self.criteria, 0)

    @cached_property
    def peers(self) -> dict[str, str]:
        """Node -> the other end of its network cells; none where Slurm chooses it, or only one node
        is measured.
        """
        nodes = self.cluster.nodes if self.cluster else ()
        return peers(nodes, str(self.config["peers"]), int(self.config["seed"]))

    @cached_property
    def jobs(self) -> dict[str, list[Cell]]:
        """Name -> cells of the jobs that measure several; empty where each cell has a job, or there
        is no cluster.
        """
        return grouping.jobs(self.cells, self.config, self.criteria) if self.cluster else {}

    @cached_property
    def _job_names(self) -> dict[str, str]:
        return {cell.id: name for name, cells in self.jobs.items() for cell in cells}

    def job_of(self, cell: Cell) -> str | None:
        """The job that measures the cell together with others, None when it has one of its own."""
        return self._job_names.get(cell.id)

    def to_json(self) -> dict[str, Any]:
        named = {cell: {"job": name} for cell, name in self._job_names.items()}
        return {
            "schema": 1,
            "campaign": self.campaign,
            "config": self.config,
            "cluster": self.cluster.to_json() if self.cluster else None,
            "peers": self.peers,
            "cells": [
                {"id": cell.id, **named.get(cell.id, {}), **cell.to_json()} for cell in self.cells
            ],
            "references": [dict(vars(reference)) for reference in self.references],
            "adaptive": {
                row: criterion.to_json() for row, criterion in sorted(self.criteria.items())
            },
        }


def complete(config: Mapping[str, Any], on_cluster: bool = False) -> dict[str, Any]:
    """The configuration with defaults and the site's facts filled in. Errors: ConfigError.

    On a cluster the reference tools are looked for on the nodes, unless ``tools_on`` says
    otherwise.
    """
    completed = configuration.complete({**({"tools_on": "nodes"} if on_cluster else {}), **config})
    if completed["formula_set"] is not None and completed["site"] is None:
        raise ConfigError(
            f"formula_set is {completed['formula_set']!r}, but no site file says its formulas: name one in site"
        )
    if completed["site"] is not None:
        completed["site_facts"] = site.load(completed["site"], completed["formula_set"])
    if completed["report"]["tables"] is not None:
        layouts.load(
            completed["report"]["tables"]
        )  # what is wrong here is said before anything is measured
    for name in completed["report"]["published"]:
        published.load(name)
    inputs.check_logo(completed["report"]["logo"])
    inputs.check_texts(completed["report"])
    return completed


def make(config: Mapping[str, Any], cluster: Cluster | None = None) -> Plan:
    """The plan of a configuration. Errors: ConfigError before anything runs."""
    return build(complete(config, cluster is not None), cluster)


def build(
    completed: Mapping[str, Any], cluster: Cluster | None = None, resumes: bool = True
) -> Plan:
    """The plan of a completed configuration. Errors: ConfigError before anything runs."""
    nodes = cluster.nodes if cluster else on_this_machine(completed["nodes"])
    grids.check_number(completed, len(nodes))
    wanted = {
        name
        for subsystem in SUBSYSTEMS
        for grid in completed[subsystem]
        for name in grid.get("references", {})
    }
    references = {name: _reference(completed, name) for name in wanted}
    largest = {name: tool.largest for name, tool in references.items() if tool.largest is not None}
    cells: dict[str, Cell] = {}
    criteria: dict[str, Criterion | None] = {}
    for cell, criterion in (
        pair for node in nodes for pair in grids.cells(completed, node, cluster is None, largest)
    ):
        if REGISTRY[cell.instrument].reference:
            if cell.instrument not in references:  # it fills rows of another
                references[cell.instrument] = _reference(completed, cell.instrument)
            if references[cell.instrument].path is None:
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
    ordered = tuple(grids.interleaved(cells.values(), completed["seed"]))
    if cluster is not None:
        # Last: a job that waits for two free nodes keeps one idle.
        ordered = tuple(sorted(ordered, key=grouping.two_nodes))
        pair = any(map(grouping.two_nodes, ordered))
        one_node = [cell for cell in ordered if not grouping.two_nodes(cell)]
        cluster = cluster.choose(*durations.needs(one_node, completed), pair)
    adaptive_rows = {row: criterion for row, criterion in criteria.items() if criterion is not None}
    named = tuple(references[name] for name in sorted(references))
    return Plan(
        completed, ordered, named, cluster, adaptive_rows, grids.impossible(ordered), resumes
    )


def _reference(config: Mapping[str, Any], name: str) -> Reference:
    """A reference tool that a grid asks for. On nodes of a cluster each node answers for itself."""
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
        reason = (
            None if path else f"{' or '.join(candidates)} not found{'' if choice else ' on PATH'}"
        )
    largest = (
        _largest(path, config["tools_on"] == "here")
        if name == iozone.Iozone.name and path
        else None
    )
    return Reference(name, executables[0], path, reason, instrument.package, largest)


def _largest(path: str, here: bool) -> int:
    """The largest record that a build of IOZone takes: by its own words where it is here."""
    try:
        return iozone.Iozone().largest(path) if here else iozone.USUAL_LARGEST
    except Unavailable:  # which its cells will say
        return iozone.USUAL_LARGEST
