"""Where the theoretical values of a table come from: each formula with its numbers once, and the
rows it stands for.

The detail that several formulas share, and what several have as their source, is told once below
them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from peakmark.analysis.label_formatter import LabelFormatter
from peakmark.analysis.row import Key, Row
from peakmark.config.layouts import LayoutTable
from peakmark.formatting import percent, typeset
from peakmark.tables import presentation


def build(
    rows: Sequence[Row], printed: Mapping[Key, LayoutTable], mark: str = "."
) -> dict[str, Any]:
    """Each formula once, with the rows it stands for, called as ``printed`` in a layout; sources
    are told once.
    """
    sources: dict[str, int] = {}
    groups: dict[tuple[str, str, str, tuple[str, ...]], list[Row]] = {}
    said_below_table = len(presentation.unknown_reasons(rows)) == 1
    for row in rows:
        known = row.limit.value is not None
        if not known and said_below_table:
            continue
        formula = row.limit.formula if known else str(row.limit.reason)
        sources_of = row.limit.sources if known else ()
        groups.setdefault((formula, row.limit.detail, row.limit.kind, sources_of), []).append(row)
    lines = []
    often = Counter(detail for _, detail, _, _ in groups)
    for (formula, detail, kind, sources_of), members in groups.items():
        apart = often[detail] > 1
        shown = formula if apart or not detail else f"{formula} ({detail})"
        cited = [*([detail] if detail and apart else []), *filter(None, sources_of)]
        numbers = ", ".join(str(sources.setdefault(entry, len(sources) + 1)) for entry in cited)
        which = "all rows" if len(members) == len(rows) else _which(members, printed)
        lines.append(
            {
                "rows": which,
                "formula": typeset(shown + _at_clocks(members), mark),
                "kind": kind,
                "source": numbers,
            }
        )
    return {
        "lines": lines,
        "sources": [f"{number}. {typeset(source, mark)}." for source, number in sources.items()],
    }


def _at_clocks(rows: Sequence[Row]) -> str:
    """What the rows reach of this limit at the nominal and at the maximum clock; nothing where no
    clock is in it.
    """
    parts = []
    for name in ("nominal", "maximum"):
        shares = sorted(row.shares[name] for row in rows if name in row.shares)
        if shares:
            low, high = percent(shares[0]), percent(shares[-1])
            parts.append(f"{low if low == high else f'{low} to {high}'} % at the {name} clock")
    return f"; {', '.join(parts)}" if parts else ""


def _which(rows: Sequence[Row], printed: Mapping[Key, LayoutTable]) -> str:
    """The rows of a formula by what they have in common: workloads, blocks where they are few,
    concurrency.
    """
    called = [(row, LabelFormatter(row.table, layout_table=printed.get(row.key))) for row in rows]
    workloads = dict.fromkeys(
        labels.workload(row)
        + (f" {row.key.variant}" if row.table.variant and row.key.variant else "")
        for row, labels in called
    )
    blocks = dict.fromkeys(labels.block(row) for row, labels in called if row.key.block is not None)
    threads = dict.fromkeys(
        f"×{row.key.concurrency}" if row.key.concurrency else row.key.word for row in rows
    )
    return "; ".join(", ".join(part) for part in (workloads, blocks, threads) if part)
