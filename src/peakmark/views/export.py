"""Print the measured rows of a campaign for other programs: OpenMetrics, JSON lines."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from peakmark.rows import schema
from peakmark.rows.schema import CampaignFrames
from peakmark.tools.tables import BY_NAME

METRICS = {
    "op/s": "operations_per_second",
    "B/s": "bytes_per_second",
    "bit/s": "bits_per_second",
    "s": "seconds",
    "1/s": "accesses_per_second",
}
"""SI unit -> unit in the name of a metric of OpenMetrics."""
RATIO = "peakmark_efficiency_ratio"
LABELS = {
    "table": "table",
    "instrument": "instrument",
    "workload": "workload",
    "variant": "variant",
    "block": "block_bytes",
    "concurrency": "concurrency",
    "word": "concurrency_word",
    "node": "node",
    "severity": "severity",
}
"""Label of a sample of OpenMetrics -> column of ``rows``."""
STATISTICS = {"median": "value", "low": "low", "high": "high"}
"""Statistic of a sample -> column of ``rows``."""


def measured(frames: CampaignFrames) -> Iterator[Any]:
    """Yield the lines of ``rows`` that have a value."""
    yield from schema.lines(frames.rows[frames.rows["n"] > 0])


def json_lines(frames: CampaignFrames) -> str:
    """Return each measured row as an object with the columns of ``rows.csv``."""
    holds_json = {column.name for column in schema.ROWS if column.kind == "json"}
    lines = []
    for row in measured(frames):
        values = row._asdict()
        del values["Index"]
        for name in holds_json:
            values[name] = json.loads(values[name] or "null")
        lines.append(f"{json.dumps(values, ensure_ascii=False)}\n")
    return "".join(lines)


def openmetrics(frames: CampaignFrames) -> str:
    """Return medians, the ends of their intervals, and efficiencies as gauges of OpenMetrics 1.0.

    Source: OpenMetrics 1.0, section Text format.
    """
    families: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row in measured(frames):
        labels = {"campaign": frames.campaign["name"]}
        labels |= {label: getattr(row, column) for label, column in LABELS.items()}
        metric, unit = metric_of(row.table), METRICS[row.unit]
        for statistic, column in STATISTICS.items():
            line = sample(metric, labels | {"statistic": statistic}, getattr(row, column))
            families[metric, unit].append(line)
        if row.efficiency is not None:
            families[RATIO, "ratio"].append(sample(RATIO, labels, row.efficiency))
    lines = []
    for (metric, unit), samples in families.items():
        lines += [f"# TYPE {metric} gauge", f"# UNIT {metric} {unit}", *samples]
    return "\n".join([*lines, "# EOF"]) + "\n"


def metric_of(table: str) -> str:
    """Return the name of the metric that has the values of a table. docs/grafana.json uses these names."""
    return f"peakmark_{table}_{METRICS[BY_NAME[table].unit]}"


def sample(metric: str, labels: dict[str, Any], value: float) -> str:
    """Return the line of a sample; OpenMetrics quotes texts as JSON does."""
    pairs = []
    for name, label in labels.items():
        text = "" if label is None else str(label)
        pairs.append(f"{name}={json.dumps(text, ensure_ascii=False)}")
    return f"{metric}{{{','.join(pairs)}}} {value!r}"
