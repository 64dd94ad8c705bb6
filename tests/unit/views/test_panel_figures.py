"""Small multiples of a table: every repetition, the limit, labels and legends in their place."""

import pytest
from tests.unit import campaign_data as make
from tests.unit.views.drawn import draw

from peakmark.views import figure_style


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
    (axis,) = (each for each in figure.axes if each.get_title(loc="left").startswith("FP64"))
    assert sorted(limits) in [sorted(line.get_ydata()) for line in axis.lines]
    assert axis.get_ylim()[1] > max(limits)
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["peakmark", "HPL", "limit"]


@pytest.mark.parametrize(("limit", "scale"), [(4e8, "linear"), (6e10, "log")])
def test_what_lies_far_below_its_limit_is_no_flat_line(tmp_path, limit, scale):
    config = {"site_facts": {"disk": {"throughput": {"RS": limit}}}}
    frames = make.frames(tmp_path / "c", disk_reads((1, 2, 4)), config=config)
    assert draw(frames, "disk_throughput").axes[0].get_yscale() == scale


def test_more_names_than_colours_have_different_markers():
    looks = [figure_style.look(position) for position in range(13)]
    assert len({(look.colour, look.marker) for look in looks}) == 13
