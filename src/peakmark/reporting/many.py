"""The parts of a report on many nodes: points instead of rows, what nodes have alike once, and what differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from peakmark.catalogue.tables import Table, subsystem_tables
from peakmark.formatting import listed
from peakmark.judging import fleet, fleet_text
from peakmark.judging.drawn import Drawn, figures_of
from peakmark.judging.row import Row
from peakmark.reporting import formulas
from peakmark.storage.results import Results
from peakmark.tables import nodes, page_tables, presentation

NAMED = 3
Part = dict[str, Any]
Draw = Callable[[Drawn], Part | None]


def parts(results: Results, table: Table, rows: Sequence[Row], draw: Draw, mark: str, every_node: bool) -> list[Part]:
    """The part of one table: a line for each point; with ``every_node`` another with a line for each row.

    draw  which figure -> as the document has it, None where it was not drawn
    """
    if not fleet.spots(rows):
        return []
    first = table is subsystem_tables(table.subsystem)[0]
    grid, members = nodes.grid(results, rows[0].table, rows, mark)
    typical = fleet.typical(rows)
    sources = formulas.build(typical, {}, mark)
    if sources["lines"]:
        sources["sources"] = [f"Of {typical[0].key.node}, the node nearest to the median of all.", *sources["sources"]]
    parts = [_part(first, grid.title, page_tables.table(grid, members, mark))]
    parts[0]["findings"] = [vars(finding) for finding in fleet_text.of(rows, mark)]
    parts[0]["figures"] = [figure for drawn in figures_of(table, rows) if (figure := draw(drawn)) is not None]
    parts[0]["formulas"] = sources
    if every_node:
        each = presentation.grid(results, rows[0].table, rows, mark)
        title = f"{each.title}: every node"
        parts.append(_part(False, title, page_tables.table(replace(each, title=title), rows, mark)))
    return parts


def _part(first: bool, title: str, table: Mapping[str, Any]) -> Part:
    empty = {"findings": [], "figures": [], "formulas": {"lines": [], "sources": []}}
    return {"first": first, "title": title, "name": str(table["title"]).rstrip("."), "table": table, **empty}


def alike(machines: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The facts of many nodes as those of one: what all have alike, group by group, and what differs, with the nodes."""
    if len(machines) <= fleet.MANY:
        return [dict(facts) for facts in machines]
    values: dict[tuple[str, str], dict[str, list[str]]] = {}
    for machine in machines:
        for group in machine["groups"]:
            for what, value in group["items"]:
                values.setdefault((group["title"], what), {}).setdefault(value, []).append(str(machine["name"]))
    groups: dict[str, list[list[str]]] = {}
    differing = []
    for (title, what), by_value in values.items():
        if len(by_value) == 1 and len(next(iter(by_value.values()))) == len(machines):
            groups.setdefault(title, []).append([what, next(iter(by_value))])
        else:
            differing.append([what, _differing(by_value)])
    if differing:
        groups["What differs between the nodes"] = differing
    name = f"{len(machines)} nodes: {machines[0]['name']} to {machines[-1]['name']}"
    return [{"name": name, "groups": [{"title": title, "items": items} for title, items in groups.items()]}]


def _differing(by_value: Mapping[str, Sequence[str]]) -> str:
    """``A (60 nodes); B (node3 and node9)``; of more than four values the most frequent ones and how many others there are."""
    ordered = sorted(by_value.items(), key=lambda pair: -len(pair[1]))
    shown = [f"{value} ({who(names)})" for value, names in ordered[:4]]
    more = f"; {len(ordered) - 4} other values" if len(ordered) > 4 else ""
    return "; ".join(shown) + more


def who(names: Sequence[str]) -> str:
    """``node3 and node9``, or how many nodes."""
    return listed(names) if len(names) <= NAMED else f"{len(names)} nodes"


def joined(lines: Iterable[tuple[str, Sequence[str]]]) -> list[list[str]]:
    """Lines of node and texts, those with the same texts as one with their nodes."""
    by_text: dict[tuple[str, ...], list[str]] = {}
    for name, texts in lines:
        by_text.setdefault(tuple(texts), []).append(name)
    counts = Counter({texts: len(names) for texts, names in by_text.items()})
    return [[who(list(dict.fromkeys(by_text[texts]))), *texts] for texts in counts]
