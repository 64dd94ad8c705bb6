"""Jobs that a cluster loses or Ctrl-C ends: they alone are measured again."""

import json
import signal

import pytest
from testcluster.processes import wait_until
from tests.checkout import TO_RECORDS

BLOCKS = ("4KiB", "8KiB")


def lost_on(workflow, node):
    """The only failed attempt, which was on this node: its cell and its reason."""
    ((cell, reason),) = workflow.attempts().items()
    attempt = json.loads((workflow.results / "attempts" / cell / "0.json").read_text())
    assert attempt["context"]["host"] == node
    return cell, reason


@pytest.mark.trouble
def test_a_lost_node_costs_an_attempt_and_no_cell(equal_workflow):
    workflow = equal_workflow
    wait = workflow.busy_fio(BLOCKS, "wait")
    process = workflow.start(*TO_RECORDS)
    workflow.wait_for_tools(2)
    workflow.cluster.kill_node("node2")
    wait.unlink()
    workflow.end(process, 0)
    cell, reason = lost_on(workflow, "node2")
    assert "NODE_FAIL" in reason
    records = workflow.records()
    assert len(records) == 4 and records[cell]["context"]["host"] == "node1"


def test_preempted_jobs_are_named_and_measured_again(equal_workflow):
    workflow, cluster = equal_workflow, equal_workflow.cluster
    wait = workflow.busy_fio(BLOCKS, "wait")
    process = workflow.start(*TO_RECORDS)
    workflow.wait_for_tools(2)
    cluster.run(["srun", "--partition=urgent", "--exclusive", "--nodelist=node1", "sleep", "1"])
    wait.unlink()
    workflow.end(process, 0)
    assert "PREEMPTED" in lost_on(workflow, "node1")[1]
    assert len(workflow.records()) == 4


def test_ctrl_c_twice_ends_all_jobs_without_a_traceback(equal_workflow):
    workflow = equal_workflow
    hold = workflow.busy_fio((*BLOCKS, "16KiB"))
    process = workflow.start()
    workflow.wait_for_tools(2)
    process.send_signal(signal.SIGINT)
    heard = lambda: process.poll() is not None or "user request" in workflow.said  # noqa: E731
    wait_until(heard, 120, "it is heard", 0.05)
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    assert workflow.end(process) != 0
    wait_until(lambda: not workflow.queued(), 60, "no job is left", 0.2)
    before = workflow.started()
    hold.unlink()
    workflow.snakemake(*TO_RECORDS)
    after = workflow.started()
    assert len(after) == 6 and {name: after[name] for name in before} == before
