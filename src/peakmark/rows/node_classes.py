"""Sort nodes into classes of equal equipment, and find in what nodes of one class differ.

A node may have a limit that its class has not, such as a CPU quota. Facts that the slow nodes of a class alone
have in common may be the reason for their slowness.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median_high
from typing import Any, NamedTuple

import pandas as pd

from peakmark.comparability import Equipment, equipment_of, fact, flat, matters, settings_of
from peakmark.formatting import gigabytes, natural, quantity
from peakmark.messages import Message, message
from peakmark.rows import schema
from peakmark.storage.results import Results

LEAST_NODES = 4
"""Fewest nodes of a class that can be compared with each other."""
MOST_FACTS = 3
"""Largest number of distinctive facts that are listed for the slow nodes of a class."""


def list_nodes(rows: pd.DataFrame, results: Results) -> pd.DataFrame:
    """Return the frame ``nodes``: each node of the rows with its class, the largest class first."""
    # The node of a row may be a pair, ``client+server``.
    names = set()
    for name in rows["node"].unique():
        names.update(name.split("+"))
    facts = {node: results.facts_for(node) for node in sorted(names, key=natural)}
    # ``any`` stands for a node of any class: it is a class only where no node is named.
    named = {node: known for node, known in facts.items() if node != "any"}
    classes = classes_of(named or facts)
    if len(facts) > len(named) > 0:
        classes["any"] = ["any"]
    limits: dict[str, list[str]] = {node: [] for node in facts}
    # (node, sentence): settings in which nodes with the same CPU differ, then limits of single
    # nodes of a class.
    found = [*settings_of(facts)]
    for members in classes.values():
        found += limits_of({node: facts[node] for node in members if facts[node]})
    for node, sentence in found:
        limits[node].append(sentence)
    lines = []
    for name, members in classes.items():
        for node in members:
            cpu = facts[node].get("cpu") or {}
            memory = facts[node].get("memory") or {}
            line = {
                "node": node,
                "class": name,
                "sockets": cpu.get("sockets"),
                "cores": cpu.get("cores"),
                "threads": cpu.get("threads"),
                "memory_bytes": memory.get("total"),
                "limits": json.dumps(limits[node], ensure_ascii=False),
            }
            lines.append(line | equipment_of(facts[node])._asdict())
    return schema.typed("nodes", pd.DataFrame(lines))


class NodeLimit(NamedTuple):
    """An amount that limits what a node reaches, and that is equal on all equal nodes.

    Attributes:
        part: part of the facts.
        key: key of the amount in that part.
        otherwise: the amount that an empty fact means; None if the amount is then unknown.
        text: function that returns the value as text.
        where: programs or files that show the cause.
    """

    part: str
    key: str
    otherwise: float | None
    text: Callable[[Any], str]
    where: str


def _quota(cpus: float) -> str:
    """Return the CPU quota of a node as text; infinity stands for no quota."""
    return "no CPU quota" if cpus == math.inf else f"a CPU quota of {cpus:g} CPUs"


def _link(bits_per_second: float) -> str:
    """Return the speed of a node's link as text."""
    return f"a link of {quantity(bits_per_second, 'bit/s')}"


LIMITS = (
    NodeLimit("limits", "cpu_quota", math.inf, _quota, "the cgroup and the unit of slurmd"),
    NodeLimit("memory", "total", None, gigabytes, "dmidecode -t memory"),
    NodeLimit("gpu", "count", 0, "{} GPUs".format, "dmesg and nvidia-smi"),
    NodeLimit("network", "speed_bps", None, _link, "ethtool"),
)
SAME_LIMIT = 0.95
"""Smallest ratio of amounts that count as equal: the firmware of a node takes some of its memory. A node that lacks
one of 16 modules or GPUs has a smaller ratio.
"""


def limits_of(facts: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield (node, sentence) for each limit that a node has and others of its class have not.

    Args:
        facts: node -> facts of the node, for the nodes of one class. Unknown facts are no limits.
    """
    for limit in LIMITS:
        values = {}
        for node, own in facts.items():
            # An empty fact may be a value: no quota is infinite, and no GPU is 0.
            value = (own.get(limit.part) or {}).get(limit.key) or limit.otherwise
            if value is not None:
                values[node] = value
        if not values:
            continue
        usual = median_high(values.values())
        for node, value in values.items():
            if value < usual * SAME_LIMIT:
                others = f"other nodes of its class {limit.text(usual)}"
                text = f"{node} has {limit.text(value)}, {others}: see {limit.where} there."
                yield node, text


def classes_of(facts: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return name of each class -> its nodes, the largest class first. A single class has no name.

    A class with fewer than ``LEAST_NODES`` nodes is merged into the most similar class with the same
    CPU. On its own it has too few nodes to be judged. In the larger class, its nodes are called slow if
    their unusual equipment slows them down.

    Args:
        facts: node -> facts of the node.
    """
    equipment = {node: equipment_of(known) for node, known in facts.items()}
    sizes = Counter(equipment.values())
    members: dict[Equipment, list[str]] = defaultdict(list)
    for node, own in equipment.items():
        members[joined_class(own, sizes)].append(node)
    largest_first = sorted(members.values(), key=lambda nodes: -len(nodes))
    if len(largest_first) == 1:
        return {"": largest_first[0]}
    return {class_name(number): nodes for number, nodes in enumerate(largest_first)}


def joined_class(own: Equipment, sizes: Mapping[Equipment, int]) -> Equipment:
    """Return the equipment of the class that a node joins.

    The class has the CPU of the node. Among such classes with at least ``LEAST_NODES`` nodes, it is
    the one that has most equipment in common with the node. If all are smaller, it is the largest.

    Args:
        own: equipment of the node.
        sizes: equipment -> number of nodes that have it.
    """
    # A fit is (whether the class is large enough, equipment in common, size). Any class has a better one than this.
    best, best_fit = own, (False, -1, -1)
    for other, size in sizes.items():
        if other.cpu != own.cpu:
            continue
        is_large = size >= LEAST_NODES
        # Of small classes only the size counts.
        common = own.in_common(other) if is_large else 0
        fit = (is_large, common, size)
        if fit > best_fit:
            best, best_fit = other, fit
    return best


def class_name(number: int) -> str:
    """Return ``A`` to ``Z`` for the numbers 0 to 25, then ``Z1``, ``Z2`` and so on."""
    return chr(ord("A") + number) if number < 26 else f"Z{number - 25}"


# -- reasons for slow nodes


def add_reasons(
    fleet: pd.DataFrame,
    rows: pd.DataFrame,
    nodes: pd.DataFrame,
    results: Results,
) -> pd.DataFrame:
    """Add the column ``reasons``: facts that the slow nodes of a class alone have in common, as sentences.

    Facts are listed in ``data/comparability.csv``, with the rows for which they matter. They prove no cause.

    Args:
        fleet: frame ``fleet``.
        rows: frame ``rows``.
        nodes: frame ``nodes``.
        results: records and facts of the campaign.
    """
    classes = nodes.set_index("node")["class"]
    # Index of a line of ``fleet`` -> its reasons as JSON. All slow nodes of a class and subsystem have the same.
    texts: dict[Any, str] = {}
    # Reasons belong to a node and subsystem. A line with a table is about pairs of nodes.
    is_node = fleet["kind"].eq("node") & fleet["table"].eq("")
    for subsystem, of_subsystem in fleet[is_node].groupby("subsystem"):
        facts = facts_of_nodes(rows[rows["subsystem"].eq(subsystem)], results)
        for name, of_class in of_subsystem.groupby(of_subsystem["name"].map(classes)):
            members = facts[facts["node"].map(classes).eq(name)]
            shared = [*distinctive_facts(members, of_class["name"].tolist())][:MOST_FACTS]
            sentences = [each.full_sentence for each in shared]
            texts |= dict.fromkeys(of_class.index, json.dumps(sentences, ensure_ascii=False))
    reasons = pd.Series(texts, index=fleet.index, dtype="object").fillna("")
    return fleet.assign(reasons=reasons)


def facts_of_nodes(rows: pd.DataFrame, results: Results) -> pd.DataFrame:
    """Return the facts of nodes that matter to their rows: columns ``node``, ``title`` and ``text``.

    Args:
        rows: rows of one subsystem.
        results: records and facts of the campaign.
    """
    own_rows = rows[rows["is_own"] & rows["n"].gt(0)]
    lines = []
    # One row is enough: all rows of a node have the same hosts, and so the same facts. The facts of
    # records (``recorded``) are those of this row.
    for row in schema.lines(own_rows.drop_duplicates("node")):
        known = facts_that_matter(json.loads(row.hosts), row.subsystem, row.instrument, results)
        known |= json.loads(row.recorded)
        lines += [(row.node, title, text) for title, text in known.items()]
    return pd.DataFrame(lines, columns=["node", "title", "text"])


def facts_that_matter(
    hosts: Sequence[str], subsystem: str, instrument: str, results: Results
) -> dict[str, str]:
    """Return the facts of hosts that matter to rows of a program, by title.

    If the hosts differ in a fact, the text lists all values: ``A or B``.
    """
    known: dict[str, set[str]] = {}
    for host in hosts:
        for name, text in flat(results.facts.get(host)):
            if matters(name, subsystem, instrument):
                known.setdefault(fact(name)["title"], set()).add(text)
    return {title: " or ".join(sorted(texts)) for title, texts in known.items()}


def distinctive_facts(facts: pd.DataFrame, slow: Sequence[str]) -> Iterator[Message]:
    """Yield a message on each fact that all slow nodes of a class share and no other node has.

    Args:
        facts: facts of the nodes of the class, as ``facts_of_nodes`` returns them.
        slow: names of the slow nodes.
    """
    healthy = facts.loc[~facts["node"].isin(slow), "node"].nunique()
    for title, of_title in facts.groupby("title", sort=False):
        is_slow = of_title["node"].isin(slow)
        own = of_title.loc[is_slow, "text"]
        others = of_title.loc[~is_slow, "text"]
        # Each node has at most one text for a title.
        is_shared = len(own) == len(slow) and own.nunique() == 1
        if not is_shared or others.isin(own).any():
            continue
        # Text of the fact -> number of healthy nodes that have it; empty for those whose fact is unknown.
        usual = others.value_counts()
        usual[""] = healthy - len(others)
        # A fact that differs on every node is an identifier (a serial number), not a cause.
        if 2 * usual.max() <= healthy:
            continue
        yield message(
            "differs",
            what=str(title),
            value=own.iloc[0],
            usual=str(usual.idxmax()) or "unknown",
            slow=len(slow),
            others=healthy,
        )
