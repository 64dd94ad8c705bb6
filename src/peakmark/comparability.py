"""Which recorded facts must be equal for a comparison: of nodes, of the hosts of a row, or of two campaigns.

Nodes are equal if their equipment is. ``data/comparability.csv`` says which facts of two campaigns
matter to which subsystems and programs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from peakmark import data
from peakmark.catalogue import KERNELS
from peakmark.formatting import gigabytes, listed, quantity, size

UNITS: Mapping[str, Callable[[Any], str]] = {"bytes": size, "GB": gigabytes}
"""Unit of a fact in ``comparability.csv`` -> function that formats its numbers."""
NO_FACT: Mapping[str, str] = {"title": "", "subsystems": "", "programs": "", "unit": ""}
"""Columns of ``comparability.csv`` for a fact that has no line there."""
TITLES = {"cpu": "CPU", "memory": "memory", "kernel": "kernel"}
"""Property that hosts of one row must share -> its name in sentences."""

MOST_NAMED = 4
"""Largest number of hosts that a sentence names. If there are more, the sentence states their number."""


# -- equal nodes


class Equipment(NamedTuple):
    """Equipment of a node, or what the nodes of a class have in common; empty if it is not known."""

    cpu: str = ""
    memory: str = ""
    network: str = ""
    kernel: str = ""
    clock: str = ""

    def in_common(self, other: Equipment) -> int:
        """Return the number of properties that are equal, or unknown in both."""
        return sum(own == its for own, its in zip(self, other, strict=True))


def equipment_of(facts: Mapping[str, Any]) -> Equipment:
    """Return the equipment of a node.

    Firmware and kernel reserve some hundred MiB, and not the same on equal nodes. The total memory is
    therefore rounded up to the installed size: below 16 GiB to whole GiB, otherwise to a multiple of an
    eighth of the largest power of two that the memory contains.

    Args:
        facts: content of the node's ``machine/HOST.json``; may be empty.
    """
    cpu, memory = facts.get("cpu") or {}, facts.get("memory") or {}
    network, system = facts.get("network") or {}, facts.get("os") or {}
    processor = str(cpu.get("model_name") or "")
    if processor and cpu.get("threads"):
        # A name such as AMD EPYC, which virtual machines show, is that of several generations.
        # CPUs of Arm have no family.
        if cpu.get("family"):
            processor += f", family {cpu['family']} model {cpu.get('model')}"
        processor += f", with {cpu['threads']} CPUs"
    total = memory.get("total")
    installed = ""
    if total:
        # A total of n bits contains the power 2^(n - 1), whose eighth is 2^(n - 4). 2^30 B are 1 GiB.
        step = 1 << max(30, total.bit_length() - 4)
        rounded_up = -(-total // step) * step
        installed = f"{rounded_up / 2**30:g} GiB"
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


def differences(equipment: Mapping[str, Equipment]) -> list[str]:
    """Return how nodes differ, a text for each property: ``memory 256 GiB on node1 and 512 GiB on node2``.

    Only the properties in ``TITLES`` are compared.

    Args:
        equipment: host -> its equipment. Unknown properties count as equal.
    """
    found = []
    for name, title in TITLES.items():
        each = unlike({host: getattr(known, name) for host, known in equipment.items()})
        if each:
            found.append(f"{title} {each}")
    return found


def unlike(values: Mapping[str, str]) -> str:
    """Return which hosts have which value, such as ``256 GiB on node1 and 512 GiB on node2``; empty if all have the same.

    Args:
        values: host -> value as text; empty if it is not known, which counts as equal.
    """
    hosts = defaultdict[str, list[str]](list)
    for host, value in values.items():
        if value:
            hosts[value].append(host)
    if len(hosts) < 2:
        return ""
    return listed([f"{value} on {_named(names)}" for value, names in hosts.items()])


SETTINGS = {"governor": "governor", "turbo": "turbo mode", "smt": "SMT"}
"""Fact of the processor that an administrator sets -> its name in sentences."""
_STATES = {True: "enabled", False: "disabled", None: ""}
"""Fact that is no text -> its text."""


def settings_of(facts: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield a node and a sentence for each setting in which nodes with the same model of processor differ.

    The sentence is about all nodes with this model, which may be in different classes. The node is
    the first with this model. Nodes whose model is unknown are compared as if they had one model.

    Args:
        facts: node -> facts of the node, for all nodes. Unknown facts count as equal.
    """
    # (model, name of the setting) -> node -> setting
    values: dict[tuple[Any, str], dict[str, Any]] = defaultdict(dict)
    for node, known in facts.items():
        cpu = known.get("cpu") or {}
        for key, name in SETTINGS.items():
            setting = cpu.get(key)
            values[cpu.get("model_name"), name][node] = _STATES.get(setting, setting)
    for (_, name), of_model in values.items():
        each = unlike(of_model)
        if each:
            yield next(iter(of_model)), f"Nodes with the same CPU differ in {name}: {each}."


def _named(hosts: list[str]) -> str:
    """Return the names of hosts, or their number if they are more than ``MOST_NAMED``."""
    if len(hosts) <= MOST_NAMED:
        return listed(hosts)
    return f"{len(hosts)} nodes"


# -- facts of two campaigns


@cache
def fact(name: str) -> Mapping[str, str]:
    """Return the line of ``comparability.csv`` for the dotted name of a fact.

    The line of the longest prefix of the name is used. The rest of the name is added to its title.
    """
    known = {line["name"]: line for line in data.table("comparability")}
    prefix = name
    while prefix and prefix not in known:
        prefix = prefix.rpartition(".")[0]
    line = known.get(prefix, NO_FACT)
    rest = name.removeprefix(prefix).replace(".", " ")
    title = name
    if line["title"]:
        title = line["title"] + rest
    return {**line, "title": title}


def flat(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield the dotted name and the text of each known value in nested mappings and lists.

    None, empty texts and empty lists are unknown.
    """
    # Number the members of a list of mappings, such as GPUs, from 1.
    if isinstance(value, list) and any(isinstance(each, dict) for each in value):
        value = dict(enumerate(value, 1))
    if isinstance(value, Mapping):
        prefix = f"{name}." if name else ""
        for key, each in value.items():
            yield from flat(each, f"{prefix}{key}")
    elif value not in (None, "", []):
        members = value if isinstance(value, list) else [value]
        yield name, ", ".join(_word(member, name) for member in members)


def _word(value: Any, name: str) -> str:
    """Return a value as text, in the unit that ``comparability.csv`` states for its fact."""
    form = UNITS.get(fact(name)["unit"], str)
    # Both units are of whole numbers of bytes. Any other value is printed as it is.
    if isinstance(value, int):
        return form(value)
    return str(value)


@cache
def is_listed(name: str) -> bool:
    """Return whether ``comparability.csv`` states subsystems for this fact, or has a line for a fact below it."""
    if fact(name)["subsystems"]:
        return True
    return any(line["name"].startswith(f"{name}.") for line in data.table("comparability"))


def matters(name: str, subsystem: str, instrument: str) -> bool:
    """Return whether a fact, given by its dotted name, matters for the rows of a program."""
    line = fact(name)
    is_kernel = instrument == KERNELS[subsystem]
    # The subsystems of a fact are one text, such as "cpu memory". A fact of "kernels" matters to peakmark's kernels
    # alone, any other to all programs.
    is_of_program = line["programs"] != "kernels" or is_kernel
    return subsystem in line["subsystems"] and is_of_program
