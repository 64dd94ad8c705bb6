"""The cluster a campaign is planned for: which nodes, what a job may ask for, what the site wants to be told."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from peakmark import slurm
from peakmark.errors import ConfigError
from peakmark.formatting import plural

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
    """

    partition: str
    asked: Any
    nodes: tuple[str, ...]
    cpus: int
    memory: int
    limit: int | None
    count: int
    left_out: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "nodes": list(self.nodes)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Cluster:
        return cls(**{**data, "nodes": tuple(data["nodes"])})


def from_environment() -> Cluster | None:
    """The cluster as the controlling process found it; None on a machine of its own."""
    text = os.environ.get(VARIABLE)
    return Cluster.from_json(json.loads(text)) if text else None


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
    )


def settings_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """Section ``slurm`` of the site file; empty without one."""
    return dict((config.get("site_facts") or {}).get("slurm") or {})


def _choose(
    asked: Any, seed: int, partition: str, nodes: list[slurm.Node], earlier: Path | None
) -> tuple[list[str], dict[str, str]]:
    if asked == ANY:
        return [ANY], {}
    names = [node.name for node in nodes]
    if asked == "all" or isinstance(asked, Mapping):
        before = _earlier(earlier, asked, partition)
        if before is not None:
            return before
    if asked == "all":
        left_out = {node.name: node.state for node in nodes if not node.usable}
        chosen = [name for name in names if name not in left_out]
        if not chosen:
            raise ConfigError(f"nodes: all, but no node of partition {partition} can be used now; see sinfo -R")
        return chosen, left_out
    if isinstance(asked, Mapping):
        usable = [node.name for node in nodes if node.usable]
        count = int(asked["sample"])
        if count > len(usable):
            raise ConfigError(
                f"nodes.sample is {count}: partition {partition} has {plural(len(usable), 'node')} that can be used now"
            )
        picked = random.Random(f"{seed}/nodes").sample(usable, count)  # noqa: S311 - a choice, not a secret
        return sorted(picked, key=slurm.natural), {}
    listed = [asked] if isinstance(asked, str) else list(asked)
    for name in listed:
        if name not in names:
            raise ConfigError(
                f"nodes has {name!r}: partition {partition} has {', '.join(names[:8])}{', ...' if len(names) > 8 else ''}"
            )
    return listed, {}


def _earlier(path: Path | None, asked: Any, partition: str) -> tuple[list[str], dict[str, str]] | None:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))["cluster"] if path is not None else None
    except (OSError, ValueError, KeyError):
        return None
    if not data or data["asked"] != asked or data["partition"] != partition:
        return None
    return list(data["nodes"]), dict(data["left_out"])


def on_this_machine(asked: Any) -> tuple[str, ...]:
    """Nodes of a campaign without a cluster. Errors: ConfigError."""
    names = [asked] if isinstance(asked, str) else asked
    if asked == "all" or isinstance(names, Mapping) or len(names) != 1:
        raise ConfigError(
            f"nodes is {json.dumps(asked, ensure_ascii=False)}: this machine alone is measured here; "
            "use --profile slurm for several nodes, or nodes: any"
        )
    return tuple(names)
