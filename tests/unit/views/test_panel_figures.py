"""Small multiples of a table: every repetition, the limit, labels and legends in their place."""

import itertools

import pytest
from matplotlib.text import Text
from tests.unit import campaign_data as make
from tests.unit.views.drawn import draw, shown

from peakmark.rows import schema
from peakmark.views import figure_style

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


def test_panels_carry_the_names_and_units_of_the_layout(tmp_path):
    config = {"report": {"tables": "four-subsystems-2018-hyperion"}}
    frames = make.frames(tmp_path / "four", MEMORY, config=config)
    (axis,) = draw(frames, "memory_latency_strip").axes
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
    for axis, right in itertools.pairwise(figure.axes):
        texts = [each for each in axis.get_children() if isinstance(each, Text) and each.get_text()]
        room = right.bbox.x0 if right.bbox.x0 > axis.bbox.x0 else figure.bbox.x1
        assert all(each.get_window_extent().x1 <= room for each in texts)


def test_more_names_than_colours_have_different_markers():
    looks = [figure_style.look(position) for position in range(13)]
    assert len({(look.colour, look.marker) for look in looks}) == 13


def test_each_number_of_threads_has_its_dashes_where_it_would_have_too_many_panels(tmp_path):
    records = []
    for workload, block, threads in itertools.product(
        ("RS", "WS", "RWS", "RR", "WR"), (1024, MIB, 16 * MIB), (1, 2, 4)
    ):
        place = {"block": block, "concurrency": threads}
        records += make.runs("rambench", workload, 1e9 * threads, **place)
    figure = draw(make.frames(tmp_path / "c", records), "memory_throughput_pool")
    assert len(figure.axes) == 5
    for axis in figure.axes:
        assert len({line.get_linestyle() for line in axis.lines[:3]}) > 1
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["peakmark", "1 thread", "2 threads", "4 threads"]
