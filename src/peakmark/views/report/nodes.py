"""The chapter on the machine: the facts of each node, or those of all nodes and their differences."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from jinja2 import ChainableUndefined, Environment, Template

from peakmark import yamlfile
from peakmark.formatting import binary, listed, moment, plural, significant, typeset
from peakmark.resources import ROOT
from peakmark.rows import schema
from peakmark.rows.schema import CampaignFrames

Facts = Mapping[str, Any]
Groups = dict[str, list[list[str]]]
"""Title -> lines of the name and the value of a fact."""

TEXT = ROOT / "reports" / "machine.yaml"
BOX = "On page one"
"""Group of templates that the box on page one shows."""
UNREAD = "What could not be read, and how to supply it"
HOST = "Host"
"""Fact that the names of the nodes state already if there are several."""
UNKNOWN = "unknown"
"""Fact that maps dotted names of unknown facts to how they can be supplied."""
NAMED = 3
"""Largest number of nodes with the same value of a fact that are named; more nodes are counted."""
VALUES = 4
"""Largest number of values of a fact in a line; the most frequent values are printed."""


def hosts(frames: CampaignFrames) -> list[str]:
    """Return the hosts whose facts are known."""
    return list(dict.fromkeys(frames.facts["host"]))


def facts_of(frames: CampaignFrames) -> dict[str, dict[str, Any]]:
    """Return host -> its facts as nested mappings and lists."""
    found: dict[str, dict[str, Any]] = {host: {} for host in hosts(frames)}
    for line in schema.lines(frames.facts):
        put(found[line.host], line.key.split("."), json.loads(line.value))
    return {host: with_lists(facts) for host, facts in found.items()}


def put(facts: dict[str, Any], names: Sequence[str], value: Any) -> None:
    """Put a value into nested mappings, below the given names."""
    for name in names[:-1]:
        facts = facts.setdefault(name, {})
    facts[names[-1]] = value


def with_lists(value: Any) -> Any:
    """Return a nested value in which each mapping with the keys 0, 1, ... is replaced by a list."""
    if not isinstance(value, dict):
        return value
    parts = {name: with_lists(part) for name, part in value.items()}
    if parts and list(parts) == [str(place) for place in range(len(parts))]:
        return list(parts.values())
    return parts


def machines(frames: CampaignFrames) -> list[dict[str, Any]]:
    """Return the facts of a single node, or the common facts of several nodes and their differences."""
    return alike(facts_of_nodes(frames))


def alike(nodes: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return several nodes merged into one: the facts that are equal, and those that differ."""
    if len(nodes) < 2:
        return [dict(node) for node in nodes]
    names_of: dict[tuple[str, str], dict[str, list[str]]] = defaultdict(dict)
    for node in nodes:
        for title, lines in node["groups"].items():
            for what, value in lines:
                names_of[title, what].setdefault(value, []).append(str(node["name"]))
    groups: Groups = defaultdict(list)
    different = []
    for (title, what), names_by_value in names_of.items():
        value, names = next(iter(names_by_value.items()))
        if len(names) == len(nodes):
            groups[title].append([what, value])
        elif what != HOST:
            different.append([what, values_with_nodes(names_by_value)])
    if different:
        groups["What differs between the nodes"] = different
    name = f"{len(nodes)} nodes: {nodes[0]['name']} to {nodes[-1]['name']}"
    return [{"name": name, "groups": groups}]


def values_with_nodes(names_by_value: Mapping[str, Sequence[str]]) -> str:
    """Return the values of a fact with their nodes: ``A (60 nodes); B (node3 and node9)``.

    Values beyond ``VALUES`` are counted.
    """
    ordered = sorted(names_by_value.items(), key=lambda pair: -len(pair[1]))
    shown = [f"{value} ({who(names)})" for value, names in ordered[:VALUES]]
    if len(ordered) > VALUES:
        shown.append(plural(len(ordered) - VALUES, "other value"))
    return "; ".join(shown)


def who(names: Sequence[str]) -> str:
    """Return ``node3 and node9``, or the number of nodes if there are many."""
    if len(names) > NAMED:
        return f"{len(names)} nodes"
    return listed(names)


def facts_of_nodes(frames: CampaignFrames) -> list[dict[str, Any]]:
    """Return the name and the groups of facts of each node."""
    campaign, found = frames.campaign, []
    for host, facts in facts_of(frames).items():
        measured = {**facts, "network": campaign["networks"][host]}
        core_types = campaign["core_types"].get(host, [])
        found.append({"name": host, "groups": group(measured, core_types)})
    return found


def group(facts: Facts, core_types: Sequence[str] = ()) -> Groups:
    """Return the facts of one machine by groups, without empty lines and groups."""
    shown = {}
    for title, of_group in templates().items():
        if title != BOX:
            shown[title] = rendered(of_group, facts, core_types)
    unread = (facts.get(UNKNOWN) or {}).items()
    shown[UNREAD] = [[name, f"unknown: {how}"] for name, how in unread]
    return {title: lines for title, lines in shown.items() if lines}


def rendered(
    lines: Mapping[str, Template], facts: Facts, core_types: Sequence[str] = ()
) -> list[list[str]]:
    """Return the lines of a group of facts that are not empty."""
    texts = [[what, template.render(facts, cores=core_types)] for what, template in lines.items()]
    return [line for line in texts if line[1]]


def box(frames: CampaignFrames) -> list[list[str]]:
    """Return name and text of the lines on the machine on page one.

    For several nodes, a line that differs lists the values with their nodes.
    """
    found, of_hosts = [], facts_of(frames)
    clocks = [clock for facts in of_hosts.values() if (clock := observed_clock(facts))]
    for host, facts in of_hosts.items():
        measured = {**facts, "network": frames.campaign["networks"][host], "clocks": clocks}
        found.append({"name": host, "groups": {BOX: rendered(templates()[BOX], measured)}})
    lines: list[list[str]] = []
    for group_of_all in alike(found):
        for of_group in group_of_all["groups"].values():
            lines += of_group
    return lines


def observed_clock(facts: Mapping[str, Any]) -> float | None:
    """Return the clock in Hz that was observed on a node; None if it is unknown."""
    clock: float | None = ((facts.get("cpu") or {}).get("clock_hz") or {}).get("observed")
    return clock


@cache
def templates() -> dict[str, dict[str, Template]]:
    """Return group -> name of a fact -> its template."""
    environment = Environment(
        autoescape=False,  # noqa: S701 - texts as JSON, which each form of the report escapes
        undefined=ChainableUndefined,
        finalize=text_of,
    )
    environment.filters |= {
        "binary": binary,
        "listed": listed,
        "moment": moment,
        "number": typeset_known,
        "pairs": pairs,
        "plural": plural,
        "significant": significant,
    }
    found = {}
    for title, lines in yamlfile.read(TEXT).items():
        found[title] = {what: environment.from_string(text) for what, text in lines.items()}
    return found


def text_of(value: Any) -> Any:
    """Return a value for a template: an empty text instead of None."""
    return "" if value is None else value


def typeset_known(text: str | None) -> str | None:
    """Return a number with its unit as it is printed; an unknown number stays None or empty."""
    return text and typeset(text)


def pairs(values: Mapping[str, Any] | None, sign: str = ": ") -> str:
    """Return ``name: value; name: value`` without empty values."""
    return "; ".join(f"{name}{sign}{value}" for name, value in (values or {}).items() if value)
