"""Figures of matrices, ladders, roofs and latency under load."""

import numpy as np
import pytest
from tests.unit import campaign_data as make
from tests.unit.rows.test_shapes import LINEAR, NODE, records

from peakmark.analysis import shapes
from peakmark.figures import curves, style


def rows_of(folder, *sizes):
    return list(make.judge(folder, make.core_to_core(*sizes)).rows["memory_core_to_core"])


@pytest.mark.parametrize("metric", ["latency", "throughput"])
def test_the_worst_pair_of_nodes_is_where_it_was_measured(metric, tmp_path):
    slow = (1, 6)
    rows = list(
        make.judge(tmp_path / "c", make.numa(2, 4, slow=slow)).rows[f"memory_numa_{metric}"]
    )
    figure = curves.plot_matrices(rows[0].table, rows)
    assert figure is not None
    workloads = len({row.key.workload for row in rows})
    panels = [axis.collections[0].get_array() for axis in figure.axes[:workloads]]
    worst = (np.argmax if metric == "latency" else np.argmin)(panels[0])
    assert divmod(int(worst), 8) == slow


@pytest.mark.parametrize("sizes", [NODE, (1, 1, 2, 2, 1)])
def test_a_heat_map_has_a_field_for_each_pair(tmp_path, sizes):
    rows = rows_of(tmp_path / "c", *sizes)
    figure = curves.plot_matrices(rows[0].table, rows)
    assert figure is not None
    cpus = len(shapes.places_of(rows))
    field = figure.axes[0].collections[0].get_array()
    assert field is not None and field.shape == (cpus, cpus)
    assert field.mask.sum() == cpus  # nothing from a CPU to itself


def test_two_places_are_no_matrix(tmp_path):
    rows = rows_of(tmp_path / "c", 1, 1, 1, 2, 1)
    assert curves.plot_matrices(rows[0].table, rows) is None


@pytest.fixture(scope="module")
def analysis(tmp_path_factory):
    others = [
        record
        for workload, threads, rate in (("DP", 1, 3e10), ("DP", 2, 6e10))
        for record in make.runs("cpubench", workload, rate, concurrency=threads)
    ]
    others += make.runs("rambench", "RS", 3e10, concurrency=2)
    return make.judge(tmp_path_factory.mktemp("results") / "c", make.ladders() + others)


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
