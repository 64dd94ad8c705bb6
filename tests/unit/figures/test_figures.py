"""Figures: that they show every repetition and the limit, and never change without a reason."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit import campaign_data as make

from peakmark.analysis import analysis, label_formatter, verdict
from peakmark.figures import elements, figures, panels, style
from peakmark.formatting import size
from peakmark.limits import Limit
from peakmark.storage.results import Results
from peakmark.tools.tables import BY_NAME

MIB = 1 << 20


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """CPU only: two threads, three repetitions, HPL beside; the limit from the site facts."""
    records = [record for record in make.sweep() if record["cell"]["subsystem"] == "cpu"]
    return make.write(tmp_path_factory.mktemp("results") / "small", records, facts=make.ZEN3)


def test_files_exist_for_measured_tables_only_and_are_the_same_again(small: Path) -> None:
    written = figures.build(small)
    assert sorted(path.name for path in written) == [
        "cpu.png",
        "cpu.svg",
        "overview.png",
        "overview.svg",
    ]
    before = {path.name: path.read_bytes() for path in written}
    assert {path.name: path.read_bytes() for path in figures.build(small)} == before
    assert b"<dc:date>" not in before["cpu.svg"]


def test_a_figure_that_lost_its_measurements_disappears(small: Path) -> None:
    stale = small / "figures" / "disk_iops.svg"
    stale.parent.mkdir(exist_ok=True)
    stale.write_text("<svg/>")
    figures.build(small)
    assert not stale.exists()


def test_every_repetition_is_a_point(small: Path) -> None:
    style.begin()
    built = analysis.build_rows(Results.read(small))["cpu"]
    figure = panels.plot(BY_NAME["cpu"], built)
    assert figure is not None
    drawn = sum(
        len(collection.get_offsets()) for axis in figure.axes for collection in axis.collections
    )
    assert drawn == sum(len(series.points) for row in built for series in row.series.values())


def test_the_limit_is_drawn_and_inside_the_panel(small: Path) -> None:
    style.begin()
    built = [
        row for row in analysis.build_rows(Results.read(small))["cpu"] if row.key.workload == "DP"
    ]
    assert all(row.limit.value is not None for row in built)
    figure = panels.plot(BY_NAME["cpu"], built)
    assert figure is not None
    (axis,) = figure.axes
    limits = [row.limit.value * 1e-9 for row in built if row.limit.value is not None]
    drawn = [sorted(line.get_ydata()) for line in axis.lines]
    assert sorted(limits) in drawn
    assert axis.get_ylim()[1] > max(limits)


def test_programs_are_named_at_their_lines_in_their_colours_and_inside_the_figure(
    small: Path,
) -> None:
    style.begin()
    built = [
        row for row in analysis.build_rows(Results.read(small))["cpu"] if row.key.workload == "DP"
    ]
    figure = panels.plot(BY_NAME["cpu"], built)
    assert figure is not None
    figure.draw_without_rendering()
    assert not figure.legends
    names = {
        text.get_text(): text
        for axis in figure.axes
        for text in axis.texts
        if "limit" not in text.get_text()
    }
    assert {name: text.get_color() for name, text in names.items()} == {
        "MyCPUBench": style.look(0).ink,
        "HPL": style.look(1).ink,
    }
    boxes = [text.get_window_extent() for text in names.values()]
    assert all(box.x1 <= figure.bbox.x1 and box.x0 >= 0 for box in boxes)
    assert not boxes[0].overlaps(boxes[1])


def test_a_legend_names_programs_where_the_last_panel_cannot_and_is_not_cut_off(
    tmp_path: Path,
) -> None:
    records = []
    for workload, tool in (("RS", "diskbench"), ("WS", "diskbench"), ("RS", "fio")):
        records += make.runs(tool, workload, 1e8)
    config = {"report": {"published": ["disk-patterns-2020", "file-io-lab"]}}
    built = make.judge(tmp_path / "c", records, config=config).rows["disk_throughput"]
    style.begin()
    figure = panels.plot(BY_NAME["disk_throughput"], built)
    assert figure is not None
    figure.draw_without_rendering()
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts[:2] == ["MyDiskBench", "fio"]
    assert [text.split(" ")[0] for text in texts[2:]] == ["disk-patterns-2020", "file-io-lab"]
    box = figure.legends[0].get_window_extent()
    assert box.x1 <= figure.bbox.x1 and box.x0 >= figure.bbox.x0


@pytest.mark.parametrize(("limit", "scale"), [(4e8, "linear"), (6e10, "log")])
def test_what_lies_far_below_its_limit_is_no_flat_line(
    tmp_path: Path, limit: float, scale: str
) -> None:
    records = []
    for threads in (1, 2, 4):
        records += make.runs("diskbench", "RS", 1e8 * threads, concurrency=threads)
    config = {"site_facts": {"disk": {"throughput": {"RS": limit}}}}
    built = make.judge(tmp_path / "c", records, config=config).rows["disk_throughput"]
    figure = panels.plot(BY_NAME["disk_throughput"], built)
    assert figure is not None
    assert figure.axes[0].get_yscale() == scale


def test_figures_carry_the_names_units_and_order_of_the_layout(tmp_path: Path) -> None:
    records = []
    for workload in ("RS", "WS"):
        for threads in (1, 2):
            values = {"block": 1 << 16, "concurrency": threads}
            records += make.runs("diskbench", workload, 1e8 * threads, **values)
    config = {"report": {"tables": "file-io-lab"}}
    folder = make.write(tmp_path / "lab", records, config=config)
    built = analysis.build_rows(Results.read(folder))
    assert [row.key.workload for row in built["disk_throughput"]] == ["WS", "WS", "RS", "RS"]
    limited = {
        name: [replace(one, limit=Limit(1e9, "B/s", "", "", "site")) for one in found]
        for name, found in built.items()
    }
    text = figures.overview(limited)
    assert text is not None
    said = " ".join(one.get_text() for one in text.axes[0].texts)
    assert "FileIO" in said and "64KB" in said and "MyDiskBench" not in said and "KiB" not in said
    assert {path.stem for path in figures.build(folder)} == {
        "disk_throughput_WS",
        "disk_throughput_RS",
    }

    loads = make.runs("rambench", "RWS", 1e10)
    for block in (16 << 10, 256 << 20):
        loads += make.runs("rambench", "LAT", 1e-9, block=block)
    config = {"report": {"tables": "four-subsystems-2018-hyperion"}}
    built = make.judge(tmp_path / "four", loads, config=config).rows
    figure = panels.plot(built["memory_latency"][0].table, built["memory_latency"])
    assert figure is not None
    named = [label.get_text().partition(",")[0] for label in figure.axes[0].get_yticklabels()]
    assert named == ["RWS", "RWR"]

    config = {"report": {"tables": "six-core-evaluation"}}
    built = make.judge(tmp_path / "six", loads, config=config).rows
    figure = panels.plot(built["memory_throughput"][0].table, built["memory_throughput"])
    assert figure is not None
    assert figure.axes[0].get_xlabel() == "Throughput (MB/s)"
    assert figure.axes[0].get_xlim()[1] > 1e4


def test_figures_of_another_layout_disappear(tmp_path: Path) -> None:
    records = make.runs("diskbench", "RS", 1e8, block=1 << 16)
    records += make.runs("diskbench", "WS", 1e8, block=1 << 16)
    folder = make.write(tmp_path / "c", records)
    figures.build(folder)
    assert (folder / "figures" / "disk_throughput.svg").is_file()
    make.write(folder, records, config={"report": {"tables": "file-io-lab"}})
    figures.build(folder)
    assert not (folder / "figures" / "disk_throughput.svg").exists()
    assert (folder / "figures" / "disk_throughput_RS.svg").is_file()


def test_dram_and_caches_are_figures_of_their_own(tmp_path: Path) -> None:
    pool, block = (
        make.runs("rambench", "RS", 1e10, variant=name, block=1024) for name in ("pool", "block")
    )
    names = {path.stem for path in figures.build(make.write(tmp_path / "c", [*pool, *block]))}
    # Without limits there is no overview.
    assert names == {"memory_throughput_pool", "memory_throughput_block"}


def test_nothing_measured_means_no_figure() -> None:
    assert panels.plot(BY_NAME["cpu"], []) is None
    assert figures.overview({name: [] for name in BY_NAME}) is None


def test_a_single_point_and_a_strange_node_can_be_drawn(tmp_path: Path) -> None:
    of = make.cell("rambench", "LAT", subsystem="memory", block=16384, node="n_1.x_y-2")
    folder = make.write(tmp_path / "c", [make.record(of, [make.measurement(of, "latency", 1e-9)])])
    assert len(figures.build(folder)) == 4 - 2  # no headline row, so no overview


def test_panels_of_one_place_are_rows_of_dots_with_every_repetition(tmp_path: Path) -> None:
    """RWS has two blocks and keeps its panel; RS and WS have one each, at one and two threads."""
    records = []
    for workload, blocks in (("RS", [MIB]), ("WS", [MIB]), ("RWS", [1024, MIB])):
        for block in blocks:
            for threads in (1, 2):
                values = [1e9 * (1 + threads + number / 10) for number in range(3)]
                records += make.runs(
                    "rambench", workload, *values, block=block, concurrency=threads
                )
    found = make.judge(tmp_path / "c", records).rows["memory_throughput"]
    figure = panels.plot(found[0].table, found)
    assert figure is not None
    panel, dots = [axis for part in figure.subfigs for axis in part.axes if axis.get_visible()]
    assert panel.get_title(loc="left") == "RWS"
    names = [label.get_text() for label in dots.get_yticklabels()]
    assert names == [
        f"{name}, 1 MiB, {threads}"
        for name in ("RS", "WS")
        for threads in ("1 thread", "2 threads")
    ]
    drawn = sum(len(collection.get_offsets()) for collection in dots.collections)
    assert drawn == 4 * (3 + 1)  # three repetitions and their median in each row
    single = panels.plot(
        found[0].table,
        [row for row in found if row.key.workload == "RS" and row.key.concurrency == 1],
    )
    assert single is not None and len(single.axes) == 1 and len(single.axes[0].get_yticks()) == 1


def test_instruments_differ_in_marker_and_lightness_as_well_as_colour() -> None:
    looks = [style.look(position) for position in range(3)]
    assert len({look.marker for look in looks}) == 3

    def lightness(colour: str) -> float:
        red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    assert lightness(looks[0].colour) < lightness(looks[1].colour) - 10


@pytest.mark.parametrize(
    "colour",
    [
        *(style.look(n).ink for n in range(3)),
        *(style.line(n).ink for n in range(6)),
        style.INK,
        style.QUIET,
    ],
)
def test_words_can_be_read_on_white(colour: str) -> None:
    """By the contrast of WCAG 2.2: 4.5 : 1 for text of this size."""
    parts = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
    luminance = sum(
        weight * one for weight, one in zip((0.2126, 0.7152, 0.0722), linear, strict=True)
    )
    assert 1.05 / (luminance + 0.05) >= 4.5


@given(
    st.lists(st.floats(min_value=0, max_value=500), max_size=12),
    st.floats(min_value=1, max_value=20),
)
def test_labels_are_spread_in_order_without_overlap(positions: list[float], gap: float) -> None:
    moved = style.spread(positions, gap)
    ordered = sorted(range(len(positions)), key=lambda index: positions[index])
    for lower, upper in itertools.pairwise(ordered):
        assert moved[upper] - moved[lower] >= gap - 1e-6
    if len(positions) == 1:
        assert moved == positions


def test_published_values_are_marked_inside_the_panel_and_named(tmp_path: Path) -> None:
    records = []
    for threads in (1, 2):
        records += make.runs("diskbench", "RS", 1e8 * threads, concurrency=threads)
    config = {"report": {"published": ["disk-patterns-2020"]}}
    built = make.judge(tmp_path / "c", records, config=config).rows["disk_throughput"]
    assert [row.published["disk-patterns-2020"] for row in built] == [398e6, 498e6]
    style.begin()
    figure = panels.plot(BY_NAME["disk_throughput"], built)
    assert figure is not None
    (axis,) = [axis for axis in figure.axes if axis.get_visible()]
    marks = [tuple(point) for collection in axis.collections for point in collection.get_offsets()]
    assert {(1.0, 398.0), (2.0, 498.0)} <= set(marks)
    assert axis.get_ylim()[1] > 498.0
    assert "disk-patterns-2020 (published)" in [
        text.get_text() for text in figure.legends[0].get_texts()
    ]


def test_the_decimal_mark_reaches_ticks_limits_and_words(tmp_path: Path) -> None:
    folder = make.write(tmp_path / "c", make.sweep(), config={"report": {"decimal_mark": ","}})
    found = analysis.build_rows(Results.read(folder))
    limited = {
        name: [replace(row, limit=Limit(5e10, row.table.unit, "", "", "site")) for row in entry]
        for name, entry in found.items()
    }
    figure = figures.overview(limited)
    assert figure is not None
    style.use_decimal_mark(figure, ",")
    texts = [text.get_text() for text in figure.axes[0].texts if "MyCPUBench" in text.get_text()]
    assert texts
    assert not any(re.search(r"\d\.\d", text) for text in texts)
    for name in ("disk_latency", "memory_latency"):
        # In the unit of the table, not in that of the rows, the values need a decimal mark.
        figure = panels.plot(
            BY_NAME[name], [replace(row, table=BY_NAME[name]) for row in found[name]]
        )
        assert figure is not None
        style.use_decimal_mark(figure, ",")
        figure.draw_without_rendering()
        labels = [label.get_text() for axis in figure.axes for label in axis.get_yticklabels()]
        assert any("," in label for label in labels), name
        assert not any("." in label for label in labels), name


def test_labels_of_blocks_that_stand_close_are_not_written_over_each_other() -> None:
    places = [1 << 10, 10**6, 1 << 20, 10**7, 10 << 20]
    names = {place: size(place) for place in places}
    assert elements.tick_labels(places, names) == ["1\nKiB", "1\nMB", "", "10\nMB", ""]
    assert elements.tick_labels([1 << 10, 1 << 20], {1 << 10: "1KB", 1 << 20: "1MB"}) == [
        "1\nKB",
        "1\nMB",
    ]
    assert elements.tick_labels([1, 2, 4, 8], dict.fromkeys([1, 2, 4, 8], "")) == [
        "1",
        "2",
        "4",
        "8",
    ]


def test_the_overview_draws_the_limit_where_it_is_known_and_legibly(small: Path) -> None:
    style.begin()
    built = analysis.build_rows(Results.read(small))
    figure = figures.overview(built)
    assert figure is not None
    (word,) = [text for text in figure.axes[0].texts if text.get_text() == "limit"]
    row = verdict.headline(built, "cpu")
    assert row is not None and row.measured.efficiency is not None
    assert (word.get_color() == "white") == (row.measured.efficiency > 1.02)
    unknown = {
        name: [
            replace(one, limit=Limit(None, "op/s", "", "", "unknown", reason="no fact"))
            for one in found
        ]
        for name, found in built.items()
    }
    assert figures.overview(unknown) is None


def test_plain_numbers_of_bytes_get_a_unit_where_no_heading_tells_it(tmp_path: Path) -> None:
    records = []
    for block in (16 << 10, 256 << 20):
        records += make.runs("rambench", "LAT", 1e-9, block=block)
    for block in (1024, 10**6, 10**7):
        records += make.runs("rambench", "RWS", 1e10, block=block)
    config = {"report": {"tables": "four-subsystems-2018-prometheus"}}
    built = make.judge(tmp_path / "c", records, config=config).rows

    def blocks(name: str) -> list[str]:
        return [label_formatter.LabelFormatter.of(row).block(row) for row in built[name]]

    assert blocks("memory_throughput") == ["1 KiB", "1 MB", "10 MB"]
    assert blocks("memory_latency") == ["1 B", "1 B"]
