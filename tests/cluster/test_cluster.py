"""The test cluster behaves as a cluster does: jobs, two nodes, cancelling, time limits, failures
and the way back.
"""

import os
from pathlib import Path

import pytest
from testcluster import Cluster, ClusterError
from testcluster.processes import wait_until

from peakmark.slurm import hostlist

# Started on both nodes by one srun: the first rank serves, the other connects to it by name and
# checks from where it did.
TALK = """
import os, socket, sys, time
nodes, port = ["node1", "node2"], 5999
if os.environ["SLURM_PROCID"] == "0":
    server = socket.create_server(("", port))
    connection, peer = server.accept()
    print("server on", socket.gethostname(), "heard", connection.makefile().readline().strip(), "from", peer[0])
else:
    deadline = time.monotonic() + 20
    while True:
        try:
            client = socket.create_connection((nodes[0], port), timeout=5)
            break
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
    client.sendall((socket.gethostname() + "\\n").encode())
"""


def test_srun_reaches_each_node_by_its_own_host_name(cluster: Cluster) -> None:
    for name in ("node1", "node2"):
        assert cluster.run(["srun", f"--nodelist={name}", "hostname"]).stdout == f"{name}\n"


def test_slurm_reads_the_names_of_nodes_as_we_write_them(cluster: Cluster) -> None:
    names = [
        *(f"cn{number:03}" for number in range(1, 200, 3)),
        "cn008",
        "cn9",
        "cn10",
        "cn11",
        "r1c2",
        "r1c3",
        "login",
    ]
    read = cluster.run(["scontrol", "show", "hostnames", hostlist(names)]).stdout.split()
    assert sorted(read) == sorted(set(names))


def test_a_node_has_its_own_network_and_processes(cluster: Cluster) -> None:
    interfaces = cluster.run(["srun", "--nodelist=node2", "ls", "/sys/class/net"]).stdout.split()
    assert interfaces == ["eth0", "lo"]
    addresses = cluster.run(
        ["srun", "--nodelist=node2", "ip", "-brief", "-4", "address", "show", "eth0"]
    ).stdout
    assert "10.77.0.12/24" in addresses
    seen = cluster.run(["srun", "--nodelist=node2", "ps", "-e", "-o", "comm="]).stdout.split()
    assert seen.count("slurmd") == 1 and "slurmctld" not in seen


def test_the_login_side_uses_the_callers_directory_and_environment(
    cluster: Cluster, tmp_path: Path
) -> None:
    environment = {
        **os.environ,
        "MARK": "here",
        "SLURM_JOB_ID": "999",
        "SBATCH_PARTITION": "of-another-cluster",
    }
    shown = cluster.run(
        ["sh", "-c", "hostname; pwd; env"], cwd=tmp_path, env=environment
    ).stdout.splitlines()
    assert shown[:2] == ["login", str(tmp_path)]
    assert "MARK=here" in shown
    assert not [line for line in shown if line.startswith(("SLURM_", "SBATCH_"))]


def test_popen_gives_the_process_id_of_the_command_itself(cluster: Cluster) -> None:
    child = cluster.popen(["sleep", "600"])
    try:
        wait_until(
            lambda: Path(f"/proc/{child.pid}/comm").read_text() == "sleep\n",
            60,
            "the child has become sleep",
        )
    finally:
        child.kill()
        assert child.wait(60) == -9


def test_two_nodes_of_one_job_talk_over_the_bridge(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "talk.py").write_text(TALK)
    done = cluster.run(["srun", "--nodes=2", "--ntasks=2", "python", "talk.py"], cwd=tmp_path)
    assert done.stdout == "server on node1 heard node2 from 10.77.0.12\n"


def test_a_batch_job_runs_to_its_end_and_stays_known(cluster: Cluster, tmp_path: Path) -> None:
    number = cluster.sbatch(
        "echo on $(hostname)", "--output=out.txt", "--nodelist=node2", cwd=tmp_path
    )
    fields = cluster.wait_for_job(number)
    assert fields["JobState"] == "COMPLETED" and fields["ExitCode"] == "0:0"
    assert (tmp_path / "out.txt").read_text() == "on node2\n"
    assert (
        cluster.run(["squeue", "-h", "-j", str(number), "--states=all", "-o", "%T"]).stdout
        == "COMPLETED\n"
    )


def test_a_failing_batch_job_tells_its_exit_code(cluster: Cluster) -> None:
    fields = cluster.wait_for_job(cluster.sbatch("exit 77", "--output=/dev/null"))
    assert (fields["JobState"], fields["ExitCode"]) == ("FAILED", "77:0")


def test_an_exclusive_job_keeps_others_off_its_node(cluster: Cluster) -> None:
    first = cluster.sbatch("sleep 600", "--exclusive", "--nodelist=node1", "--output=/dev/null")
    cluster.wait_for_job(first, "RUNNING")
    second = cluster.sbatch("true", "--nodelist=node1", "--output=/dev/null")
    wait_until(
        lambda: cluster.job(second)["Reason"] == "Resources",
        60,
        "the second job waits for the node",
    )
    cluster.run(["scancel", str(first)])
    assert cluster.wait_for_job(second)["JobState"] == "COMPLETED"


def test_scancel_ends_the_job_and_its_processes(cluster: Cluster) -> None:
    number = cluster.sbatch("sleep 600", "--nodelist=node1", "--output=/dev/null")
    cluster.wait_for_process("node1", "sleep")
    cluster.run(["scancel", str(number)])
    assert cluster.wait_for_job(number)["JobState"] == "CANCELLED"
    wait_until(lambda: names(cluster, "node1") == {"slurmd"}, 60, "only slurmd runs on the node")


@pytest.mark.trouble
def test_a_job_over_its_time_limit_is_ended(cluster: Cluster) -> None:
    number = cluster.sbatch("sleep 600", "--time=1", "--output=/dev/null")
    cluster.wait_for_job(number, "RUNNING")
    cluster.expire(number)
    assert cluster.wait_for_job(number)["JobState"] == "TIMEOUT"


def test_the_short_partition_refuses_long_jobs(cluster: Cluster) -> None:
    with pytest.raises(ClusterError, match="time limit"):
        cluster.sbatch("true", "--partition=short", "--time=60")


@pytest.mark.trouble
def test_a_node_that_dies_fails_its_job_and_comes_back(cluster: Cluster) -> None:
    number = cluster.sbatch("sleep 600", "--nodelist=node2", "--no-requeue", "--output=/dev/null")
    cluster.wait_for_process("node2", "sleep")
    cluster.kill_node("node2")
    assert cluster.wait_for_job(number)["JobState"] == "NODE_FAIL"
    assert "DOWN" in cluster.node_states("node2")
    cluster.start_node("node2")
    cluster.wait_for_node("node2", "IDLE")
    assert cluster.run(["srun", "--nodelist=node2", "hostname"]).stdout == "node2\n"


@pytest.mark.trouble
def test_a_killed_slurmd_fails_its_job_and_comes_back(cluster: Cluster) -> None:
    number = cluster.sbatch("sleep 600", "--nodelist=node1", "--no-requeue", "--output=/dev/null")
    cluster.wait_for_process("node1", "sleep")
    cluster.kill_slurmd("node1")
    assert cluster.wait_for_job(number)["JobState"] == "NODE_FAIL"
    cluster.start_slurmd("node1")
    cluster.wait_for_node("node1", "IDLE")
    wait_until(
        lambda: names(cluster, "node1") == {"slurmd"}, 30, "the forgotten job is ended on its node"
    )


def test_the_queue_survives_a_restart_of_the_controller(cluster: Cluster, tmp_path: Path) -> None:
    running = cluster.sbatch(
        "until [ -e go ]; do sleep 0.1; done",
        "--exclusive",
        "--nodes=2",
        "--output=/dev/null",
        cwd=tmp_path,
    )
    pending = cluster.sbatch("true", "--exclusive", "--output=/dev/null")
    cluster.wait_for_job(running, "RUNNING")
    cluster.stop_controller()
    assert "slurmctld" not in names(cluster, "login")
    cluster.start_controller()
    assert cluster.job(running)["JobState"] == "RUNNING"
    assert cluster.job(pending)["JobState"] == "PENDING"
    (tmp_path / "go").touch()
    assert cluster.wait_for_job(running)["JobState"] == "COMPLETED"
    assert cluster.wait_for_job(pending)["JobState"] == "COMPLETED"


def test_sacct_tells_nothing_without_accounting(cluster: Cluster) -> None:
    done = cluster.run(["sacct"], check=False)
    assert done.returncode != 0 and "accounting storage is disabled" in done.stderr


def names(cluster: Cluster, host: str) -> set[str]:
    """The programs that run on a host."""
    return {process.name for process in cluster.processes(host)}
