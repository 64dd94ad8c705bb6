"""Plans of GPUs: on a machine with and without a driver, and on a cluster."""

import msgspec
import pytest
from tests.unit.cases import cases
from tests.unit.hostile import refuses
from tests.unit.plan.planned import where

from peakmark import plan
from peakmark.config import campaign
from peakmark.config.types import SiteValues
from peakmark.errors import ConfigError
from peakmark.machine import gpu
from peakmark.machine.topology import CpuLocation
from peakmark.plan import grids, jobs
from peakmark.plan.plan import describe
from peakmark.resources import ROOT
from peakmark.run import pinning
from peakmark.slurm.commands import Node

RATES = {"workloads": ["FP64", "TC-FP8"], "concurrency": ["gpus"]}
NO_DRIVER = "NVIDIA's driver is not installed (libcuda.so.1)"


@pytest.fixture(autouse=True)
def gpus(monkeypatch):
    """Set the number of GPUs of this machine."""

    def have(count):
        monkeypatch.setattr(gpu, "survey", lambda: (count, NO_DRIVER))
        grids.threads_of.cache_clear()

    have(1)
    yield have
    grids.threads_of.cache_clear()


def quick():
    return plan.make(campaign.read([ROOT / "config/presets/quick.yaml"]))


def of_gpus(made):
    return [cell for cell in made.cells if cell.subsystem == "gpu"]


def test_quick_measures_gpus_for_at_most_90_seconds():
    made = quick()
    cells = of_gpus(made)
    workloads = {cell.workload for cell in cells}
    usual = "FP64 TC-FP64 TC-FP16 RS WS RWS LINK LAUNCH LADDER-LAT"
    assert workloads >= set(usual.split())
    assert made.durations.total(cells) <= 90
    assert made.left_out == {} and "left_out" not in made.to_json()


def test_a_machine_without_a_driver_plans_the_rest_and_says_why(gpus):
    gpus(0)
    made = quick()
    assert not of_gpus(made)
    assert "cublas" not in {tool.instrument for tool in made.references}
    reason = f"no GPU is measured: {NO_DRIVER}"
    assert made.to_json()["left_out"] == {"gpu": reason}
    assert describe(made).count(reason) == 1
    with pytest.raises(ConfigError, match="nothing to measure: no GPU is measured"):
        plan.make({"gpu": [RATES]})


def test_variants_and_blocks_belong_to_their_workloads(gpus):
    gpus(2)
    grid = {"workloads": ["FP64", "RS", "LINK"], "concurrency": [1, "gpus"], "blocks": ["4KiB"]}
    points = {cell.point for cell in plan.make({"gpu": [grid]}).cells}
    usual = "FP64-sustained_none RS_4KiB LINK-to_none LINK-from_none LINK-both_none"
    assert points == {f"{one}_x{count}" for one in usual.split() for count in ("1", "gpus")}
    peer = {"workloads": ["LINK"], "concurrency": ["gpus"], "variants": ["peer"]}
    assert len({cell.row for cell in plan.make({"gpu": [peer]}).cells}) == 1
    gpus(1)
    both = {"gpu": [peer, grid]}
    assert not [cell for cell in plan.make(both).cells if cell.variant == "peer"]


@cases("configuration")
def test_a_wrong_grid_is_refused_in_one_sentence(grid, words):
    refuses(lambda: plan.make({"gpu": [{**RATES, **grid}]}), words)


KINDS = [
    {"nodes": ["cpu1", "cpu2"], "cpus": 64, "memory": 1 << 18},
    {"nodes": ["gpu1", "gpu2"], "cpus": 32, "memory": 1 << 18, "gpus": 8},
]


def on_cluster(**site):
    config = {"gpu": [RATES], "cpu": [{"workloads": ["DP"], "concurrency": [1]}]}
    completed = msgspec.structs.replace(
        plan.complete(config, on_cluster=True), site_facts=msgspec.convert(site, SiteValues)
    )
    return plan.make_completed(completed, where(kinds=KINDS))


def test_a_job_asks_for_the_gpus_of_its_nodes():
    made = on_cluster(gpus={"gres": "gpu:h100"})
    assert made.cluster.chosen.nodes == ["gpu1", "gpu2"]
    cell = of_gpus(made)[0]
    named = jobs.named_options([cell], made, {})
    assert named["gres"] == "gpu:h100:8"
    other = next(cell for cell in made.cells if cell.subsystem == "cpu")
    assert "gres" not in jobs.named_options([other], made, {})


def test_a_cluster_without_gpus_in_its_site_file_plans_none():
    made = on_cluster()
    assert not of_gpus(made) and "the site file has no gpus: {gres: gpu}" in made.left_out["gpu"]


@pytest.mark.parametrize(("gres", "count"), [
    ("gpu:h100:8(S:0-1)", 8), ("gpu:4", 4), ("(null)", 0), ("", 0), ("mps:100,gpu:a100:2", 2),
])  # fmt: skip
def test_slurm_counts_the_gpus_of_a_node(gres, count):
    assert Node("n", "p", 1, 1, "idle", None, frozenset(), gres=gres).gpus == count


def test_a_cell_runs_on_the_cpus_near_its_gpus():
    cell = next(cell for cell in of_gpus(quick()) if cell.word)
    locations = {cpu: CpuLocation(cpu, cpu, 0, cpu // 2, (cpu,), 0) for cpu in range(4)}
    facts = {"gpu": {"count": 2, "gpus": [{"numa_node": 1}, {"numa_node": 0}]}}
    assert pinning.cpus_near_gpus(cell, facts, locations, (0, 1, 2, 3)) == (2, 3)
    assert pinning.cpus_near_gpus(cell, {}, locations, (0, 1, 2, 3)) == (0, 1, 2, 3)
    resolved = pinning.resolve_cell(cell, locations, [0, 1], 1 << 30, facts)
    assert resolved.concurrency == 2 and resolved.word == "gpus"
