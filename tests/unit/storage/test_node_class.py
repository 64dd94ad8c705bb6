"""The class of a node, as its machine facts tell it."""

import copy
import json
from typing import Any

import pytest
from tests.unit.campaign_data import DATA

from peakmark.storage.facts import differences, node_class

VM: dict[str, Any] = json.loads((DATA / "machine" / "zen3-vm.json").read_text())
MIB = 1 << 20


def changed(part: str, name: str, value: object) -> dict[str, Any]:
    other = copy.deepcopy(VM)
    other[part][name] = value
    return other


@pytest.mark.parametrize(
    ("part", "name", "value", "title"),
    [
        ("cpu", "model_name", "Another CPU", "CPU"),
        ("cpu", "threads", 64, "CPU"),
        ("memory", "total", 4 * VM["memory"]["total"], "memory"),
        ("os", "kernel", "6.1.0-49-amd64", "kernel"),
    ],
)
def test_a_class_is_cpu_memory_and_kernel(part: str, name: str, value: object, title: str) -> None:
    one, other = node_class(VM), node_class(changed(part, name, value))
    assert one == node_class(copy.deepcopy(VM)) != other
    (differ,) = differences({"a": one, "b": other, "c": one})
    assert differ.startswith(title) and "a and c" in differ and "on b" in differ
    assert differences({"a": one, "c": one}) == []


@pytest.mark.parametrize("installed", [2, 4, 8, 16, 96, 192, 256, 384, 512, 768, 1024, 1536, 2048])
def test_some_hundred_mebibytes_make_no_class(installed: int) -> None:
    """Nodes that report 98 and 96 % of the modules they hold; firmware and kernel keep the rest."""
    totals = [
        installed << 30,
        int(0.98 * (installed << 30)),
        int(0.96 * (installed << 30)) - 100 * MIB,
    ]
    classes = {str(total): node_class(changed("memory", "total", total)) for total in totals}
    assert differences(classes) == []
    assert {known.memory for known in classes.values() if known} == {f"{installed} GiB"}


def test_what_is_not_known_counts_as_equal() -> None:
    assert node_class({}) is None
    for part, name in (("cpu", "model_name"), ("memory", "total"), ("os", "kernel")):
        unknown = node_class(changed(part, name, None))
        assert differences({"a": node_class(VM), "b": unknown, "c": None}) == []


def test_many_hosts_are_counted() -> None:
    one, other = node_class(VM), node_class(changed("os", "kernel", "6.1"))
    (differ,) = differences({f"node{number}": one for number in range(40)} | {"odd": other})
    assert "40 nodes" in differ and "odd" in differ
