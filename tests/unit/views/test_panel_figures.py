"""Small multiples of a table: every repetition, the limit, labels and legends in their place."""

import itertools

import pytest
from tests.unit import campaign_data as make
from tests.unit.views.drawn import draw

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
