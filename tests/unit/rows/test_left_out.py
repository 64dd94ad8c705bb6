"""Runs that are no part of a summary, above their limit or disturbed and measured again: where they are shown."""

from matplotlib.collections import PathCollection
from tests.unit import campaign_data as make
from tests.unit.views.drawn import draw

from peakmark.messages import message
from peakmark.tools.tables import BY_NAME
from peakmark.views.table import sentences_on_gaps
from peakmark.views.table_files import runs_frame

LIMIT = 48e9  # of one core of ZEN3


def test_a_run_that_does_not_count_is_listed_told_and_drawn(tmp_path):
    records = make.runs("cpubench", "DP", 0.8 * LIMIT, 0.82 * LIMIT, 9 * LIMIT)
    (measured,) = records[1]["measurements"]
    attempt = {
        "reasons": {"other-load": 1.5, "waited": 0.2},
        "context": {"started": "2026-11-21T03:59:00+00:00", "seconds": 1.0},
        "measurements": [measured | {"value": 0.4 * LIMIT}],
    }
    records[1]["disturbed"] = [attempt]
    frames = make.frames(tmp_path / "c", records, facts=make.ZEN3)
    (row,) = frames.rows.itertuples()
    assert (row.n, row.missing, row.measured_again, row.value) == (2, 0, 1, 0.81 * LIMIT)
    assert dict(runs_frame(frames)[["value", "left_out"]].to_numpy()) == {
        0.4 * LIMIT: "other-load waited", 0.8 * LIMIT: "", 0.82 * LIMIT: "", 9 * LIMIT: "above-limit",
    }  # fmt: skip
    gaps = sentences_on_gaps(frames, BY_NAME["cpu"], frames.rows, ["cpubench"])
    assert gaps == [message("measured-again", count=1).text]
    (axis,) = draw(frames, "cpu_strip").axes
    dots = [each for each in axis.collections if isinstance(each, PathCollection)]
    (circle,) = [each for each in dots if not len(each.get_facecolor())]
    assert circle.get_offsets()[0][0] == 100 * 0.4
