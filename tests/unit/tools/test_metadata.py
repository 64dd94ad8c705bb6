"""diskbench's workload META: one execution measures three rows."""

import json

import pytest

from peakmark.cell import Cell
from peakmark.errors import ParseError
from peakmark.tools import REGISTRY
from peakmark.tools.base import Completed

CELL = Cell("disk", "diskbench", "META", "", None, 2, "any", 0, {"seconds": 0.1})
OUTPUT = {
    "instrument": "diskbench",
    "version": "1.0.0",
    "workload": "META",
    "threads": 2,
    "value": 23000.0,
    "unit": "1/s",
    "seconds": 0.26,
    "work": 6000,
    "work_unit": "op",
    "per_thread": [{"work": 3000}, {"work": 3000}],
    "rows": [
        {"variant": "create", "value": 16207.0},
        {"variant": "stat", "value": 198972.0},
        {"variant": "unlink", "value": 44655.0},
    ],
    "files": 1000,
    "cycles": 1,
    "filesystem": "nfs",
    "warnings": [],
}


def parse(**changes):
    stdout = json.dumps({**OUTPUT, **changes})
    return REGISTRY["diskbench"].parse(CELL, Completed(("diskbench",), 0, stdout, ""))


def test_each_operation_is_a_row():
    rows = parse().measurements
    assert [(row.variant, row.value) for row in rows] == [
        ("create", 16207.0),
        ("stat", 198972.0),
        ("unlink", 44655.0),
    ]
    assert {(row.workload, row.block, row.metric, row.unit) for row in rows} == {
        ("META", None, "metadata", "1/s")
    }
    assert rows[0].details["filesystem"] == "nfs"


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([*OUTPUT["rows"][:2], {"variant": "unlink"}], "value is missing"),
    ],
)
def test_other_rows_are_refused(rows, words):
    with pytest.raises(ParseError, match=words):
        parse(rows=rows)
