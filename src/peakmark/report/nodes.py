"""What a report says of nodes: their facts, what many have in common said once; and of several nodes
their classes, which are slow in what, by how much and why, and what was not judged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from jinja2 import ChainableUndefined, Environment, Template

from peakmark import yamlfile
from peakmark.analysis import Analysis, fleet
from peakmark.analysis.fleet import SlowNode
from peakmark.analysis.label_formatter import LabelFormatter
from peakmark.analysis.row import Row
from peakmark.catalogue import SUBSYSTEMS
from peakmark.formatting import (
    binary,
    counted,
    decimal_mark,
    listed,
    percent,
    plural,
    significant,
    typeset,
)
from peakmark.messages import Message, message
from peakmark.resources import ROOT
from peakmark.storage.results import Results
from peakmark.tables import changes

Facts = Mapping[str, Any]
Groups = dict[str, list[list[str]]]
"""Title -> lines of what and value."""

TEXT = ROOT / "reports" / "machine.yaml"
SHORT = "In half a sentence"
UNREAD = "What could not be read, and how to supply it"
NAMED = 3
"""So many nodes are named where they differ."""
VALUES = 4
"""So many values of a fact stand in a line, the most frequent ones."""
LEAST_P = 1e-4
"""Smaller ones are only called so."""
SENTENCES = 5
"""So many stand on page one; the others are named."""
HEADINGS = ("Node", "Resource", "Row", "Value", "Class", "Behind (%)", "95 % interval", "p")
LINES = 200
"""So many slow rows stand in the report; tables/nodes.csv has all."""


def machines(analysis: Analysis) -> list[dict[str, Any]]:
    """The facts of the nodes, or what all have alike and what differs."""
    return alike(facts_of_nodes(analysis.results, analysis.results.mark))


def alike(nodes: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The facts of many nodes as those of one: what all have alike, group by group, and what
    differs, with the nodes.
    """
    if len(nodes) < 2:
        return [dict(node) for node in nodes]
    names_of: dict[tuple[str, str], dict[str, list[str]]] = defaultdict(dict)
    for node in nodes:
        for title, lines in node["groups"].items():
            for what, value in lines:
                names_of[title, what].setdefault(value, []).append(str(node["name"]))
    groups: Groups = defaultdict(list)
    differing = []
    for (title, what), names_by_value in names_of.items():
        value, names = next(iter(names_by_value.items()))
        if len(names) == len(nodes):
            groups[title].append([what, value])
        else:
            differing.append([what, _differing(names_by_value)])
    if differing:
        groups["What differs between the nodes"] = differing
    name = f"{len(nodes)} nodes: {nodes[0]['name']} to {nodes[-1]['name']}"
    return [{"name": name, "groups": groups}]


def _differing(names_by_value: Mapping[str, Sequence[str]]) -> str:
    """``A (60 nodes); B (node3 and node9)``, and how many other values there are."""
    ordered = sorted(names_by_value.items(), key=lambda pair: -len(pair[1]))
    shown = [f"{value} ({who(names)})" for value, names in ordered[:VALUES]]
    more = [f"{len(ordered) - VALUES} other values"] if len(ordered) > VALUES else []
    return "; ".join([*shown, *more])


def who(names: Sequence[str]) -> str:
    """``node3 and node9``, or how many nodes."""
    return listed(names) if len(names) <= NAMED else f"{len(names)} nodes"


def facts_of_nodes(results: Results, mark: str = ".") -> list[dict[str, Any]]:
    """Name and groups of facts of each node; ``mark`` in the numbers of the hardware."""
    links: dict[str, list[Facts]] = defaultdict(list)
    # What the BLAS took in HPL's runs: what it takes by itself may be another.
    core_types: dict[str, list[str]] = defaultdict(list)
    for record in results.records:
        context = record.data["context"]
        host = str(context["host"])
        if context.get("network"):
            links[host].append(context["network"])
        core = (context.get("library") or {}).get("core_type")
        if core and core not in core_types[host]:
            core_types[host].append(str(core))
    return [
        {
            "name": name,
            "groups": groups(
                {**facts, "network": _link(facts, links[name])}, mark, core_types[name]
            ),
        }
        for name, facts in results.facts.items()
    ]


def _link(facts: Facts, seen: Sequence[Facts]) -> Facts:
    """The interface that was measured on a host, as its records have ``seen`` it; that of its
    default route says that it was not.
    """
    if not seen:
        return {**(facts.get("network") or {}), "remark": "of the default route; not measured"}
    first = seen[0]
    name = str(first["interface"])
    others = sorted({str(entry["interface"]) for entry in seen} - {name})
    remark = f"measured; others too: {', '.join(others)}" if others else "measured"
    link = first.get("link") or {"interface": name}
    if first.get("loopback"):
        note = "loopback has no line rate: no network was crossed"
        link = {"interface": name, "kind": "loopback", "speed_note": note}
    return {**link, "remark": remark}


def short(results: Results) -> str:
    """The machine in half a sentence: ``vm, AMD EPYC (Zen 3), 2 cores,``; of several nodes, how many
    there are.
    """
    if len(results.facts) > 1:
        return f"{len(results.facts)} nodes"
    for name, facts in results.facts.items():
        return _templates(".")[SHORT]["Machine"].render(facts, name=name)
    return "this machine"


def groups(facts: Facts, mark: str = ".", core_types: Sequence[str] = ()) -> Groups:
    """The facts of one machine, without lines and groups that are empty."""
    shown = {}
    for title, templates in _templates(mark).items():
        lines = [[what, each.render(facts, cores=core_types)] for what, each in templates.items()]
        shown[title] = [line for line in lines if line[1]]
    del shown[SHORT]
    unread = (facts.get("unknown") or {}).items()
    shown[UNREAD] = [[name, f"unknown: {how}"] for name, how in unread]
    return {title: lines for title, lines in shown.items() if lines}


@cache
def _templates(mark: str) -> dict[str, dict[str, Template]]:
    """Group -> line -> its template."""
    environment = Environment(
        autoescape=False,  # noqa: S701 - texts as JSON, which each form of the report escapes
        undefined=ChainableUndefined,
        finalize=lambda value: "" if value is None else value,
    )
    environment.filters |= {
        "binary": binary,
        "listed": listed,
        "number": lambda text: text and decimal_mark(typeset(text), mark),
        "pairs": _pairs,
        "plural": plural,
        "significant": significant,
    }
    return {
        title: {what: environment.from_string(text) for what, text in lines.items()}
        for title, lines in yamlfile.read(TEXT).items()
    }


def _pairs(values: Mapping[str, Any] | None, sign: str = ": ") -> str:
    """``name: value; name: value``, of values that are not empty."""
    return "; ".join(f"{name}{sign}{value}" for name, value in (values or {}).items() if value)


def slow_paragraphs(analysis: Analysis) -> list[str]:
    """What page one says of several nodes; what slow means stands last."""
    if not analysis.has_several_nodes:
        return []
    groups: dict[tuple[str, str], list[SlowNode]] = defaultdict(list)
    for node, why in analysis.slow:
        groups[node.subsystem, _joined(why)].append(node)
    paragraphs = [_joined(_classes(analysis))]
    for (_, reason), nodes in list(groups.items())[:SENTENCES]:
        paragraphs.append(f"{_slow(nodes).full_sentence} {reason}".strip())
    rest = [node for nodes in list(groups.values())[SENTENCES:] for node in nodes]
    judged = fleet.judged_nodes(analysis.rows)
    last: list[Message] = []
    if rest:
        names = [f"{node.node} ({SUBSYSTEMS[node.subsystem].title})" for node in rest]
        last.append(message("also-slow", nodes=counted(names, 2 * fleet.NAMED)))
    if judged and not groups:
        last.append(message("none-slow", nodes=len(judged)))
    paragraphs += [each.full_sentence for each in (*last, *analysis.second_verdicts.values())]
    paragraphs.append(_joined(fleet.unjudged(analysis.rows, analysis.classes)))
    paragraphs.append(message("slow-means", beyond=fleet.DELTA).full_sentence)
    return [typeset(text) for text in paragraphs if text]


def _joined(messages: Iterable[Message]) -> str:
    return " ".join(each.full_sentence for each in messages)


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


def fleet_data(analysis: Analysis) -> dict[str, Any]:
    """Return the table of slow rows, and for ``peakmark fleet`` the nodes that are slow: a second
    measurement overrides the verdict on its suspects. Empty for one node.
    """
    if not analysis.has_several_nodes:
        return {}
    lines = [_line(row) for node, _ in analysis.slow for row in node.rows]
    shown = lines[:LINES]
    remark = message("slow-lines", shown=LINES, rows=len(lines))
    slow = {node.node for node, _ in analysis.slow}
    for name, verdict in analysis.second_verdicts.items():
        if verdict.case == "not-confirmed":
            slow.discard(name)
        elif verdict.case == "confirmed" and "+" not in name:
            slow.add(name)
    return {
        "slow": sorted(slow),
        "headings": HEADINGS,
        "lines": shown,
        "breaks": changes([line[:2] for line in shown]),
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
