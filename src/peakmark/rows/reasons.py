"""List possible reasons for slow nodes: what they alone have in common, and lost CPU time.

None of them proves a cause.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from peakmark.comparability import fact, flat, matters
from peakmark.messages import Message, message
from peakmark.rows import schema
from peakmark.rows.fleet import DELTA
from peakmark.rows.runs import ROW
from peakmark.storage.results import Results
from peakmark.tools.tables import BY_NAME

ALIKE = 1.25
"""Lost CPU time explains lost speed if both are lost in about the same share: what remains of them, as
shares of the class, differs by less than this factor.
"""
SHOWN = 3
"""Largest number of differing facts that are listed for a node."""
NO_CAUSE = frozenset({
    "above-limit", "disagreement", "drift", "few", "hosts", "residual", "run-above-limit",
    "short-runs", "spread", "unsure",
})  # fmt: skip
"""Codes of warnings that describe a result. All other warnings describe a possible cause."""


def add_reasons(
    fleet: pd.DataFrame,
    rows: pd.DataFrame,
    runs: pd.DataFrame,
    warnings: pd.DataFrame,
    nodes: pd.DataFrame,
    results: Results,
) -> pd.DataFrame:
    """Add the column ``reasons``: the lost CPU time of each slow node, and what slow nodes share."""
    classes = nodes.set_index("node")["class"]
    texts: dict[Any, str] = {}
    # Reasons belong to a node and subsystem. A line with a table is about pairs of nodes.
    is_node = fleet["kind"].eq("node") & fleet["table"].eq("")
    for subsystem, of_subsystem in fleet[is_node].groupby("subsystem"):
        features = features_of_nodes(rows[rows["subsystem"].eq(subsystem)], warnings, results)
        for name, of_class in of_subsystem.groupby(of_subsystem["name"].map(classes)):
            members = features[features["node"].map(classes).eq(name)]
            shared = [*differing(members, of_class["name"].tolist())][:SHOWN]
            for index, node in of_class["name"].items():
                found = [*lost_time(rows, runs, node, str(subsystem)), *shared]
                values = [each.full_sentence for each in found]
                texts[index] = json.dumps(values, ensure_ascii=False)
    reasons = pd.Series(texts, index=fleet.index, dtype="object").fillna("")
    return fleet.assign(reasons=reasons)


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


def features_of_nodes(rows: pd.DataFrame, warnings: pd.DataFrame, results: Results) -> pd.DataFrame:
    """Return the facts and warnings of nodes: columns ``node``, ``title``, ``key`` and ``text``.

    Two nodes share a feature if title and key are equal. The key of a fact is its text, the key of a
    warning its code.

    Args:
        rows: rows of one subsystem.
        warnings: warnings of all rows.
        results: records and facts of the campaign.
    """
    own_rows = rows[rows["is_own"] & rows["n"].gt(0)]
    lines = []
    # One row is enough: all rows of a node have the same hosts, and so the same facts.
    for row in schema.lines(own_rows.drop_duplicates("node")):
        known = facts_of(json.loads(row.hosts), row.subsystem, row.instrument, results)
        known |= json.loads(row.recorded)
        lines += [(row.node, title, text, text) for title, text in known.items()]
    causes = warnings[~warnings["code"].isin(NO_CAUSE) & warnings["scope"].eq("point")]
    points = own_rows[["point", "node", "instrument"]]
    for warning in schema.lines(points.merge(causes, on="point")):
        if warning.about in ("", warning.instrument):
            lines.append((warning.node, f"warning {warning.code}", warning.code, warning.text))
    features = pd.DataFrame(lines, columns=["node", "title", "key", "text"])
    return features.drop_duplicates(["node", "title"])


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


def differing(features: pd.DataFrame, slow: Sequence[str]) -> Iterator[Message]:
    """Yield a message on each feature that all slow nodes of a class share and no other node has.

    Args:
        features: features of the nodes of the class, as ``features_of_nodes`` returns them.
        slow: names of the slow nodes.
    """
    healthy = features.loc[~features["node"].isin(slow), "node"].nunique()
    for title, of_title in features.groupby("title", sort=False):
        own = of_title[of_title["node"].isin(slow)]
        others = of_title[~of_title["node"].isin(slow)]
        is_shared = len(own) == len(slow) and own["key"].nunique() == 1
        if not is_shared or others["key"].isin(own["key"]).any():
            continue
        usual = others["key"].value_counts()
        usual[""] = healthy - len(others)
        # A feature that differs on every node is an identifier (a serial number), not a cause.
        if 2 * usual.max() <= healthy:
            continue
        yield message(
            "differs",
            case="warning" if str(title).startswith("warning ") else "",
            what=str(title),
            value=own["text"].iloc[0],
            usual=str(usual.idxmax()) or "unknown",
            slow=len(slow),
            others=healthy,
        )
