"""What jobs ask for, also as resources for other executors than peakmark's, and which cells they hold."""

from pathlib import Path

import pytest
from tests.unit.plan.planned import CPU, DISK, NETWORK, asked, where

from peakmark.config.types import Planned
from peakmark.errors import ConfigError
from peakmark.plan import jobs
from peakmark.plan.cluster import unlisted
from peakmark.plan.plan import two_nodes

ONE_THREAD = {"workloads": ["DP", "SP", "HP"], "concurrency": [1]}


def exclude(cell, one):
    """Value of sbatch's --exclude."""
    words = (word for word in jobs.options([cell], one, {}) if word.startswith("--exclude="))
    return next(words, "").removeprefix("--exclude=")


def site(**settings):
    """The key of a configuration for a site file with these settings of Slurm."""
    Path("site.yaml").write_text(f"{{schema: 1, name: here, slurm: {settings}}}".replace("'", ""))
    return {"site": "site.yaml"}


def test_many_threads_do_not_ask_for_more_cpus_than_a_node_has(planned):
    one = planned(cpu=[CPU])
    assert {cell.concurrency: jobs.threads([cell], one) for cell in one.cells} == {1: 1, 128: 8}
    assert jobs.megabytes(one.cells, planned(where(memory=100), cpu=[CPU])) == 100
    more = planned(cpu=[CPU], **site(memory_factor=1.5))
    memory = jobs.megabytes(one.cells, one)
    assert jobs.megabytes(more.cells, more) == pytest.approx(1.5 * memory, abs=2)


SMALL = {"cpus": 2, "memory": 8000, "nodes": ["n1", "n2", "n3"]}
LARGE = {"cpus": 128, "memory": 64000, "nodes": ["n4", "n5"]}
SINGLE = {"cpus": 256, "memory": 64000, "nodes": ["n6"]}

FIRST, LAST = ["n1", "n2", "n3"], ["n4", "n5"]


@pytest.mark.parametrize(("kinds", "concurrency", "excluded", "of_pair"), [
    ([SMALL, LARGE], 2, LAST, LAST),  # both hold all rows: the larger class
    ([SMALL, LARGE], 64, FIRST, FIRST),
    ([SMALL, LARGE, SINGLE], 512, [*FIRST, *LAST], []),  # none: the nearest; two nodes of any class
    ([SMALL], 512, [], []),
    ([{**SMALL, "usable": 0}, LARGE], 2, FIRST, FIRST),
    ([SMALL, {**LARGE, "chosen": True}], 2, FIRST, FIRST),  # an earlier run has chosen it
    ([SMALL, {**LARGE, "memory": 100}], 64, FIRST, FIRST),  # CPUs before memory
])  # fmt: skip
def test_any_node(kinds, concurrency, excluded, of_pair, planned):
    cpu = {"workloads": ["DP"], "concurrency": [1, concurrency]}
    one = planned(where(cpus=2, kinds=kinds), cpu=[cpu], disk=[DISK], network=[NETWORK])
    for cell in one.cells:
        left_out = exclude(cell, one).split(",") if exclude(cell, one) else []
        assert left_out == (of_pair if two_nodes(cell) else excluded)
        nodes, count = jobs.eligible([cell], one)
        assert len(nodes) >= count and not set(nodes) & set(left_out)


def test_jobs_that_need_two_free_nodes_come_last(planned):
    """While such a job waits, one of its nodes is idle."""
    one = planned(cpu=[CPU], network=[NETWORK], disk=[DISK], repetitions=3)
    order = [two_nodes(cell) for cell in one.cells]
    assert order == sorted(order) and set(order) == {False, True}


def test_a_word_asks_for_the_memory_of_all_cpus_of_a_node(planned):
    """How many threads it means on the machine that plans says nothing of the nodes."""
    memory = {"workloads": ["RWS"], "variants": ["block"], "blocks": ["64MiB"]}
    kinds = [{"cpus": 128, "memory": 256000, "nodes": ["n1"]}]
    one = planned(where(cpus=2, kinds=kinds), memory=[{**memory, "concurrency": ["cores"]}])
    assert jobs.megabytes(one.cells, one) == pytest.approx(128 * 129 * 1.048576 / 0.9 + 512, abs=2)
    assert jobs.threads(one.cells, one) == 128


def test_the_time_limit_lies_between_two_minutes_and_the_partitions(planned):
    def minutes(seconds, **changes):
        one = planned(where(**changes), cpu=[CPU], seconds=seconds)
        return jobs.minutes(one.cells[:1], one)

    assert (minutes(0.1), minutes(3600)) == (2, 60)
    assert minutes(3600, limit=None) > 180
    once = planned(where(limit=None), cpu=[CPU], seconds=3600, repeat_disturbed=0)
    assert jobs.minutes(once.cells[:1], once) + 60 < minutes(3600, limit=None)
    # It has room for the jobs that share the node.
    shared = {**site(exclusive="false"), "cpu": [{**CPU, "concurrency": [1, 16]}], "seconds": 60}
    one = planned(where(cpus=16, limit=None), **shared)
    few, many = sorted(one.cells, key=lambda cell: cell.concurrency)[:: len(one.cells) - 1]
    assert jobs.minutes([few], one) > 8 * jobs.minutes([many], one)


def test_only_what_is_shared_beyond_the_node_waits_for_its_like(planned):
    one = planned(where(nodes=("n1",)), cpu=[CPU], disk=[DISK], network=[NETWORK])
    words = asked(one)
    assert {"--nodelist=n1", "--nodes=1"} <= {*words["cpu"]} and "--nodes=2" in words["network"]
    alone = {name for name, found in words.items() if "--dependency=singleton" in found}
    assert alone == {"network"}
    (network,) = (cell for cell in one.cells if cell.subsystem == "network")
    assert jobs.name(one, [network], {}) == "c.pair"  # singleton goes by the name


def test_an_exclusive_job_takes_all_of_its_node_and_a_site_may_forbid_it(planned):
    one = planned(cpu=[CPU])
    words = asked(one)["cpu"]
    assert "--exclusive" in words and "--mem=0" in words
    assert not any("cpus" in word for word in words)
    shared = asked(one, exclusive=False)["cpu"]
    assert "--exclusive" not in shared and {"--cpus-per-task=8", "--mem=662M"} <= set(shared)
    assert "--mem-per-cpu=83M" in asked(one, memory="per_cpu")["cpu"]
    assert not [word for word in asked(one, memory="none")["cpu"] if "mem" in word]
    assert "--account=a" in asked(one, account="a")["cpu"]


def test_a_comment_has_the_cell_and_changes_with_what_is_measured(planned):
    one = planned(cpu=[CPU], disk=[DISK])
    comments = [jobs.comment(one, [cell]) for cell in one.cells]
    assert [text.partition(" ")[0] for text in comments] == [f"c/{cell.id}" for cell in one.cells]
    longer = planned(cpu=[CPU], disk=[DISK], seconds=9)
    assert not {jobs.comment(longer, [cell]) for cell in longer.cells} & set(comments)
    # A job of another checkout is no job of this one.
    assert jobs.comment(one, one.cells[:1], Path("other")) != comments[0]


def test_batches_are_in_running_order(planned):
    changes = {"fan_out": {"batch": 4}, "there": where(nodes=("n1",))}
    one = planned(cpu=[ONE_THREAD], repetitions=3, **changes)
    assert [len(cells) for cells in one.jobs.values()] == [4, 4, 1]
    assert [cell for cells in one.jobs.values() for cell in cells] == list(one.cells)


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
