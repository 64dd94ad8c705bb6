"""Figures of matrices, ladders, roofs and latency under load."""

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.unit import campaign_data as make
from tests.unit import gpu_data
from tests.unit.rows.test_links import campaign as pairs
from tests.unit.rows.test_shapes import NODE
from tests.unit.views.drawn import draw, shown

from peakmark.rows import build
from peakmark.views import figures
from peakmark.views.report import pictures

LINEAR = [(1e9, 100e-9), (2e9, 110e-9), (4e9, 190e-9), (6e9, 390e-9), (5.5e9, 450e-9)]
"""Traffic and latency under load: at the highest load the traffic falls."""


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


@pytest.mark.parametrize("metric", ["latency", "throughput"])
def test_the_worst_pair_of_nodes_is_where_it_was_measured(metric, tmp_path):
    slow = (1, 6)
    frames = make.frames(tmp_path / "c", make.numa(2, 4, slow=slow))
    name = f"memory_numa_{metric}"
    figure = draw(frames, name)
    workloads = shown(frames, name).rows["workload"].nunique()
    panels = [axis.collections[0].get_array() for axis in figure.axes[:workloads]]
    worst = (np.argmax if metric == "latency" else np.argmin)(panels[0])
    assert divmod(int(worst), 8) == slow


@pytest.mark.parametrize("sizes", [NODE, (1, 1, 2, 2, 1)])
def test_a_heat_map_has_a_field_for_each_pair(tmp_path, sizes):
    figure = draw(make.frames(tmp_path / "c", make.core_to_core(*sizes)), "memory_core_to_core")
    cpus = math.prod(sizes)
    field = figure.axes[0].collections[0].get_array()
    assert field is not None and field.shape == (cpus, cpus)
    assert field.mask.sum() == cpus  # nothing from a CPU to itself


def test_two_places_are_no_matrix(tmp_path):
    frames = make.frames(tmp_path / "c", make.core_to_core(1, 1, 1, 2, 1))
    assert len(frames.rows) and not list(figures.figures_of(frames, None))


@pytest.fixture(scope="module")
def ladders(tmp_path_factory):
    others = [
        record
        for workload, threads, rate in (("DP", 1, 3e10), ("DP", 2, 6e10))
        for record in make.runs("cpubench", workload, rate, concurrency=threads)
    ]
    others += make.runs("rambench", "RS", 3e10, concurrency=2)
    return make.frames(tmp_path_factory.mktemp("results") / "c", make.ladders() + others)


def test_both_pages_are_lines_and_caches_are_uprights(ladders):
    figure = draw(ladders, "memory_ladder_latency")
    (axis,) = figure.axes
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "small pages",
        "huge pages",
    ]
    (above,) = axis.child_axes
    words = [label.get_text() for label in above.get_xticklabels()]
    assert words == ["L1: 32 KiB", "L2: 1 MiB", "L3: 32 MiB"]
    assert (axis.get_xscale(), axis.get_yscale()) == ("log", "log")


def test_roofs_are_rows_and_nothing_else(ladders):
    roofs = pictures.roofs(ladders)
    assert set(roofs["table"]) == {"cpu", "memory_throughput", pictures.LADDER}
    one, two = draw(ladders, pictures.ROOFLINE).axes
    assert [axis.get_title(loc="left") for axis in (one, two)] == ["1 thread", "2 threads"]
    lines = [line for line in (*one.lines, *two.lines) if any(line.get_ydata() > 0)]
    assert len(lines) == len(roofs) + roofs["limit"].notna().sum()
    without_rates = ladders.rows[ladders.rows["table"].ne("cpu")]
    assert pictures.roofs(replace(ladders, rows=without_rates)).empty


def test_the_roofs_of_a_gpu_end_where_its_memory_feeds_them(tmp_path):
    machines = {"node1": gpu_data.facts(tmp_path)}
    frames = make.frames(tmp_path / "c", gpu_data.h100(), machines=machines)
    roofs = shown(frames, pictures.GPU_ROOFLINE).rows
    assert set(roofs["workload"]) == {*pictures.GPU_ROOFS, "RS"}
    (axis,) = draw(frames, pictures.GPU_ROOFLINE).axes
    assert axis.get_title(loc="left") == "1 GPU"
    ends = {tuple(line.get_xdata()) for line in axis.lines}
    assert (1798e12 / 3.177e12, 4096) in ends  # FP8 needs 566 operations on each byte
    without_memory = frames.rows[frames.rows["workload"].ne("RS")]
    assert pictures.gpu_roofs(replace(frames, rows=without_memory)).empty


def test_the_figure_has_a_line_for_each_mix(tmp_path):
    mixes = [*records([1.0, 1.1], mix="r100"), *records([1.2, 1.3], mix="r50")]
    for repetition, record in enumerate(mixes[2:]):  # both mixes of a repetition are of one cell
        mixes[repetition]["measurements"] += record["measurements"]
    site = {"site_facts": {"memory": {"bandwidth": 12e9}}}
    frames = make.frames(tmp_path / "c", mixes[:2], config=site)
    assert list(shown(frames, "memory_loaded_latency").rows["variant"]) == ["r100", "r50"]
    (axis,) = draw(frames, "memory_loaded_latency").axes
    assert axis.get_xlim()[1] > 12  # the theoretical bandwidth is an upright
    lines = [line for line in axis.lines if len(line.get_xdata()) == len(LINEAR)]
    assert [tuple(line.get_xdata()) for line in lines][:1] == [(1, 2, 4, 6, 5.5)]
    values = [line.get_ydata()[-1] for line in lines[:1]]
    assert values == pytest.approx([1.05 * 450])


def test_the_slow_link_is_the_worst_field_between_its_nodes(tmp_path):
    frames = build.load(pairs(tmp_path / "c", 3, ("n2", "n3")))
    axis, _ = draw(frames, "network_throughput_links").axes
    field = axis.collections[0].get_array().reshape(4, 4)
    names = [label.get_text() for label in axis.get_xticklabels()]
    assert names == ["n1", "n2", "n3", "n4"]
    assert {names[place] for place in divmod(int(field.argmin()), 4)} == {"n2", "n3"}
    assert np.allclose(field, field.T)
