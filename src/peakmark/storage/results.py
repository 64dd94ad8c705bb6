"""All that one campaign holds: the plan, the facts of its nodes, its records and its failed
attempts, read once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from peakmark.cell import Cell
from peakmark.config import inputs
from peakmark.errors import RecordError, UnreadableError
from peakmark.storage import facts, planfile, records
from peakmark.storage.records import Finding


class StoredAttempt(NamedTuple):
    """One execution of a cell: the record's context, measurements, and the codes of what disturbed
    it where another one counts.
    """

    context: Mapping[str, Any]
    measurements: Sequence[Mapping[str, Any]]
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True)
class StoredRecord:
    """A record, the cell that it answers, and where it lies: a POSIX path below the campaign folder."""

    path: str
    data: Mapping[str, Any]
    cell: Cell

    @property
    def ok(self) -> bool:
        """True when the record holds measurements."""
        return bool(self.data["status"] == "ok")

    @property
    def attempts(self) -> Iterator[StoredAttempt]:
        """What counts, then what was disturbed and measured again."""
        context = self.data["context"]
        yield StoredAttempt(context, self.data["measurements"])
        for attempt in self.data.get("disturbed", ()):
            reasons = tuple(attempt["reasons"])
            merged = {**context, **attempt["context"]}
            yield StoredAttempt(merged, attempt["measurements"], reasons)


@dataclass(frozen=True)
class Results:
    """One campaign, ``results/<campaign>/``: its plan, and all that came of it, each read when
    first asked for and then kept.

    plan      all but its cells
    cells     every cell of the plan, in its order
    jobs      cell id -> the job that measures it together with others; a cell with a job to itself
              has no entry
    """

    directory: Path
    plan: Mapping[str, Any]
    cells: tuple[Cell, ...]
    jobs: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, directory: Path) -> Results:
        """The campaign below ``directory``. Errors: RecordError when there is no plan or it is
        damaged.
        """
        plan = planfile.read(directory / "plan.json")
        entries = plan.pop("cells")
        cells = planfile.cells_of(directory / "plan.json", entries)
        names = [entry.get("job") for entry in entries]
        jobs = {cell.id: name for cell, name in zip(cells, names, strict=True) if name}
        return cls(directory, plan, cells, jobs)

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
        """``report:`` of the configuration: title, author, course, logo, date_language,
        decimal_mark.

        Files it names are a bundle's own copies where this is one.
        """
        return inputs.resolve(self.directory, self.config.get("report") or {})

    @property
    def mark(self) -> str:
        """The decimal mark of its report."""
        return str(self.report_config.get("decimal_mark", "."))

    @property
    def newest(self) -> datetime:
        """When the newest record was begun, to the second: the report's date. The epoch where there
        is no record.
        """
        starts = [str(each.data["context"]["started"]) for each in (*self.records, *self.attempts)]
        times = [datetime.fromisoformat(start).astimezone(UTC) for start in starts]
        return max(times, default=datetime.fromtimestamp(0, UTC)).replace(microsecond=0)

    def record_path(self, cell: Cell) -> Path:
        """Where the record of a cell lies, or will."""
        return self.directory / "cells" / f"{cell.id}.json"

    @cached_property
    def findings(self) -> Mapping[str, Finding]:
        """Cell id -> what is known of its record, of every planned cell."""
        return records.survey(self.directory, self.cells)

    @cached_property
    def _found(self) -> dict[str, Finding]:
        """Path of every record below ``cells/`` -> what is known of it."""
        known = {f"cells/{name}.json": finding for name, finding in self.findings.items()}
        names = records.record_names(self.directory, "cells")
        return {
            name: known.get(name) or records.look(self.directory / name, None) for name in names
        }

    @cached_property
    def _attempts(self) -> dict[str, Finding]:
        return {
            name: _attempt(self.directory / name)
            for name in records.record_names(self.directory, "attempts")
        }

    @cached_property
    def records(self) -> tuple[StoredRecord, ...]:
        """Those that count, by path: whole, unchanged, of planned cells with the plan's options."""
        return _good(self._found)

    @cached_property
    def attempts(self) -> tuple[StoredRecord, ...]:
        """The failed attempts, by path."""
        return _good(self._attempts)

    @cached_property
    def refused(self) -> tuple[StoredRecord, ...]:
        """The records that say why a cell is not possible."""
        return tuple(record for record in self.records if not record.ok)

    @property
    def facts(self) -> Mapping[str, Mapping[str, Any]]:
        """Node name -> machine facts, from ``machine/<node>.json``, node2 before node10."""
        return self._facts[0]

    @property
    def damaged_facts(self) -> Mapping[str, str]:
        """Node name -> why its facts do not count."""
        return self._facts[1]

    @property
    def unreadable_facts(self) -> Mapping[str, str]:
        """Node name -> why its facts, which may be whole, cannot be read."""
        return self._facts[2]

    @property
    def unreadable(self) -> Iterator[str]:
        """A sentence on each record and each node's facts that may be whole and cannot be read."""
        for finding in self.findings.values():
            if finding.state == records.CLOSED:
                yield finding.sentence
        yield from self.unreadable_facts.values()

    @cached_property
    def _facts(self) -> tuple[dict[str, dict[str, Any]], dict[str, str], dict[str, str]]:
        return facts.survey(self.directory)

    @cached_property
    def left_out(self) -> tuple[str, ...]:
        """A sentence on every record and every node's facts that do not count."""
        damaged = [
            finding.sentence for finding in (*self._found.values(), *self._attempts.values())
        ]
        without_facts = [
            f"{reason}: the limits of {host} are not known; the next run collects them again"
            for host, reason in self.damaged_facts.items()
        ]
        closed = self.unreadable_facts.values()
        return (*filter(None, damaged), *without_facts, *closed)

    @cached_property
    def missing(self) -> tuple[Cell, ...]:
        """Planned cells without a record, in the order of the plan."""
        present = {record.path for record in self.records}
        return tuple(cell for cell in self.cells if f"cells/{cell.id}.json" not in present)

    @property
    def checksums(self) -> list[tuple[str, str]]:
        """Path below the campaign and SHA-256 of every raw output that the records name."""
        return [
            (f"{record.path.rpartition('/')[0]}/{name}", digest)
            for record in (*self.records, *self.attempts)
            for name, digest in sorted(record.data["raw"].items())
        ]

    @property
    def checksum_list(self) -> str:
        """The checksums as ``sha256sum --check`` reads them in the campaign's folder."""
        return "".join(f"{digest}  {path}\n" for path, digest in self.checksums)

    def facts_for(self, node: str, host: str | None = None) -> Mapping[str, Any]:
        """Facts of the node that a row was measured on: by host, else by node, else the only ones
        there are, else {}.
        """
        only = next(iter(self.facts.values())) if len(self.facts) == 1 else {}
        return self.facts.get(host or node) or self.facts.get(node) or only


def _attempt(path: Path) -> Finding:
    try:
        record = records.read(path)
        records.check_raw(path, record["raw"])
        return Finding(records.GOOD, data=record, cell=Cell.from_json(record["cell"]))
    except UnreadableError as error:
        return Finding(records.CLOSED, error.fact, error.remedy)
    except RecordError as error:
        return Finding(records.DAMAGED, error.fact, error.remedy)


def _good(findings: Mapping[str, Finding]) -> tuple[StoredRecord, ...]:
    return tuple(
        StoredRecord(name, finding.data, finding.cell)
        for name, finding in findings.items()
        if finding.state == records.GOOD and finding.data and finding.cell
    )
