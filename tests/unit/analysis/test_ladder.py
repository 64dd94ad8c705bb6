"""The ladder on a machine whose neighbours share its last-level cache: twelve recorded runs, and LAT
and RS measured beside them. What is made of them: rows, limits, the sizes of the caches, figures.
"""

from dataclasses import replace
from itertools import pairwise

import pytest
from tests.unit import campaign_data as make

from peakmark import plan
from peakmark.analysis import findings, shapes
from peakmark.catalogue import PAGES, SUBSYSTEMS
from peakmark.errors import ConfigError
from peakmark.figures import curves, style
from peakmark.limits import Question, for_row
from peakmark.messages import Message

GRID = {"workloads": ["LADDER-LAT", "LADDER-RS"], "concurrency": [1], "steps": 1}


@pytest.fixture(scope="module")
def analysis(tmp_path_factory):
    others = [
        record
        for workload, threads, rate in (("DP", 1, 3e10), ("DP", 2, 6e10))
        for record in make.runs("cpubench", workload, rate, concurrency=threads)
    ]
    others += make.runs("rambench", "RS", 3e10, concurrency=2)
    return make.judge(tmp_path_factory.mktemp("results") / "c", make.ladders() + others)


def rows_of(analysis, name, pages):
    return [row for row in analysis.rows[name] if row.key.variant.endswith(pages)]


@pytest.mark.parametrize("pages", PAGES)
@pytest.mark.parametrize("name", ["memory_ladder_latency", "memory_ladder_throughput"])
def test_each_level_is_a_row_and_the_curve_is_monotone(analysis, name, pages):
    rows = rows_of(analysis, name, pages)
    assert [row.key.variant for row in rows] == [
        one for one in SUBSYSTEMS["memory"].variants if f"-{pages}" in one and "l4" not in one
    ]
    assert all(row.measured.summary.n == 3 and row.missing == 0 for row in rows)
    curve = shapes.curve_of(rows)
    assert [points[0][0] for points in curve] == [(1 << 14) << step for step in range(14)]
    slower = rows[0].table.lower_is_better
    for before, after in pairwise(sorted(value for _, value in points) for points in curve):
        assert before[0] <= after[-1] if slower else before[-1] >= after[0]


def sizes(rows):
    """Case and values of what is said of each cache."""
    (said,) = shapes.measured_caches(rows)
    levels = dict(said.values)["levels"]
    assert isinstance(levels, tuple)
    return [(one.case, dict(one.values)) for one in levels if isinstance(one, Message)]


def test_a_disturbed_repetition_of_one_level_changes_no_other(analysis):
    first, second, *others = rows_of(analysis, "memory_ladder_latency", "huge")
    fewer = replace(second.own, points=second.own.points[1:])
    rows = [first, replace(second, series={second.table.own.instrument: fewer}), *others]
    assert sizes(rows)[0] == sizes([first, second, *others])[0]
    assert curves.plot_ladder(first.table, rows) is not None


def test_a_finding_tells_how_far_each_cache_reaches(analysis):
    rows = rows_of(analysis, "memory_ladder_latency", "huge")
    (first, one), (second, two), (third, three) = sizes(rows)
    assert (first, second, third) == ("level",) * 3
    assert (one["measured"], one["stated"]) == ("32 KiB", "32 KiB")
    assert (two["measured"], two["stated"]) == ("512 KiB", "1 MiB")
    assert three["stated"] == "32 MiB"
    assert len(findings.conclusions(analysis.rows["memory_ladder_latency"])) > 1


def test_levels_alike_are_not_told_apart(analysis):
    rows = rows_of(analysis, "memory_ladder_latency", "huge")
    assert len(sizes([rows[0], rows[2], rows[2]])) == 1


def test_limits_are_those_of_the_plain_workloads():
    facts = make.ZEN3 | {
        "cpu": make.ZEN3["cpu"] | {"caches": [
            {"level": level, "type": "unified", "size": held, "count": 2} for level, held in ((1, 1 << 15), (2, 1 << 19))
        ]},
    }  # fmt: skip
    for level, block in (("l1-huge", 1 << 14), ("l2-small", 1 << 17)):
        ladder = for_row(
            Question("memory", "LADDER-RS", level, block, 1, "ladder_throughput", facts)
        )
        assert ladder.value and ladder == for_row(
            Question("memory", "RS", "block", block, 1, "throughput", facts)
        )
        ladder = for_row(Question("memory", "LADDER-LAT", level, block, 1, "ladder_latency", facts))
        assert ladder.value and ladder == for_row(
            Question("memory", "LAT", "", block, 1, "latency", facts)
        )
    stated = {"memory": {"bandwidth": 4e10, "latency": 1e-7}}
    for workload, metric, value in (("RS", "throughput", 4e10), ("LAT", "latency", 1e-7)):
        row = (f"LADDER-{workload}", "dram-huge", 1 << 27, 1, f"ladder_{metric}")
        assert for_row(Question("memory", *row, facts, stated)).value == value


def test_both_pages_are_lines_and_caches_are_uprights(analysis):
    rows = analysis.rows["memory_ladder_latency"]
    figure = curves.plot_ladder(rows[0].table, rows)
    (axis,) = figure.axes
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "small pages",
        "huge pages",
    ]
    assert [text.get_text() for text in axis.texts] == ["L1: 32 KiB", "L2: 1 MiB", "L3: 32 MiB"]
    assert (axis.get_xscale(), axis.get_yscale()) == ("log", "log")


def test_roofs_are_rows_and_nothing_else(analysis):
    style.begin()
    roofs = curves.roofs(analysis.rows)
    assert {row.table.name for row in roofs} == {"cpu", "memory_throughput", curves.LADDER}
    one, two = curves.plot_roofline(roofs).axes
    assert [axis.get_title(loc="left") for axis in (one, two)] == ["1 thread", "2 threads"]
    limits = [row for row in roofs if row.limit.value is not None]
    lines = [line for line in (*one.lines, *two.lines) if any(line.get_ydata() > 0)]
    assert len(lines) == len(roofs) + len(limits)
    assert not curves.roofs(analysis.rows | {"cpu": []})


def test_a_ladder_is_planned_on_small_and_on_huge_pages():
    cells = plan.make({"repetitions": 1, "memory": [GRID]}).cells
    assert sorted((cell.workload, cell.variant) for cell in cells) == [
        (workload, pages) for workload in sorted(GRID["workloads"]) for pages in sorted(PAGES)
    ]
    with pytest.raises(ConfigError, match="LADDER"):
        plan.make({"memory": [GRID | {"concurrency": [2]}]})
    with pytest.raises(ConfigError, match="block"):
        plan.make({"memory": [GRID | {"variants": ["block"]}]})
