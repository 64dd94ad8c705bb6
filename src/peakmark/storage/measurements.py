"""Records -> one long table: a line for each value, and a line for each cell that could not be measured.

Everything that is reported can be rebuilt from this table without measuring again. Values are in SI base units.
"""

from __future__ import annotations

import functools
import json
import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pandas as pd

from peakmark import output
from peakmark.cell import Cell
from peakmark.storage.results import Results, StoredRecord, load, places, without_facts

CHUNK = 1000
"""Records that one process reads at a time."""

COLUMNS: dict[str, str] = {
    "campaign": "str",
    "subsystem": "str",
    "instrument": "str",
    "workload": "str",
    "variant": "str",
    "block": "Int64",
    "concurrency": "Int64",
    "node": "str",
    "host": "str",
    "server_host": "str",
    "repetition": "Int64",
    "metric": "str",
    "value": "Float64",
    "unit": "str",
    "started": "str",
    "status": "str",
    "reason": "str",
    "warnings": "str",
    "details": "str",
    "record": "str",
    "tool_version": "str",
    "job_id": "str",
}


Part = tuple[list[dict[str, Any]], list[str]]
"""Lines of some records, and the reasons of those that do not count."""


def build(results: Results) -> pd.DataFrame:
    """Write the long table as ``tables/measurements.csv`` and ``.parquet`` below the campaign, and return it: one line per
    value, in the order of the records' paths; columns and types as in ``COLUMNS``.

    A cell that is unavailable and an attempt that failed have one line each, without metric and value, with the reason.
    ``block`` is in bytes and empty where there is none; ``record`` is the path below the campaign. A record that does not
    count (damaged, edited, of other options) is left out and named on standard error.
    """
    lines: list[dict[str, Any]] = []
    for more, left_out in _parts(results):
        lines += more
        for reason in left_out:
            output.tell(f"left out: {reason}")
    for reason in without_facts(results.directory):
        output.tell(f"left out: {reason}")
    frame = pd.DataFrame(lines, columns=list(COLUMNS)).astype(dict(COLUMNS))
    folder = results.directory / "tables"
    folder.mkdir(parents=True, exist_ok=True)
    frame.to_csv(folder / "measurements.csv", index=False, lineterminator="\n")
    frame.to_parquet(folder / "measurements.parquet", index=False)
    return frame


def _parts(results: Results) -> Iterator[Part]:
    known = results.read_so_far()
    if known is not None:
        yield _lines_of(results.name, known)
        return
    where = places(results.directory, results.cells)
    parts = [where[start : start + CHUNK] for start in range(0, len(where), CHUNK)]
    # Never all records at once in memory, and where they are many, read by every CPU that may be used.
    workers = min(len(os.sched_getaffinity(0)), len(parts))
    with ProcessPoolExecutor(workers, initializer=_deaf) if workers > 1 else nullcontext() as pool:
        work = functools.partial(_read, results.directory, results.name)
        yield from pool.map(work, parts) if pool else map(work, parts)


def _deaf() -> None:
    """Ctrl-C reaches every process of the terminal: the first one says so and ends the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _read(directory: Path, campaign: str, part: Sequence[tuple[str, Cell | None]]) -> Part:
    return _lines_of(campaign, [load(directory, *place) for place in part])


def _lines_of(campaign: str, records: Sequence[StoredRecord | str | None]) -> Part:
    lines = [line for record in records if isinstance(record, StoredRecord) for line in _lines(campaign, record)]
    return lines, [reason for reason in records if isinstance(reason, str)]


def _lines(campaign: str, record: StoredRecord) -> Iterator[dict[str, Any]]:
    data = record.data
    cell = record.cell
    context = data.get("context", {})
    common = {
        "campaign": campaign,
        "subsystem": cell.subsystem,
        "instrument": cell.instrument,
        "workload": cell.workload,
        "variant": cell.variant,
        "block": cell.block,
        "concurrency": cell.concurrency,
        "node": cell.node,
        "host": context.get("host"),
        "server_host": context.get("server_host"),
        "repetition": cell.repetition,
        "started": context.get("started"),
        "status": data["status"],
        "reason": data.get("reason"),
        "warnings": "; ".join(data.get("warnings", ())),
        "details": "{}",
        "record": record.path,
        "tool_version": (context.get("tool") or {}).get("version"),
        "job_id": context.get("job_id"),
    }
    if not record.ok or not data["measurements"]:
        yield common
        return
    for measurement in data["measurements"]:
        yield common | {
            "workload": measurement["workload"],
            "variant": measurement["variant"],
            "block": measurement["block"],
            "concurrency": measurement["concurrency"],
            "metric": measurement["metric"],
            "value": measurement["value"],
            "unit": measurement["unit"],
            "details": json.dumps(measurement["details"], sort_keys=True, ensure_ascii=False),
        }
