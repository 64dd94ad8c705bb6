"""Resources of the rules, from which other executors than peakmark's submit a job."""

import pytest
from tests.unit.plan.planned import CPU, DISK, NETWORK, where
from tests.unit.plan.test_jobs import LARGE, SMALL, site

from peakmark.config.types import Planned
from peakmark.errors import ConfigError
from peakmark.plan import jobs
from peakmark.plan.cluster import unlisted


def by_subsystem(plan, **overrides):
    """Subsystem -> resources of the job of its last cell."""
    found = {}
    for cell in plan.cells:
        found[cell.subsystem] = jobs.resources([cell], plan, overrides)
    return found


def test_a_job_asks_for_its_nodes_all_their_cpus_and_the_options_of_the_site(planned):
    settings = {"partition": "main", "account": "tests", "extra": "--nice=10"}
    kinds = where(cpus=2, kinds=[SMALL, LARGE])
    plan = planned(kinds, cpu=[CPU], network=[NETWORK], **site(**settings))
    found = by_subsystem(plan, account="mine")
    cpu, network = found["cpu"], found["network"]
    assert (cpu["nodes"], cpu["tasks"], cpu["cpus_per_task"]) == (1, 1, 128)
    assert (network["nodes"], network["tasks"], network["cpus_per_task"]) == (2, 2, 128)
    assert (cpu["slurm_partition"], cpu["slurm_account"]) == ("main", "mine")
    assert cpu["slurm_extra"] == "--no-requeue --exclusive --exclude=n1,n2,n3 --nice=10"
    assert cpu["runtime"] >= 2 and cpu["mem_mb"] > 0
    assert cpu.keys() == network.keys()


@pytest.mark.parametrize(("memory", "share"), [("none", None), ("per_cpu", 1), ("per_node", None)])
def test_memory_as_the_site_allows(planned, memory, share):
    plan = planned(cpu=[CPU], **site(exclusive="false", memory=memory))
    found = by_subsystem(plan)["cpu"]
    assert bool(found["mem_mb"]) == (memory != "none")
    assert ("mem_mb_per_cpu" in found) == bool(share)
    assert found["cpus_per_task"] == 8 and "exclusive" not in found["slurm_extra"]


def test_what_must_not_run_at_once_is_a_resource(planned):
    plan = planned(cpu=[CPU], disk=[DISK], network=[NETWORK], **site(scratch_shared="true"))
    found = by_subsystem(plan)
    used = {name: (one["network"], one["shared_disk"]) for name, one in found.items()}
    assert used == {"cpu": (0, 0), "disk": (0, 1), "network": (1, 0)}
    assert "dependency" not in found["network"]["slurm_extra"]


def test_a_scheduler_that_lists_no_nodes_gets_any(planned):
    plan = planned(unlisted(Planned()), cpu=[CPU], network=[NETWORK])
    found = by_subsystem(plan)
    assert (found["cpu"]["nodes"], found["network"]["nodes"]) == (1, 2)
    with pytest.raises(ConfigError, match="use nodes: any"):
        unlisted(Planned(nodes=["n1"]))
