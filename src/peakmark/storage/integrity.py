"""Which records of a campaign count: whole, unchanged, of exactly the cell that the plan asks for.

Nothing is ever deleted: a record that does not count is set aside below ``set-aside/`` when its
cell is measured anew.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from peakmark import files
from peakmark.catalogue import metrics
from peakmark.cell import Cell
from peakmark.errors import PeakmarkError, RecordError, whole
from peakmark.storage import records

GOOD, ABSENT, DAMAGED, OTHER, FOREIGN = (
    "good",
    "absent",
    "damaged",
    "other options",
    "not asked for",
)
ASIDE = "set-aside"


@dataclass(frozen=True)
class Finding:
    """What is known of a cell's record: why it does not count and what to do, empty unless it is
    there and does not.
    """

    state: str
    reason: str = ""
    remedy: str = ""
    data: Mapping[str, Any] | None = None
    cell: Cell | None = None

    @property
    def sentence(self) -> str:
        """Reason and remedy."""
        return whole(self.reason, self.remedy)


def survey(directory: Path, planned: Sequence[Cell]) -> dict[str, Finding]:
    """Cell id -> what is known of its record, for all cells of a plan."""
    return {cell.id: look(directory / "cells" / f"{cell.id}.json", cell) for cell in planned}


def look(path: Path, cell: Cell | None) -> Finding:
    """The record at ``path``, which ought to answer ``cell``; None for a record that no planned
    cell asks for.
    """
    if not path.exists():
        return Finding(ABSENT)
    try:
        data = records.read(path)
        measured = Cell.from_json(data["cell"])
        check_raw(path, data["raw"])
        check_answer(path, data)
        check_host(path, data)
    except PeakmarkError as error:
        return Finding(DAMAGED, error.fact, error.remedy)
    if tuple(PurePosixPath(f"{measured.id}.json").parts) != path.parts[-5:]:
        return Finding(DAMAGED, f"the record {path} is that of another cell, {measured.id}")
    if cell is None:
        return Finding(
            FOREIGN,
            f"the record {path} is of a cell that the configuration does not ask for",
            data=data,
        )
    if measured.spec() != cell.spec():
        reason = f"the record {path} was measured with other options: {_difference(measured, cell)}"
        return Finding(OTHER, reason, data=data)
    return Finding(GOOD, data=data, cell=cell)


def check_raw(path: Path, raw: Mapping[str, str]) -> None:
    """Compare what a tool printed with the checksums in its record; a file that is gone is no
    contradiction.

    Errors: RecordError that names the file.
    """
    for name, digest in raw.items():
        file = files.below(path.parent, name)
        try:
            content = files.read_bytes(file)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise RecordError(
                f"{file}, the output behind the record {path}, cannot be read: {error.strerror}"
            ) from error
        if hashlib.sha256(content).hexdigest() != digest:
            raise RecordError(
                f"{file}, the output behind the record {path}, is not as it was written"
            )


def check_answer(path: Path, data: Mapping[str, Any]) -> None:
    """Whether a whole record can be the answer to its cell: sealed or not, what no measurement
    gives counts in no table.

    Errors: RecordError that names what does not fit.
    """
    cell = data["cell"]
    if data["status"] == "failed":
        raise RecordError(f"the record {path} is that of a failed attempt", records.AGAIN)
    for measurement in data["measurements"]:
        allowed = metrics(cell["subsystem"], measurement["workload"])
        if allowed.get(measurement["metric"]) != measurement["unit"]:
            expected = " or ".join(f"{metric} in {unit}" for metric, unit in allowed.items())
            raise RecordError(
                f"the record {path} gives {measurement['workload']} as {measurement['metric']} in {measurement['unit']}, which is {expected}",
                records.AGAIN,
            )


def check_host(path: Path, data: Mapping[str, Any]) -> None:
    """Whether a record was made on the node that its cell names, as far as can be told: a node may
    have another name in Slurm than it gives itself, but not that of another node with records of
    the same row.

    Errors: RecordError that names both.
    """
    node, host = str(data["cell"]["node"]), str(data["context"]["host"])
    names = {host, host.partition(".")[0]}
    if node == "any" or names & {node, node.partition(".")[0]}:
        return
    if any("/" not in name and (path.parent.parent / name).is_dir() for name in names):
        raise RecordError(
            f"the record {path} was measured on {host}, another node than its cell names",
            records.AGAIN,
        )


def foreign(directory: Path, cells: Iterable[Cell]) -> list[str]:
    """Paths below the campaign of records that belong to no planned cell."""
    known = {f"cells/{cell.id}.json" for cell in cells}
    return [name for name in record_names(directory, "cells") if name not in known]


def record_names(directory: Path, folder: str) -> list[str]:
    """Sorted paths below the campaign of all records in ``cells`` or ``attempts``.

    ``<repetition>.raw/`` beside a record holds what a tool wrote, which may be JSON too.
    """
    paths = []
    for place, folders, names in os.walk(directory / folder):
        folders[:] = (
            name for name in folders if not name.endswith(".raw") and not name.startswith(".")
        )
        below = Path(place).relative_to(directory).as_posix()
        paths += [
            f"{below}/{name}"
            for name in (*folders, *names)
            if name.endswith(".json") and not name.startswith(".")
        ]
    return sorted(paths, key=lambda name: name.split("/"))


def set_aside(directory: Path, cell: Cell, good: bool = False) -> Path | None:
    """Move a record that does not count, with its raw output, to where it is kept. Returns its new
    path.

    It is looked at once more: one that became good in the meantime stays, unless ``good`` ones are
    to go too.
    """
    path = directory / "cells" / f"{cell.id}.json"
    if look(path, cell).state in ((ABSENT,) if good else (GOOD, ABSENT)):
        return None
    folder = directory / ASIDE / cell.id
    folder.mkdir(parents=True, exist_ok=True)
    number = 0
    while (folder / f"{number}.json").exists() or (folder / f"{number}.raw").exists():
        number += 1
    target = folder / f"{number}.json"
    raw = path.with_suffix(".raw")
    if raw.is_dir() and not raw.is_symlink():
        raw.rename(target.with_suffix(".raw"))
    path.rename(target)
    return target


def _difference(measured: Cell, cell: Cell) -> str:
    before, now = measured.to_json(), cell.to_json()
    before |= before.pop("options")
    now |= now.pop("options")
    values = {key: (repr(before.get(key)), repr(now.get(key))) for key in sorted({*before, *now})}
    return ", ".join(f"{key} {old}, now {new}" for key, (old, new) in values.items() if old != new)
