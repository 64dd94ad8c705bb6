"""Cells that check the verdict on nodes: what a plan adds for them, and where it adds nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
import yaml
from tests.unit.plan.planned import CPU, DISK, NETWORK, where

from peakmark import plan
from peakmark.cell import AGAIN, TRIAL
from peakmark.plan import plan_text
from peakmark.run import job
from peakmark.storage import planfile

NODES = [f"node{number}" for number in range(1, 17)]
KIND = {"cpus": 8, "memory": 4000}
FLEET = where(asked="all", nodes=tuple(NODES), kinds=[{**KIND, "nodes": NODES}])
FEW = where(asked="all", nodes=tuple(NODES[:3]), kinds=[{**KIND, "nodes": NODES[:3]}])
GRID = {"workloads": ["DP", "SP", "HP"], "concurrency": [1]}

Planned = Callable[..., plan.Plan]


def test_a_part_of_the_rows_of_cpu_and_memory_is_tried(planned):
    config = {"repetitions": 6, "cpu": [GRID], "disk": [DISK]}
    plain, tried = planned(FLEET, **config), planned(FLEET, **config, certify=True)
    extra = [cell for cell in tried.cells if cell.purpose]
    assert {cell.id for cell in plain.cells} == {cell.id for cell in tried.cells} - {
        cell.id for cell in extra
    }
    assert {(cell.purpose, cell.subsystem) for cell in extra} == {(TRIAL, "cpu")}
    rows = Counter(cell.row for cell in extra)
    assert set(rows.values()) == {6} and len(rows) == 3 * len(NODES) // plan.TRIED_SHARE
    assert set(tried.slowed) < set(rows) and len(tried.slowed) == len(rows) // 2
    # The plan does not tell which of them are slowed.
    assert "slowed" not in planfile.text(tried.to_json())
    assert planned(FLEET, **config, certify=True).slowed == tried.slowed
    assert planned(FLEET, **config, certify=True, seed=2).slowed != tried.slowed


@pytest.mark.parametrize(
    ("cluster", "repetitions"), [(FEW, 6), (FLEET, 5), (where(), 6)], ids=["few", "short", "any"]
)
def test_where_nodes_cannot_be_judged_nothing_is_added(planned, cluster, repetitions):
    made = planned(cluster, cpu=[GRID], repetitions=repetitions, certify=True)
    assert not any(cell.purpose for cell in made.cells) and not made.checks_suspects
    assert "repeat_suspects" not in plan_text.describe(made)


def test_a_neighbour_slows_nobody_who_shares_the_node(planned, tmp_path):
    site = tmp_path / "site.yaml"
    site.write_text(yaml.safe_dump({"schema": 1, "name": "s", "slurm": {"exclusive": False}}))
    made = planned(FLEET, cpu=[GRID], repetitions=6, certify=True, site=str(site))
    assert not any(cell.purpose for cell in made.cells) and made.checks_suspects


def test_the_plan_says_what_slow_nodes_may_cost(planned):
    grid = {**GRID, "repetitions": 6}
    made = planned(FLEET, cpu=[grid], disk=[{**DISK, "repetitions": 2}])
    assert len(made.judged_cells) == 3 * len(NODES) * 6
    assert {cell.subsystem for cell in made.judged_cells} == {"cpu"}
    assert "repeat_suspects: true" in plan_text.describe(made)
    few = planned(FEW, network=[{**NETWORK, "pairs": "all"}])
    assert len(few.judged_cells) == 3 and few.checks_suspects  # links, measured once
    assert "repeat_suspects: true" in plan_text.describe(few)
    never = planned(FLEET, cpu=[grid], repeat_suspects=False)
    assert not never.checks_suspects and "suspects" not in plan_text.describe(never)


def test_a_cell_of_the_plan_is_found_when_it_is_measured_again(planned, tmp_path):
    made = planned(FLEET, cpu=[CPU], repetitions=6, certify=True)
    path = tmp_path / "plan.json"
    planfile.write(path, made.to_json())
    (cell,) = planfile.cell(path, "cpu/cpubench/DP_none_x1+again/node3/2").cells
    assert (cell.node, cell.repetition, cell.purpose) == ("node3", 2, AGAIN)
    assert cell.id == "cpu/cpubench/DP_none_x1+again/node3/2"
    planfile.write_seal(tmp_path, made.slowed)
    losses = {}
    for extra in (cell for cell in made.cells if cell.purpose):
        part = planfile.cell(path, extra.id)
        losses[extra.row] = job.request(part, part.cells[0], tmp_path).loss
    assert {row for row, loss in losses.items() if loss} == set(made.slowed)
    assert set(losses.values()) == {0.0, planfile.LOSS}
