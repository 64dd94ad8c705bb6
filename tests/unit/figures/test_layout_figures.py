"""Figures that a layout asks for: what they draw is what the rows hold."""

import itertools
from collections.abc import Callable

import pytest
from peakmark.analysis import Analysis
from peakmark.figures import panels, style
from tests.unit import campaign_data as make

from peakmark import figures
from peakmark.config import layouts
from peakmark.config.layouts import Drawing
from peakmark.rows import build
from peakmark.tools.tables import BY_NAME
from peakmark.views.report import document, sections

KIB, MIB = 1024, 1 << 20
DISK = BY_NAME["disk_throughput"]
LIMIT = 4e9
PATTERNS = ("WS", "RS", "RR", "WR")
SHOWN = ["RS", "RR", "WS", "WR"]
DEVIATIONS, MEDIANS, SHARES = (
    Drawing(name="x", of=DISK.name, title="Four patterns", kind=kind, value=value)
    for kind, value in (("together", "deviation"), ("together", "measured"), ("bars", "efficiency"))
)
Preset = Callable[[str], Analysis]


@pytest.fixture(scope="module")
def limited(tmp_path_factory):
    """Four patterns at one, two and four threads, three runs each; IOZone measures twice what the
    own kernel does.
    """
    records = []
    for (number, name), block, threads in itertools.product(
        enumerate(PATTERNS, 1), (64 * KIB, MIB), (1, 2, 4)
    ):
        for tool, times in (("diskbench", 1), ("iozone", 2)):
            values = [1e8 * times * number * threads * (1 + run / 10) for run in range(3)]
            records += make.runs(tool, name, *values, block=block, concurrency=threads)
    facts = {"disk": {"throughput": dict.fromkeys(PATTERNS, LIMIT)}}
    folder = tmp_path_factory.mktemp("results") / "c"
    found = make.judge(folder, records, config={"site_facts": facts})
    return list(found.rows["disk_throughput"])


def drawn(drawing, rows):
    """The rows that a drawing shows."""
    (one,) = figures.figures_of(
        DISK,
        {DISK.name: rows},
        layouts.Layout(schema=1, name="x", layout_tables=(), drawings=(drawing,)),
    )
    assert one.drawing is drawing
    return list(one.rows)


def plot(drawing, rows):
    """The panels of a drawing."""
    style.begin()
    figure = panels.plot(DISK, rows, drawing)
    assert figure is not None
    if drawing.kind == "together":
        names = [text.get_text() for text in figure.legends[0].get_texts()]
        assert [name for name in names if name != "limit"] == SHOWN
    return [axis for axis in figure.axes if axis.get_visible()]


def test_all_patterns_are_lines_of_one_panel_for_each_block(limited):
    axes = plot(MEDIANS, drawn(MEDIANS, limited))
    assert [axis.get_title(loc="left") for axis in axes] == ["64 KiB", "1 MiB"]
    for axis in axes:
        lines = [line.get_ydata() for line in axis.lines if line.get_linestyle() == "-"]
        assert len([line for line in lines if len(line) == 3]) >= 4
        repetitions = sum(len(points.get_offsets()) for points in axis.collections)
        assert repetitions == 4 * 3 * 3  # every run of the own kernel, none of IOZone


def test_deviations_are_those_of_the_runs(limited):
    rows = drawn(DEVIATIONS, [row for row in limited if row.key.block == MIB])
    (axis,) = plot(DEVIATIONS, rows)
    heights = sorted(float(y) for line in axis.lines for y in line.get_ydata())
    deviations = sorted((row.measured.summary.stdev or 0) * 1e-6 for row in rows)
    assert heights == pytest.approx(deviations) and min(heights) > 0
    assert len(axis.collections) == 0  # a deviation has no repetitions
    assert axis.get_ylabel() == "Standard deviation (MB/s)"


def test_a_bar_is_a_rows_share_of_its_limit_and_references_are_marks(limited):
    axes = plot(SHARES, drawn(SHARES, limited))
    titles = [f"{name}, {block}" for block in ("64 KiB", "1 MiB") for name in SHOWN]
    assert [axis.get_title(loc="left") for axis in axes] == titles
    heights = sorted(bar.get_height() for axis in axes for bar in axis.patches)
    shares = sorted(100 * (row.measured.efficiency or 0) for row in limited)
    assert heights == pytest.approx(shares)
    collections = [one for axis in axes for one in axis.collections]
    marks = sorted(point[1] for one in collections for point in one.get_offsets())
    assert marks == pytest.approx([2 * share for share in shares])
    for axis in axes:
        assert [100.0, 100.0] in [list(line.get_ydata()) for line in axis.lines], "the limit"
        assert len(axis.texts) == 3, "values above the bars"


def test_without_a_limit_there_is_no_efficiency_to_draw(tmp_path):
    found = make.judge(tmp_path / "c", make.runs("diskbench", "RS", 1e8))
    rows = drawn(SHARES, list(found.rows["disk_throughput"]))
    assert rows == []
    assert panels.plot(DISK, rows, SHARES) is None
    reason = figures.without_rows(SHARES)
    assert "“Four patterns”" in reason and "limit" in reason


def test_the_layout_of_2020_draws_averages_and_deviations(preset, tmp_path):
    whole = preset("disk-patterns-2020").results
    records = [record.data for record in whole.records if record.cell.concurrency <= 2]
    campaign = make.judge(tmp_path / "c", records, config=whole.config)
    names = {path.stem for path in figures.build(campaign)}
    assert names >= {
        "disk_averages", "disk_deviations", *(f"disk_throughput_{name}" for name in PATTERNS)
    }  # fmt: skip
    shown = sections.figure_names(build.load(campaign.results.directory))
    assert set(shown) <= names
    chapters = document.build(build.load(campaign.results.directory))["sections"]
    figures_by_name = {
        figure["name"]: (part["name"], figure)
        for section in chapters
        for part in section["parts"]
        for figure in part["figures"]
    }
    # After the last of the four.
    assert "write random" in figures_by_name["disk_averages"][0]
    assert "write sequential" in figures_by_name["disk_throughput_WS"][0]
    _, deviations = figures_by_name["disk_deviations"]
    assert deviations["caption"].startswith("Standard deviations")
    assert "repetition" not in deviations["caption"]


def test_a_figure_that_cannot_be_drawn_is_told_below_its_table(preset):
    campaign = preset("four-subsystems-2018-hyperion")
    names = sections.figure_names(build.load(campaign.results.directory))
    assert "cpu_widths" in names and "cpu_efficiency" not in names and "cpu" not in names
    data = document.build(build.load(campaign.results.directory))
    cpu = data["sections"][0]["parts"][-1]
    assert any("“Efficiency of the CPU”" in remark for remark in cpu["table"]["remarks"])
