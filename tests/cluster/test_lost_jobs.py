"""Jobs whose node is lost or taken by another job: their cells are measured again by themselves."""

import json
from pathlib import Path

import pytest
from testcluster import Cluster
from tests.checkout import TO_TABLES

from workflow import Workflow

CPU = [{"workloads": ["DP", "SP"], "concurrency": [1], "seconds": 2, "repetitions": 2}]


@pytest.fixture
def workflow(equal: Cluster, tmp_path: Path) -> Workflow:
    return Workflow.make(equal, tmp_path / "checkout")


def lost_on(workflow: Workflow, node: str) -> tuple[str, str]:
    """The only failed attempt, which was on this node: its cell and its reason."""
    ((cell, reason),) = workflow.attempts().items()
    attempt = json.loads((workflow.results / "attempts" / cell / "0.json").read_text())
    assert attempt["context"]["host"] == node
    return cell, reason


def preempt(workflow: Workflow, node: str) -> None:
    """Take the node from the job that measures on it."""
    cluster = workflow.cluster
    cluster.wait_for_process(node, "cpubench", 120)
    options = ("--partition=urgent", "--exclusive", f"--nodelist={node}", "--output=/dev/null")
    assert cluster.wait_for_job(cluster.sbatch("sleep 1", *options))["JobState"] == "COMPLETED"


def test_a_lost_node_costs_an_attempt_and_no_cell(workflow: Workflow) -> None:
    workflow.configure(cpu=CPU)
    process = workflow.start(*TO_TABLES)
    workflow.cluster.wait_for_process("node2", "cpubench", 120)
    workflow.cluster.kill_node("node2")
    assert workflow.end(process) == 0, workflow.said
    cell, reason = lost_on(workflow, "node2")
    assert "NODE_FAIL" in reason
    records = workflow.records()
    assert len(records) == 4 and records[cell]["context"]["host"] == "node1"


@pytest.mark.parametrize("partition", ["main", pytest.param("short", marks=pytest.mark.trouble)])
def test_a_partition_whose_jobs_are_preempted_leads_to_a_report(
    workflow: Workflow, partition: str
) -> None:
    workflow.configure(cpu=CPU, site=workflow.site(f"{{partition: {partition}}}"))
    process = workflow.start()
    preempt(workflow, "node1")
    assert workflow.end(process) == 0, workflow.said
    _, reason = lost_on(workflow, "node1")
    assert "PREEMPTED" in reason
    assert len(workflow.records()) == 4 and (workflow.results / "report.pdf").exists()


@pytest.mark.trouble
def test_no_more_retries_than_configured(workflow: Workflow) -> None:
    workflow.configure(cpu=CPU, retries=0)
    process = workflow.start(*TO_TABLES)
    preempt(workflow, "node1")
    assert workflow.end(process) == 1
    cell, _ = lost_on(workflow, "node1")
    assert workflow.planned() == {cell}
