"""Repetitions that are no part of a summary: above their limit, or disturbed and measured again. Made
from edited records of a real campaign.
"""

from copy import deepcopy

import pytest
from matplotlib.collections import PathCollection
from tests.unit import campaign_data as make
from tests.unit.views.drawn import draw

from peakmark.messages import Trust, message
from peakmark.rows import build, schema
from peakmark.storage import records
from peakmark.storage.record_types import DisturbedAttempt, DisturbedContext
from peakmark.storage.results import Results
from peakmark.tools.tables import BY_NAME
from peakmark.views import pictures
from peakmark.views.table import sentences_on_gaps
from peakmark.views.table_files import runs_frame

DP, LAT, RS = "DP", "LAT", "RS"
SUMMARY = ("n", "value", "mean", "median", "sd", "min", "max", "low", "high", "level")


@pytest.fixture
def campaign(tmp_path):
    return make.golden("node", tmp_path / "node")


@pytest.fixture(scope="module")
def before(golden):
    """The frames of ``campaign`` before a test changes it."""
    return build.load(golden("node"))


def row_of(frames, workload):
    """The line of peakmark's kernel of a workload with one thread."""
    rows = frames.rows[frames.rows["is_own"] & frames.rows["workload"].eq(workload)]
    return next(schema.lines(rows[rows["concurrency"].eq(1)]))


def runs_of(frames, row):
    """The measured values of a row, in the order of their repetitions."""
    runs = frames.runs[frames.runs["value"].notna()]
    is_of_row = runs["point"].eq(row.point) & runs["instrument"].eq(row.instrument)
    return runs[is_of_row].sort_values(["repetition", "attempt"])


def set_shares(campaign, frames, workload, shares, clock=1.0):
    """Set the repetitions to these shares of the limit; the first one at ``clock`` times its clock.

    Return the frames of the changed campaign, of which ``frames`` are those before.
    """
    row = row_of(frames, workload)
    most = row.limit or row.bound or 0.0
    for number, (run, share) in enumerate(
        zip(schema.lines(runs_of(frames, row)), shares, strict=True)
    ):
        path = campaign / run.record
        record = records.read(path)
        measured, *_ = record.measurements
        measured.value = most * (share if row.unit != "s" else 1 / share)
        for name in ("clock_hz_before", "clock_hz_after", "clock_hz_loaded"):
            if number == 0 and measured.details.get(name):
                measured.details[name] *= clock
        records.write(path, record)
    return build.judge(Results.read(campaign))


@pytest.mark.parametrize(("workload", "shares", "wrong"), [
    (DP, (9.8, 0.9, 0.92), [1]),
    (DP, (9.8, 9.9, 9.7), []),
    (LAT, (0.9, 9.8, 0.92), [2]),
    (RS, (0.02, 0.03, 1.2), [3]),  # a bound
    (RS, (9.8, 9.9, 0.03), []),
])  # fmt: skip
def test_a_repetition_above_its_limit_leaves_the_summary(campaign, before, workload, shares, wrong):
    frames = set_shares(campaign, before, workload, shares)
    row = row_of(frames, workload)
    runs = runs_of(frames, row)
    assert list(runs.loc[runs["above_limit"], "repetition"] + 1) == wrong
    assert (row.n, row.missing) == (3 - len(wrong), 0)
    told = frames.warnings[frames.warnings["point"].eq(row.point)]
    told = told[told["text"].str.contains("not part of the summary")]
    assert len(told) == len(wrong)
    for number, text in zip(wrong, told["text"], strict=True):
        assert f"in repetition {number}:" in text
    assert (row.trust == Trust.NO) == (sum(share > 1.05 for share in shares) > 1)
    if wrong:
        assert (row.efficiency is None) == (workload == RS)
        assert (row.efficiency or 0) < 1.05 and runs["kept"].sum() == row.n


def test_a_repetition_is_held_against_the_limit_at_its_own_clock(campaign, before):
    frames = set_shares(campaign, before, DP, (1.09, 0.9, 0.92), clock=1.1)
    assert runs_of(frames, row_of(frames, DP))["kept"].all()


def disturb(path, factor):
    """A record whose first attempt was disturbed by others."""
    record = records.read(path)
    measured = deepcopy(record.measurements)
    measured[0].value *= factor
    context = DisturbedContext(started=record.context.started, seconds=1.0)
    reasons = {"other-load": 1.5, "waited": 0.2}
    record.disturbed = [DisturbedAttempt(reasons, context, measured)]
    records.write(path, record)


def test_a_disturbed_repetition_is_shown_and_not_summarised(campaign, before):
    frames = set_shares(campaign, before, DP, (0.9, 0.92, 9.8))
    calm = row_of(frames, DP)
    runs_before = runs_of(frames, calm)
    values = list(runs_before.loc[runs_before["kept"], "value"])
    disturb(campaign / runs_before["record"].iloc[1], 0.5)
    frames = make.tables(campaign)
    row = row_of(frames, DP)
    runs = runs_of(frames, row)
    assert list(runs.loc[runs["kept"], "value"]) == values
    assert [getattr(row, name) for name in SUMMARY] == [getattr(calm, name) for name in SUMMARY]
    disturbed = list(runs.loc[runs["disturbed"].ne(""), "value"])
    shares = list(runs.loc[runs["disturbed"].ne(""), "share"])
    assert disturbed == [values[1] * 0.5] and row.measured_again == 1
    listed = runs_frame(frames)
    listed = listed[listed["record"].isin(runs["record"])]
    assert sorted(listed["left_out"]) == ["", "", "above-limit", "other-load waited"]
    table, rows = BY_NAME[row.table], frames.rows[frames.rows["point"].eq(row.point)]
    gaps = sentences_on_gaps(frames, table, rows, ["cpubench"])
    assert gaps == [message("measured-again", count=1).text]
    drawn = {each.kind: each for each in pictures.pictures_of(frames, table, None)}["strip"]
    dots = [dots for axis in draw(frames, drawn.name).axes for dots in axis.collections]
    (circle,) = (
        each.get_offsets()[0][0]
        for each in dots
        if isinstance(each, PathCollection) and not len(each.get_facecolor())
    )
    assert circle == pytest.approx(100 * shares[0])
