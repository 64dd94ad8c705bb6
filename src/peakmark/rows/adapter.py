"""Temporary: classes, verdicts on nodes, and findings, from the objects of ``peakmark.analysis``."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd

from peakmark.analysis import Analysis, fleet
from peakmark.rows import schema


def add_fleet(rows: pd.DataFrame, analysis: Analysis) -> pd.DataFrame:
    """Add the class of each node, and where nodes are slow."""
    lines = {}
    for name, table in analysis.rows.items():
        for row in table:
            slow = row.slow
            lines[name, *row.key] = {
                "node_class": row.node_class,
                "is_judged": fleet.is_judged(row),
                "is_slow": slow is not None,
                "behind": slow and slow.behind,
                "behind_low": slow and slow.low,
                "behind_high": slow and slow.high,
                "behind_p": slow and slow.p,
            }
    found = []
    for row in schema.lines(rows):
        key = (row.table, row.node, row.workload, row.variant, row.block_bytes, row.concurrency)
        line = lines.get((*key, row.concurrency_word), {})
        found.append(line if row.is_own else {"node_class": line.get("node_class", "")})
    return rows.assign(**pd.DataFrame(found, index=rows.index).to_dict("series"))  # type: ignore[arg-type]


def findings(analysis: Analysis) -> pd.DataFrame:
    """Return the sentences on each table."""
    lines = []
    for name, rows in analysis.rows.items():
        for each in analysis.conclusions(rows):
            values = json.dumps(schema.to_json(each.message)["values"], ensure_ascii=False)
            lines.append({
                "table": name, "topic": each.heading, "code": each.message.code,
                "case": each.message.case, "values": values, "points": "[]", "text": each.text,
            })  # fmt: skip
    return schema.typed("findings", pd.DataFrame(lines))


def nodes(analysis: Analysis) -> pd.DataFrame:
    """Return the nodes with their classes."""
    lines = []
    for each in analysis.classes:
        for node in each.nodes:
            facts = analysis.results.facts_for(node)
            own = fleet.equipment(facts)
            cpu, memory = facts.get("cpu") or {}, facts.get("memory") or {}
            lines.append({
                "node": node, "class": each.name, **own._asdict(), "sockets": cpu.get("sockets"),
                "cores": cpu.get("cores"), "threads": cpu.get("threads"),
                "memory_bytes": memory.get("total"),
            })  # fmt: skip
    return schema.typed("nodes", pd.DataFrame(lines))


def fleet_of(analysis: Analysis) -> pd.DataFrame:
    """Return slow nodes, switches and links."""
    lines: list[dict[str, Any]] = []
    for node, why in analysis.slow:
        lines.append({
            "kind": "node", "name": node.node, "subsystem": node.subsystem,
            "behind": node.behind, "behind_low": node.low, "behind_high": node.high,
            "rows": len(node.rows), "judged": node.judged, "confirmed": True,
            "reasons": json.dumps([schema.to_json(each) for each in why], ensure_ascii=False),
        })  # fmt: skip
    for each in analysis.link_maps:
        row = each.rows[0]
        for part in each.slow:
            lines.append({
                "kind": part.kind, "name": part.name, "subsystem": row.table.subsystem,
                "table": row.table.name, "point": place(row), "behind": part.behind,
                "behind_low": part.low, "behind_high": part.high, "pairs": part.pairs,
                "confirmed": part.confirmed,
            })  # fmt: skip
    return schema.typed("fleet", pd.DataFrame(lines))


def place(row: Any) -> str:
    """Return the point of a row without its node."""
    parts = [row.table.name, "", *row.key[1:]]
    return "/".join("" if part is None else str(part) for part in parts)
