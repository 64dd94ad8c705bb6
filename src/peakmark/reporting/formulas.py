"""Where the theoretical values of a table come from: each formula with its numbers once, and the rows it stands for.

What stands in brackets at the end of several formulas, and what several sources have in common, is told once below them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from peakmark.config.layouts import Sheet
from peakmark.formatting import percent, typeset
from peakmark.judging.naming import Naming
from peakmark.judging.row import Key, Row
from peakmark.tables import presentation

_CORES = re.compile(r"; (?=cores: )")  # before where the number of cores is from, which many sources end with


def build(rows: Sequence[Row], printed: Mapping[Key, Sheet], mark: str = ".") -> dict[str, Any]:
    """Each formula once, with the rows it stands for, called as ``printed`` in a layout; sources are told once."""
    sources: dict[str, int] = {}
    groups: dict[tuple[str, str, str], list[Row]] = {}
    said_below_table = len(presentation.unknown_reasons(rows)) == 1
    for row in rows:
        known = row.limit.value is not None
        if not known and said_below_table:
            continue
        formula = row.limit.formula if known else str(row.limit.reason)
        groups.setdefault((formula, row.limit.kind, row.limit.source if known else ""), []).append(row)
    lines = []
    often = Counter(_split(formula)[1] for formula, _, _ in groups)
    for (formula, kind, source), members in groups.items():
        head, detail = _split(formula)
        shown, cited = (head, [detail]) if detail and often[detail] > 1 else (formula, [])
        cited += _CORES.split(source) if source else []
        numbers = ", ".join(str(sources.setdefault(entry, len(sources) + 1)) for entry in cited)
        which = "all rows" if len(members) == len(rows) else _which(members, printed)
        lines.append(
            {"rows": which, "formula": typeset(shown + _at_clocks(members), mark), "kind": kind, "source": numbers}
        )
    return {"lines": lines, "sources": [f"{number}. {typeset(source, mark)}." for source, number in sources.items()]}


def _split(formula: str) -> tuple[str, str]:
    """A formula without the brackets at its end, and what stands in them; nothing where it ends otherwise."""
    if not formula.endswith(")"):
        return formula, ""
    depth = 0
    for place in range(len(formula) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(formula[place], 0)
        if depth == 0:
            return formula[:place].rstrip(), formula[place + 1 : -1]
    return formula, ""


def _at_clocks(rows: Sequence[Row]) -> str:
    """What the rows reach of this limit at the nominal and at the maximum clock; nothing where no clock is in it."""
    parts = []
    for name in ("nominal", "maximum"):
        shares = sorted(row.shares[name] for row in rows if name in row.shares)
        if shares:
            low, high = percent(shares[0]), percent(shares[-1])
            parts.append(f"{low if low == high else f'{low} to {high}'} % at the {name} clock")
    return f"; {', '.join(parts)}" if parts else ""


def _which(rows: Sequence[Row], printed: Mapping[Key, Sheet]) -> str:
    """The rows of a formula by what they have in common: workloads, blocks where they are few, concurrency."""
    called = [(row, Naming(row.table, sheet=printed.get(row.key))) for row in rows]
    workloads = dict.fromkeys(
        naming.workload(row) + (f" {row.key.variant}" if row.table.variant and row.key.variant else "")
        for row, naming in called
    )
    blocks = dict.fromkeys(naming.block(row) for row, naming in called if row.key.block is not None)
    threads = dict.fromkeys(f"×{row.key.concurrency}" if row.key.concurrency else row.key.word for row in rows)
    return "; ".join(", ".join(part) for part in (workloads, blocks, threads) if part)
