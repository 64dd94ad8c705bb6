"""Rows of nodes that used a shared disk at one moment: their sum."""

import json

import pytest
from tests.unit.campaign_data import cell, measurement, record, write

from peakmark.rows import build
from peakmark.storage import planfile

NODES = ("n1", "n2", "n3", "n4")
RATE = 1e9


def node_cell(count, node, repetition):
    return cell(
        "diskbench", "WS", subsystem="disk", variant=f"psync-nodes{count}", block=1 << 20,
        node=node, repetition=repetition, first="n1", part=NODES.index(node),
    )  # fmt: skip


def frames_of(folder, rates, lacks=()):
    """A campaign in which each of ``count`` nodes has the rate ``rates[count]``.

    Args:
        lacks: (count, node, repetition) without a record.
    """
    cells = []
    entries = []
    for count, rate in rates.items():
        for node in NODES[:count]:
            for repetition in range(3):
                of = node_cell(count, node, repetition)
                cells.append(of)
                if (count, node, repetition) in lacks:
                    continue
                # The last node is the slowest.
                value = rate * (1 - 0.1 * (node == NODES[-1])) * (1 + repetition / 100)
                latency = measurement(of, "latency", 1e-3)
                entry = record(of, [measurement(of, "throughput", value), latency], host=node)
                entry["context"]["job_id"] = f"{count}{repetition}"
                entries.append(entry)
    grid = {"workloads": ["WS"], "blocks": ["1MiB"], "concurrency": [1], "together": [*rates]}
    write(folder, entries, config={"seed": 1, "disk": [grid]})
    plan = json.loads((folder / "plan.json").read_text())
    planned = [{"id": of.id, **of.to_json()} for of in cells]
    planfile.write(folder / "plan.json", {**plan, "cells": planned})
    return build.load(folder)


def test_a_row_has_the_sum_of_its_nodes(tmp_path):
    frames = frames_of(tmp_path / "c", {1: RATE, 2: 0.9 * RATE, 4: 0.5 * RATE})
    rows = frames.rows.set_index("variant")
    assert rows["table"].eq("disk_throughput").all()
    assert [*rows.index] == ["psync-nodes1", "psync-nodes2", "psync-nodes4"]
    assert rows["value"].tolist() == pytest.approx([1.01e9, 1.818e9, 1.9695e9])
    assert rows["n"].eq(3).all() and rows["node"].eq("n1").all()
    assert rows["limit"].isna().all() and rows["bound"].isna().all()
    # The nodes' own lines stay, in no table.
    assert len(frames.runs.query("table == '' and metric == 'throughput'")) == 21


def test_a_job_without_one_of_its_nodes_has_no_sum(tmp_path):
    lacks = [(4, "n3", 2), (4, "n4", 2)]
    frames = frames_of(tmp_path / "c", {4: RATE}, lacks)
    (row,) = frames.rows.itertuples()
    assert (row.n, row.planned, row.missing) == (2, 3, 1)
