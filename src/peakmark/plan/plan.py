"""The plan of a campaign, and the reference tools that it names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from peakmark.cell import Cell
from peakmark.config.types import Planned
from peakmark.plan import durations, job_groups
from peakmark.plan.cluster import Cluster, peers
from peakmark.plan.durations import Durations
from peakmark.storage.results import Results

RESULTS = Path("results")
"""Folder of all campaigns, relative to the working directory."""


@dataclass(frozen=True)
class Reference:
    """A reference tool of the plan.

    Attributes:
        instrument: name of the tool in the registry.
        executable: name of its program.
        path: path of the program; None if it was not found, so that its column stays empty.
        reason: why the program was not found.
        package: Debian package of the tool.
    """

    instrument: str
    executable: str
    path: str | None
    reason: str | None
    package: str | None


@dataclass(frozen=True)
class Plan:
    """A campaign: completed configuration, cells in running order, reference tools, cluster.

    Attributes:
        config: the completed configuration.
        cells: every planned cell, in running order.
        references: reference tools that the grids name.
        cluster: the cluster that measures; None if this machine measures.
        impossible: row of a reference tool -> why no machine can measure it with this tool.
        left_out: subsystem -> why no cells of its grids are planned.
    """

    config: Planned
    cells: tuple[Cell, ...]
    references: tuple[Reference, ...]
    cluster: Cluster | None = None
    impossible: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def campaign(self) -> str:
        """Return the name of the campaign."""
        return self.config.campaign

    @property
    def directory(self) -> Path:
        """Return the folder of the campaign, relative to the working directory."""
        return RESULTS / self.campaign

    @cached_property
    def results(self) -> Results:
        """Return the records and files in the folder of the campaign."""
        return Results(self.directory, self.to_json(), self.cells)

    @cached_property
    def durations(self) -> Durations:
        """Return how long the cells take."""
        return durations.of(self.config, self.cluster)

    @cached_property
    def longest(self) -> float:
        """Return the longest time of any cell in seconds, see ``Durations.longest``."""
        return max(map(self.durations.longest, self.cells), default=0.0)

    def record_name(self, cell: Cell) -> str:
        """Return the path of a cell's record as text.

        Path objects would take too much time with ten thousand cells.
        """
        return f"{RESULTS}/{self.campaign}/cells/{cell.id}.json"

    @cached_property
    def peers(self) -> dict[str, str]:
        """Return node -> the other node of its network cells; empty if Slurm chooses the nodes."""
        if self.cluster is None:
            return {}
        return peers(self.cluster.nodes)

    @property
    def is_grouped(self) -> bool:
        """Return whether a job may measure several cells."""
        return self.cluster is not None and self.config.fan_out != "cell"

    @cached_property
    def jobs(self) -> dict[str, list[Cell]]:
        """Return job -> its cells. The job of a single cell has the cell's id as its name."""
        if self.is_grouped:
            return job_groups.group(self.cells, self.config)
        return {cell.id: [cell] for cell in self.cells}

    @cached_property
    def _job_names(self) -> dict[str, str]:
        names: dict[str, str] = {}
        for name, cells in self.jobs.items():
            names |= dict.fromkeys([cell.id for cell in cells], name)
        return names

    def job_of(self, cell: Cell) -> str:
        """Return the name of the cell's job."""
        return self._job_names[cell.id]

    def to_json(self) -> dict[str, Any]:
        """Return the plan as JSON values, as plan.json stores it."""
        cells = []
        for cell in self.cells:
            entry = {"id": cell.id}
            if self.is_grouped:
                entry["job"] = self.job_of(cell)
            cells.append(entry | cell.to_json())
        cluster = None
        if self.cluster is not None:
            cluster = self.cluster.to_json()
        plan = {
            "schema": 1,
            "campaign": self.campaign,
            "config": msgspec.to_builtins(self.config),
            "cluster": cluster,
            "peers": self.peers,
            "cells": cells,
            "references": [asdict(reference) for reference in self.references],
        }
        if self.left_out:
            plan["left_out"] = dict(self.left_out)
        return plan
