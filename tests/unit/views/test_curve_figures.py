"""Figures of matrices, ladders, roofs and latency under load."""

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.unit import campaign_data as make
from tests.unit.rows.test_shapes import NODE
from tests.unit.views.drawn import draw, shown

from peakmark.rows import build
from peakmark.views import figures, pictures

NODES = ["node1", "node2", "node3", "node4"]


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


def test_a_roof_is_the_fastest_row_of_its_level_and_the_triad_is_dots(ladders):
    roofs = pictures.roofs(ladders)
    assert set(roofs["table"]) == {"cpu", "memory_throughput"}
    (axis,) = draw(ladders, pictures.ROOFLINE).axes
    assert axis.get_title(loc="left") == "2 threads"
    slopes = roofs[roofs["table"].eq("memory_throughput")].drop_duplicates("cache_level")
    names = {text.get_text().strip() for text in axis.texts}
    assert names == {"FP64", *slopes["cache_level"]}
    fastest = ladders.rows[ladders.rows["is_own"]].groupby("cache_level")["value"].max()
    assert slopes.set_index("cache_level")["value"].eq(fastest[slopes["cache_level"]]).all()
    without_rates = ladders.rows[ladders.rows["table"].ne("cpu")]
    assert pictures.roofs(replace(ladders, rows=without_rates)).empty
    of_ladder = ladders.rows[ladders.rows["table"].ne("memory_throughput")]
    roofs = pictures.roofs(replace(ladders, rows=of_ladder))
    assert set(roofs["table"]) == {"cpu", "memory_ladder_throughput"}


def test_the_roofs_of_a_gpu_are_its_sustained_rates_and_its_memory(golden):
    frames = build.load(golden("node"))
    roofs = pictures.gpu_roofs(frames)
    rates = roofs[roofs["table"].eq("gpu")]
    assert len(roofs) == len(rates) + 1 and rates["variant"].eq("sustained").all()
    (axis,) = draw(frames, pictures.GPU_ROOFLINE).axes
    assert axis.get_title(loc="left") == "1 GPU"
    tops = [max(line.get_ydata()) for line in axis.lines if len(line.get_ydata())]
    # Near roofs share a text, the highest first.
    names = [text.get_text().strip() for text in axis.texts]
    assert "FP64 matrix product, FP32" in names and "memory" in names and len(names) == 5
    assert max(rates["value"]) * 1e-12 == pytest.approx(max(tops), rel=0.01)


def test_the_heat_map_of_links_has_each_pair_where_it_was_measured_and_shows_the_slow_node(golden):
    axis = draw(build.load(golden("cluster")), "network_throughput_links").axes[0]
    assert [label.get_text() for label in axis.get_xticklabels()] == NODES
    field = axis.collections[0].get_array()
    # Each of the six pairs was measured in one direction.
    assert field.shape == (4, 4) and (~field.mask).sum() == 6
    assert (field.mask | field.mask.T).all() and (axis.get_xlabel(), axis.get_ylabel()) == (
        "Server",
        "Client",
    )
    values = field.filled(np.nan)
    both = np.concatenate([values, values.T])
    assert int(np.nanmean(both, axis=0).argmin()) == NODES.index("node3")
