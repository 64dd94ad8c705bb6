"""Why a slow node may be slow: what it alone has, and faults with which its rows are consistent.
Nothing here is a proof.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from peakmark import data, statistics
from peakmark.analysis import comparability, fleet
from peakmark.analysis.fleet import FleetClass, NodeGroup, SlowNode
from peakmark.analysis.row import Row, Rows
from peakmark.messages import Message, message
from peakmark.storage.results import Results

RARE = 0.05
"""Facts count that slow nodes have by chance with at most this p, or that no other node has."""
UNKNOWN = "-"
"""Of a kind of rows in ``signatures.csv``: the node has none."""
ALIKE = 1.25
"""The time that threads had explains a rate that is so many times as high or low at most."""
SHOWN = 3
"""So many facts are named of a node."""
NO_CAUSE = frozenset({
    "above-limit", "disagreement", "drift", "few", "hosts", "published", "residual",
    "run-above-limit", "short-runs", "spread", "stores", "unsure",
})  # fmt: skip
"""Codes of warnings that tell what a row shows, not what may have caused it."""
SUBSYSTEM = {
    "cpu": "cpu", "clock": "cpu", "cache": "memory", "stream": "memory", "random": "memory",
    "latency": "memory", "read": "disk", "write": "disk", "network": "network", "round_trip": "network",
}  # fmt: skip
"""Kind of rows, that faults slow down alike, or the clock: the columns of ``signatures.csv``."""
KIND = {
    "cpu": "cpu", "memory_latency": "latency", "network_throughput": "network",
    "network_latency": "round_trip",
}  # fmt: skip
"""Table -> kind of all of its rows."""

Features = dict[str, tuple[str, str]]
"""What -> by what it equals another node's, and as it is shown."""
Shares = Mapping[str, Sequence[float]]
"""Kind of rows -> by what share each is behind."""


def kind_of(row: Row) -> str:
    """The kind of a row; empty where no fault is known by it."""
    table, workload = row.table.name, row.key.workload
    if table == "disk_throughput":
        return "read" if workload.startswith("R") else "write"
    if table == "memory_throughput" and row.key.variant == "block":
        return "cache"
    if table == "memory_throughput":
        return "stream" if workload in ("RS", "WS", "RWS") else "random"
    return KIND.get(table, "")


def reasons(
    results: Results, rows: Rows, classes: Sequence[FleetClass], slow: Sequence[SlowNode]
) -> list[list[Message]]:
    """For each slow node the faults with which its rows are consistent, then the facts in which it
    differs from its class, the rarest first.
    """
    by_class = {node: each.nodes for each in classes for node in each.nodes}
    groups = [group for table in rows.values() for group in fleet.group_rows(table)]
    shares = _shares(groups, {each.node for each in slow})
    features: dict[str, dict[str, Features]] = {}
    for subsystem in {each.subsystem for each in slow}:
        table = [row for name in rows for row in rows[name] if row.table.subsystem == subsystem]
        features[subsystem] = _features(results, table)
    found = []
    for each in slow:
        like = {other.node for other in slow if other.subsystem == each.subsystem}
        nodes = by_class.get(each.node, ())
        channels = (results.facts_for(each.node).get("memory") or {}).get("channels")
        found.append(
            [
                *signatures(shares[each.node], each.subsystem, channels),
                *lost_time(groups, each),
                *differing(features[each.subsystem], each.node, nodes, like)[:SHOWN],
            ]
        )
    return found


def _shares(groups: Iterable[NodeGroup], nodes: set[str]) -> dict[str, dict[str, list[float]]]:
    """By what share the rows of some nodes are behind, by kind; the clock is that of CPU rows."""
    shares: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for group in groups:
        kind = kind_of(group.middle)
        clocks = [row.clock.hz for row in group.rows if row.clock]
        for row in group.rows:
            if row.key.node in nodes:
                shares[row.key.node][kind].append(group.behind(row))
                if row.clock:
                    behind = 1 - row.clock.hz / statistics.median(clocks)
                    shares[row.key.node]["clock"].append(behind)
    return shares


def signatures(shares: Shares, subsystem: str, channels: int | None = None) -> list[Message]:
    """The faults with which a node's rows are consistent: the first of each code.

    Args:
        shares: of all resources of the node.
        subsystem: in which it is slow.
        channels: of its class's memory, None where they are not known.
    """
    found: dict[str, Message] = {}
    for line in data.table("signatures"):
        ranges = {
            kind: [float(end) / 100 for end in line[kind].split()]
            for kind in SUBSYSTEM
            if line[kind] not in ("", UNKNOWN)
        }
        behind = {kind for kind, (low, _) in ranges.items() if low > 0}
        if SUBSYSTEM[min(behind)] != subsystem or line["code"] in found:
            continue
        if channels and line["channels"] and channels != int(line["channels"]):
            continue
        if any(line.get(kind) == UNKNOWN for kind in shares):
            continue
        fits = all(
            kind in shares and low <= statistics.median(shares[kind]) <= high
            for kind, (low, high) in ranges.items()
        )
        slow = [share for kind in behind for share in shares.get(kind, ())]
        if fits and max(slow) - min(slow) <= float(line["alike"]) / 100:
            fault = message("signature", case=line["code"], channels=line["channels"])
            found[line["code"]] = fault
    return list(found.values())


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
