"""Which nodes are equal, by their machine facts: repetitions of one row may come from any node of
one class.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from peakmark.formatting import listed

NAMED = 4
"""So many hosts are named; more are counted."""


class NodeClass(NamedTuple):
    """What equal nodes have in common, in words; empty where the facts do not tell it."""

    cpu: str
    memory: str
    kernel: str


TITLES = NodeClass("CPU", "memory", "kernel")


def node_class(facts: Mapping[str, Any]) -> NodeClass | None:
    """The class of a node by its machine facts (``machine/<host>.json``); None where there are
    none.

    Equal nodes differ by some hundred MiB in the memory that firmware and kernel leave. So the
    total is rounded up to whole GiB, and of large memories to the next eighth of a power of two,
    which is what was installed.
    """
    if not facts:
        return None
    cpu, memory, system = (facts.get(part) or {} for part in ("cpu", "memory", "os"))
    processor = str(cpu.get("model_name") or "")
    if processor and cpu.get("threads"):
        processor += f" with {cpu['threads']} CPUs"
    total = memory.get("total")
    installed = ""
    if total:
        step = 1 << max(30, total.bit_length() - 4)
        installed = f"{-(-total // step) * step / 2**30:g} GiB"
    return NodeClass(processor, installed, str(system.get("kernel") or ""))


def differences(classes: Mapping[str, NodeClass | None]) -> list[str]:
    """What makes nodes unequal, such as ``memory 256 GiB on node1 and 512 GiB on node2``; empty for
    equal ones.

    ``classes``: host -> its class, as ``node_class`` has it. What is not known of a host counts as
    equal.
    """
    found = []
    for place, title in enumerate(TITLES):
        hosts: dict[str, list[str]] = {}
        for host, known in classes.items():
            if known is not None and known[place]:
                hosts.setdefault(known[place], []).append(host)
        if len(hosts) > 1:
            each = [f"{value} on {_named(names)}" for value, names in hosts.items()]
            found.append(f"{title} {listed(each)}")
    return found


def _named(hosts: list[str]) -> str:
    return listed(hosts) if len(hosts) <= NAMED else f"{len(hosts)} nodes"
