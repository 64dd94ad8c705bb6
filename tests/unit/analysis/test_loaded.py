"""Latency under load: knee, saturation and idle latency of curves, and threads that did not overlap."""

import json

import pytest
from tests.unit import campaign_data as make

from peakmark.analysis import findings, shapes
from peakmark.analysis.shapes import LoadedPoint
from peakmark.errors import ParseError
from peakmark.figures import curves
from peakmark.tools import REGISTRY
from peakmark.tools.base import Completed

RECORDED = json.loads((make.DATA / "loaded.json").read_text())
"""What rambench printed on two cores, with --reads 100,50 --rates 2."""

LINEAR = [(1e9, 100e-9), (2e9, 110e-9), (4e9, 190e-9), (6e9, 390e-9), (5.5e9, 450e-9)]
"""Doubled at 4.1e9: a twentieth of the way from the third to the fourth point."""


@pytest.mark.parametrize(("curve", "knee"), [
    (LINEAR, 4.1e9),
    (LINEAR[:3], None),
    ([(1e9, 100e-9), (3e9, 200e-9)], 3e9),
    ([(1e9, 100e-9), (2e9, 250e-9), (3e9, 120e-9), (4e9, 300e-9)], 1e9 + 2e9 / 3),
    (LINEAR[:1], None),
])  # fmt: skip
def test_the_knee_is_where_the_latency_doubles(curve, knee):
    found = shapes.knee([LoadedPoint(*point) for point in curve])
    assert found == (knee if knee is None else pytest.approx(knee))


def records(factors, overlap=1.0, mix="r75"):
    """A repetition of ``LINEAR`` for each of the factors of its latencies."""
    made = []
    for repetition, factor in enumerate(factors):
        points = [[rate, factor * latency, overlap, 0.0] for rate, latency in LINEAR]
        made += make.runs(
            "rambench", "LOADED", points[-1][1], metric="loaded_latency", variant=mix, block=None,
            concurrency=2, repetition=repetition, details={"points": points, "cpu_share": 1.0},
        )  # fmt: skip
    return made


@pytest.mark.parametrize(("site", "share"), [({"memory": {"bandwidth": 12e9}}, 0.5), ({}, None)])
def test_a_row_tells_of_idle_knee_and_saturation(tmp_path, site, share):
    row = make.only_row(tmp_path, records([1.0, 0.9, 1.1]), config={"site_facts": site})
    messages = [each.message for each in findings.conclusions([row])]
    (values,) = (dict(each.values) for each in messages if each.code == "loaded")
    assert row.limit.value is None
    assert row.measured.centre == pytest.approx(450e-9)
    assert values["reads"] == 75
    assert (values["idle"], values["latency"]) == pytest.approx((100e-9, 390e-9))
    assert (values["saturation"], values["knee"]) == pytest.approx((6e9, 4.1e9))
    told = values["share"] and dict(values["share"].values)["share"]
    assert (told or None) == (share and pytest.approx(share))


@pytest.mark.parametrize(("overlap", "warned"), [(0.96, False), (0.94, True)])
def test_threads_apart_are_a_warning(tmp_path, overlap, warned):
    row = make.only_row(tmp_path, records([1.0] * 3, overlap))
    assert ("overlap" in {warning.code for warning in row.warnings}) == warned


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


@pytest.mark.parametrize("points", [[], [["1", 2, 3, 4]]])
def test_points_that_are_none_are_refused(points):
    with pytest.raises(ParseError):
        parse({"rows": [{"variant": "r100", "value": 1e-7, "points": points}]})


def test_the_figure_has_a_line_for_each_mix(tmp_path):
    mixes = [*records([1.0, 1.1], mix="r100"), *records([1.2, 1.3], mix="r50")]
    for repetition, record in enumerate(mixes[2:]):  # both mixes of a repetition are of one cell
        mixes[repetition]["measurements"] += record["measurements"]
    site = {"site_facts": {"memory": {"bandwidth": 12e9}}}
    analysis = make.judge(tmp_path, mixes[:2], config=site)
    table_rows = analysis.rows["memory_loaded_latency"]
    assert [row.key.variant for row in table_rows] == ["r100", "r50"]
    figure = curves.plot_loaded(table_rows[0].table, table_rows)
    (axis,) = figure.axes if figure else ()
    assert axis.get_xlim()[1] > 12  # the theoretical bandwidth is an upright
    lines = [line for line in axis.lines if len(line.get_xdata()) == len(LINEAR)]
    assert [tuple(line.get_xdata()) for line in lines][:1] == [(1, 2, 4, 6, 5.5)]
    values = [line.get_ydata()[-1] for line in lines[:1]]
    assert values == pytest.approx([1.05 * 450])
