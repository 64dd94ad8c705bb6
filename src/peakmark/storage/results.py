"""Read a campaign from disk: its plan, the facts of its nodes, its records and its failed attempts."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from peakmark.cell import Cell
from peakmark.config.types import Planned
from peakmark.errors import RecordError
from peakmark.formatting import short_name
from peakmark.storage import planfile, records
from peakmark.storage.record_types import PlanFile, Record, RecordContext
from peakmark.storage.records import Finding
from peakmark.tools.base import Measurement
from peakmark.tools.common import is_too_small

JOBS = "jobs.csv"
"""File of a campaign with number, nodes and seconds of each of its ended jobs, as Slurm counts them."""


class StoredAttempt(NamedTuple):
    """One execution of a cell.

    Attributes:
        context: context of the record.
        measurements: measured values.
        left_out: codes of the disturbances for which this execution does not count; empty if it counts.
    """

    context: RecordContext
    measurements: Sequence[Measurement]
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record, its cell, and its path relative to the campaign's folder, with slashes."""

    path: str
    data: Record
    cell: Cell

    @property
    def ok(self) -> bool:
        """Return whether the record holds measurements."""
        return self.data.status == "ok"

    @property
    def attempts(self) -> Iterator[StoredAttempt]:
        """Yield the execution that counts, then the disturbed ones that were repeated."""
        context = self.data.context
        yield StoredAttempt(context, self.data.measurements)
        for attempt in self.data.disturbed:
            own = msgspec.structs.asdict(attempt.context)
            merged = msgspec.structs.replace(context, **own)
            yield StoredAttempt(merged, attempt.measurements, tuple(attempt.reasons))


def rate_of_one_node(campaign: Path, cell: Cell) -> float | None:
    """Return the lowest op/s that HPL measured on one node of a campaign; None if HPL measured no node alone.

    The slowest node sets the pace of several nodes. Systems of equations that were too small to reach the full
    rate do not count.

    Args:
        campaign: folder of the campaign.
        cell: cell of HPL on several nodes.
    """
    # Rates of HPL over one node count first, otherwise rates of HPL in the CPU table.
    alone = replace(cell, variant="1-nodes").point
    for row in (f"mpi/hpl/{alone}", f"cpu/hpl/DP_none_x{cell.asked}"):
        rates = []
        for path in (campaign / "cells" / row).glob("*/*.json"):  # NODE/REPETITION.json
            with suppress(RecordError, OSError):
                measured = records.read(path).measurements
                rates += [each.value for each in measured if not is_too_small(each.details)]
        if rates:
            return min(rates)
    return None


@dataclass(frozen=True)
class Results:
    """One campaign, ``results/<campaign>/``. Each part is read at its first use and then kept.

    Attributes:
        directory: folder of the campaign.
        plan: the plan.
        cells: every cell of the plan, in the plan's order.
        jobs: cell id -> name of its job, for jobs with several cells.
    """

    directory: Path
    plan: PlanFile
    cells: tuple[Cell, ...]
    jobs: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, directory: Path) -> Results:
        """Read the plan of the campaign below ``directory``.

        Raises:
            RecordError: the plan is missing or damaged.
        """
        plan = planfile.read(directory / "plan.json")
        cells = tuple(map(Cell.of, plan.cells))
        names = [entry.job for entry in plan.cells]
        jobs = {cell.id: name for cell, name in zip(cells, names, strict=True) if name}
        return cls(directory, plan, cells, jobs)

    @property
    def name(self) -> str:
        return self.plan.campaign

    @property
    def config(self) -> Planned:
        return self.plan.config

    def record_path(self, cell: Cell) -> Path:
        """Return the path of a cell's record, which may not exist yet."""
        return self.directory / "cells" / f"{cell.id}.json"

    @cached_property
    def findings(self) -> Mapping[str, Finding]:
        """Return the state of every planned cell's record, by the cell's id."""
        return records.survey(self.directory, self.cells)

    @cached_property
    def records(self) -> tuple[StoredRecord, ...]:
        """Return the records that count, sorted by path.

        A record counts if it is undamaged and belongs to a planned cell with the plan's options.
        """
        counting = []
        for cell in self.cells:
            data = self.findings[cell.id].data
            if data is not None and self.findings[cell.id].state == records.GOOD:
                counting.append(StoredRecord(f"cells/{cell.id}.json", data, cell))
        return tuple(sorted(counting, key=lambda record: record.path.split("/")))

    @cached_property
    def attempts(self) -> tuple[StoredRecord, ...]:
        """Return the undamaged failed attempts, sorted by path (as text: 10.json before 2.json)."""
        attempts = []
        paths = (self.directory / "attempts").rglob("[0-9]*.json")
        for path in sorted(paths, key=lambda path: path.parts):
            with suppress(RecordError):
                data = records.read(path)
                name = path.relative_to(self.directory).as_posix()
                attempts.append(StoredRecord(name, data, Cell.of(data.cell)))
        return tuple(attempts)

    @cached_property
    def refused(self) -> tuple[StoredRecord, ...]:
        """Return the records of cells that are not possible, which hold the reason."""
        return tuple(record for record in self.records if not record.ok)

    @property
    def facts(self) -> Mapping[str, Mapping[str, Any]]:
        """Return host -> its machine facts, node2 before node10."""
        return self._facts[0]

    @property
    def damaged_facts(self) -> Mapping[str, str]:
        """Return host -> why its facts are damaged."""
        return self._facts[1]

    @cached_property
    def _facts(self) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
        """Return host -> its facts, and host -> why its facts are damaged."""
        return records.survey_facts(self.directory)

    @cached_property
    def left_out(self) -> tuple[str, ...]:
        """Return a sentence for every record and every node's facts that do not count."""
        sentences = []
        for finding in self.findings.values():
            if finding.sentence:
                sentences.append(finding.sentence)
        for host, reason in self.damaged_facts.items():
            sentences.append(
                f"{reason}: the limits of {host} are not known; the next run collects the facts again"
            )
        return tuple(sentences)

    @cached_property
    def missing(self) -> tuple[Cell, ...]:
        """Return the planned cells without a record, in the order of the plan."""
        states = self.findings
        return tuple(cell for cell in self.cells if states[cell.id].state != records.GOOD)

    @cached_property
    def node_seconds(self) -> list[int]:
        """Return nodes x seconds of each ended job, as ``JOBS`` has them from Slurm."""
        counted = []
        with suppress(OSError):
            text = (self.directory / JOBS).read_text(encoding="utf-8", errors="replace")
            # The last line may be cut off: it then does not end.
            for nodes, seconds in re.findall(r"(?m)^\d+,(\d+),(\d+)\n", text):
                counted.append(int(nodes) * int(seconds))
        return counted

    @cached_property
    def checksum_list(self) -> str:
        """Return a line with the SHA-256 and the path of each file that holds measurements.

        These files are the plan (which holds the configuration), all records, and their raw outputs.
        ``sha256sum --check`` reads these lines in the campaign's folder.
        """
        lines, paths = "", ["plan.json"]
        for record in (*self.records, *self.attempts):
            paths.append(record.path)
            folder = record.path.rpartition("/")[0]
            for name, digest in record.data.raw.items():
                lines += f"{digest}  {folder}/{name}\n"
        for path in paths:
            digest = hashlib.sha256((self.directory / path).read_bytes()).hexdigest()
            lines += f"{digest}  {path}\n"
        return lines

    def facts_for(self, node: str, host: str | None = None) -> Mapping[str, Any]:
        """Return the facts of the node that measured a row.

        The result is the first of these that exists: the facts of ``host``; of the host whose name
        in Slurm is ``node`` without its domain; of a host named ``node``, which may be another
        node; and of the only machine of the campaign. If none exists, the result is empty.
        """
        only: Mapping[str, Any] = {}
        if len(self.facts) == 1:
            [only] = self.facts.values()
        found = self.facts.get(host or "") or self._facts_by_node.get(short_name(node))
        return found or self.facts.get(node) or only

    @cached_property
    def _facts_by_node(self) -> dict[str, Any]:
        return {records.node_name(host, facts): facts for host, facts in self.facts.items()}
