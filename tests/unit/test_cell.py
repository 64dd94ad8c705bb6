"""A cell is its path and its JSON; whatever stands in it, its record lies inside the campaign."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.unit.hostile import refuses
from tests.unit.test_fuzz import EXAMPLES, SEEDS, VALUES, changed, one_sentence
from tests.unit.tools import samples

from peakmark.cell import Cell
from peakmark.errors import RecordError

CELL = samples.cell("fio", "RR", "psync", 4096, 2, size=1 << 20).to_json()


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({}, "disk/fio/RR-psync_4KiB_x2/any/0"),
        ({"variant": "io_uring-qd4"}, "disk/fio/RR-io_uring-qd4_4KiB_x2/any/0"),
        ({"variant": "", "block": None, "repetition": 3}, "disk/fio/RR_none_x2/any/3"),
    ],
)
def test_the_identity_is_the_path_of_the_record(changes: dict[str, Any], name: str) -> None:
    assert Cell.from_json({**CELL, **changes}).id == name


def test_the_spec_does_not_depend_on_the_order_of_options() -> None:
    one, other = (
        Cell.from_json({**CELL, "options": options})
        for options in ({"a": 1, "b": 2}, {"b": 2, "a": 1})
    )
    assert one.spec() == other.spec()


@pytest.mark.parametrize("key", ["subsystem", "block", "options", "repetition"])
def test_an_incomplete_cell_is_refused(key: str) -> None:
    part = {name: value for name, value in CELL.items() if name != key}
    refuses(lambda: Cell.from_json(part), f"lacks {key}")


@pytest.mark.parametrize("key", ["subsystem", "instrument", "workload", "variant", "node"])
@pytest.mark.parametrize(
    "word", ["../x", "a/b", "..", ".", "a\0b", "a\nb", "", "-rf", "a b", "$(id)", "é"]
)
def test_no_part_of_a_cell_is_more_than_a_name(key: str, word: str) -> None:
    if (key, word) != ("variant", ""):
        with pytest.raises(RecordError):
            Cell.from_json({**CELL, key: word})


@settings(max_examples=2 * EXAMPLES)
@given(seed=SEEDS, new=VALUES, grow=st.booleans())
@example(seed=0, new="../../../../etc", grow=False)
def test_a_changed_cell_stays_in_its_campaign(seed: int, new: Any, grow: bool) -> None:
    try:
        cell = Cell.from_json(changed(CELL, seed, new, grow))
    except RecordError as error:
        one_sentence(error)
        return
    parts = Path(cell.id).parts
    assert len(parts) == 5 and ".." not in parts
    assert "\n" not in cell.id and "\0" not in cell.id
    assert Cell.from_json(json.loads(cell.spec())) == cell
