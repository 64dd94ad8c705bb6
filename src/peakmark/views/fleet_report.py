"""Which nodes of a campaign are slow: what ``peakmark fleet`` prints, and page one of the report says.

For the report: ``slow_paragraphs`` has the sentences, ``slow_table`` the lines of the slow rows.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pandas as pd

from peakmark.catalogue import SUBSYSTEMS
from peakmark.formatting import counted, natural, percent, plural, typeset
from peakmark.messages import Message, message
from peakmark.rows import schema
from peakmark.rows.labels import Labels
from peakmark.rows.schema import CampaignFrames
from peakmark.statistics import ENOUGH
from peakmark.tools.tables import BY_NAME

SENTENCES = 5
"""Largest number of sentences on slow nodes; further nodes are named in one line."""
NAMED = 8
"""Largest number of nodes that a sentence names; the others are counted."""
LINES = 200
"""Largest number of slow rows in the report: ``tables/nodes.csv`` has all."""
LEAST_P = 1e-4
"""Least p-value that is printed; smaller ones are only called so."""
HEADINGS = ("Node", "Resource", "Row", "Value", "Class", "Behind (%)", "95 % interval", "p")

Line = Any
"""A line of a frame, as ``schema.lines`` yields it."""


# -- what the command prints


def describe(frames: CampaignFrames) -> list[str]:
    """Return the lines of ``peakmark fleet``: which nodes are slow, then links and switches of pairs."""
    lines = [headline(frames).text]
    campaign = frames.campaign
    if campaign["missing"]:
        cells = plural(campaign["cells"], "planned cell")
        lines.append(message("records-missing", missing=campaign["missing"], cells=cells).text)
    lines += slow_paragraphs(frames)
    links = frames.findings[frames.findings["topic"].eq("Links")]
    return [*lines, *map(typeset, links["text"])]


def headline(frames: CampaignFrames) -> Message:
    """Return how many nodes are slow, or that no node could be judged."""
    name = frames.campaign["name"]
    if is_judged(frames):
        return message("fleet", campaign=name, slow=len(slow_nodes(frames)))
    rule = frames.campaign["rule"]
    return message(
        "fleet",
        case="unjudged",
        campaign=name,
        nodes=len(frames.nodes),
        least=rule["nodes"],
        repetitions=rule["repetitions"],
    )


def is_judged(frames: CampaignFrames) -> bool:
    """Return whether any node or suspect was judged."""
    suspects = of_kind(frames, "suspect")
    return bool(frames.nodes["judged"].gt(0).any() or suspects["judged"].gt(0).any())


def slow_nodes(frames: CampaignFrames) -> list[str]:
    """Return the nodes that are slow; a second measurement overrides the verdict on its suspects."""
    slow = set(of_kind(frames, "node")["name"])
    for suspect in schema.lines(of_kind(frames, "suspect")):
        if suspect.confirmed and "+" not in suspect.name:
            slow.add(suspect.name)
        elif suspect.judged and not suspect.confirmed:
            slow.discard(suspect.name)
    return sorted(slow, key=natural)


def of_kind(frames: CampaignFrames, kind: str) -> pd.DataFrame:
    """Return the lines of ``fleet`` of a kind."""
    return frames.fleet[frames.fleet["kind"].eq(kind)]


# -- page one


def slow_paragraphs(frames: CampaignFrames) -> list[str]:
    """Return what page one says of several nodes, or of suspects; what slow means stands last."""
    if len(frames.nodes) < 2 and of_kind(frames, "suspect").empty:
        return []
    groups = alike(frames)
    paragraphs = [joined(classes(frames))]
    for reason, nodes in groups[:SENTENCES]:
        paragraphs.append(f"{slow_sentence(nodes).full_sentence} {reason}".strip())
    rest = [node for _, nodes in groups[SENTENCES:] for node in nodes]
    judged = int(frames.nodes["judged"].gt(0).sum())
    more: list[Message] = []
    if rest:
        names = [f"{node.name} ({SUBSYSTEMS[node.subsystem].title})" for node in rest]
        more.append(message("also-slow", nodes=counted(names, 2 * NAMED)))
    if judged and of_kind(frames, "node").empty:
        more.append(message("none-slow", nodes=judged))
    more += second_verdicts(frames)
    paragraphs += [each.full_sentence for each in more]
    paragraphs.append(joined(unjudged(frames)))
    beyond = frames.campaign["rule"]["beyond"]
    paragraphs.append(message("slow-means", beyond=beyond).full_sentence)
    return [typeset(text) for text in paragraphs if text]


def joined(messages: Iterable[Message]) -> str:
    """Return messages as sentences of one paragraph."""
    return " ".join(each.full_sentence for each in messages)


def alike(frames: CampaignFrames) -> list[tuple[str, list[Line]]]:
    """Return the slow nodes of each subsystem of which the reasons read alike, with the reasons.

    Those that are slow in pairs alone are left out: the findings of the tables name them.
    """
    nodes = of_kind(frames, "node")
    groups: dict[tuple[str, str], list[Line]] = defaultdict(list)
    for node in schema.lines(nodes[nodes["table"].eq("")]):
        reasons = [schema.message_of(each) for each in json.loads(node.reasons)]
        groups[node.subsystem, joined(reasons)].append(node)
    return [(reason, lines) for (_, reason), lines in groups.items()]


def classes(frames: CampaignFrames) -> Iterator[Message]:
    """Yield what the nodes of each class have: that of most of them."""
    equipment = ["cpu", "memory", "network", "kernel", "clock"]
    for name, nodes in frames.nodes.groupby("class", sort=False):
        usual: Any = nodes.groupby(equipment, sort=False).size().idxmax()
        words = dict(zip(equipment, usual, strict=True))
        if words["kernel"]:
            words["kernel"] = f"kernel {words['kernel']}"
        what = tuple(filter(None, words.values())) or ("equipment unknown",)
        case = "named" if name else ""
        yield message("fleet-class", case=case, name=str(name), nodes=len(nodes), what=what)


def slow_sentence(nodes: Sequence[Line]) -> Message:
    """Return that nodes are slow in one subsystem."""
    return message(
        "slow-node",
        case="" if len(nodes) == 1 else "several",
        node=counted([node.name for node in nodes], NAMED),
        resource=SUBSYSTEMS[nodes[0].subsystem].named,
        behind=nodes[0].behind,
        low=min(node.behind_low for node in nodes),
        high=max(node.behind_high for node in nodes),
        rows=nodes[0].rows,
        of=nodes[0].judged,
    )


def second_verdicts(frames: CampaignFrames) -> Iterator[Message]:
    """Yield of each suspect of a second measurement whether it is slow again."""
    for suspect in schema.lines(of_kind(frames, "suspect")):
        case = "confirmed" if suspect.confirmed else "not-confirmed"
        yield message(
            "second-measurement",
            case=case if suspect.judged else "missing",
            node=shown(suspect.name),
            beside=tuple(map(shown, json.loads(suspect.beside))),
            rows=suspect.rows,
            of=suspect.judged,
            behind=suspect.behind or 0.0,
            least=ENOUGH,
        )


def shown(name: str) -> str:
    """Return the name of a node, or of a link with an arrow."""
    return name.replace("+", " → ")


def unjudged(frames: CampaignFrames) -> Iterator[Message]:
    """Yield what no verdict was possible on.

    These are nodes without a value, those of small classes, and rows of few repetitions.
    """
    rule, nodes = frames.campaign["rule"], frames.nodes
    empty = sorted(nodes.loc[nodes["rows"].eq(0), "node"], key=natural)
    if empty:
        yield message("unjudged", case="empty", nodes=counted(empty, NAMED))
    size = nodes.groupby("class")["node"].transform("size")
    few = nodes.loc[nodes["judged"].eq(0) & size.lt(rule["nodes"]), "node"].tolist()
    if few:
        yield message("unjudged", case="class", nodes=counted(few, NAMED), least=rule["nodes"])
    rows = frames.rows
    is_right = rows["severity"].ne("wrong") & rows["low"].gt(0)
    is_single = ~rows["node"].str.contains("+", regex=False)
    usable = rows[rows["is_own"] & rows["n"].gt(0) & is_right & is_single]
    is_judged = usable.groupby("place")["is_judged"].any()
    short = int((~is_judged).sum())
    if short:
        least = rule["repetitions"]
        yield message("unjudged", case="rows", rows=short, of=len(is_judged), least=least)


# -- the slow rows


def slow_table(frames: CampaignFrames) -> dict[str, Any]:
    """Return the table of slow rows, the slowest node first; empty for one node.

    Keys: ``headings``, ``lines``, ``breaks`` where another node or resource begins, and a ``remark``
    where there are more lines.
    """
    if len(frames.nodes) < 2:
        return {}
    lines = [line_of(row) for row in slow_rows(frames)]
    remark = message("slow-lines", shown=LINES, rows=len(lines)).full_sentence
    kept = lines[:LINES]
    breaks = []
    for number in range(1, len(kept)):
        if kept[number][:2] != kept[number - 1][:2]:
            breaks.append(number)
    return {
        "headings": HEADINGS,
        "lines": kept,
        "breaks": breaks,
        "remark": remark if len(lines) > LINES else "",
    }


def slow_rows(frames: CampaignFrames) -> Iterator[Line]:
    """Yield the slow rows, those of the slowest node first, of each node the slowest row first."""
    nodes = of_kind(frames, "node")
    nodes = nodes[nodes["table"].eq("")].reset_index(drop=True)
    order = nodes.assign(node=nodes["name"], order=nodes.index)[["node", "subsystem", "order"]]
    slow = frames.rows[frames.rows["is_slow"]].merge(order, on=["node", "subsystem"])
    yield from schema.lines(
        slow.sort_values(["order", "behind"], ascending=[True, False], kind="stable")
    )


def line_of(row: Line) -> list[str]:
    """Return the cells of a slow row."""
    labels = Labels.of(row)
    factor = 1 - row.behind
    if BY_NAME[row.table].lower_is_better:
        factor = 1 + row.behind
    p = f"< {LEAST_P:g}"
    if row.behind_p >= LEAST_P:
        p = f"{row.behind_p:.1g}"
    return [
        row.node,
        SUBSYSTEMS[row.subsystem].title,
        labels.point(row, variant=True, node=False),
        labels.quantity(row.value),
        labels.quantity(row.median / factor),
        percent(row.behind),
        f"{percent(row.behind_low)} to {percent(row.behind_high)}",
        p,
    ]
