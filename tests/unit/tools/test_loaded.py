"""Latency under load, as rambench prints it."""

import json

from tests.unit import campaign_data as make

from peakmark.tools import REGISTRY
from peakmark.tools.base import Completed

RECORDED = json.loads((make.DATA / "loaded.json").read_text())
"""What rambench printed on two cores, with --reads 100,50 --rates 2."""


def parse(changes):
    cell = make.cell("rambench", "LOADED", subsystem="memory", concurrency=2)
    done = Completed((), 0, json.dumps(RECORDED | changes), "")
    return REGISTRY["rambench"].parse(cell, done).measurements


def test_each_mix_is_a_row_with_its_points():
    rows = parse({})
    assert [(row.variant, len(row.details["points"])) for row in rows] == [("r100", 3), ("r50", 3)]
    for row in rows:
        assert row.unit == "s"
        assert row.value == row.details["points"][-1][1]
        assert [point[2] > 0.99 for point in row.details["points"]] == [True] * 3
    assert rows[0].details["store"] == "streaming"
