"""Findings on pairs of nodes that were measured at one moment."""

import pytest
from tests.unit.campaign_data import measurement, record, write
from tests.unit.rows.test_links import CLUSTER, LEAVES, RATE

from peakmark.cell import Cell
from peakmark.rows import build
from peakmark.storage import planfile

PAIRS = [("n1", "n3"), ("n2", "n4")]


def cell(variant, pair, repetition):
    client, server = pair
    options = {"round": 0} if variant else {}
    place = (variant, 1 << 20, 1, client, repetition, options)
    return Cell("network", "netbench", "TCP", *place, peer=server)


def findings(folder, kept, *, lacks=()):
    """Sentences of a round in which each pair keeps a share of its rate by itself.

    Args:
        lacks: (pair, repetition) without a record.
    """
    cells = []
    entries = []
    for variant in ("", "together"):
        for pair in PAIRS:
            for repetition in range(3):
                of = cell(variant, pair, repetition)
                cells.append(of)
                if variant and (pair, repetition) in lacks:
                    continue
                value = RATE * (1 + repetition / 100)
                if variant:
                    value *= kept[pair]
                entry = record(of, [measurement(of, "throughput", value)], host=of.node)
                entry["context"]["server_host"] = of.peer
                entry["context"]["job_id"] = f"{variant}{repetition}"
                entries.append(entry)
    grid = {"workloads": ["TCP"], "blocks": ["1MiB"], "concurrency": [1]}
    config = {"seed": 1, "network": [grid], "site_facts": {"shared": LEAVES}}
    write(folder, entries, config=config)
    plan = planfile.read(folder / "plan.json")
    planned = [{"id": of.id, **of.to_json()} for of in cells]
    planfile.write(folder / "plan.json", {**plan, "cluster": CLUSTER, "cells": planned})
    frames = build.load(folder)
    assert frames.fleet.empty, "a pair that shares an uplink is no slow link"
    return [*frames.findings.query("topic == 'Together'")["text"]]


def test_a_shared_uplink_leaves_each_pair_a_part_of_its_rate(tmp_path):
    (text,) = findings(tmp_path / "c", {PAIRS[0]: 0.6, PAIRS[1]: 0.4})
    assert "2 pairs at one moment move" in text
    assert "50 % of the sum of their rates alone" in text
    assert "n2 → n4 keeps the least of its rate alone, 40 %" in text
    assert "The slowest pair, n2 → n4, has 80 % of the mean" in text
    assert text.endswith("Pairs that cross an uplink: 2 through leaf1, 2 through leaf2.")


def test_a_repetition_without_one_of_the_pairs_does_not_count(tmp_path):
    (text,) = findings(tmp_path / "c", {PAIRS[0]: 0.6, PAIRS[1]: 0.4}, lacks=[(PAIRS[1], 2)])
    assert "50 % of the sum" in text


@pytest.mark.parametrize("kept", [1.0, 0.999])
def test_pairs_that_share_nothing_keep_their_rates(kept, tmp_path):
    (text,) = findings(tmp_path / "c", dict.fromkeys(PAIRS, kept))
    assert "100 % of the sum of their rates alone" in text
