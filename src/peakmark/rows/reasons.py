"""List possible reasons for slow nodes: facts in which they differ from their class, and lost CPU time.

None of them proves a cause.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pandas as pd

from peakmark.comparability import fact, flat, matters
from peakmark.messages import Message, message
from peakmark.rows import schema
from peakmark.rows.fleet import DELTA
from peakmark.rows.runs import ROW
from peakmark.storage.results import Results
from peakmark.tools.tables import BY_NAME

RARE = 0.05
"""Largest p-value of Fisher's test for a fact that slow nodes have more often than healthy ones."""
ALIKE = 1.25
"""Lost CPU time explains lost speed if both are lost in about the same share: what remains of them, as
shares of the class, differs by less than this factor.
"""
SHOWN = 3
"""Largest number of differing facts that are listed for a node."""
NO_CAUSE = frozenset({
    "above-limit", "disagreement", "drift", "few", "hosts", "residual", "run-above-limit",
    "short-runs", "spread", "stores", "unsure",
})  # fmt: skip
"""Codes of warnings that describe a result. All other warnings describe a possible cause."""


class Feature(NamedTuple):
    """A fact or warning of a node.

    Attributes:
        key: the fact's text or the warning's code; two nodes share a feature if the keys are equal.
        text: text of the fact or warning for readers.
    """

    key: str
    text: str


NOTHING = Feature("", "")
"""Feature of a node that lacks a fact or warning which another node has."""
Features = dict[str, Feature]
"""Title of a fact, or ``warning CODE`` -> feature of one node."""


def add_reasons(
    fleet: pd.DataFrame,
    rows: pd.DataFrame,
    runs: pd.DataFrame,
    warnings: pd.DataFrame,
    nodes: pd.DataFrame,
    results: Results,
) -> pd.DataFrame:
    """Add the column ``reasons``: the lost CPU time of each slow node, and the facts that differ."""
    class_of = dict(zip(nodes["node"], nodes["class"], strict=True))
    features: dict[str, dict[str, Features]] = {}
    texts = []
    for slow in schema.lines(fleet):
        # Reasons belong to a node and subsystem. A line with a table is about pairs of nodes.
        if slow.kind != "node" or slow.table:
            texts.append("")
            continue
        if slow.subsystem not in features:
            of_subsystem = rows[rows["subsystem"].eq(slow.subsystem)]
            features[slow.subsystem] = features_of_nodes(of_subsystem, warnings, results)
        is_of_subsystem = fleet["subsystem"].eq(slow.subsystem) & fleet["table"].eq("")
        slow_nodes = set(fleet.loc[is_of_subsystem & fleet["kind"].eq("node"), "name"])
        members = [node for node, name in class_of.items() if name == class_of.get(slow.name)]
        differences = differing(
            features[slow.subsystem], node=slow.name, nodes=members, slow=slow_nodes
        )
        found = [*lost_time(rows, runs, slow.name, slow.subsystem), *differences[:SHOWN]]
        values = [schema.to_json(each) for each in found]
        texts.append(json.dumps(values, ensure_ascii=False))
    return fleet.assign(reasons=texts)


def lost_time(rows: pd.DataFrame, runs: pd.DataFrame, node: str, subsystem: str) -> list[Message]:
    """Return a message if a slow node lost about as much CPU time as speed, compared with its class.

    The message is about the first such row; the list is empty if there is none.
    """
    kept = runs[runs["kept"] & runs["cpu_share"].gt(0)]
    shares = kept.groupby(ROW)["cpu_share"].median().rename("cpu_share")
    usable = rows[rows["is_own"] & rows["subsystem"].eq(subsystem) & rows["severity"].ne("wrong")]
    known = usable.join(shares, on=ROW).dropna(subset="cpu_share")
    for _, row in known[known["is_slow"] & known["node"].eq(node)].iterrows():
        is_other = known["place"].eq(row["place"]) & known["node"].ne(node)
        others = known.loc[is_other & known["node_class"].eq(row["node_class"]), "cpu_share"]
        if others.empty:
            continue
        own, usual, behind = float(row["cpu_share"]), float(others.median()), row["behind"]
        # Speed and CPU time of the node, both as shares of its class.
        speed = 1 - behind
        if BY_NAME[row["table"]].lower_is_better:
            speed = 1 / (1 + behind)
        share = own / usual
        if share < 1 - DELTA and 1 / ALIKE < share / speed < ALIKE:
            return [message("lost-time", share=own, usual=usual)]
    return []


def features_of_nodes(
    rows: pd.DataFrame, warnings: pd.DataFrame, results: Results
) -> dict[str, Features]:
    """Return for each node the facts and warnings of its rows.

    Args:
        rows: rows of one subsystem.
        warnings: warnings of all rows.
        results: records and facts of the campaign.
    """
    own_rows = rows[rows["is_own"] & rows["n"].gt(0)]
    causes = warnings[~warnings["code"].isin(NO_CAUSE) & warnings["scope"].eq("point")]
    features: dict[str, Features] = defaultdict(dict)
    # One row is enough: all rows of a node have the same hosts, and so the same facts.
    for row in schema.lines(own_rows.drop_duplicates("node")):
        known = facts_of(json.loads(row.hosts), row.subsystem, row.instrument, results)
        known |= json.loads(row.recorded)
        for title, text in known.items():
            features[row.node][title] = Feature(text, text)
    points = own_rows[["point", "node", "instrument"]]
    for warning in schema.lines(points.merge(causes, on="point")):
        if warning.about in ("", warning.instrument):
            feature = Feature(warning.code, warning.text)
            features[warning.node].setdefault(f"warning {warning.code}", feature)
    return features


def facts_of(
    hosts: Sequence[str], subsystem: str, instrument: str, results: Results
) -> dict[str, str]:
    """Return the facts of hosts that matter to rows of a program, by title.

    If the hosts differ in a fact, the text lists all values: ``A or B``.
    """
    known: dict[str, dict[str, None]] = {}
    for host in hosts:
        for name, text in flat(results.facts.get(host)):
            if matters(name, subsystem, instrument):
                known.setdefault(fact(name)["title"], {})[text] = None
    return {title: " or ".join(sorted(texts)) for title, texts in known.items()}


def differing(
    features: Mapping[str, Features], node: str, nodes: Sequence[str], slow: set[str]
) -> list[Message]:
    """Return messages on the features that distinguish a slow node from the healthy nodes of its class.

    The most significant feature comes first (Fisher's exact test).

    Args:
        features: features of each node.
        node: name of the slow node.
        nodes: names of the nodes of its class.
        slow: names of the slow nodes of all classes.
    """
    from scipy import stats

    healthy = [features[name] for name in nodes if name not in slow and name in features]
    slow_ones = [features[name] for name in nodes if name in slow and name in features]
    found = []
    for title, own in features.get(node, {}).items():
        usual = Counter(other.get(title, NOTHING) for other in healthy)
        if not usual:
            continue
        most_common, count = usual.most_common(1)[0]
        # A feature that differs on every node is an identifier (a serial number), not a cause.
        is_identifier = 2 * count <= len(healthy)
        if is_identifier or own.key == most_common.key:
            continue
        healthy_with_it = sum(other.get(title, NOTHING).key == own.key for other in healthy)
        slow_with_it = sum(other.get(title, NOTHING).key == own.key for other in slow_ones)
        table = [
            [slow_with_it, len(slow_ones) - slow_with_it],
            [healthy_with_it, len(healthy) - healthy_with_it],
        ]
        p = float(stats.fisher_exact(table, alternative="greater").pvalue)
        # A feature that no healthy node has is reported whatever its p-value.
        if p > RARE and healthy_with_it:
            continue
        difference = message(
            "differs",
            case="warning" if title.startswith("warning ") else "",
            what=title,
            value=own.text,
            usual=most_common.text or "unknown",
            slow=slow_with_it,
            of=len(slow_ones),
            others=healthy_with_it,
            rest=len(healthy),
            p=p,
        )
        found.append((p, title, difference))
    return [difference for _, _, difference in sorted(found, key=lambda each: each[:2])]
