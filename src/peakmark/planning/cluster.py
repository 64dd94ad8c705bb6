"""The cluster a campaign is planned for: which nodes, what a job may ask for, what the site wants to be told."""

from __future__ import annotations

import base64
import json
import os
import random
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from peakmark import slurm
from peakmark.errors import ConfigError
from peakmark.formatting import natural, plural

VARIABLE = "PEAKMARK_CLUSTER"
"""Hands the cluster to the jobs, so that each sees the plan that was submitted without asking Slurm again."""

ANY = "any"


@dataclass(frozen=True)
class Cluster:
    """What was asked of Slurm once, when the campaign was planned.

    partition  name of the partition
    asked      the configuration's ``nodes``
    nodes      names that cells are bound to; ``any`` leaves the choice to Slurm
    cpus       CPUs of the smallest node that may be chosen
    memory     MiB of the smallest
    limit      longest job of the partition in minutes, None without a limit
    count      nodes of the partition that can be used now
    left_out   node -> state, of nodes of ``all`` that cannot be used now
    kinds      those that may be chosen, by size: ``cpus``, ``memory`` in MiB, ``nodes`` with their names
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

    def size_of(self, node: str) -> tuple[int, int]:
        """CPUs and memory (MiB) of a node; for ``any`` the most that a node has."""
        smallest = {"cpus": self.cpus, "memory": self.memory}
        here = [kind for kind in self.kinds if node == ANY or node in kind["nodes"]] or [smallest]
        return max(int(kind["cpus"]) for kind in here), max(int(kind["memory"]) for kind in here)

    def fitting(self, cpus: int, memory: int) -> list[dict[str, Any]]:
        """The kinds of node for what needs so many CPUs and so much memory (MiB): those that have both, else those that come
        nearest, in CPUs first, as a row of many threads says nothing on few of them.
        """
        return _most(_most(self.kinds, "cpus", cpus), "memory", memory)

    def too_small(self, cpus: int, memory: int) -> list[str]:
        """The nodes of all other kinds."""
        fitting = self.fitting(cpus, memory)
        return [name for kind in self.kinds if kind not in fitting for name in kind["nodes"]]

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Cluster:
        return cls(**{**data, "nodes": tuple(data["nodes"])})


ALIKE = 0.9
"""Nodes of one kind differ by what their firmware keeps for itself: where none has enough, not the very largest alone counts."""


def _most(kinds: list[dict[str, Any]], what: str, wanted: int) -> list[dict[str, Any]]:
    """Those that have as much as is wanted, the large ones where none has."""
    most = max((int(kind[what]) for kind in kinds), default=0)
    return [kind for kind in kinds if kind[what] >= (wanted if wanted <= most else ALIKE * most)]


def from_environment() -> Cluster | None:
    """The cluster as the controlling process found it; None on a machine of its own."""
    packed = os.environ.get(VARIABLE)
    return Cluster.from_json(json.loads(zlib.decompress(base64.b64decode(packed)))) if packed else None


def to_environment(cluster: Cluster) -> None:
    """Leave it to all processes that this one starts. Packed: the kernel takes 128 KiB a variable, which the names of some
    thousand nodes exceed.
    """
    text = json.dumps(cluster.to_json())
    os.environ[VARIABLE] = base64.b64encode(zlib.compress(text.encode())).decode()


def find(config: Mapping[str, Any], partition: str | None, earlier: Path | None = None) -> Cluster:
    """Ask Slurm. ``earlier`` is the ``plan.json`` of a run before: its choice of nodes stays, whatever is down today.

    Errors: SlurmError, ConfigError when ``nodes`` names one that is not in the partition.
    """
    asked = config.get("nodes", ANY)
    settings = settings_of(config)
    everything = slurm.nodes(partition or settings.get("partition"))
    wanted = settings.get("constraint")
    fitting = [node for node in everything if not (wanted and wanted.isalnum()) or wanted in node.features]
    name = everything[0].partition
    if not fitting:
        raise ConfigError(f"no node of partition {name} has the feature {wanted!r} of slurm.constraint")
    chosen, left_out = _choose(asked, int(config.get("seed", 1)), name, fitting, earlier)
    candidates = [node for node in fitting if node.name in chosen] or fitting
    return Cluster(
        partition=name,
        asked=asked,
        nodes=tuple(chosen),
        cpus=min(node.cpus for node in candidates),
        memory=min(node.memory for node in candidates),
        limit=everything[0].limit,
        count=sum(node.usable for node in fitting),
        left_out=left_out,
        kinds=_kinds(candidates),
    )


def _kinds(nodes: Iterable[slurm.Node]) -> list[dict[str, Any]]:
    sizes: dict[tuple[int, int], list[str]] = {}
    for node in nodes:
        sizes.setdefault((node.cpus, node.memory), []).append(node.name)
    return [{"cpus": cpus, "memory": memory, "nodes": names} for (cpus, memory), names in sorted(sizes.items())]


def peers(nodes: Sequence[str], how: str, seed: int) -> dict[str, str]:
    """Node -> the node its network cells talk to: the next one of a ``ring``, in the plan's order or a ``random`` one, or
    ``fixed``: the first one, which itself talks to the second. Empty below two nodes."""
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


def _choose(
    asked: Any, seed: int, partition: str, nodes: list[slurm.Node], earlier: Path | None
) -> tuple[list[str], dict[str, str]]:
    if asked == ANY:
        return [ANY], {}
    if asked != "all" and not isinstance(asked, Mapping):
        named, names = [asked] if isinstance(asked, str) else list(asked), [node.name for node in nodes]
        for name in named:
            if name not in names:
                there = f"{', '.join(names[:8])}{', ...' if len(names) > 8 else ''}"
                raise ConfigError(f"nodes has {name!r}: partition {partition} has {there}")
        return named, {}
    before = _earlier(earlier, asked, partition)
    if before is not None:
        return before
    usable = [node.name for node in nodes if node.usable]
    if asked == "all":
        if not usable:
            raise ConfigError(f"nodes: all, but no node of partition {partition} can be used now; see sinfo -R")
        return usable, {node.name: node.state for node in nodes if not node.usable}
    count = int(asked["sample"])
    if count > len(usable):
        there = f"{plural(len(usable), 'node')} that can be used now"
        raise ConfigError(f"nodes.sample is {count}: partition {partition} has {there}")
    picked = random.Random(f"{seed}/nodes").sample(usable, count)  # noqa: S311 - a choice, not a secret
    return sorted(picked, key=natural), {}


def _earlier(path: Path | None, asked: Any, partition: str) -> tuple[list[str], dict[str, str]] | None:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))["cluster"] if path is not None else None
        if not data or data["asked"] != asked or data["partition"] != partition:
            return None
        return [str(name) for name in data["nodes"]], dict(data["left_out"])
    except (OSError, ValueError, KeyError, TypeError):  # a damaged plan is written anew, and chooses anew
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
