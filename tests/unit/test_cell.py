import json

import pytest

from peakmark.cell import Cell
from peakmark.errors import RecordError


def make(**changes: object) -> Cell:
    values = {"subsystem": "memory", "instrument": "rambench", "workload": "RWS", "block": 1 << 20}
    values |= {"variant": "pool", "concurrency": 2, "node": "any", "repetition": 0}
    return Cell(**{**values, "options": {"seconds": 1.0}, **changes})  # type: ignore[arg-type]


def test_the_identity_is_the_path_of_the_record() -> None:
    assert make().id == "memory/rambench/RWS-pool_1MiB_x2/any/0"
    hpl = make(subsystem="cpu", instrument="hpl", workload="DP", variant="", block=None)
    assert hpl.point == "DP_none_x2"


def test_working_sets_never_share_a_record() -> None:
    assert make(variant="block").id != make(variant="pool").id


def test_json_and_back() -> None:
    cell = make()
    assert Cell.from_json(json.loads(cell.spec())) == cell


def test_the_spec_does_not_depend_on_the_order_of_options() -> None:
    assert make(options={"a": 1, "b": 2}).spec() == make(options={"b": 2, "a": 1}).spec()


@pytest.mark.parametrize("key", ["subsystem", "block", "options", "repetition"])
def test_an_incomplete_cell_is_refused(key: str) -> None:
    data = make().to_json()
    del data[key]
    with pytest.raises(RecordError, match=f"lacks {key}"):
        Cell.from_json(data)
