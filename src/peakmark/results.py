"""All that one campaign holds: the plan, the facts of its nodes, its records and its failed attempts, read once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from peakmark import records
from peakmark.adaptive import Decisions
from peakmark.campaign import Campaign
from peakmark.cell import Cell
from peakmark.errors import RecordError


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
    """

    directory: Path
    plan: Mapping[str, Any]
    cells: tuple[Cell, ...]
    records: tuple[StoredRecord, ...]
    attempts: tuple[StoredRecord, ...]
    facts: Mapping[str, Mapping[str, Any]]
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
        """``report:`` of the configuration: title, author, course, logo, language, decimal_mark, summary."""
        section: Mapping[str, Any] = self.config.get("report") or {}
        return section

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

        Errors: RecordError when there is no plan, or a record is damaged.
        """
        campaign = Campaign.open(directory)
        spared = campaign.spared()
        return cls(
            directory=directory,
            plan=campaign.plan,
            cells=tuple(cell for cell in campaign.cells if cell.id not in spared),
            records=tuple(_records(directory, "cells")),
            attempts=tuple(_records(directory, "attempts")),
            facts={path.stem: _facts(path) for path in sorted((directory / "machine").glob("*.json"))},
            spared=len(spared),
            decisions=campaign.decisions,
        )


def _facts(path: Path) -> Mapping[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RecordError(f"the facts in {path} are damaged ({error}): delete the file and report again") from error
    if not isinstance(data, dict):
        raise RecordError(f"{path} does not hold the facts of a machine: delete the file and report again")
    return data


def _records(directory: Path, folder: str) -> list[StoredRecord]:
    """Records below a folder; ``<repetition>.raw/`` beside a record holds what the tool wrote, which may be JSON
    too.
    """
    found = []
    for path in sorted((directory / folder).rglob("*.json")):
        relative = path.relative_to(directory)
        if not any(part.endswith(".raw") or part.startswith(".") for part in relative.parts):
            found.append(StoredRecord(relative.as_posix(), records.read(path)))
    return found
