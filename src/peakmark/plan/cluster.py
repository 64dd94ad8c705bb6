"""The cluster a campaign is planned for: which nodes, what a job may ask for, what the site wants
to be told.
"""

from __future__ import annotations

import base64
import json
import os
import random
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from peakmark import slurm
from peakmark.errors import ConfigError
from peakmark.formatting import natural, plural
from peakmark.storage import facts
from peakmark.storage.facts import node_class

VARIABLE = "PEAKMARK_CLUSTER"
"""Hands the cluster to the jobs, so that each sees the plan that was submitted without asking Slurm
again.
"""

ANY = "any"


@dataclass(frozen=True)
class Cluster:
    """What Slurm said when the campaign was planned.

    partition  name of the partition
    asked      the configuration's ``nodes``
    nodes      names that cells are bound to; ``any`` leaves the choice to Slurm
    cpus       CPUs of the smallest node of all kinds
    memory     MiB of the smallest
    limit      longest job of the partition in minutes, None without a limit
    count      nodes that may be chosen and can be used now
    left_out   node -> state, of nodes of ``all`` that cannot be used now
    kinds      classes of equal nodes: ``cpus``, ``memory`` in MiB, ``nodes`` with their names,
               ``usable`` (how many can be used now) and ``chosen`` (whether ``nodes: any`` means
               this class)
    """

    partition: str
    asked: Any
    nodes: tuple[str, ...]
    cpus: int
    memory: int
    limit: int | None
    count: int
    left_out: dict[str, str] = field(default_factory=dict)
    kinds: list[dict[str, Any]] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "nodes": list(self.nodes)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Cluster:
        return cls(**{**data, "nodes": tuple(data["nodes"])})

    @property
    def chosen(self) -> dict[str, Any] | None:
        """The class of nodes that ``any`` means; None where nodes are named, or before one is
        chosen.
        """
        return next((kind for kind in self.kinds if kind.get("chosen")), None)

    def size_of(self, node: str) -> tuple[int, int]:
        """CPUs and memory (MiB) of a node; of the chosen class for ``any``."""
        kinds = [kind for kind in self.kinds if kind.get("chosen") or node in kind["nodes"]]
        if not kinds:
            return self.cpus, self.memory
        return int(kinds[0]["cpus"]), int(kinds[0]["memory"])

    def excluded(self, count: int) -> list[str]:
        """Nodes that a job of ``count`` nodes must not get: all of other classes, none where the
        class has fewer nodes.
        """
        chosen = self.chosen
        if chosen is None or len(chosen["nodes"]) < count:
            return []
        return [name for kind in self.kinds if kind is not chosen for name in kind["nodes"]]

    def eligible(self, count: int) -> list[str]:
        """Nodes that a job of ``count`` nodes may get where Slurm chooses."""
        excluded = set(self.excluded(count))
        return [name for kind in self.kinds for name in kind["nodes"] if name not in excluded]

    def choose(self, cpus: int, memory: int, pair: bool) -> Cluster:
        """The same with the class of equal nodes that holds all rows.

        Args:
            cpus: CPUs of the hungriest row.
            memory: MiB of the hungriest row.
            pair: whether a row takes two nodes at once.

        Returns:
            Where no class has enough, the one that comes nearest, in CPUs first: a row of many
            threads says nothing on few.
        """
        if self.nodes != (ANY,) or not self.kinds:
            return self

        def rank(kind: Mapping[str, Any]) -> tuple[Any, ...]:
            holds = min(kind["cpus"], cpus), min(kind["memory"], memory)
            return (
                *holds,
                bool(kind.get("chosen")),
                kind["usable"] > 0,
                len(kind["nodes"]) > pair,
                kind["usable"],
            )

        best = max(self.kinds, key=rank)
        kinds = [{**kind, "chosen": kind is best} for kind in self.kinds]
        return replace(self, kinds=kinds, count=best["usable"])


ALIKE = 0.9
"""Equal nodes differ in memory by what their firmware keeps for itself."""


def from_environment() -> Cluster | None:
    """The cluster as the controlling process found it; None on a machine of its own."""
    packed = os.environ.get(VARIABLE)
    return (
        Cluster.from_json(json.loads(zlib.decompress(base64.b64decode(packed)))) if packed else None
    )


def to_environment(cluster: Cluster) -> None:
    """Leave it to all processes that this one starts. Packed: the kernel takes 128 KiB a variable,
    which the names of some thousand nodes exceed.
    """
    text = json.dumps(cluster.to_json())
    os.environ[VARIABLE] = base64.b64encode(zlib.compress(text.encode())).decode()


def find(
    config: Mapping[str, Any],
    partition: str | None,
    folder: Path | None = None,
) -> Cluster:
    """Ask Slurm.

    Args:
        config: the configuration.
        partition: its name, None for the site file's or the default one.
        folder: the campaign's; an earlier run's choice of nodes stays, whatever is down today, and
            machine facts tell apart what Slurm takes for equal.

    Raises:
        SlurmError: Slurm does not answer, or has no such partition.
        ConfigError: ``nodes`` names one that is not in the partition.
    """
    asked = config.get("nodes", ANY)
    settings = settings_of(config)
    everything = slurm.nodes(partition or settings.get("partition"))
    wanted = settings.get("constraint")
    fitting = [
        node for node in everything if not (wanted and wanted.isalnum()) or wanted in node.features
    ]
    name = everything[0].partition
    if not fitting:
        raise ConfigError(
            f"no node of partition {name} has the feature {wanted!r} of slurm.constraint"
        )
    before = _earlier(folder / "plan.json", asked, name) if folder else None
    chosen, left_out = _choose(asked, int(config.get("seed", 1)), name, fitting, before)
    candidates = [node for node in fitting if node.name in chosen] or fitting
    kinds = _kinds(candidates, _classes(folder) if folder and asked == ANY else {})
    if asked == ANY and before is not None:
        chosen_before = set((before.chosen or {}).get("nodes", ()))
        kinds = [{**kind, "chosen": bool(chosen_before & set(kind["nodes"]))} for kind in kinds]
    return Cluster(
        partition=name,
        asked=asked,
        nodes=tuple(chosen),
        cpus=min(node.cpus for node in candidates),
        memory=min(node.memory for node in candidates),
        limit=everything[0].limit,
        count=sum(node.usable for node in fitting),
        left_out=left_out,
        kinds=kinds,
    )


def _kinds(nodes: Iterable[slurm.Node], classes: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Classes of equal nodes: what Slurm knows of them is the same, and so are the facts of those
    that have measured.
    """
    alike: dict[tuple[Any, ...], list[slurm.Node]] = {}
    for node in sorted(nodes, key=lambda node: (node.cpus, node.memory)):
        shape = (node.cpus, node.layout, node.features, node.gres)
        larger = [key for key in alike if key[:-1] == shape and node.memory * ALIKE <= key[-1]]
        alike.setdefault(larger[0] if larger else (*shape, node.memory), []).append(node)
    kinds = []
    for group in alike.values():
        for members in _by_facts(group, classes):
            kinds.append(
                {
                    "cpus": members[0].cpus,
                    "memory": min(node.memory for node in members),
                    "nodes": sorted((node.name for node in members), key=natural),
                    "usable": sum(node.usable for node in members),
                    "chosen": False,
                }
            )
    return kinds


def _by_facts(group: list[slurm.Node], classes: Mapping[str, Any]) -> list[list[slurm.Node]]:
    """Split nodes that Slurm knows as equal by their facts; nodes without facts go with the only
    known class.
    """
    known = {classes[node.name] for node in group if node.name in classes}
    if len(known) < 2:
        return [group]
    parts: dict[Any, list[slurm.Node]] = {}
    for node in group:
        parts.setdefault(classes.get(node.name), []).append(node)
    return list(parts.values())


def _classes(folder: Path) -> dict[str, Any]:
    """Host -> its class, of hosts that have measured in this campaign."""
    return {host: node_class(found) for host, found in facts.whole(folder).items()}


def _choose(
    asked: Any, seed: int, partition: str, nodes: list[slurm.Node], before: Cluster | None
) -> tuple[list[str], dict[str, str]]:
    if asked == ANY:
        return [ANY], {}
    if asked != "all" and not isinstance(asked, Mapping):
        named, names = (
            [asked] if isinstance(asked, str) else list(asked),
            [node.name for node in nodes],
        )
        for name in named:
            if name not in names:
                there = f"{', '.join(names[:8])}{', ...' if len(names) > 8 else ''}"
                raise ConfigError(f"nodes has {name!r}: partition {partition} has {there}")
        return named, {}
    if before is not None:
        return list(before.nodes), before.left_out
    usable = [node.name for node in nodes if node.usable]
    if asked == "all":
        if not usable:
            raise ConfigError(
                f"nodes: all, but no node of partition {partition} can be used now; see sinfo -R"
            )
        return usable, {node.name: node.state for node in nodes if not node.usable}
    count = int(asked["sample"])
    if count > len(usable):
        there = f"{plural(len(usable), 'node')} that can be used now"
        raise ConfigError(f"nodes.sample is {count}: partition {partition} has {there}")
    picked = random.Random(f"{seed}/nodes").sample(usable, count)  # noqa: S311 - a choice, not a secret
    return sorted(picked, key=natural), {}


def _earlier(path: Path, asked: Any, partition: str) -> Cluster | None:
    """The cluster of a run before that asked for the same nodes; None where its plan is damaged, or
    there was none.
    """
    try:
        before = Cluster.from_json(json.loads(path.read_text(encoding="utf-8"))["cluster"])
        if (before.asked, before.partition) != (asked, partition):
            return None
        return replace(before, nodes=tuple(map(str, before.nodes)), left_out=dict(before.left_out))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def on_this_machine(asked: Any) -> tuple[str, ...]:
    """Nodes of a campaign without a cluster. Errors: ConfigError."""
    names = [asked] if isinstance(asked, str) else asked
    if asked == "all" or isinstance(names, Mapping) or len(names) != 1:
        raise ConfigError(
            f"nodes is {json.dumps(asked, ensure_ascii=False)}: this machine alone is measured here; "
            "use --profile slurm for several nodes, or nodes: any"
        )
    return tuple(names)


def peers(nodes: Sequence[str], how: str, seed: int) -> dict[str, str]:
    """Node -> the node its network cells talk to: the next one of a ``ring``, in the plan's order
    or a ``random`` one, or ``fixed``: the first one, which itself talks to the second. Empty
    below two nodes.
    """
    if len(nodes) < 2:
        return {}
    if how == "fixed":
        return {node: nodes[0] if node != nodes[0] else nodes[1] for node in nodes}
    order = list(nodes)
    if how == "random":
        random.Random(f"{seed}/peers").shuffle(order)  # noqa: S311 - an order, not a secret
    return dict(zip(order, [*order[1:], order[0]], strict=True))


def settings_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """Section ``slurm`` of the site file; empty without one."""
    return dict((config.get("site_facts") or {}).get("slurm") or {})
