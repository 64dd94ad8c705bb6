"""Rows as lines of dots: shares of the limit with bars, and every run in the colour of its round."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.collections import PathCollection
from tests.unit import campaign_data as make
from tests.unit.views.drawn import draw

from peakmark.rows import build
from peakmark.storage.results import Results
from peakmark.views import figures, fleet_report, sections, strip_figures


def dots_of(axis):
    """The place of each dot: its value, and its row."""
    collections = [one for one in axis.collections if isinstance(one, PathCollection)]
    return np.concatenate([one.get_offsets() for one in collections])


def names_of(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_a_bar_is_a_rows_share_of_its_limit_with_a_dot_for_each_run(cpu):
    figure = draw(cpu, "cpu_strip")
    (axis,) = figure.axes
    own = cpu.rows[cpu.rows["is_own"]]
    assert [bar.get_width() for bar in axis.patches] == pytest.approx(100 * own["efficiency"])
    assert [label.get_text() for label in axis.get_yticklabels()][:2] == [
        "INT8, 1 thread",
        "INT8, 2 threads",
    ]
    runs = cpu.runs[cpu.runs["kept"]].merge(own[["point", "instrument", "limit"]])
    shares = 100 * runs["value"] / runs["limit"]
    others = 100 * cpu.rows.loc[~cpu.rows["is_own"], "efficiency"].dropna()
    assert sorted(dots_of(axis)[:, 0]) == pytest.approx(sorted([*shares, *others]))
    assert [100, 100] in [list(line.get_xdata()) for line in axis.lines]
    # The caption explains the other marks.
    assert names_of(figure) == ["HPL"]


def test_a_share_of_a_latency_is_limit_by_time(tmp_path):
    records = make.runs("rambench", "LAT", 100e-9, 120e-9, 160e-9, block=256 << 20)
    site = {"site_facts": {"memory": {"latency": 80e-9}}}
    frames = make.frames(tmp_path / "c", records, config=site, facts=make.VM)
    (axis,) = draw(frames, "memory_latency_strip").axes
    assert list(dots_of(axis)[:, 0]) == pytest.approx([80, 66.6667, 50])


def test_every_round_has_its_own_colour_over_the_median(tmp_path):
    frames = make.frames(tmp_path / "c", make.runs("diskbench", "RS", 1e8, 3e8, 2e8))
    (axis,) = draw(frames, "disk_throughput_strip").axes
    median, rounds = axis.collections
    assert list(rounds.get_offsets()[:, 0]) == pytest.approx([100, 300, 200])
    assert len({tuple(colour) for colour in rounds.get_facecolor()}) == 3
    assert median.get_offsets()[0][0] == pytest.approx(200)


def test_a_table_that_only_a_reference_measured_has_no_strip(tmp_path):
    """ping answers where peakmark's kernel cannot measure: the report looked for a figure that nobody had drawn."""
    records = make.runs("ping", "LAT-TCP", 4e-6, 5e-6, block=1)
    frames = make.frames(tmp_path / "c", records)
    listed = {picture.name for picture in figures.figures_of(frames, None)}
    assert listed == {name for name, _ in figures.drawn_figures(frames, None)}
    assert "network_latency_strip" not in listed


def test_rows_of_any_node_and_of_pairs_have_no_dot(tmp_path):
    """Such rows were a class B of one node, whose dot was always at 0."""
    frames = build.judge(Results.read(make.golden("cluster", tmp_path / "c")))
    assert frames.nodes.groupby("class").size().to_dict() == {"": 4, "any": 1}
    (axis,) = strip_figures.plot_fleet(frames).axes
    # FP64 of four nodes, of which one is slow. Figures of links show TCP and its round trip.
    assert [len(dots.get_offsets()) for dots in axis.collections] == [3, 1]
    # The rows of DRAM of all nodes are wrong: the report looked for a figure that nobody had drawn.
    drawn = {name for name, _ in figures.drawn_figures(frames, None)}
    listed = {picture.name for picture in figures.figures_of(frames, None)}
    assert drawn == listed | {"fleet"} and "memory_throughput_pool" not in drawn
    assert sections.overview(frames)["name"] == "fleet"
    # Nodes without an equal one are compared with none.
    unlike = replace(frames, rows=frames.rows.assign(node_class=frames.rows["node"]))
    assert sections.overview(unlike) is None
    assert "fleet" not in {name for name, _ in figures.drawn_figures(unlike, None)}
    # A time and a rate are no range of one quantity.
    latency, throughput, *_ = fleet_report.slow_paragraphs(frames)
    assert "latency of links" in latency and " 49.7" in latency
    assert "throughput of links" in throughput and " 33.4" in throughput
