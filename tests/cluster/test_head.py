"""The process that runs a campaign: interrupted, killed, without its terminal, with a controller
that answers late.
"""

import fcntl
import os
import pty
import shlex
import signal
import sys
import termios
import threading
from pathlib import Path

import pytest
from testcluster import Cluster
from testcluster.config import LOGIN
from testcluster.processes import wait_until
from tests.checkout import TO_TABLES

from workflow import DISK, Workflow

FIO_FIRST = 4
"""The seed with which the first two cells are ones of fio: on two nodes, as each of them waits
there.
"""


@pytest.fixture
def workflow(equal: Cluster, tmp_path: Path) -> Workflow:
    return Workflow.make(equal, tmp_path / "checkout")


def test_ctrl_c_twice_ends_all_jobs_without_a_traceback(workflow: Workflow) -> None:
    blocks = ["4KiB", "8KiB", "16KiB"]
    tool = workflow.holding("/usr/bin/fio")
    grid = {**DISK, "blocks": blocks, "references": {"fio": {"seconds": 0.1}}}
    workflow.configure(disk=[grid], seed=FIO_FIRST, tools={"fio": tool})
    (workflow.directory / "hold").touch()
    process = workflow.start()
    workflow.wait_for_tools(2)
    process.send_signal(signal.SIGINT)
    wait_until(
        lambda: process.poll() is not None or "user request" in workflow.said,
        120,
        "it is heard",
        0.05,
    )
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    assert workflow.end(process) != 0
    assert "Traceback" not in workflow.said
    wait_until(
        lambda: not workflow.cluster.run(["squeue", "-h", "-o", "%i"]).stdout.split(),
        60,
        "no job is left",
        0.2,
    )
    before = workflow.started()
    (workflow.directory / "hold").unlink()
    again = workflow.snakemake(*TO_TABLES)
    assert again.returncode == 0, again.stdout + again.stderr
    after = workflow.started()
    assert len(after) == 6 and {name: after[name] for name in before} == before


@pytest.mark.trouble
def test_a_killed_snakemake_and_a_restarted_controller_lose_nothing(workflow: Workflow) -> None:
    blocks = ["4KiB", "8KiB", "16KiB"]
    tool = workflow.holding("/usr/bin/fio")
    grid = {**DISK, "blocks": blocks, "references": {"fio": {"seconds": 0.1}}}
    workflow.configure(disk=[grid], seed=FIO_FIRST, tools={"fio": tool})
    hold, cluster = workflow.directory / "hold", workflow.cluster
    hold.touch()
    first = workflow.start()
    workflow.wait_for_tools(2)
    second = workflow.snakemake()
    assert second.returncode == 1
    assert "is being measured already by process" in second.stderr
    assert "Traceback" not in second.stderr
    os.kill(first.pid, signal.SIGKILL)
    first.wait(60)
    left = set(cluster.run(["squeue", "-h", "-o", "%i"]).stdout.split())
    assert left, "the killed snakemake's jobs go on"
    before = workflow.started()
    assert workflow.planned() == {
        f"disk/{name}/WS-psync_{block}_x1/any/0"
        for name in ("fio", "diskbench")
        for block in blocks
    } - set(before)

    third = workflow.start()
    wait_until(lambda: "still in the queue and go" in workflow.said, 90, "jobs are taken over", 0.2)
    now = set(cluster.run(["squeue", "-h", "-o", "%i"]).stdout.split())
    assert left <= now, "no job has lost its place in the queue"
    workflow.wait_for_tools(2)
    cluster.stop_controller()
    cluster.start_controller()
    hold.unlink()
    workflow.end_tools("node1", "node2")
    code = workflow.end(third)
    failed = workflow.attempts()
    # The tools that were ended have failed, and nothing else.
    assert code == 1 and len(failed) == 2, workflow.said
    assert workflow.planned() == set(failed)
    last = workflow.snakemake()
    assert last.returncode == 0, last.stderr
    after = workflow.started()
    assert len(after) == 6
    assert {name: after[name] for name in before} == before


class Terminal:
    """A terminal of one's own; what is printed on it is read all the time, as its buffer is small."""

    def __init__(self) -> None:
        self.master, self.slave = pty.openpty()
        self.shown = b""
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        while True:
            try:
                text = os.read(self.master, 4096)
            except OSError:
                return
            if not text:
                return
            self.shown += text

    def take(self) -> None:
        """In the child: the leader of a session whose terminal this is, as a shell's foreground job
        nearly is.
        """
        os.setsid()
        # Whoever tests under nohup has it ignored, and children inherit that.
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)

    def close(self) -> None:
        """As when the window is closed or the connection is lost: the kernel hangs the session up."""
        os.close(self.master)


@pytest.mark.trouble
def test_a_campaign_outlives_its_terminal(workflow: Workflow) -> None:
    workflow.configure(
        cpu=[{"workloads": ["DP"], "concurrency": [1], "seconds": 0.3, "repetitions": 12}]
    )
    terminal = Terminal()
    process = workflow.cluster.popen(
        workflow.argv,
        cwd=workflow.directory,
        env={**workflow.environment, "TERM": "xterm-256color"},
        stdin=terminal.slave,
        stdout=terminal.slave,
        stderr=terminal.slave,
        preexec_fn=terminal.take,
    )
    os.close(terminal.slave)
    wait_until(workflow.records, 120, "the first cell is measured", 0.1)
    assert len(workflow.records()) < 12
    terminal.close()
    log = workflow.results / "logs" / "hangup.log"
    wait_until(
        lambda: log.exists() and "the terminal has gone" in log.read_text(),
        120,
        "the hang-up is heard",
        0.1,
    )
    assert process.wait(240) == 0, log.read_text()
    said = log.read_text()
    assert "Traceback" not in said and "Exception" not in said, said
    assert "report  results/short/report.pdf" in said, said
    assert len(workflow.records()) == 12 and not workflow.attempts()
    assert b"12 cells through Slurm" in terminal.shown


# A controller that stops for a while has the submission in its socket, and takes the job when it
# goes on: long after sbatch.
LATE = """
import os, signal, sys
from pathlib import Path
from peakmark.cell import Cell
from peakmark.slurm.queue import Queue, Task

controller = int(sys.argv[1])
queue = Queue(Path(), say=lambda sentence: print(sentence, flush=True))
cell = Cell("cpu", "cpubench", "DP", "", None, 1, "any", 0, {})
queue.add(Task(0, (cell,), Path("made"), "late/one 12345678.12345678", ("--output=/dev/null",), "#!/bin/sh\\nsleep 600\\n"))
os.kill(controller, signal.SIGSTOP)
try:
    queue.step()
    print("unanswered", [task.unanswered for task in queue.waiting], flush=True)
finally:
    os.kill(controller, signal.SIGCONT)
while queue.waiting:
    queue.step()
print("active", *queue.active, flush=True)
"""


@pytest.mark.trouble
def test_a_submission_that_is_answered_too_late_is_no_second_job(
    cluster: Cluster, tmp_path: Path
) -> None:
    (controller,) = (
        process.pid for process in cluster.processes(LOGIN) if process.name == "slurmctld"
    )
    done = cluster.run([sys.executable, "-c", LATE, str(controller)], cwd=tmp_path, timeout=120)
    assert "unanswered [True]" in done.stdout
    listed = cluster.run(["squeue", "--noheader", "--format=%i"]).stdout.split()
    assert done.stdout.split()[-1:] == listed


@pytest.mark.trouble
def test_a_campaign_that_is_a_job_itself(workflow: Workflow) -> None:
    """On one of two nodes: cells of one node run on the other one, a network cell could never
    begin.
    """
    script = f"PATH={os.environ['PATH']}; {shlex.join(workflow.argv)}"
    cpu = [{"workloads": ["DP"], "concurrency": [1]}]
    workflow.configure(
        cpu=cpu, network=[{"workloads": ["TCP"], "blocks": ["1KiB"], "concurrency": [1]}]
    )
    place = ("--nodelist=node1", "--mem=600", "--output=said")
    refused = workflow.cluster.sbatch(script, *place, cwd=workflow.directory)
    assert workflow.cluster.wait_for_job(refused, seconds=120)["JobState"] == "FAILED"
    assert f"inside job {refused}, which holds node1" in workflow.said
    workflow.configure(cpu=cpu)
    number = workflow.cluster.sbatch(script, *place, cwd=workflow.directory)
    assert workflow.cluster.wait_for_job(number, seconds=240)["JobState"] == "COMPLETED", (
        workflow.said
    )
    (record,) = workflow.records().values()
    assert record["context"]["host"] == "node2" and record["context"]["job_id"] != str(number)
    assert (workflow.results / "report.pdf").exists()


def test_what_slurm_would_never_take_ends_the_run_before_its_first_job(
    site: Cluster, tmp_path: Path
) -> None:
    workflow = Workflow.make(site, tmp_path / "checkout")
    workflow.configure(cpu=[{"workloads": ["DP", "SP"], "concurrency": [1], "repetitions": 2}])
    known = ["squeue", "--noheader", "--states=all", "--format=%i"]
    before = site.run(known).stdout.split()
    done = workflow.snakemake()
    said = done.stdout + done.stderr
    assert done.returncode == 1 and "Traceback" not in said, said
    assert said.count("nvalid account") == 1 and "slurm.account in the site file" in said, said
    assert not workflow.attempts() and not workflow.records()
    assert set(site.run(known).stdout.split()) <= set(before)


@pytest.mark.trouble
def test_a_node_that_is_drained_meanwhile_is_given_up_with_its_reason(workflow: Workflow) -> None:
    cluster = workflow.cluster
    busy = cluster.sbatch("sleep 600", "--nodelist=node1", "--exclusive", "--output=/dev/null")
    cluster.wait_for_job(busy, "RUNNING")
    cpu = [{"workloads": ["DP"], "concurrency": [1]}]
    workflow.configure(nodes="all", give_up_after="2 s", cpu=cpu)
    process = workflow.start()

    def pending() -> str:
        return cluster.run(["squeue", "--noheader", "--states=pending", "--format=%k"]).stdout

    wait_until(lambda: "/node1/0 " in pending(), 120, "its cell waits for node1", 0.2)
    cluster.drain("node1", "a broken fan")
    cluster.run(["scancel", str(busy)])
    assert workflow.end(process) == 1
    (name,) = workflow.attempts()
    assert name == "cpu/cpubench/DP_none_x1/node1/0" and set(workflow.records()) == {
        name.replace("node1", "node2")
    }
    reason = workflow.attempts()[name]
    assert "node1 is" in reason and "a broken fan" in reason and "give_up_after" in reason
    assert "1 job waits since" in workflow.said and reason in workflow.said
    assert not pending() and "Traceback" not in workflow.said
    cluster.resume("node1")
    again = workflow.snakemake(*TO_TABLES)
    assert again.returncode == 0, again.stdout + again.stderr
    assert len(workflow.records()) == 2
