"""Describe the equipment of a node in words: nodes with the same equipment count as equal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from peakmark.formatting import quantity


class Equipment(NamedTuple):
    """Equipment of a node, or what the nodes of a class have in common; empty if it is not known."""

    cpu: str = ""
    memory: str = ""
    network: str = ""
    kernel: str = ""
    clock: str = ""

    def in_common(self, other: Equipment) -> int:
        """Return the number of properties that are equal."""
        return sum(own == its for own, its in zip(self, other, strict=True))


TITLES = {"cpu": "CPU", "memory": "memory", "kernel": "kernel"}
"""Property that hosts of one row must share -> its name in sentences."""


def equipment_of(facts: Mapping[str, Any]) -> Equipment:
    """Return the equipment of a node.

    Firmware and kernel reserve some hundred MiB, which differ between equal nodes. The total memory is
    therefore rounded up to the installed size: to whole GiB, or for large memories to the next eighth
    of a power of two.

    Args:
        facts: content of the node's ``machine/HOST.json``; may be empty.
    """
    cpu, memory = facts.get("cpu") or {}, facts.get("memory") or {}
    network, system = facts.get("network") or {}, facts.get("os") or {}
    processor = str(cpu.get("model_name") or "")
    if processor and cpu.get("threads"):
        processor += f" with {cpu['threads']} CPUs"
    total = memory.get("total")
    installed = ""
    if total:
        step = 1 << max(30, total.bit_length() - 4)
        installed = f"{-(-total // step) * step / 2**30:g} GiB"
    speed = quantity(network["speed_bps"], "bit/s") if network.get("speed_bps") else ""
    turbo = ""
    if cpu.get("turbo") is not None:
        turbo = "turbo on" if cpu["turbo"] else "turbo off"
    return Equipment(
        cpu=processor,
        memory=installed,
        network=" ".join(filter(None, [network.get("driver"), speed])),
        kernel=str(system.get("kernel") or ""),
        clock=", ".join(filter(None, [cpu.get("governor"), turbo])),
    )
