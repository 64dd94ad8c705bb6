"""A wall clock that is set back by an hour while programs measure, in a guest's kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from guest_cells import (
    ASKING,
    GUEST_S,
    OTHERS,
    OURS,
    Seen,
    assert_nothing_left,
    boot,
    measured_or_skip,
    record_of,
    repeated,
)

from peakmark.cell import Cell


def while_set_back(task: dict[str, Any], cell: Cell) -> dict[str, Any]:
    one: dict[str, Any] = next(one for one in task["seen"] if one["cell"] == cell.id)
    assert one["set_back"] > 0  # the clock was set while the program ran
    return one


@pytest.mark.parametrize("name", OURS)
def test_our_kernels_do_not_notice_that_the_clock_goes_back(seen: Seen, name: str) -> None:
    """They ask only the clock that nobody can set."""
    task, cell = seen("clock"), Cell.from_json(repeated(OURS[name], 1))
    one = while_set_back(task, cell)
    assert one["failed"] is None, one["failed"]
    record = record_of(task, cell)
    assert record["status"] == "ok", record["reason"]
    # On a busy machine its threads may begin after the 0.4 s have.
    assert 0.1 <= record["measurements"][0]["details"]["seconds"] <= one["elapsed"]
    assert 0.35 <= record["context"]["seconds"] <= one["elapsed"]


def assert_no_wrong_number(task: dict[str, Any], cell: Cell) -> None:
    """Either the same as without, within a factor, or a failed attempt: never one that is off by an
    hour.
    """
    right, other = Cell.from_json(repeated(cell, 0)), Cell.from_json(repeated(cell, 1))
    expected = [one["value"] for one in measured_or_skip(record_of(task, right))["measurements"]]
    one = while_set_back(task, other)
    if one["failed"] is not None:
        assert "Traceback" not in one["failed"]
        assert not (task["folder"] / "cells" / f"{other.id}.json").exists()
        return
    values = [one["value"] for one in record_of(task, other)["measurements"]]
    assert len(values) == len(expected)
    for value, about in zip(values, expected, strict=True):
        assert about / 10 < value < about * 10


@pytest.mark.parametrize("name", ASKING)
def test_a_reference_tool_that_asks_the_wall_clock_gives_no_wrong_number(
    seen: Seen, name: str
) -> None:
    assert_no_wrong_number(seen("clock"), ASKING[name][0])
    assert_nothing_left(seen("clock"))


@pytest.mark.trouble
def test_the_other_tools_while_the_clock_goes_back(tmp_path: Path, kernels: None) -> None:
    cells = [
        {"cell": repeated(cell, number), "word": word}
        for cell, word in OTHERS.values()
        for number in (0, 1)
    ]
    task = boot(tmp_path, {"clock": {"cells": cells}}, GUEST_S)["clock"]
    assert "error" not in task, task["error"]
    for cell, _ in OTHERS.values():
        assert_no_wrong_number(task, cell)
    assert_nothing_left(task)
