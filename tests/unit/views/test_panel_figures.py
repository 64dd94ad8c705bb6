"""Small multiples of a table: every repetition, the limit, labels and legends in their place."""

import itertools
from dataclasses import replace

import pandas as pd
import pytest
from matplotlib.text import Text
from tests.unit import campaign_data as make
from tests.unit.views.drawn import draw, shown

from peakmark.config.layouts import Drawing, Layout
from peakmark.formatting import size
from peakmark.rows import schema
from peakmark.views import figure_style, figures, panel_figures

MIB = 1 << 20
MEMORY = [
    *make.runs("rambench", "LAT", 1e-9, block=16 << 10),
    *make.runs("rambench", "LAT", 1e-9, block=256 << 20),
    *(
        record
        for block in (1024, 10**6, 10**7)
        for record in make.runs("rambench", "RWS", 1e10, block=block)
    ),
]


@pytest.fixture(scope="module")
def cpu(tmp_path_factory):
    """Three numbers of threads, three repetitions, HPL beside them; the limit from the site facts."""
    sweep = make.sweep(threads=(1, 2, 4))
    records = [record for record in sweep if record["cell"]["subsystem"] == "cpu"]
    return make.frames(tmp_path_factory.mktemp("results") / "c", records, facts=make.ZEN3)


def disk_reads(threads=(1, 2)):
    return [
        record
        for number in threads
        for record in make.runs("diskbench", "RS", 1e8 * number, concurrency=number)
    ]


def test_every_repetition_is_a_point(cpu):
    collections = [one for axis in draw(cpu, "cpu").axes for one in axis.collections]
    assert sum(len(one.get_offsets()) for one in collections) == cpu.rows["n"].sum() > 0


def test_two_points_are_no_line_and_a_limit_stands_at_its_row_alone(tmp_path):
    """Of three areas one is in L1 and one in DRAM, the other one between L3 and DRAM."""
    records = []
    for threads in (1, 2):
        for block in (16 << 10, 48 << 20, 256 << 20):
            place = {"block": block, "concurrency": threads}
            records += make.runs("rambench", "LAT", *make.near(block * 1e-15, 3), **place)
    site = {"site_facts": {"memory": {"latency": 80e-9}}}
    frames = make.frames(tmp_path / "c", records, config=site, facts=make.VM)
    for axis in draw(frames, "memory_latency").axes:
        curves = [line for line in axis.lines if line.get_linestyle() != "None"]
        assert [len(line.get_xdata()) for line in curves] == [3]
        (ticks,) = (line for line in axis.lines if line.get_linestyle() == "None")
        assert list(ticks.get_xdata()) == [16 << 10, 256 << 20]
    few = frames.rows[frames.rows["block_bytes"].ne(48 << 20)]
    drawing = Drawing(name="x", of="memory_latency", title="Latency")
    layout = Layout(schema=1, name="x", layout_tables=(), drawings=(drawing,))
    named = dict(figures.drawn_figures(replace(frames, rows=few), layout))
    assert all(line.get_linestyle() == "None" for axis in named["x"].axes for line in axis.lines)


def test_limits_are_inside_the_panel_and_the_legend_names_them(cpu):
    limits = list(cpu.rows.query("workload == 'DP' and is_own")["limit"] * 1e-9)
    figure = draw(cpu, "cpu")
    (axis,) = (each for each in figure.axes if each.get_title(loc="left").startswith("DP"))
    assert sorted(limits) in [sorted(line.get_ydata()) for line in axis.lines]
    assert axis.get_ylim()[1] > max(limits)
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["peakmark", "HPL", "limit"]


@pytest.mark.parametrize(("limit", "scale"), [(4e8, "linear"), (6e10, "log")])
def test_what_lies_far_below_its_limit_is_no_flat_line(tmp_path, limit, scale):
    config = {"site_facts": {"disk": {"throughput": {"RS": limit}}}}
    frames = make.frames(tmp_path / "c", disk_reads((1, 2, 4)), config=config)
    assert draw(frames, "disk_throughput").axes[0].get_yscale() == scale


def test_a_line_for_each_program_and_block_is_named_by_its_dashes(tmp_path):
    """RWS has two blocks, RS and WS one each, at one to four threads: these stand on the axis."""
    records = []
    for workload, blocks in (("RS", [MIB]), ("WS", [MIB]), ("RWS", [1024, MIB])):
        for block, threads in itertools.product(blocks, (1, 2, 4)):
            values = [1e9 * (1 + threads + number / 10) for number in range(3)]
            place = {"block": block, "concurrency": threads}
            records += make.runs("rambench", workload, *values, **place)
    figure = draw(make.frames(tmp_path / "c", records), "memory_throughput_pool")
    lines = {axis.get_title(loc="left"): len(axis.lines) for axis in figure.axes}
    assert lines == {"RS": 1, "WS": 1, "RWS": 2}
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["peakmark", "1 KiB", "1 MiB"]


def test_panels_carry_the_names_and_units_of_the_layout(tmp_path):
    config = {"report": {"tables": "four-subsystems-2018-hyperion"}}
    frames = make.frames(tmp_path / "four", MEMORY, config=config)
    (axis,) = draw(frames, "memory_latency_rounds").axes
    rows = [label.get_text() for label in axis.get_yticklabels()]
    assert rows == ["RWS 1B, 1 thread", "RWR 1B, 1 thread"]
    config = {"report": {"tables": "six-core-evaluation"}}
    frames = make.frames(tmp_path / "six", MEMORY, config=config)
    axis = draw(frames, "memory_operations").axes[0]
    assert axis.get_ylabel() == "Throughput (MB/s)"
    assert axis.get_ylim()[1] > 1e4


def test_plain_numbers_of_bytes_get_a_unit_where_no_heading_tells_it(tmp_path):
    config = {"report": {"tables": "four-subsystems-2018-prometheus"}}
    frames = make.frames(tmp_path / "c", MEMORY, config=config)
    for name, blocks in (
        ("memory_throughput_pool", ["1 KiB", "1 MB", "10 MB"]),
        ("memory_latencies", ["1 B", "1 B"]),
    ):
        data = shown(frames, name)
        assert [data.labels(row).block(row) for row in schema.lines(data.rows)] == blocks


def test_a_block_has_one_panel_though_a_layout_writes_its_size_in_another_way(tmp_path):
    """The layout's table shows copies, not random copies."""
    config = {"report": {"tables": "six-core-evaluation"}}
    records = []
    for workload, block in (("RWS", 1024), ("RWS", MIB), ("RWR", 1024)):
        for threads in (1, 2):
            records += make.runs("rambench", workload, 1e10, block=block, concurrency=threads)
    figure = draw(make.frames(tmp_path / "c", records, config=config), "memory_operations")
    titles = [axis.get_title("left") for axis in figure.axes]
    assert titles == ["1KB", "1MB"]


@pytest.mark.parametrize(("places", "names", "labels"), [
    ([1 << 10, 10**6, MIB, 10**7, 10 << 20], size, ["1\nKiB", "1\nMB", "", "10\nMB", ""]),
    ([1 << 10, MIB], {1 << 10: "1KB", MIB: "1MB"}.__getitem__, ["1\nKB", "1\nMB"]),
    ([1, 2, 4, 8], str, ["1", "2", "4", "8"]),
])  # fmt: skip
def test_labels_of_close_blocks_do_not_overlap(places, names, labels):
    assert panel_figures.tick_labels(places, {place: names(place) for place in places}) == labels


def test_blocks_without_lines_have_their_own_panels_with_whole_titles(tmp_path):
    """Two numbers of threads are no line, so dashes would not tell one block from the other."""
    points = [("RS", "pool", MIB), ("WS", "pool", MIB), ("TRIAD", "pool-temporal", MIB)]
    points += [("RWS", "pool", block) for block in (1024, MIB, 16 * MIB)]
    records = []
    for workload, variant, block in points:
        for threads in (1, 2):
            place = {"variant": variant, "block": block, "concurrency": threads}
            records += make.runs("rambench", workload, 1e10, **place)
    figure = draw(make.frames(tmp_path / "c", records), "memory_throughput_pool")
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert "1 KiB" not in names
    titles = {axis.get_title("left").replace("\n", " "): axis for axis in figure.axes}
    assert {"RWS, 1 KiB", "RWS, 1 MiB", "TRIAD, 1 MiB, ordinary stores"} <= set(titles)
    # The entry of a name without a line is its marker alone.
    (entry, *_) = figure.legends[0].get_lines()
    assert entry.get_linestyle() == "None" and entry.get_marker() == "o"
    for axis, right in itertools.pairwise(figure.axes):
        texts = [each for each in axis.get_children() if isinstance(each, Text) and each.get_text()]
        room = right.bbox.x0 if right.bbox.x0 > axis.bbox.x0 else figure.bbox.x1
        assert all(each.get_window_extent().x1 <= room for each in texts)


def test_more_names_than_colours_have_different_lines_and_markers():
    looks = [figure_style.look(position) for position in range(13)]
    assert len({(look.colour, look.dashes) for look in looks}) == 13
    assert len({(look.colour, look.marker) for look in looks}) == 13


def test_a_repeated_colour_is_drawn_with_its_dashes():
    corners = []
    for number in range(7):
        for x in (1, 2, 4):
            corners.append({"panel": "", "name": str(number), "x": x, "y": number + x})
    shown = pd.DataFrame(corners).assign(kind="path", line="")
    figure_style.begin()
    figure, axes = panel_figures.draw(shown, ("Threads", "Rate"))
    (axis,) = axes.values()
    first, *_, seventh = axis.lines
    assert first.get_color() == seventh.get_color()
    assert first.get_linestyle() == "-" and seventh.get_linestyle() == "--"
    first_entry, *_, seventh_entry = figure.legends[0].get_lines()
    assert first_entry.get_linestyle() == "-" and seventh_entry.get_linestyle() == "--"
