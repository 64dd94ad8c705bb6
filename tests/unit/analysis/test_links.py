"""Pairs of nodes: which node, switch or link is slow, and what the campaign says of it."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from benchmarks.method import links as simulated
from benchmarks.method.links import Fleet
from tests.unit.campaign_data import measurement, record, write

from peakmark.analysis import links
from peakmark.analysis.analysis import Analysis
from peakmark.cell import Cell
from peakmark.figures import figures
from peakmark.tables import tables

RATE = 9.4e9
EVERY = [(f"n{a}", f"n{b}") for a in range(1, 5) for b in range(a + 1, 5)]


@pytest.mark.parametrize("of", simulated.FLEETS, ids=str)
def test_five_rounds_name_what_is_slow_and_nothing_else(of: Fleet) -> None:
    values, leaves, slow = of.measured(1)
    named = {(each.kind, each.name) for each in links.find(values, of.times, leaves)}
    nodes = {one for one in named if one[0] == "node"}
    assert nodes <= slow, "no healthy node"
    assert of.slow == 20 or named == slow
    assert len(slow - named) <= (3 if of.slow == 20 else 0)


def test_a_slow_node_is_not_hidden_behind_its_slow_switch() -> None:
    of = Fleet(switch=0.1, known=True)
    values, leaves, _ = of.measured(1)
    for pair, repetitions in values.items():
        if "node20" in pair.split("+"):
            values[pair] = [0.75 * value for value in repetitions]
    named = {(each.kind, each.name) for each in links.find(values, False, leaves)}
    assert named == {("switch", "leaf1"), ("node", "node20")}


@pytest.mark.parametrize("measured", [
    {"a+b": [1.0]},
    {"a+b": [1.0] * 3, "b+a": [1.0] * 3},
    {"a+b": [1.0, 1.1], "a+c": [0.5, 0.5]},
])  # fmt: skip
def test_few_pairs_tell_nothing(measured: Any) -> None:
    assert links.find(measured, False, {"leaf": frozenset("ab")}) == []


def campaign(folder: Path, repetitions: int, slow: tuple[str, str]) -> Analysis:
    """Six pairs of four nodes, of which one is half as fast as the others."""
    records = []
    for number, (client, server) in enumerate(EVERY):
        for repetition in range(repetitions):
            of = Cell("network", "netbench", "TCP", "", 1 << 20, 1, client, repetition, peer=server)
            wobble = 1 + 0.01 * ((3 * number + repetition) % 5 - 2) / 2
            value = RATE * wobble * (0.5 if (client, server) == slow else 1)
            entry = record(of, [measurement(of, "throughput", value)], host=client)
            entry["context"]["server_host"] = server
            records.append(entry)
    return Analysis.of(write(folder, records))


@pytest.mark.parametrize(("repetitions", "case"), [(3, "suspect"), (6, "link")])
def test_a_slow_link_is_a_suspect_until_its_repetitions_show_it(
    repetitions: int, case: str, tmp_path: Path
) -> None:
    analysis = campaign(tmp_path / "c", repetitions, ("n2", "n3"))
    rows = analysis.rows["network_throughput"]
    found = [each.message for each in analysis.conclusions(rows) if "link" in each.message.code]
    assert [(each.case, dict(each.values)["name"]) for each in found] == [(case, "n2 → n3")]
    again = [row.key.node for row in links.suspects(rows, {})]
    assert again == (["n2+n3"] if case == "suspect" else [])
    assert not analysis.is_fleet and analysis.has_several_nodes
    drawn = figures.figures_of(rows[0].table, analysis.rows)
    assert [each.name for each in drawn if each.rows] == ["network_throughput_links"]


def test_client_and_server_stand_in_every_row(tmp_path: Path) -> None:
    tables.build(campaign(tmp_path / "c", 2, ("", "")))
    folder = tmp_path / "c" / "tables"
    printed = pd.read_csv(folder / "network_throughput.csv")
    assert list(zip(printed["Client"], printed["Server"], strict=True)) == EVERY
    runs = pd.read_csv(folder / "runs.csv")
    assert {*zip(runs["host"], runs["server_host"], strict=True)} == {*EVERY}
    assert {*runs["node"]} == {*printed["Node"]} == {"+".join(pair) for pair in EVERY}
    (said,) = pd.read_csv(folder / "findings.csv").query("topic == 'Links'")["sentence"]
    assert "4 nodes and 6 links" in said
