"""Repetitions that are no part of a summary: above their limit, or disturbed and measured again. Made
from edited records of a real campaign.
"""

from copy import deepcopy

import pytest
from tests.unit import campaign_data as make

from peakmark.analysis import Analysis
from peakmark.figures import panels, style
from peakmark.messages import Severity, message
from peakmark.storage import records
from peakmark.views import printed
from peakmark.views.points import points_of
from peakmark.views.report import appendix, pictures, sections
from peakmark.views.tables import runs_frame

DP, LAT, RS = "DP", "LAT", "RS"


@pytest.fixture
def campaign(tmp_path):
    return make.golden("partial", tmp_path / "partial")


def row_of(campaign, workload):
    rows = (row for table in Analysis.of(campaign).rows.values() for row in table)
    return next(row for row in rows if (row.key.workload, row.key.concurrency) == (workload, 1))


def set_shares(campaign, workload, shares, clock=1.0):
    """Set the repetitions to these shares of the limit; the first one at ``clock`` times its clock."""
    row = row_of(campaign, workload)
    limit = row.limit
    most = limit.value or limit.bound or 0.0
    for number, (point, share) in enumerate(zip(row.measured.points, shares, strict=True)):
        path = campaign / point.record.path
        record = records.read(path)
        measured, *_ = record["measurements"]
        measured["value"] = most * (share if limit.unit != "s" else 1 / share)
        for name in ("clock_hz_before", "clock_hz_after", "clock_hz_loaded"):
            if number == 0 and measured["details"].get(name):
                measured["details"][name] *= clock
        records.write(path, record)


@pytest.mark.parametrize(("workload", "shares", "wrong"), [
    (DP, (9.8, 0.9, 0.92), [1]),
    (DP, (9.8, 9.9, 9.7), []),
    (LAT, (0.9, 9.8, 0.92), [2]),
    (RS, (0.02, 0.03, 1.2), [3]),  # a bound
    (RS, (9.8, 9.9, 0.03), []),
])  # fmt: skip
def test_a_repetition_above_its_limit_leaves_the_summary(campaign, workload, shares, wrong):
    set_shares(campaign, workload, shares)
    row = row_of(campaign, workload)
    series = row.measured
    assert [entry.repetition + 1 for entry in series.above] == wrong
    assert (series.summary.n, row.missing) == (3 - len(wrong), 0)
    notes = [note for note in row.warnings if note.code == "run-above-limit"]
    assert [dict(note.values)["number"] for note in notes] == wrong
    assert (row.level is Severity.WRONG) == (sum(share > 1.05 for share in shares) > 1)
    if wrong:
        assert (series.efficiency is None) == (workload == RS)
        assert (series.efficiency or 0) < 1.05 and len(series.values) == series.summary.n


def test_a_repetition_is_held_against_the_limit_at_its_own_clock(campaign):
    set_shares(campaign, DP, (1.09, 0.9, 0.92), clock=1.1)
    assert not row_of(campaign, DP).measured.left_out


def disturb(path, factor):
    """A record whose first attempt was disturbed by others."""
    record = records.read(path)
    context = deepcopy(record["context"])
    names = ("started", "seconds", "load_before", "load_after", "noise", "server_noise")
    kept = {name: context.get(name) for name in names}
    measured = deepcopy(record["measurements"])
    measured[0]["value"] *= factor
    context = {**kept, "clock_hz_before": None, "clock_hz_after": None}
    reasons = {"other-load": 1.5, "waited": 0.2}
    attempt = {"reasons": reasons, "context": context, "measurements": measured}
    records.write(path, {**record, "disturbed": [attempt]})


def test_a_disturbed_repetition_is_shown_and_not_summarised(campaign):
    set_shares(campaign, DP, (0.9, 0.92, 9.8))
    before = row_of(campaign, DP).measured
    disturb(campaign / before.points[1].record.path, 0.5)
    analysis = Analysis.of(campaign)
    row = next(row for row in analysis.rows["cpu"] if row.key == row_of(campaign, DP).key)
    series = row.measured
    assert (series.values, series.summary) == (before.values, before.summary)
    assert series.disturbed == (before.values[1] * 0.5,) and series.measured_again == 1
    frames = make.tables(campaign)
    runs = runs_frame(frames)
    mine = {point.record.path for point in (*series.points, *series.left_out)}
    listed = runs[runs["record"].isin(mine)]
    assert sorted(listed["left_out"]) == ["", "", "above-limit", "other-load waited"]
    point = next(each for each in points_of(frames, frames.rows) if each.own.measured_again)
    remarks = printed.remarks_on_gaps(frames, row.table, [point], ["cpubench"])
    assert remarks == [message("measured-again", count=1).text]
    groups = appendix.list_runs(frames, None)["groups"]
    assert sum(line[1].count("[") for group in groups for line in group["lines"]) == 2
    (drawn,) = pictures.pictures_of(frames, row.table, None)
    assert message("caption-part", case="disturbed").fact in sections.caption_of(drawn)
    style.begin()
    figure = panels.plot(row.table, analysis.rows["cpu"])
    dots = [dots for axis in figure.axes for dots in axis.collections]
    (circle,) = (each.get_offsets()[0][1] for each in dots if not len(each.get_facecolor()))
    assert circle == pytest.approx(series.disturbed[0] * row.table.factor)
