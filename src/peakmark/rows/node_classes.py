"""Sort nodes into classes of equal equipment, and find limits that a node has and its class has not."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from statistics import median_high
from typing import Any, NamedTuple

import pandas as pd

from peakmark.comparability import Equipment, equipment_of
from peakmark.formatting import gigabytes, natural, quantity
from peakmark.rows import schema
from peakmark.storage.results import Results

LEAST_NODES = 4
"""Fewest nodes of a class that can be compared with each other."""


def list_nodes(rows: pd.DataFrame, results: Results) -> pd.DataFrame:
    """Return the frame ``nodes``: each node of the rows with its class, the largest class first."""
    names = set()
    for name in rows["node"].unique():
        names.update(name.split("+"))
    facts = {node: results.facts_for(node) for node in sorted(names, key=natural)}
    lines = []
    for name, members in classes_of(facts).items():
        limits = limits_of({node: facts[node] for node in members if facts[node]})
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
                "limits": json.dumps(limits.get(node, []), ensure_ascii=False),
            }
            lines.append(line | equipment_of(facts[node])._asdict())
    return schema.typed("nodes", pd.DataFrame(lines))


class NodeLimit(NamedTuple):
    """A limit that equal nodes have in common.

    Attributes:
        part: part of the facts.
        key: key of the fact in that part: an amount, or the name of a policy.
        otherwise: its value where the fact is empty; None if it is not known then.
        text: function that returns the value as text.
        where: programs or files that show the cause.
    """

    part: str
    key: str
    otherwise: float | None
    text: Callable[[Any], str]
    where: str


def _quota(cpus: float) -> str:
    return "no CPU quota" if cpus == math.inf else f"a CPU quota of {cpus:g} CPUs"


def _link(bits_per_second: float) -> str:
    return f"a link of {quantity(bits_per_second, 'bit/s')}"


LIMITS = (
    NodeLimit("limits", "cpu_quota", math.inf, _quota, "the cgroup and the unit of slurmd"),
    NodeLimit("cpu", "governor", None, "the governor {}".format, "cpupower frequency-info"),
    NodeLimit("memory", "total", None, gigabytes, "dmidecode -t memory"),
    NodeLimit("gpu", "count", 0, "{} GPUs".format, "dmesg and nvidia-smi"),
    NodeLimit("network", "speed_bps", None, _link, "ethtool"),
)
SAME_LIMIT = 0.9
"""Smallest ratio of amounts that count as equal: the firmware of a node takes some of its memory."""


def limits_of(facts: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return node -> a sentence on each limit that it has and most nodes of its class have not.

    Args:
        facts: node -> facts of the node, for the nodes of one class. Unknown facts are no limits.
    """
    found: dict[str, list[str]] = {node: [] for node in facts}
    for limit in LIMITS:
        values = {}
        for node, own in facts.items():
            value = (own.get(limit.part) or {}).get(limit.key) or limit.otherwise
            if value is not None:
                values[node] = value
        if not values:
            continue
        usual, count = Counter(values.values()).most_common(1)[0]
        is_policy = isinstance(usual, str)
        if is_policy and 2 * count <= len(values):
            continue
        if not is_policy:
            usual = median_high(values.values())
        for node, value in values.items():
            is_less = value != usual if is_policy else value < usual * SAME_LIMIT
            if is_less:
                others = f"most nodes of its class {limit.text(usual)}"
                text = f"{node} has {limit.text(value)}, {others}: see {limit.where} there."
                found[node].append(text)
    return found


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
    best, best_fit = own, (False, -1, -1)
    for other, size in sizes.items():
        if other.cpu != own.cpu:
            continue
        is_large = size >= LEAST_NODES
        common = own.in_common(other) if is_large else 0
        fit = (is_large, common, size)
        if fit > best_fit:
            best, best_fit = other, fit
    return best


def class_name(number: int) -> str:
    """Return ``A`` to ``Z`` for the numbers 0 to 25, then ``Z1``, ``Z2`` and so on."""
    return chr(ord("A") + number) if number < 26 else f"Z{number - 25}"
