"""Why a slow node may be slow: what it alone has, and time that its threads lacked. Nothing here is a
proof.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from peakmark import statistics
from peakmark.analysis import comparability, fleet
from peakmark.analysis.fleet import FleetClass, NodeGroup, SlowNode
from peakmark.analysis.row import Row, Rows
from peakmark.messages import Message, message
from peakmark.storage.results import Results

RARE = 0.05
"""Facts count that slow nodes have by chance with at most this p, or that no other node has."""
ALIKE = 1.25
"""The time that threads had explains a rate that is so many times as high or low at most."""
SHOWN = 3
"""So many facts are named of a node."""
NO_CAUSE = frozenset({
    "above-limit", "disagreement", "drift", "few", "hosts", "residual",
    "run-above-limit", "short-runs", "spread", "stores", "unsure",
})  # fmt: skip
"""Codes of warnings that tell what a row shows, not what may have caused it."""
Features = dict[str, tuple[str, str]]
"""What -> by what it equals another node's, and as it is shown."""


def reasons(
    results: Results, rows: Rows, classes: Sequence[FleetClass], slow: Sequence[SlowNode]
) -> list[list[Message]]:
    """Return, for each slow node, the time that its threads lacked, then the facts in which it differs
    from its class, the rarest first.
    """
    by_class = {node: each.nodes for each in classes for node in each.nodes}
    groups = [group for table in rows.values() for group in fleet.group_rows(table)]
    features: dict[str, dict[str, Features]] = {}
    for subsystem in {each.subsystem for each in slow}:
        table = [row for name in rows for row in rows[name] if row.table.subsystem == subsystem]
        features[subsystem] = _features(results, table)
    found = []
    for each in slow:
        like = {other.node for other in slow if other.subsystem == each.subsystem}
        nodes = by_class.get(each.node, ())
        found.append(
            [
                *lost_time(groups, each),
                *differing(features[each.subsystem], each.node, nodes, like)[:SHOWN],
            ]
        )
    return found


def lost_time(groups: Iterable[NodeGroup], slow: SlowNode) -> list[Message]:
    """That the threads of a node had less of their CPUs' time, where that is what makes it slow."""
    for group in groups:
        row = next((row for row in group.slow if row.key.node == slow.node), None)
        shares = {row.key.node: row.measured.detail("cpu_share") for row in group.rows}
        own = shares.pop(slow.node, None)
        others = [share for share in shares.values() if share]
        if row is None or row.table.subsystem != slow.subsystem or not own or not others:
            continue
        behind, usual = group.behind(row), statistics.median(others)
        speed = 1 / (1 + behind) if row.table.lower_is_better else 1 - behind
        share = own / usual
        if share < 1 - fleet.DELTA and 1 / ALIKE < share / speed < ALIKE:
            return [message("lost-time", share=own, usual=usual)]
    return []


def _features(results: Results, rows: Iterable[Row]) -> dict[str, Features]:
    """Node -> the facts and warnings of its rows of one resource."""
    features: dict[str, Features] = defaultdict(dict)
    for row in rows:
        if row.own is None:
            continue
        own = features[row.key.node]
        if not own:
            facts = comparability.facts(results, row.own.hosts)
            recorded = comparability.recorded(row.own, facts)
            own |= {title: (text, text) for title, text in recorded.items()}
        for warning in row.own_warnings:
            if warning.code not in NO_CAUSE and not warning.is_shared:
                own.setdefault(f"warning {warning.code}", (warning.code, warning.fact))
    return features


def differing(
    features: Mapping[str, Features], node: str, nodes: Sequence[str], slow: set[str]
) -> list[Message]:
    """What a slow node has unlike most others of its class, by Fisher's exact test.

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
    for what, (own, shown) in features.get(node, {}).items():
        usual = Counter(other.get(what, ("", "")) for other in others)
        if not usual:
            continue
        (most, text), count = usual.most_common(1)[0]
        with_it = sum(other.get(what, ("", ""))[0] == own for other in others)
        slow_with_it = sum(other.get(what, ("", ""))[0] == own for other in alike)
        table = [[slow_with_it, len(alike) - slow_with_it], [with_it, len(others) - with_it]]
        p = float(stats.fisher_exact(table, alternative="greater").pvalue)
        # Where all nodes differ, it is the name of something and no difference.
        if own == most or 2 * count <= len(others) or (p > RARE and with_it):
            continue
        found.append(
            message(
                "differs",
                case="warning" if what.startswith("warning ") else "",
                what=what, value=shown, usual=text or "unknown", slow=slow_with_it, of=len(alike),
                others=with_it, rest=len(others), p=p,
            )
        )  # fmt: skip
    return sorted(found, key=lambda each: (dict(each.values)["p"], dict(each.values)["what"]))
