"""Records -> one long table: a line for each value, and a line for each cell that could not be
measured.

Everything that is reported can be rebuilt from this table without measuring again. Values are in SI
base units.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pandas as pd

from peakmark import documents, output
from peakmark.storage.results import Results, StoredRecord

_CELL = (
    "subsystem",
    "instrument",
    "workload",
    "variant",
    "block",
    "concurrency",
    "node",
    "repetition",
)
_MEASUREMENT = ("workload", "variant", "block", "concurrency", "metric", "value", "unit")
_CONTEXT = ("host", "server_host", "started", "job_id")
_NUMBERS = {"block": "Int64", "concurrency": "Int64", "repetition": "Int64", "value": "Float64"}
COLUMNS = {
    name: _NUMBERS.get(name, "str")
    for name in (
        "campaign", "subsystem", "instrument", "workload", "variant", "block", "concurrency", "node", "host", "server_host",
        "repetition", "metric", "value", "unit", "started", "status", "reason", "warnings", "details", "record",
        "tool_version", "job_id", "left_out",
    )
}  # fmt: skip


def build(results: Results) -> pd.DataFrame:
    """Write the long table as ``tables/measurements.csv`` and ``.parquet`` below the campaign, and
    return it: one line per value, in the order of the records' paths; columns and types as in
    ``COLUMNS``.

    A cell that is unavailable and an attempt that failed have one line each, without metric and
    value, with the reason. ``left_out`` has the codes of what disturbed a value that was measured
    again. ``block`` is in bytes and empty where there is none; ``record`` is the
    path below the campaign. A record that does not count (damaged, edited, of other options) is
    left out and named on standard error.
    """
    lines = [
        line
        for record in (*results.records, *results.attempts)
        for line in _lines(results.name, record)
    ]
    for reason in results.left_out:
        output.tell(f"left out: {reason}")
    frame = pd.DataFrame(lines, columns=list(COLUMNS)).astype(dict(COLUMNS))
    folder = documents.own_folder(results.directory, "tables")
    frame.to_csv(folder / "measurements.csv", index=False, lineterminator="\n")
    frame.to_parquet(folder / "measurements.parquet", index=False)
    return frame


def _lines(campaign: str, record: StoredRecord) -> Iterator[dict[str, Any]]:
    data = record.data
    common = {
        "campaign": campaign,
        **{name: getattr(record.cell, name) for name in _CELL},
        "status": data["status"],
        "reason": data.get("reason"),
        "warnings": "; ".join(data.get("warnings", ())),
        "details": "{}",
        "record": record.path,
        "tool_version": (data["context"].get("tool") or {}).get("version"),
    }
    for attempt in record.attempts:
        started = {name: attempt.context.get(name) for name in _CONTEXT}
        line = {**common, **started, "left_out": " ".join(attempt.left_out)}
        if not record.ok or not attempt.measurements:
            yield line
            continue
        for measurement in attempt.measurements:
            details = json.dumps(measurement["details"], sort_keys=True, ensure_ascii=False)
            yield line | {name: measurement[name] for name in _MEASUREMENT} | {"details": details}
