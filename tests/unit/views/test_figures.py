"""Which figures a campaign has, that they never change without a reason, page one and many nodes."""

import numpy as np
import pytest
from tests.unit.views.drawn import draw, shown

from peakmark.rows import schema
from peakmark.rows.labels import with_medians
from peakmark.views import figures


def stems(frames, folder):
    """The names of the figures that are drawn, each as SVG and PNG."""
    written = figures.draw_figures(frames, folder)
    assert {path.suffix for path in written} <= {".svg", ".png"}
    assert len(written) == 2 * len({path.stem for path in written})
    return {path.stem for path in written}


def test_figures_of_measured_tables_only_and_the_same_again(cpu, tmp_path):
    assert stems(cpu, tmp_path) == {"cpu_strip"}
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert b"<dc:date>" not in before["cpu_strip.svg"]
    for path in tmp_path.iterdir():
        path.unlink()
    stems(cpu, tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


# -- many nodes


def test_every_node_is_a_dot_at_its_share_of_the_median(twelve, tmp_path):
    assert stems(twelve, tmp_path) == {"fleet", "cpu", "memory_throughput_pool"}
    data = shown(twelve, "cpu")
    (axis,) = draw(twelve, "cpu").axes
    drawn = [dots.get_offsets()[:, 0] for dots in axis.collections]
    usable = with_medians(data.own)
    expected = list(usable["value"] / usable["median_of_nodes"] - 1)
    assert len(expected) == 4 * 12
    assert sorted(np.concatenate(drawn)) == pytest.approx(sorted(expected))
    slow = sum(bool(row.is_slow) for row in schema.lines(data.own))
    of_slow = [dots for dots in axis.collections if not len(dots.get_facecolor())]  # open ones
    assert sum(len(dots.get_offsets()) for dots in of_slow) == slow > 0
