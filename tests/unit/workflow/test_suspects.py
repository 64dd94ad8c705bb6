"""Slow nodes that are measured a second time: the campaign that does so, and its verdict."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import yaml
from tests.unit import campaign_data as make
from tests.unit.cases import cases
from tests.unit.plan.planned import where

from peakmark import plan
from peakmark.config import campaign as configuration
from peakmark.rows import build, suspects
from peakmark.views import fleet_report
from peakmark.workflow.suspects import choose
from peakmark.workflow.suspects import configuration as configure

NODES = [f"node{number}" for number in range(1, 9)]
CPU = {"workloads": ["QP", "SP", "DP"], "concurrency": [1, 2], "references": {"hpl": {}}}
CONFIG = {"seed": 1, "campaign": "c", "seconds": 0.5, "site": "mine.yaml", "cpu": [CPU]}


def rows(factors):
    """Six repetitions of two rows of the CPU on some nodes."""
    records = []
    for node, factor in factors.items():
        for workload, rate in (("DP", 1e11), ("SP", 2e11)):
            wobble = 1 + 0.0005 * (NODES.index(node) % 3)
            values = [rate * factor * wobble * near for near in make.near(1.0)]
            records += make.runs("cpubench", workload, *values, node=node, host=node)
    return records


@pytest.fixture
def campaign(tmp_path):
    """Eight nodes, of which node3 is slower by a tenth."""
    factors = {**dict.fromkeys(NODES, 1.0), "node3": 0.9}
    return make.write(tmp_path / "c", rows(factors), config=CONFIG)


def test_slow_rows_are_measured_again_beside_two_healthy_nodes(campaign, tmp_path, peakmark):
    target = tmp_path / "again.yaml"
    done = peakmark("fleet", campaign, "--suspects", target)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"peakmark run {target} --slurm"
    config = configuration.complete(yaml.safe_load(target.read_text()))
    ((suspect, beside),) = config["suspects"].items()
    assert suspect == "node3" and len({*beside} - {"node3"}) == 2
    assert config["campaign"] == "c-suspects" and config["nodes"] == [*beside, "node3"]
    assert (config["seconds"], config["site"]) == (0.5, "mine.yaml")
    cluster = where(asked=config["nodes"], nodes=tuple(config["nodes"]))
    cells = plan.make_completed({**config, "site_facts": {}, "tools_on": "nodes"}, cluster).cells
    assert {cell.point for cell in cells} == {"DP_none_x1", "SP_none_x1"}  # the slow rows alone
    assert len(cells) == 2 * 3 * 6 and {cell.instrument for cell in cells} == {"cpubench"}


def test_without_the_option_nothing_is_written(campaign, tmp_path, peakmark):
    done = peakmark("fleet", campaign)
    assert "node3" in done.stdout and "peakmark run" not in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["c"]


def test_a_file_of_somebody_else_stays(campaign, tmp_path, peakmark):
    target = tmp_path / "mine.yaml"
    target.write_text("campaign: mine\n")
    done = peakmark("fleet", campaign, "--suspects", target)
    assert done.returncode == 4 and str(target) in done.stderr
    assert target.read_text() == "campaign: mine\n"


def test_where_nobody_is_slow_no_campaign_is_written(tmp_path, peakmark):
    folder = make.write(tmp_path / "c", rows(dict.fromkeys(NODES, 1.0)), config=CONFIG)
    done = peakmark("fleet", folder, "--suspects", tmp_path / "again.yaml")
    assert done.returncode == 0 and "is not written" in done.stdout
    assert not (tmp_path / "again.yaml").exists()


SECOND = {"campaign": "c-suspects", "suspects": {"node3": ["node2", "node5"]}}


@cases("campaign")
def test_the_second_measurement_confirms_or_not(tmp_path, peakmark, factors, case):
    folder = make.write(tmp_path / "c", rows(factors), config={**CONFIG, **SECOND})
    frames = build.load(folder)
    (suspect,) = fleet_report.of_kind(frames, "suspect").itertuples()
    assert bool(suspect.judged) == (case != "missing")
    assert bool(suspect.judged and suspect.confirmed) == (case == "confirmed")
    if case == "confirmed":
        assert (suspect.rows, suspect.judged) == (2, 2)
        assert suspect.behind == pytest.approx(0.1, abs=0.01)
    (sentence,) = fleet_report.second_verdicts(frames)
    begin = {"confirmed": "Confirmed", "not-confirmed": "Not confirmed", "missing": "Neither"}
    assert sentence.startswith(begin[case])
    done = peakmark("fleet", folder, "--fail-on", "slow")
    assert done.returncode == {"confirmed": 1, "not-confirmed": 0, "missing": 3}[case]
    assert sentence[:20] in done.stdout
    assert ("cannot tell" in done.stdout) == (case == "missing")


@pytest.mark.parametrize(
    ("own", "others", "lower_is_better", "median", "is_slow"),
    [
        ([90, 91, 92], [[100, 100, 100], [102, 102, 102]], False, 1 - 91 / 101, True),
        ([90, 91, 98], [[100, 100, 100], [102, 102, 102]], False, 1 - 91 / 101, False),
        ([90, 91, 92], [[100, 100, 100], [93, 93, 93]], False, 1 - 91 / 96.5, False),
        ([110, 111, 112], [[100, 100, 100], [98, 98, 98]], True, 111 / 99 - 1, True),
        ([102, 111, 112], [[100, 100, 100], [98, 98, 98]], True, 111 / 99 - 1, False),
        ([90, 91, 92], [[100, 100, 100]], True, 91 / 100 - 1, False),
    ],
)
def test_the_whole_interval_must_be_behind_each_healthy_node(
    own, others, lower_is_better, median, is_slow
):
    found = suspects.lag_of(own, others, lower_is_better)
    assert found.median == pytest.approx(median) and found.is_slow == is_slow


def test_five_repetitions_confirm_nothing(tmp_path):
    records = [
        record
        for record in rows({"node2": 1.0, "node5": 1.0, "node3": 0.9})
        if record["cell"]["repetition"] < 5
    ]
    frames = make.frames(tmp_path / "c", records, config={**CONFIG, **SECOND})
    (sentence,) = fleet_report.second_verdicts(frames)
    assert sentence.startswith("Neither confirmed nor not")


def test_a_suspect_that_is_not_confirmed_is_not_drained(tmp_path):
    """Beside its class it is slow, as is the node that was drawn as a healthy one."""
    factors = {**dict.fromkeys(NODES, 1.0), "node2": 0.9, "node3": 0.9}
    beside = {"suspects": {"node3": ["node2"], "node4": ["node1"]}}
    frames = make.frames(tmp_path / "c", rows(factors), config={**CONFIG, **beside})
    assert {*fleet_report.of_kind(frames, "node")["name"]} == {"node2", "node3"}
    assert fleet_report.slow_nodes(frames) == ["node2"]


@pytest.mark.parametrize(("share", "explained"), [(0.89, True), (0.99, False), (0.5, False)])
def test_lost_time_is_the_reason_where_it_explains_the_rate(tmp_path, share, explained):
    records = rows({**dict.fromkeys(NODES, 1.0), "node3": 0.9})
    for record in records:
        own = share if record["cell"]["node"] == "node3" else 0.99
        record["measurements"][0]["details"]["cpu_share"] = own
    frames = make.frames(tmp_path / "c", records, config=CONFIG)
    (slow,) = frames.fleet.itertuples()
    codes = {reason["code"] for reason in json.loads(slow.reasons)}
    assert slow.name == "node3" and ("lost-time" in codes) == explained


def test_a_removed_command_names_what_is_there_instead(peakmark):
    done = peakmark("decide", "--plan", "plan.json")
    assert done.returncode == 2 and "peakmark fleet results/NAME --suspects" in done.stderr


def test_the_campaign_of_a_long_name_has_a_name(campaign):
    frames = build.load(campaign)
    frames = replace(frames, campaign={**frames.campaign, "name": "c" * 64})
    config = configure(frames, choose(frames))
    assert len(config["campaign"]) == 64
    configuration.complete(config)
