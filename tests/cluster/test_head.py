"""The process that runs a campaign: interrupted, killed, without its terminal, inside a job."""

import os
import signal

import pytest
from testcluster.processes import wait_until
from tests.checkout import TO_RECORDS

BLOCKS = ("4KiB", "8KiB", "16KiB")


def test_ctrl_c_twice_ends_all_jobs_without_a_traceback(equal_workflow):
    workflow = equal_workflow
    hold = workflow.busy_fio(BLOCKS)
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


@pytest.mark.trouble
def test_a_killed_snakemake_and_a_restarted_controller_lose_nothing(equal_workflow):
    workflow, cluster = equal_workflow, equal_workflow.cluster
    hold = workflow.busy_fio(BLOCKS)
    first = workflow.start()
    workflow.wait_for_tools(2)
    assert "is being measured already by process" in workflow.snakemake(code=1)
    os.kill(first.pid, signal.SIGKILL)
    first.wait(60)
    left = workflow.queued()
    assert left, "the killed snakemake's jobs go on"
    before = workflow.started()
    tools = ("fio", "diskbench")
    cells = {f"disk/{tool}/WS-psync_{block}_x1/any/0" for tool in tools for block in BLOCKS}
    assert workflow.planned() == cells - set(before)

    third = workflow.start()
    wait_until(lambda: "still in the queue" in workflow.said, 90, "jobs are taken over", 0.2)
    assert left <= workflow.queued(), "no job has lost its place in the queue"
    workflow.wait_for_tools(2)
    for number in (signal.SIGTERM, signal.SIGKILL):
        cluster.stop_controller(number)
        cluster.start_controller()
    hold.unlink()
    workflow.end_tools("node1", "node2")
    workflow.end(third, 1)
    failed = workflow.attempts()
    # The tools that were ended have failed, and nothing else.
    assert len(failed) == 2 and workflow.planned() == set(failed), workflow.said
    workflow.snakemake()
    after = workflow.started()
    assert len(after) == 6 and {name: after[name] for name in before} == before
