"""What this machine lacks is said before the first cell."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.hostile import one_grid, refused

from peakmark.errors import ConfigError
from peakmark.plan import plan
from peakmark.workflow import preflight

HERE: dict[str, Any] = {"tools_on": "here"}


NOT_HERE = {
    "a pool above the memory": (
        {**one_grid("memory", variants=["pool"], pool="100TiB"), **HERE},
        ["RWS-pool_64KiB_x1", "of memory", "smaller"],
    ),
    "blocks above the memory": ({**one_grid("memory", blocks=["100TiB"]), **HERE}, ["of memory"]),
    "files above the disk": ({**one_grid("disk", size="100TiB"), **HERE}, ["GB free", "size:"]),
    "an interface": (
        {**one_grid("cpu"), **HERE, "interface": "nowhere0"},
        ["interface", "nowhere0", "lo"],
    ),
    "a scratch folder": (
        {**one_grid("cpu"), **HERE, "scratch": "/nowhere"},
        ["scratch", "/nowhere", "does not exist"],
    ),
    "a scratch file": (
        {**one_grid("cpu"), **HERE, "scratch": "/etc/passwd"},
        ["/etc/passwd", "not a directory"],
    ),
    "a tool's path": (
        {**one_grid("cpu"), **HERE, "tools": {"fio": "/nowhere/fio"}},
        ["tools.fio", "/nowhere/fio", "false"],
    ),
}


@pytest.mark.parametrize("kind", NOT_HERE)
def test_what_this_machine_lacks_is_said_before_the_first_cell(kind: str) -> None:
    values, words = NOT_HERE[kind]
    made = plan.make(values)
    with pytest.raises(ConfigError) as caught:
        preflight.check(made, made.cells)
    refused(str(caught.value), *words)
    preflight.check(made, [])  # a campaign that is measured is reported wherever it is
    # On a cluster the nodes have it, or not.
    preflight.check(plan.make({**values, "tools_on": "nodes"}), made.cells)


def test_what_this_machine_has_is_measured() -> None:
    values = {**one_grid("disk", size="1MiB"), **HERE, "scratch": "/tmp", "interface": "lo"}
    values["tools"] = {"fio": "/bin/sh"}
    made = plan.make(values)
    assert not preflight.check(made, made.cells)
