"""What a slow node has unlike its class, and time that its threads lacked. Nothing here is a proof."""

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
"""Largest p-value of a fact that slow nodes have and others have not."""
ALIKE = 1.25
"""Largest factor between lost time and lost rate at which one explains the other."""
SHOWN = 3
"""Number of facts that are named of a node."""
NO_CAUSE = frozenset({
    "above-limit", "disagreement", "drift", "few", "hosts", "residual", "run-above-limit",
    "short-runs", "spread", "stores", "unsure",
})  # fmt: skip
"""Codes of warnings that say what a row shows, not what may have caused it."""


class Feature(NamedTuple):
    """A fact or warning of a node.

    Attributes:
        key: by what it equals another node's: the fact's text, or the warning's code.
        text: how it is shown.
    """

    key: str
    text: str


NOTHING = Feature("", "")
"""What a node has that lacks a fact or warning."""
Features = dict[str, Feature]
"""Title of a fact, or ``warning`` and its code -> the feature."""


def add_reasons(
    fleet: pd.DataFrame,
    rows: pd.DataFrame,
    runs: pd.DataFrame,
    warnings: pd.DataFrame,
    nodes: pd.DataFrame,
    results: Results,
) -> pd.DataFrame:
    """Add to slow nodes the time that their threads lacked, and the facts in which they differ."""
    class_of = dict(zip(nodes["node"], nodes["class"], strict=True))
    features: dict[str, dict[str, Features]] = {}
    texts = []
    for slow in schema.lines(fleet):
        if slow.kind != "node" or slow.table:
            texts.append("")
            continue
        if slow.subsystem not in features:
            of_subsystem = rows[rows["subsystem"].eq(slow.subsystem)]
            features[slow.subsystem] = features_of_nodes(of_subsystem, warnings, results)
        is_like = fleet["subsystem"].eq(slow.subsystem) & fleet["table"].eq("")
        like = set(fleet.loc[is_like & fleet["kind"].eq("node"), "name"])
        members = [node for node, name in class_of.items() if name == class_of.get(slow.name)]
        found = [
            *lost_time(rows, runs, slow.name, slow.subsystem),
            *differing(features[slow.subsystem], slow.name, members, like)[:SHOWN],
        ]
        values = [schema.to_json(each) for each in found]
        texts.append(json.dumps(values, ensure_ascii=False))
    return fleet.assign(reasons=texts)


def lost_time(rows: pd.DataFrame, runs: pd.DataFrame, node: str, subsystem: str) -> list[Message]:
    """Say that the threads of a node had less of their CPUs' time, where that makes it slow."""
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
        rows: of one subsystem.
        warnings: of the campaign.
        results: the campaign.
    """
    own_rows = rows[rows["is_own"] & rows["n"].gt(0)]
    causes = warnings[~warnings["code"].isin(NO_CAUSE) & warnings["scope"].eq("point")]
    features: dict[str, Features] = defaultdict(dict)
    # All rows of a node have the same facts: those of its hosts.
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
    """Return the facts of hosts that matter to rows of a program, by title; what differs is listed."""
    known: dict[str, dict[str, None]] = {}
    for host in hosts:
        for name, text in flat(results.facts.get(host)):
            if matters(name, subsystem, instrument):
                known.setdefault(fact(name)["title"], {})[text] = None
    return {title: " or ".join(sorted(texts)) for title, texts in known.items()}


def differing(
    features: Mapping[str, Features], node: str, nodes: Sequence[str], slow: set[str]
) -> list[Message]:
    """Return what a slow node has unlike most others of its class, by Fisher's exact test.

    Args:
        features: of each node.
        node: the slow one.
        nodes: those of its class.
        slow: the slow ones of all classes.
    """
    from scipy import stats

    others = [features[name] for name in nodes if name not in slow and name in features]
    alike = [features[name] for name in nodes if name in slow and name in features]
    found = []
    for what, own in features.get(node, {}).items():
        usual = Counter(other.get(what, NOTHING) for other in others)
        if not usual:
            continue
        most, count = usual.most_common(1)[0]
        with_it = sum(other.get(what, NOTHING).key == own.key for other in others)
        slow_with_it = sum(other.get(what, NOTHING).key == own.key for other in alike)
        table = [[slow_with_it, len(alike) - slow_with_it], [with_it, len(others) - with_it]]
        p = float(stats.fisher_exact(table, alternative="greater").pvalue)
        # Where all nodes differ, it is the name of something and no difference.
        is_common = own.key == most.key or 2 * count <= len(others)
        if is_common or (p > RARE and with_it):
            continue
        said = message(
            "differs",
            case="warning" if what.startswith("warning ") else "",
            what=what, value=own.text, usual=most.text or "unknown", slow=slow_with_it, of=len(alike),
            others=with_it, rest=len(others), p=p,
        )  # fmt: skip
        found.append((p, what, said))
    return [said for _, _, said in sorted(found, key=lambda each: each[:2])]
