"""All that one campaign holds: the plan, the facts of its nodes, its records and its failed attempts, read once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from peakmark.cell import Cell
from peakmark.config import inputs
from peakmark.errors import RecordError
from peakmark.planning.adaptive import Decisions
from peakmark.storage import facts, integrity, records
from peakmark.storage.campaign import Campaign


@dataclass(frozen=True)
class StoredRecord:
    """A record and where it lies, as a POSIX path below the campaign folder."""

    path: str
    data: Mapping[str, Any]

    @property
    def cell(self) -> Cell:
        """The cell that the record answers."""
        return Cell.from_json(self.data["cell"])

    @property
    def ok(self) -> bool:
        """True when the record holds measurements."""
        return bool(self.data["status"] == "ok")


@dataclass(frozen=True)
class Results:
    """All that one campaign holds so far; ``records`` and ``attempts`` are sorted by path.

    cells   the planned cells without those that were spared, as their rows were sure enough without them
    spared  how many those are, by the ``decisions`` on rows that have as many repetitions as they need
    facts   node name -> machine facts, from ``machine/<node>.json``

    ``records`` holds those that count: whole, unchanged, of planned cells with the plan's options. ``left_out`` says of
    every other one in a sentence why it does not.
    """

    directory: Path
    plan: Mapping[str, Any]
    cells: tuple[Cell, ...]
    records: tuple[StoredRecord, ...]
    attempts: tuple[StoredRecord, ...]
    facts: Mapping[str, Mapping[str, Any]]
    left_out: tuple[str, ...] = ()
    spared: int = 0
    decisions: Decisions = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The campaign's name, as planned."""
        return str(self.plan.get("campaign", self.directory.name))

    @property
    def config(self) -> Mapping[str, Any]:
        """The configuration the plan was made from."""
        config: Mapping[str, Any] = self.plan.get("config", {})
        return config

    @property
    def report_config(self) -> Mapping[str, Any]:
        """``report:`` of the configuration: title, author, course, logo, language, decimal_mark, summary.

        Files it names are a bundle's own copies where this is one.
        """
        return inputs.resolve(self.directory, self.config.get("report") or {})

    @property
    def missing(self) -> tuple[Cell, ...]:
        """Planned cells without a record, in the order of the plan."""
        present = {record.path for record in self.records}
        return tuple(cell for cell in self.cells if f"cells/{cell.id}.json" not in present)

    @property
    def checksums(self) -> list[tuple[str, str]]:
        """Path below the campaign and SHA-256 of every raw output that the records name."""
        found = []
        for record in (*self.records, *self.attempts):
            folder = record.path.rpartition("/")[0]
            found += [(f"{folder}/{name}", digest) for name, digest in sorted(record.data["raw"].items())]
        return found

    @property
    def checksum_list(self) -> str:
        """The checksums as ``sha256sum --check`` reads them in the campaign's folder."""
        return "".join(f"{digest}  {path}\n" for path, digest in self.checksums)

    def facts_for(self, node: str, host: str | None = None) -> Mapping[str, Any]:
        """Facts of the node that a row was measured on: by host, else by node, else the only ones there are, else
        {}.
        """
        for name in (host, node):
            if name is not None and name in self.facts:
                return self.facts[name]
        return next(iter(self.facts.values())) if len(self.facts) == 1 else {}

    @classmethod
    def read(cls, directory: Path) -> Results:
        """The campaign below ``directory``.

        Errors: RecordError when there is no plan.
        """
        campaign = Campaign.open(directory)
        spared = campaign.spared()
        cells = tuple(cell for cell in campaign.cells if cell.id not in spared)
        found = [load(directory, *place) for place in places(directory, cells)]
        stored = [one for one in found if isinstance(one, StoredRecord)]
        return cls(
            directory=directory,
            plan=campaign.plan,
            cells=cells,
            records=tuple(one for one in stored if one.path.startswith("cells/")),
            attempts=tuple(one for one in stored if one.path.startswith("attempts/")),
            facts=facts.whole(directory),
            left_out=(*(one for one in found if isinstance(one, str)), *without_facts(directory)),
            spared=len(spared),
            decisions=campaign.decisions,
        )


def without_facts(directory: Path) -> list[str]:
    """A sentence for every node whose facts do not count."""
    return [
        f"{reason}: the limits of {host} are not known; the next run collects them again"
        for host, reason in facts.damaged(directory).items()
    ]


def places(directory: Path, cells: Iterable[Cell]) -> list[tuple[str, Cell | None]]:
    """Paths below the campaign of all records and failed attempts, sorted, each with the planned cell that it answers."""
    planned = {f"cells/{cell.id}.json": cell for cell in cells}
    records_of_cells = [(name, planned.get(name)) for name in integrity.record_names(directory, "cells")]
    return [*records_of_cells, *((name, None) for name in integrity.record_names(directory, "attempts"))]


def load(directory: Path, name: str, cell: Cell | None) -> StoredRecord | str | None:
    """The record at ``name``; where it does not count the reason, None when it is gone."""
    if name.startswith("attempts/"):
        try:
            return StoredRecord(name, records.read(directory / name))
        except RecordError as error:
            return str(error)
    finding = integrity.look(directory / name, cell)
    if finding.state == integrity.GOOD and finding.data is not None:
        return StoredRecord(name, finding.data)
    return None if finding.state == integrity.ABSENT else finding.reason
