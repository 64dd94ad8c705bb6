"""Campaigns over time: change points that a rank test allows, with the facts that changed there; read
from frames alone.
"""

from __future__ import annotations

import csv
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from benchmarks.method import rows as simulated
from tests.unit import campaign_data as make

from peakmark.rows import build
from peakmark.views import history

WEEKS = 8
CHANGE = 4
"""The first campaign with another kernel and slower memory."""


def campaign(folder, week, memory=1.0, **more):
    """A campaign of a week, on another kernel from ``CHANGE`` on."""
    values = [4e10 * (1 + 0.001 * (week * 7 % 5))] * 3
    records = make.runs("cpubench", "DP", *values)
    records += make.runs("rambench", "RWS", *(1e10 * memory * value / 4e10 for value in values))
    begun = datetime(2026, 1, 5, tzinfo=UTC) + timedelta(weeks=week)
    for each in records:
        each["context"]["started"] = begun.isoformat()
    system = {"kernel": "6.1.0-18" if week < CHANGE else "6.1.0-20"}
    return make.write(folder, records, facts=make.ZEN3 | {"os": system}, **more)


def kept(folder):
    """What history reads of a campaign."""
    return history.past_campaign(folder.name, build.load(folder))


@pytest.fixture(scope="module")
def weeks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    paths = []
    for week in range(WEEKS):
        memory = 0.96 if week >= CHANGE else 1.0
        paths.append(campaign(folder / f"week-{week:02d}", week, memory))
    return paths


def test_a_change_is_dated_and_stands_with_the_facts_that_changed_there(weeks):
    campaigns = [kept(path) for path in weeks]
    cpu, memory = history.follow(campaigns)
    assert (cpu.row.table, [*cpu.changes]) == ("cpu", [])
    (change,) = memory.changes
    assert change.place == CHANGE and change.speed in (
        "3.9 % slower",
        "4.0 % slower",
        "4.1 % slower",
    )
    assert [fact.partition(":")[0] for fact in change.facts] == ["kernel"]
    text = history.report(campaigns, [cpu, memory])
    assert "week-04" in text and "6.1.0-20" in text and "2026-02-02" in text
    many = history.report(campaigns[:7], history.follow(campaigns[:7]))
    assert "week-04" not in many  # too few campaigns say so, and nothing else


def test_a_step_is_found_after_four_campaigns_and_nothing_without_one():
    rows = simulated.over_time(100, 16, 0.005, after=4)
    places = [[place for place, _ in history.change_points(row)] for row in rows]
    assert sum(each == [12] for each in places) >= 97
    rows = simulated.over_time(200, 12, 0.01)
    assert sum(any(history.change_points(row)) for row in rows) <= 10
    assert not [
        *history.change_points(np.array([1.0] * 4 + [0.9] * 3)),
        *history.change_points(np.ones(20)),
    ]
    assert not [*history.change_points(np.array([1.0] * 8 + [1.005] * 8))]  # below 1 %
    there_and_back = [1.0 + 1e-3 * (n % 4) + 0.04 * (8 <= n < 16) for n in range(24)]
    assert [place for place, _ in history.change_points(np.array(there_and_back))] == [8, 16]


def test_a_row_that_is_not_in_all_campaigns_gives_way_to_one_that_is(tmp_path):
    campaigns = []
    for week in range(3):
        records = make.runs("cpubench", "DP", 4e10, 4e10, 4e10)
        if week != 1:  # twice the rate, the headline of two campaigns
            records += make.runs("cpubench", "DP", 8e10, 8e10, 8e10, concurrency=2)
        campaigns.append(kept(make.write(tmp_path / str(week), records)))
    (trend,) = history.follow(campaigns)
    assert (trend.row.threads, len(trend.values)) == ("1", 3)


def test_many_nodes_count_as_their_median_and_one_by_name(tmp_path):
    records = [
        record
        for number, value in enumerate((9e9, 1e10, 1.1e10), 1)
        for record in make.runs("rambench", "RS", *[value] * 3, node=f"node{number}", host=f"node{number}")
    ]  # fmt: skip
    stored_campaign = kept(make.write(tmp_path / "c", records))
    for node, value in (("", 1e10), ("node1", 9e9)):
        (trend,) = history.follow([stored_campaign], node)
        assert trend.values[0][1] == pytest.approx(value)
    assert history.follow([stored_campaign], "node9") == []


def test_the_command_writes_table_and_figures_and_passes_over_what_is_no_campaign(
    weeks, tmp_path, peakmark
):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes.zip").write_bytes(b"PK\x03\x04")
    files = [tmp_path / f"history.{ending}" for ending in ("csv", "svg", "png")]
    places = [*map(str, weeks), str(tmp_path / "notes"), str(tmp_path / "notes.zip")]
    done = peakmark("history", *places, *(word for file in files for word in ("-o", str(file))))
    assert done.returncode == 0 and done.stderr.count("skipped 2") == 1, done
    lines = list(csv.DictReader(files[0].read_text().splitlines()))
    changed = [line["campaign"] for line in lines if line["p"]]
    assert (len(lines), changed) == (2 * WEEKS, ["week-04"])
    assert all(path.stat().st_size for path in files)
    assert peakmark("history", *places, "-o", str(files[0])).returncode == 0  # what it wrote itself
    done = peakmark("history", *places, "--node", "node9")
    assert done.returncode == 2 and "node9" in done.stderr
