"""Pairs of nodes: which node or pair is slow, and what the campaign says of it."""

import json

import msgspec
import pytest
from benchmarks.method.fleets import PAIRED
from tests.unit.campaign_data import frames as make_frames
from tests.unit.campaign_data import measurement, record, write
from tests.unit.plan.planned import where

from peakmark.cell import Cell
from peakmark.rows import build, fleet
from peakmark.storage import planfile
from peakmark.tools.tables import BY_NAME
from peakmark.views import fleet_report
from peakmark.views.pictures import pictures_of

RATE = 9.4e9
CLUSTER_OF_FOUR = where(nodes=("n1", "n2", "n3", "n4"))
CLUSTER = msgspec.to_builtins(CLUSTER_OF_FOUR)
GRID = {"workloads": ["TCP"], "blocks": ["1MiB"], "concurrency": [1], "pairs": "all"}
EVERY = [(f"n{a}", f"n{b}") for a in range(1, 5) for b in range(a + 1, 5)]


@pytest.mark.parametrize("of", [each for each in PAIRED if each.nodes < 100], ids=str)
def test_five_rounds_name_what_is_slow_and_nothing_else(of):
    values, leaves, slow = of.measured(1)
    named = {
        (each.kind, each.name) for each in fleet.slow_parts(values, of.times, leaves).itertuples()
    }
    nodes = {one for one in named if one[0] == "node"}
    assert nodes <= slow, "no healthy node"
    assert of.slow == 20 or named == slow
    assert len(slow - named) <= (3 if of.slow == 20 else 0)


@pytest.mark.parametrize(
    ("slow", "named"),
    [
        ({"n2+n3": 0.5, "n2+n4": 0.73}, {("pair", "n2+n3"), ("pair", "n2+n4")}),
        (dict.fromkeys(("n1+n2", "n2+n3", "n2+n4"), 0.9), {("node", "n2")}),
    ],
)
def test_two_slow_pairs_of_three_are_no_slow_node(slow, named):
    values = {
        "+".join(pair): [slow.get("+".join(pair), 1) * (1 + number % 3 / 500)]
        for number, pair in enumerate(EVERY)
    }
    assert {
        (each.kind, each.name) for each in fleet.slow_parts(values, False, {}).itertuples()
    } == named


@pytest.mark.parametrize("measured", [
    {"a+b": [1.0]},
    {"a+b": [1.0] * 3, "b+a": [1.0] * 3},
    {"a+b": [1.0, 1.1], "a+c": [0.5, 0.5]},
])  # fmt: skip
def test_few_pairs_tell_nothing(measured):
    assert fleet.slow_parts(measured, False, {"leaf": frozenset("ab")}).empty


def records(cells, factors):
    """Records of pairs, some of which are faster or slower by a factor."""
    for of in cells:
        wobble = 1 + 0.01 * ((3 * EVERY.index((of.node, of.peer)) + of.repetition) % 5 - 2) / 2
        value = RATE * wobble * factors.get((of.node, of.peer), 1)
        entry = record(of, [measurement(of, "throughput", value)], host=of.node)
        entry["context"]["server_host"] = of.peer
        yield entry


def campaign(folder, repetitions, slow):
    """Six pairs of four nodes, of which one is half as fast as the others."""
    cells = [
        Cell("network", "netbench", "TCP", "", 1 << 20, 1, client, repetition, peer=server)
        for client, server in EVERY
        for repetition in range(repetitions)
    ]
    config = {"seed": 1, "network": [GRID]}
    write(folder, records(cells, {slow: 0.5}), config=config)
    plan = json.loads((folder / "plan.json").read_text())
    entries = [{"id": cell.id, **cell.to_json()} for cell in cells]
    planfile.write(folder / "plan.json", {**plan, "cluster": CLUSTER, "cells": entries})
    return folder


@pytest.mark.parametrize("repetitions", [3, 6])
def test_a_slow_pair_is_named(repetitions, tmp_path):
    folder = campaign(tmp_path / "c", repetitions, ("n2", "n3"))
    frames = build.load(folder)
    (found,) = frames.fleet.itertuples()
    assert (found.kind, found.name) == ("pair", "n2+n3")
    (said,) = frames.findings.query("topic == 'Links'")["text"]
    assert "The pair n2 → n3 is " in said
    assert len(frames.nodes) == 4
    drawn = pictures_of(frames, BY_NAME["network_throughput"], None)
    assert [each.name for each in drawn if len(each.rows)] == ["network_throughput_links"]


def test_a_node_that_slows_its_pairs_down_is_a_slow_node(tmp_path):
    """Each node has three pairs; those of n2 are half as fast."""
    cells = [
        Cell("network", "netbench", "TCP", "", 1 << 20, 1, client, repetition, peer=server)
        for client, server in EVERY
        for repetition in range(6)
    ]
    factors = {pair: 0.5 for pair in EVERY if "n2" in pair}
    slow = make_frames(tmp_path / "slow", records(cells, factors))
    assert fleet_report.headline(slow) == "slow: 1 slow node"
    text = "\n".join(fleet_report.describe(slow))
    assert "Links of n2 are 49.9\u00a0% slower" in text and "none is slow" not in text
    well = make_frames(tmp_path / "well", records(cells, {}))
    assert fleet_report.headline(well) == "well: 0 slow nodes"
    few = make_frames(tmp_path / "few", records(cells[:6], {}))
    assert fleet_report.headline(few).startswith("few: cannot tell: no node was judged")
