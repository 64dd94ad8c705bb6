"""What nodes have alike, told once, and what differs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from peakmark.analysis import fleet
from peakmark.formatting import listed

NAMED = 3


def alike(machines: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The facts of many nodes as those of one: what all have alike, group by group, and what
    differs, with the nodes.
    """
    if len(machines) <= fleet.MANY:
        return [dict(facts) for facts in machines]
    values: dict[tuple[str, str], dict[str, list[str]]] = {}
    for machine in machines:
        for group in machine["groups"]:
            for what, value in group["items"]:
                values.setdefault((group["title"], what), {}).setdefault(value, []).append(
                    str(machine["name"])
                )
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
    return [
        {
            "name": name,
            "groups": [{"title": title, "items": items} for title, items in groups.items()],
        }
    ]


def _differing(by_value: Mapping[str, Sequence[str]]) -> str:
    """``A (60 nodes); B (node3 and node9)``; of more than four values the most frequent ones and
    how many others there are.
    """
    ordered = sorted(by_value.items(), key=lambda pair: -len(pair[1]))
    shown = [f"{value} ({who(names)})" for value, names in ordered[:4]]
    more = f"; {len(ordered) - 4} other values" if len(ordered) > 4 else ""
    return "; ".join(shown) + more


def who(names: Sequence[str]) -> str:
    """``node3 and node9``, or how many nodes."""
    return listed(names) if len(names) <= NAMED else f"{len(names)} nodes"


def joined(lines: Iterable[tuple[str, Sequence[str]]]) -> list[list[str]]:
    """Lines of node and texts, those with the same texts as one with their nodes."""
    by_text: dict[tuple[str, ...], dict[str, None]] = {}
    for name, texts in lines:
        by_text.setdefault(tuple(texts), {})[name] = None
    return [[who(list(names)), *texts] for texts, names in by_text.items()]
