"""The process that runs a campaign: interrupted, killed, without its terminal, inside a job."""

import signal

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
