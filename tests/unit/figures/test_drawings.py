"""Figures that a layout asks for: what they draw is what the rows hold, and a wrong request is one
sentence.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from tests.unit import campaign_data as make
from tests.unit.tables.test_layouts import TABLE
from tests.unit.tables.test_presets import small_campaign

from peakmark.analysis.analysis import Analysis
from peakmark.analysis.row import Row
from peakmark.config import layouts
from peakmark.config.layouts import Drawing
from peakmark.errors import ConfigError
from peakmark.figures import figures, layout_figures, selection, style
from peakmark.report import document, pictures
from peakmark.tables import captions
from peakmark.tools.tables import BY_NAME

KIB, MIB = 1024, 1 << 20
DISK = BY_NAME["disk_throughput"]
LIMIT = 4e9


@pytest.fixture(autouse=True)
def _style() -> None:
    style.begin()


def _rows(folder: Path, limit: bool = True, blocks: tuple[int, ...] = (64 * KIB, MIB)) -> list[Row]:
    """Four patterns at one, two and four threads, three runs each; IOZone measures twice what the
    own kernel does.
    """
    records = []
    for number, name in enumerate(("WS", "RS", "RR", "WR"), 1):
        for block in blocks:
            for threads in (1, 2, 4):
                for tool, times in (("diskbench", 1), ("iozone", 2)):
                    values = [1e8 * times * number * threads * (1 + run / 10) for run in range(3)]
                    records += make.runs(tool, name, *values, block=block, concurrency=threads)
    site = {"disk": {"throughput": dict.fromkeys(("WS", "RS", "RR", "WR"), LIMIT)}}
    found = make.judge(folder / "c", records, config={"site_facts": site} if limit else {})
    return list(found.rows["disk_throughput"])


def _drawn(found: list[Row], kind: str, value: str) -> tuple[Drawing, list[Row]]:
    drawing = Drawing(name="x", of=DISK.name, title="Four patterns", kind=kind, value=value)
    layout = layouts.Layout(schema=1, name="x", layout_tables=(), drawings=(drawing,))
    (one,) = selection.figures_of(DISK, found, layout)
    assert one.drawing is drawing
    return drawing, list(one.rows)


def test_all_patterns_are_lines_of_one_panel_for_each_block(tmp_path: Path) -> None:
    drawing, found = _drawn(_rows(tmp_path), "together", "measured")
    figure = layout_figures.plot_combined(drawing, found)
    assert figure is not None
    axes = [axis for axis in figure.axes if axis.get_visible()]
    assert [axis.get_title(loc="left") for axis in axes] == ["64 KiB", "1 MiB"]
    for axis in axes:
        lines = [list(line.get_ydata()) for line in axis.lines if line.get_linestyle() == "-"]
        assert len([line for line in lines if len(line) == 3]) >= 4
        repetitions = sum(len(points.get_offsets()) for points in axis.collections)
        assert repetitions == 4 * 3 * 3  # every run of the own kernel, none of IOZone
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["RS", "RR", "WS", "WR"]


def test_deviations_are_those_of_the_runs(tmp_path: Path) -> None:
    drawing, found = _drawn(_rows(tmp_path, blocks=(MIB,)), "together", "deviation")
    figure = layout_figures.plot_combined(drawing, found)
    assert figure is not None
    (axis,) = [axis for axis in figure.axes if axis.get_visible()]
    heights = sorted(float(y) for line in axis.lines for y in line.get_ydata())
    deviations = sorted(
        row.measured.summary.stdev * 1e-6 for row in found if row.measured.summary.stdev is not None
    )
    assert heights == pytest.approx(deviations)
    assert len(axis.collections) == 0  # a deviation has no repetitions
    assert axis.get_ylabel() == "Standard deviation (MB/s)"


def test_a_bar_is_a_rows_share_of_its_limit_and_references_are_marks(tmp_path: Path) -> None:
    drawing, found = _drawn(_rows(tmp_path), "bars", "efficiency")
    figure = layout_figures.plot_bars(drawing, found)
    assert figure is not None
    axes = [axis for axis in figure.axes if axis.get_visible()]
    assert [axis.get_title(loc="left") for axis in axes] == ["RS", "RR", "WS", "WR"]
    heights = [bar.get_height() for axis in axes for bar in axis.patches]
    shares = [100 * (row.measured.efficiency or 0) for row in found]
    assert sorted(heights) == pytest.approx(sorted(shares))
    marks = [
        point[1] for axis in axes for points in axis.collections for point in points.get_offsets()
    ]
    assert sorted(marks) == pytest.approx(sorted(2 * share for share in shares))
    for axis in axes:
        assert [100.0, 100.0] in [list(line.get_ydata()) for line in axis.lines], "the limit"
        assert {text.get_text() for text in axis.texts} >= {"64 KiB", "1 MiB"}


def test_a_reference_far_above_the_limit_is_a_mark_at_the_edge(tmp_path: Path) -> None:
    drawing, found = _drawn(_rows(tmp_path), "bars", "efficiency")
    far = [
        replace(row, series={**row.series, "iozone": replace(row.series["iozone"], efficiency=6.4)})
        for row in found
    ]
    figure = layout_figures.plot_bars(drawing, far)
    assert figure is not None
    for axis in figure.axes:
        assert axis.get_ylim()[1] <= layout_figures.FARTHEST
        assert len(axis.collections) == 6
        assert all(points.get_offsets()[0][1] <= axis.get_ylim()[1] for points in axis.collections)
    assert layout_figures.goes_beyond(drawing, far)
    whole = captions.of_drawing(drawing, ())
    assert "upper edge" in whole
    short = captions.of_drawing(drawing, ("limit", "references", "beyond"))
    assert short.startswith("Four patterns. ") and len(short) < len(whole) and "edge" not in short


def test_without_a_limit_there_is_no_efficiency_to_draw(tmp_path: Path) -> None:
    drawing, found = _drawn(_rows(tmp_path, limit=False), "bars", "efficiency")
    assert found == []
    assert layout_figures.plot_bars(drawing, found) is None
    assert "“Four patterns”" in selection.without_rows(drawing)
    assert "limit" in selection.without_rows(drawing)


@pytest.mark.parametrize(
    ("name", "drawn_there"),
    [
        ("disk-patterns-2020",
         "disk_throughput together measured, disk_throughput together deviation"),
        ("four-subsystems-2018-hyperion",
         "cpu together measured, cpu bars efficiency, memory_throughput bars efficiency, "
         "disk_throughput bars measured, disk_throughput bars efficiency, "
         "disk_latency together measured, network_latency together measured"),
        ("four-subsystems-2018-prometheus",
         "disk_latency together measured, disk_iops together measured"),
        ("six-core-evaluation", "cpu together measured, memory_throughput together measured"),
    ],
)  # fmt: skip
def test_layouts_draw_what_their_reports_drew(name: str, drawn_there: str) -> None:
    found = {f"{one.table.name} {one.kind} {one.value}" for one in layouts.load(name).drawings}
    assert set(drawn_there.split(", ")) <= found


def test_the_layout_of_2020_draws_averages_and_deviations_of_its_four_patterns(
    tmp_path: Path,
) -> None:
    folder = small_campaign(tmp_path, "disk-patterns-2020")
    names = {path.stem for path in figures.build(folder)}
    assert names >= {
        "disk_averages",
        "disk_deviations",
        *(f"disk_throughput_{name}" for name in ("WS", "RS", "RR", "WR")),
    }
    campaign = Analysis.of(folder)
    shown = pictures.names(campaign)
    assert set(shown) <= names
    data = document.build(campaign, dict.fromkeys(shown, 50))
    parts = {part["name"]: part for section in data["sections"] for part in section["parts"]}
    drawn_at = {one["file"]: name for name, part in parts.items() for one in part["figures"]}
    # After the last of the four.
    assert "write random" in drawn_at["figures/disk_averages.svg"]
    assert "write sequential" in drawn_at["figures/disk_throughput_WS.svg"]
    every = [one for part in parts.values() for one in part["figures"]]
    (deviations,) = [one for one in every if "disk_deviations" in one["file"]]
    assert deviations["caption"].startswith("Standard deviations")
    assert "repetition" not in deviations["caption"] and "from" in deviations["alt"]


def test_a_figure_that_cannot_be_drawn_is_told_below_its_table(tmp_path: Path) -> None:
    campaign = Analysis.of(small_campaign(tmp_path, "four-subsystems-2018-hyperion"))
    names = pictures.names(campaign)
    assert "cpu_widths" in names and "cpu_efficiency" not in names and "cpu" not in names
    data = document.build(campaign, dict.fromkeys(names, 50))
    cpu = data["sections"][0]["parts"][-1]
    assert any("“Efficiency of the CPU”" in remark for remark in cpu["table"]["remarks"])


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"kind": "panels", "value": "deviation"}, ["'mine'", "kind panels", "together and bars"]),
        ({"name": "overview"}, ["two figures are called 'overview'"]),
        ({"name": "memory_latency"}, ["two figures are called 'memory_latency'"]),
        ({"kind": "pie"}, ["figures[0].kind", '"together"']),
        ({"of": "gpu"}, ["figures[0].of", "disk_throughput"]),
    ],
)
def test_a_wrong_figure_is_told_in_one_sentence(
    tmp_path: Path, entry: dict[str, str], words: list[str]
) -> None:
    one = {"name": "mine", "of": "disk_throughput", "title": "Mine", **entry}
    path = tmp_path / "mine.yaml"
    layout = {"schema": 1, "name": "mine", "figures": [one], "tables": [TABLE]}
    path.write_text(yaml.safe_dump(layout))
    with pytest.raises(ConfigError) as caught:
        layouts.load(str(path))
    assert "\n" not in str(caught.value)
    for word in words:
        assert word in str(caught.value)
