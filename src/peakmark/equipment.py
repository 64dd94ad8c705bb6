"""Describe the equipment of a node in words, by which nodes count as equal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from peakmark.formatting import quantity


class NodeClass(NamedTuple):
    """Properties that equal nodes share, as text. A property is empty if the facts lack it."""

    cpu: str
    memory: str
    kernel: str


TITLES = NodeClass("CPU", "memory", "kernel")
"""Name of each property in sentences."""


def node_class(facts: Mapping[str, Any]) -> NodeClass | None:
    """Return the class of a node by its machine facts; None without facts.

    Firmware and kernel reserve some hundred MiB, which differ between equal nodes. The total memory is
    therefore rounded up to the installed size: to whole GiB, or for large memories to the next eighth
    of a power of two.
    """
    if not facts:
        return None
    cpu = facts.get("cpu") or {}
    memory = facts.get("memory") or {}
    system = facts.get("os") or {}
    processor = str(cpu.get("model_name") or "")
    if processor and cpu.get("threads"):
        processor += f" with {cpu['threads']} CPUs"
    total = memory.get("total")
    installed = ""
    if total:
        step = 1 << max(30, total.bit_length() - 4)
        installed = f"{-(-total // step) * step / 2**30:g} GiB"
    return NodeClass(processor, installed, str(system.get("kernel") or ""))


class Equipment(NamedTuple):
    """Equipment that the nodes of a class have in common, in words; empty if it is not known."""

    cpu: str = ""
    memory: str = ""
    network: str = ""
    kernel: str = ""
    clock: str = ""


def equipment_of(facts: Mapping[str, Any]) -> Equipment:
    """Return the equipment of a node.

    Args:
        facts: content of the node's ``machine/HOST.json``.
    """
    known = node_class(facts)
    if known is None:
        return Equipment()
    network, cpu = facts.get("network") or {}, facts.get("cpu") or {}
    speed = quantity(network["speed_bps"], "bit/s") if network.get("speed_bps") else ""
    card = " ".join(filter(None, [network.get("driver"), speed]))
    turbo = ""
    if cpu.get("turbo") is not None:
        turbo = "turbo on" if cpu["turbo"] else "turbo off"
    clock = ", ".join(filter(None, [cpu.get("governor"), turbo]))
    return Equipment(
        cpu=known.cpu, memory=known.memory, network=card, kernel=known.kernel, clock=clock
    )
