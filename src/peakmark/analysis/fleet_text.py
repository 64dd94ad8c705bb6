"""What page one and the tables say of many nodes: which are slow, and how far the others spread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from peakmark.analysis import findings, fleet
from peakmark.analysis.findings import Conclusion
from peakmark.analysis.fleet import NodeGroup, Rows, Slow
from peakmark.analysis.label_formatter import LabelFormatter, Topic
from peakmark.analysis.row import Row
from peakmark.catalogue import SUBSYSTEMS
from peakmark.formatting import listed, percent, plural

NAMED = 8
"""So many nodes are named; the others are counted."""
BEYOND = f"{100 * fleet.BEYOND:g}\u00a0%"


def slow(rows: Rows, mark: str = ".") -> list[str]:
    """Sentences on the nodes that are slow in a resource, and on single rows of others; what the
    words mean stands last.
    """
    every = fleet.nodes(rows)
    if len(every) < 2:
        return []
    nodes = fleet.slow_nodes(rows)
    mostly = [entry for entry in nodes if entry.mostly]
    sentences = [_sentence(entry, mark) for entry in mostly[:NAMED]]
    if len(mostly) > NAMED:
        rest = listed(
            [
                f"{entry.node} ({SUBSYSTEMS[entry.subsystem].title})"
                for entry in mostly[NAMED : 3 * NAMED]
            ]
        )
        more = f" and {len(mostly) - 3 * NAMED} more" if len(mostly) > 3 * NAMED else ""
        sentences.append(f"Slow in most rows of a resource too: {rest}{more}.")
    single = [entry for entry in nodes if not entry.mostly]
    if single:
        which = len({entry.node for entry in single})
        sentences.append(
            f"{plural(sum(entry.rows for entry in single), 'single row')} of {plural(which, 'other node')} lie beyond the median, too, "
            "as chance can bring it with few repetitions: the tables name them."
        )
    if not mostly:
        sentences.insert(0, f"No node of {len(every)} is slow in most rows of a resource.")
    sentences.append(
        f"Slow: the whole interval of most rows is worse than the median of all nodes by more than {BEYOND}, or all rows together "
        "are, far beyond the other nodes. "
        "tables/nodes.csv has every node."
    )
    return sentences


def _sentence(entry: Slow, mark: str) -> str:
    resource = SUBSYSTEMS[entry.subsystem].named
    rows = (
        f"in all {entry.of} rows"
        if entry.rows == entry.of
        else f"in {entry.rows} of {plural(entry.of, 'row')}"
    )
    if (
        entry.rows < fleet.MOSTLY * entry.of
    ):  # its single rows are too uncertain, all together are not
        rows = f"in the median of {plural(entry.of, 'row')}, beyond all that the other nodes show"
    return f"{entry.node} is slow: its {resource} is {percent(entry.behind, mark)}\u00a0% behind the median of all nodes ({rows})."


def of(rows: Sequence[Row], mark: str = ".") -> list[Conclusion]:
    """The findings of one table of many nodes: on the nodes, then what the rows of the typical node
    say.
    """
    typical = [replace(row, key=row.key._replace(node="any")) for row in fleet.typical(rows)]
    sentences = [
        replace(finding, heading=f"{finding.heading}, typical node")
        if finding.topic in (Topic.LIMIT, Topic.DOUBT)
        else finding
        for finding in findings.of(typical, mark)
    ]
    return [*of_nodes(rows, mark), *sentences]


def of_nodes(rows: Sequence[Row], mark: str = ".") -> list[Conclusion]:
    """How far nodes spread in the points of one table, and which lie apart."""
    groups = [group for group in fleet.groups(rows) if len(group.rows) > 1]
    if not groups:
        return []
    labels = LabelFormatter(groups[0].table, mark)
    ordered = sorted(groups, key=lambda group: group.range)
    least, most = ordered[0], ordered[-1]
    text = f"Lowest and highest node differ by {percent(least.range, mark)}\u00a0% of their median ({labels.row(least.middle, on_all=True)})"
    if most is not least:
        text += f" to {percent(most.range, mark)}\u00a0% ({labels.row(most.middle, on_all=True)})"
    sentences = [(Topic.NODES, f"{text}."), *((Topic.APART, text) for text in _apart(groups, mark))]
    return [
        Conclusion(topic, topic.heading(labels.table), sentence) for topic, sentence in sentences
    ]


def _apart(groups: Sequence[NodeGroup], mark: str) -> Iterator[str]:
    for word, sign in (("slower", 1), ("faster", -1)):
        by_node: dict[str, list[float]] = {}
        for group in groups:
            for row in group.slow if sign > 0 else group.fast:
                by_node.setdefault(row.key.node, []).append(sign * group.behind(row))
        if not by_node:
            continue
        ordered = sorted(by_node.items(), key=lambda pair: (-len(pair[1]), -max(pair[1])))
        named = [
            f"{node} ({plural(len(shares), 'row')}, up to {percent(max(shares), mark)}\u00a0%)"
            for node, shares in ordered[:NAMED]
        ]
        more = f", and {len(ordered) - NAMED} more" if len(ordered) > NAMED else ""
        yield f"Of {len(groups)} rows {word} than the median of all nodes by more than {BEYOND}: {listed(named)}{more}."
