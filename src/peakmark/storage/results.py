"""All that one campaign holds: the plan, the facts of its nodes, its records and its failed attempts, read once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from peakmark.cell import Cell
from peakmark.config import inputs
from peakmark.config.repetitions import Criterion
from peakmark.errors import RecordError
from peakmark.formatting import natural
from peakmark.storage import decisions, facts, integrity, planfile, records
from peakmark.storage.decisions import Decisions


@dataclass(frozen=True)
class StoredRecord:
    """A record and where it lies, as a POSIX path below the campaign folder."""

    path: str
    data: Mapping[str, Any]

    @cached_property
    def cell(self) -> Cell:
        """The cell that the record answers."""
        return Cell.from_json(self.data["cell"])

    @property
    def ok(self) -> bool:
        """True when the record holds measurements."""
        return bool(self.data["status"] == "ok")


@dataclass(frozen=True)
class Results:
    """One campaign, ``results/<campaign>/``: its plan, and all that came of it, each read when first asked for and then kept."""

    directory: Path
    plan: Mapping[str, Any]

    @classmethod
    def read(cls, directory: Path) -> Results:
        """The campaign below ``directory``. Errors: RecordError when there is no plan or it is damaged."""
        return cls(directory, planfile.read(directory / "plan.json"))

    @property
    def name(self) -> str:
        """The campaign's name, as planned."""
        return str(self.plan.get("campaign", self.directory.name))

    @property
    def config(self) -> Mapping[str, Any]:
        """The configuration the plan was made from."""
        config: Mapping[str, Any] = self.plan.get("config", {})
        return config

    @cached_property
    def report_config(self) -> Mapping[str, Any]:
        """``report:`` of the configuration: title, author, course, logo, date_language, decimal_mark, summary.

        Files it names are a bundle's own copies where this is one.
        """
        return inputs.resolve(self.directory, self.config.get("report") or {})

    @property
    def mark(self) -> str:
        """The decimal mark of its report."""
        return str(self.report_config.get("decimal_mark", "."))

    @cached_property
    def planned(self) -> tuple[Cell, ...]:
        """Every cell of the plan, in its order."""
        return tuple(Cell.from_json(cell) for cell in self.plan["cells"])

    @cached_property
    def criteria(self) -> dict[str, Criterion]:
        """Row -> what decides how many of its repetitions are made; rows with a fixed number have no entry."""
        return {row: Criterion(**entry) for row, entry in self.plan.get("adaptive", {}).items()}

    @cached_property
    def decisions(self) -> Decisions:
        """The newest decision for each of those rows, as far as there is one. Errors: RecordError."""
        return decisions.standing(self.directory, self.criteria)

    @cached_property
    def spared(self) -> frozenset[str]:
        """Ids of planned cells that are not needed, as their rows are sure enough without them, and have no record."""
        cells = self.planned if self.criteria else ()
        ids = decisions.spared(cells, self.decisions)
        return frozenset(cell.id for cell in cells if cell.id in ids and not self.record_path(cell).exists())

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """The planned cells without those that were spared."""
        return tuple(cell for cell in self.planned if cell.id not in self.spared)

    def record_path(self, cell: Cell) -> Path:
        """Where the record of a cell lies, or will."""
        return self.directory / "cells" / f"{cell.id}.json"

    @cached_property
    def _loaded(self) -> list[StoredRecord | str | None]:
        return [load(self.directory, *place) for place in places(self.directory, self.cells)]

    def read_so_far(self) -> list[StoredRecord | str | None] | None:
        """What every record came to, see ``load``; None where nobody has asked for records yet."""
        return self._loaded if "_loaded" in vars(self) else None

    @cached_property
    def refused(self) -> tuple[StoredRecord, ...]:
        """The records that say why a cell is not possible."""
        return tuple(record for record in self.records if not record.ok)

    def _stored(self, folder: str) -> tuple[StoredRecord, ...]:
        return tuple(
            record
            for record in self._loaded
            if isinstance(record, StoredRecord) and record.path.startswith(f"{folder}/")
        )

    @cached_property
    def records(self) -> tuple[StoredRecord, ...]:
        """Those that count, by path: whole, unchanged, of planned cells with the plan's options."""
        return self._stored("cells")

    @cached_property
    def attempts(self) -> tuple[StoredRecord, ...]:
        """The failed attempts, by path."""
        return self._stored("attempts")

    @cached_property
    def facts(self) -> Mapping[str, Mapping[str, Any]]:
        """Node name -> machine facts, from ``machine/<node>.json``, node2 before node10."""
        by_host = facts.whole(self.directory)
        return {name: by_host[name] for name in sorted(by_host, key=natural)}

    @cached_property
    def left_out(self) -> tuple[str, ...]:
        """A sentence on every record, and on every node's facts, that does not count."""
        return (*(reason for reason in self._loaded if isinstance(reason, str)), *without_facts(self.directory))

    @cached_property
    def missing(self) -> tuple[Cell, ...]:
        """Planned cells without a record, in the order of the plan."""
        present = {record.path for record in self.records}
        return tuple(cell for cell in self.cells if f"cells/{cell.id}.json" not in present)

    @property
    def checksums(self) -> list[tuple[str, str]]:
        """Path below the campaign and SHA-256 of every raw output that the records name."""
        sums = []
        for record in (*self.records, *self.attempts):
            folder = record.path.rpartition("/")[0]
            sums += [(f"{folder}/{name}", digest) for name, digest in sorted(record.data["raw"].items())]
        return sums

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
