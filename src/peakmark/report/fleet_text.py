"""What a report says of many nodes: their classes, which are slow in what, by how much and why, and
what was not judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from peakmark.analysis import Analysis, fleet, suspects
from peakmark.analysis.fleet import SlowNode
from peakmark.analysis.label_formatter import LabelFormatter
from peakmark.analysis.row import Row
from peakmark.catalogue import SUBSYSTEMS
from peakmark.formatting import counted, percent, typeset
from peakmark.messages import Message, message
from peakmark.tables.presentation import changes

LEAST_P = 1e-4
"""Smaller ones are only called so."""
SENTENCES = 5
"""So many stand on page one; the others are named."""
HEADINGS = ("Node", "Resource", "Row", "Value", "Class", "Behind (%)", "95 % interval", "p")
LINES = 200
"""So many slow rows stand in the report; tables/nodes.csv has all."""


def sentences(analysis: Analysis) -> list[str]:
    """The paragraphs of page one; what slow means stands last."""
    if not analysis.has_several_nodes:
        return []
    slow: dict[tuple[str, str], list[SlowNode]] = {}
    for node, why in analysis.slow:
        reason = " ".join(each.full_sentence for each in why)
        slow.setdefault((node.subsystem, reason), []).append(node)
    found = [" ".join(each.full_sentence for each in _classes(analysis))]
    for (_, reason), nodes in list(slow.items())[:SENTENCES]:
        found.append(f"{_slow(nodes).full_sentence} {reason}".strip())
    rest = [node for nodes in list(slow.values())[SENTENCES:] for node in nodes]
    if rest:
        names = [f"{node.node} ({SUBSYSTEMS[node.subsystem].title})" for node in rest]
        named = counted(names, 2 * fleet.NAMED)
        found.append(message("also-slow", nodes=named).full_sentence)
    judged = fleet.judged_nodes(analysis.rows)
    if judged and not slow:
        found.append(message("none-slow", nodes=len(judged)).full_sentence)
    found += [each.full_sentence for each in analysis.checks]
    gaps = list(fleet.unjudged(analysis.rows, analysis.classes))
    if gaps:
        found.append(" ".join(each.full_sentence for each in gaps))
    found.append(message("slow-means", beyond=fleet.DELTA).full_sentence)
    return list(map(typeset, found))


def _classes(analysis: Analysis) -> Iterator[Message]:
    for each in analysis.classes:
        kernel = each.equipment.kernel and f"kernel {each.equipment.kernel}"
        what = tuple(filter(None, each.equipment._replace(kernel=kernel)))
        yield message("fleet-class", case="named" if each.name else "", name=each.name,
                      nodes=len(each.nodes), what=what or ("equipment unknown",))  # fmt: skip


def _slow(nodes: Sequence[SlowNode]) -> Message:
    """Nodes that are slow in one resource, of which the reasons read alike."""
    return message(
        "slow-node",
        case="" if len(nodes) == 1 else "several",
        node=counted([node.node for node in nodes], fleet.NAMED),
        resource=SUBSYSTEMS[nodes[0].subsystem].named,
        behind=nodes[0].behind,
        low=min(node.low for node in nodes),
        high=max(node.high for node in nodes),
        rows=len(nodes[0].rows),
        of=nodes[0].judged,
    )


def build(analysis: Analysis) -> dict[str, Any]:
    """What programs read of the nodes (``peakmark fleet``), and the table of slow rows."""
    lines = [_line(row) for node, _ in analysis.slow for row in node.rows]
    not_confirmed = suspects.not_confirmed(analysis.suspects)
    remark = message("slow-lines", shown=LINES, rows=len(lines))
    return {
        "classes": [
            {"name": each.name, "nodes": each.nodes, "equipment": each.equipment}
            for each in analysis.classes
        ],
        "slow": [
            {
                "node": node.node,
                "resource": node.subsystem,
                "behind": node.behind,
                "low": node.low,
                "high": node.high,
                "rows": len(node.rows),
                "judged": node.judged,
                "not_confirmed": node.node in not_confirmed,
                "why": [each.full_sentence for each in why],
            }
            for node, why in analysis.slow
        ],
        "headings": HEADINGS,
        "lines": lines[:LINES],
        "breaks": changes([line[:2] for line in lines[:LINES]]),
        "remark": remark.full_sentence if len(lines) > LINES else "",
    }


def _line(row: Row) -> list[str]:
    labels, slow = LabelFormatter.of(row), row.slow
    if slow is None:
        return []
    factor = 1 + slow.behind if row.table.lower_is_better else 1 - slow.behind
    return [
        row.key.node,
        SUBSYSTEMS[row.table.subsystem].title,
        labels.point(row, variant=True, node=False),
        labels.quantity(row.measured.centre),
        labels.quantity(row.measured.summary.median / factor),
        percent(slow.behind),
        f"{percent(slow.low)} to {percent(slow.high)}",
        f"{slow.p:.1g}" if slow.p >= LEAST_P else f"< {LEAST_P:g}",
    ]
