"""A user's quota that is too small, in a guest's kernel."""

from __future__ import annotations

import json

import pytest
from bench import MIB, cpu_cell, disk_cell
from guest_cells import Seen, assert_nothing_left, record_of


@pytest.mark.parametrize("instrument", ["diskbench", "fio", "iozone"])
def test_a_quota_is_named_and_nothing_is_left(seen: Seen, instrument: str) -> None:
    task = seen("quota")
    assert task["free"] > 32 * MIB  # it was the user's quota, not the disk
    said = next(line for line in task["over"] if f"disk/{instrument}/" in line)
    if " unavailable " in said:
        pytest.skip(said)
    assert " failed " in said and "uota exceeded" in said, said
    assert "Traceback" not in " ".join(task["over"])
    (attempt,) = (task["folder"] / "attempts/disk" / instrument).rglob("0.json")
    assert "uota exceeded" in json.loads(attempt.read_text())["reason"]
    assert not list((task["folder"] / "cells/disk" / instrument).glob("W*"))
    assert_nothing_left(task)


def test_what_fits_into_the_quota_is_measured_afterwards(seen: Seen) -> None:
    assert record_of(seen("quota"), disk_cell(workload="RS"))["status"] == "ok"


def test_a_record_without_room_in_the_quota_is_said_and_costs_no_other(seen: Seen) -> None:
    task = seen("quota")
    said = " ".join(task["full"])
    assert "cannot be written (Disk quota exceeded)" in said and "Traceback" not in said, said
    assert task["kept"], "finished records stay"
    assert task["half"] == []  # no half file stays
    assert not (task["folder"] / "cells" / f"{cpu_cell().id}.json").exists()
