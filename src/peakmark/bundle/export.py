"""Print the rows of a campaign for other programs: ReFrame, OpenMetrics, and JSON lines."""

from __future__ import annotations

import json
import pprint
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from peakmark import tables
from peakmark.analysis import Analysis
from peakmark.analysis.row import Row, Series
from peakmark.config.types import CampaignName, Subsystem, TableName, Unit
from peakmark.formatting import format_size

TOLERANCE = 0.03
"""A threshold is at least this share of the median away from it, as two runs differ by that."""
METRICS: dict[Unit, str] = {
    "op/s": "operations_per_second",
    "B/s": "bytes_per_second",
    "bit/s": "bits_per_second",
    "s": "seconds",
    "1/s": "accesses_per_second",
}
"""Unit -> unit in a name of OpenMetrics."""
RATIO = "peakmark_efficiency_ratio"
LABELS = (
    "campaign", "table", "instrument", "workload", "variant", "block", "concurrency", "word",
    "node", "doubt",
)  # fmt: skip


class ExportRow(msgspec.Struct):
    """What one program measured in one row; values in SI units.

    Attributes:
        campaign: Name of the campaign.
        table: Table that has the row.
        subsystem: Part of the node that was measured.
        instrument: Program that measured.
        workload: Workload.
        variant: Working set, engine or mode; empty where there is no choice.
        block: Block, record or message in bytes; null where there is none.
        concurrency: Threads, processes or streams.
        word: Word of the configuration that this number stands for, such as cores; empty for a
            number.
        node: Node that the plan names, or any.
        hosts: Hosts that measured.
        unit: SI unit of median, low, high and limit.
        better: Whether a higher or a lower value is better.
        n: Repetitions.
        median: Median of the repetitions.
        low: Lower end of the interval of the median.
        high: Upper end of the interval of the median.
        level: Level of that interval, as a share of 1; null for one repetition.
        limit: Theoretical limit; null where it is unknown.
        efficiency: Share of the limit that was reached; null where it is unknown.
        doubt: Heaviest severity of the warnings; null without one.
        warnings: Codes of the warnings and notes.
    """

    campaign: CampaignName
    table: TableName
    subsystem: Subsystem
    instrument: str
    workload: str
    variant: str
    block: int | None
    concurrency: int
    word: str
    node: str
    hosts: list[str]
    unit: Unit
    better: Literal["higher", "lower"]
    n: int
    median: float
    low: float
    high: float
    level: float | None
    limit: float | None
    efficiency: float | None
    doubt: Literal["wrong", "unsure"] | None
    warnings: list[str]

    @property
    def name(self) -> str:
        """An identifier: ``fio_disk_throughput_RS_psync_1MiB_x2``."""
        size = format_size(self.block).replace(" ", "") if self.block else ""
        parts = (self.instrument, self.table, self.workload, self.variant, size)
        named = "_".join([*filter(None, parts), f"x{self.word or self.concurrency}"])
        return named.replace("-", "_")

    @property
    def worst_value(self) -> float:
        """What a healthy node still reaches: the worse end of the interval, at least
        ``TOLERANCE`` from the median.
        """
        if self.better == "higher":
            return min(self.low, self.median * (1 - TOLERANCE))
        return max(self.high, self.median * (1 + TOLERANCE))


def rows(analysis: Analysis) -> Iterator[ExportRow]:
    """Yield the measured rows of all tables, by each program."""
    for table_rows in analysis.rows.values():
        for row in table_rows:
            for instrument, series in row.series.items():
                yield _export_row(analysis.results.name, row, instrument, series)


def _export_row(campaign: str, row: Row, instrument: str, series: Series) -> ExportRow:
    line = tables.summary_line(row, instrument)
    warnings = row.warnings_of(instrument)
    values = line | {
        "campaign": campaign,
        "subsystem": row.table.subsystem,
        "word": row.key.word,
        "hosts": series.hosts,
        "better": "lower" if row.table.lower_is_better else "higher",
        "low": line["median_low"],
        "high": line["median_high"],
        "limit": line["theoretical"],
        "doubt": line["doubt"] or None,
        "warnings": list(dict.fromkeys(warning.code for warning in warnings)),
    }
    return msgspec.convert(values, ExportRow)


def json_lines(analysis: Analysis) -> str:
    """Return an ``ExportRow`` as an object of JSON in each line."""
    lines = (msgspec.json.encode(row).decode() for row in rows(analysis))
    return "".join(f"{line}\n" for line in lines)


def reframe(analysis: Analysis) -> str:
    """The ``reference`` of a test of ReFrame: value, thresholds as shares of it, and unit.

    A system is ``*``, or the node that was measured by itself. Rows that are wrong are left out.

    Source: ReFrame, reference guide, RegressionTest.reference.
    """
    references: dict[str, dict[str, tuple[float, float | None, float | None, str]]] = {}
    for row in rows(analysis):
        if row.doubt == "wrong":
            continue
        system = "*" if row.node == "any" else row.node
        share = round(row.worst_value / row.median - 1, 4)
        lower, upper = (share, None) if row.better == "higher" else (None, share)
        references.setdefault(system, {})[row.name] = (row.median, lower, upper, row.unit)
    return f"reference = {pprint.pformat(references, width=100, sort_dicts=False)}\n"


def openmetrics(analysis: Analysis) -> str:
    """Gauges in the text format of OpenMetrics 1.0: median, ends of its interval, and efficiency.

    Source: OpenMetrics 1.0, section Text format.
    """
    families: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row in rows(analysis):
        labels = {name: getattr(row, name) for name in LABELS}
        unit = METRICS[row.unit]
        metric = f"peakmark_{row.table}_{unit}"
        for statistic in ("median", "low", "high"):
            line = _sample(metric, labels | {"statistic": statistic}, getattr(row, statistic))
            families[metric, unit].append(line)
        if row.efficiency is not None:
            line = _sample(RATIO, labels, row.efficiency)
            families[RATIO, "ratio"].append(line)
    lines = []
    for (metric, unit), samples in families.items():
        lines += [f"# TYPE {metric} gauge", f"# UNIT {metric} {unit}", *samples]
    return "\n".join([*lines, "# EOF"]) + "\n"


def _sample(metric: str, labels: dict[str, Any], value: float) -> str:
    """One line; OpenMetrics quotes texts as JSON does."""
    texts = {name: "" if label is None else str(label) for name, label in labels.items()}
    pairs = ",".join(
        f"{name}={json.dumps(text, ensure_ascii=False)}" for name, text in texts.items()
    )
    return f"{metric}{{{pairs}}} {value!r}"
