"""Figures that a layout asks for: what they draw is what the rows hold."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from tests.unit import campaign_data as make

from peakmark.config.layouts import Drawing, Layout
from peakmark.tools.tables import BY_NAME
from peakmark.views import figure_style, figures

KIB, MIB = 1024, 1 << 20
DISK = BY_NAME["disk_throughput"]
LIMIT = 4e9
PATTERNS = ("WS", "RS", "RR", "WR")
SHOWN = ["sequential read", "random read", "sequential write", "random write"]
DEVIATIONS, MEDIANS, SHARES = (
    Drawing(name="x", of=DISK.name, title="Four patterns", kind=kind, value=value)
    for kind, value in (("together", "deviation"), ("together", "measured"), ("bars", "efficiency"))
)


@pytest.fixture(scope="module")
def limited(tmp_path_factory):
    """Four patterns at one, two and four threads, three runs each; IOZone measures twice what the
    own kernel does.
    """
    records = []
    for (number, name), block, threads in itertools.product(
        enumerate(PATTERNS, 1), (64 * KIB, MIB, 16 * MIB), (1, 2, 4)
    ):
        for tool, times in (("diskbench", 1), ("iozone", 2)):
            values = [1e8 * times * number * threads * (1 + run / 10) for run in range(3)]
            records += make.runs(tool, name, *values, block=block, concurrency=threads)
    facts = {"disk": {"throughput": dict.fromkeys(PATTERNS, LIMIT)}}
    folder = tmp_path_factory.mktemp("results") / "c"
    return make.frames(folder, records, config={"site_facts": facts})


def plot(drawing, frames):
    """The panels of a drawing."""
    figure_style.begin()
    layout = Layout(schema=1, name="x", layout_tables=(), drawings=(drawing,))
    (figure,) = (drawn for name, drawn in figures.drawn_figures(frames, layout) if name == "x")
    if drawing.kind == "together":
        names = [text.get_text() for text in figure.legends[0].get_texts()]
        assert [name for name in names if name != "limit"] == SHOWN
    return [axis for axis in figure.axes if axis.get_visible()]


def test_deviations_are_those_of_the_runs(limited):
    rows = limited.rows.query("block_bytes == @MIB")
    (axis,) = plot(DEVIATIONS, replace(limited, rows=rows))
    heights = sorted(float(y) for line in axis.lines for y in line.get_ydata())
    deviations = sorted(rows.loc[rows["is_own"], "sd"] * 1e-6)
    assert heights == pytest.approx(deviations) and min(heights) > 0
    # A deviation has no repetitions: the marks are the corners of the lines.
    marks = np.concatenate([dots.get_offsets()[:, 1] for dots in axis.collections])
    assert sorted(marks) == pytest.approx(deviations)
    assert axis.get_ylabel() == "Standard deviation (MB/s)"


def test_a_bar_is_a_rows_share_of_its_limit_and_references_are_marks(limited):
    axes = plot(SHARES, limited)
    assert [axis.get_title(loc="left") for axis in axes] == SHOWN
    heights = sorted(bar.get_height() for axis in axes for bar in axis.patches)
    shares = sorted(100 * limited.rows.loc[limited.rows["is_own"], "efficiency"])
    assert heights == pytest.approx(shares)
    collections = [one for axis in axes for one in axis.collections]
    marks = sorted(point[1] for one in collections for point in one.get_offsets())
    assert marks == pytest.approx([2 * share for share in shares])
    for axis in axes:
        assert [100.0, 100.0] in [list(line.get_ydata()) for line in axis.lines], "the limit"
        # A mark is in the middle of its bar, over one of the three block sizes.
        middles = [bar.get_x() + bar.get_width() / 2 for bar in axis.patches]
        assert len(middles) == 9
        assert sorted(middles) == pytest.approx(sorted(axis.collections[0].get_offsets()[:, 0]))


def test_bars_of_one_block_size_have_their_values(limited):
    axes = plot(SHARES, replace(limited, rows=limited.rows.query("block_bytes == @MIB")))
    assert [len(axis.texts) for axis in axes] == [3, 3, 3, 3]


def test_panels_of_a_workload_are_side_by_side_if_they_fill_a_line(limited):
    drawing = Drawing(name="x", of=DISK.name, title="Two patterns", workloads=("RS", "WS"))
    titles = [axis.get_title(loc="left") for axis in plot(drawing, limited)]
    assert titles == [f"{name}, {many}" for name in (SHOWN[0], SHOWN[2]) for many in (
        "1 thread", "2 threads", "4 threads")]  # fmt: skip
