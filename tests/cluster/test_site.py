"""The second test cluster behaves as other people's do: what it enforces, it enforces."""

import re
from pathlib import Path

import pytest
from testcluster import Cluster, ClusterError, cgroups, why_not
from testcluster.processes import wait_until

HELD = "tests"  # the account that jobs must say


def cpus_of_a_job(cluster: Cluster, node: str, *options: str) -> str:
    ask = ["srun", f"--nodelist={node}", *options, "grep", "Cpus_allowed_list", "/proc/self/status"]
    return cluster.run(ask).stdout.split()[-1]


def test_a_job_runs_on_the_cpus_it_was_given(cluster: Cluster) -> None:
    small, large = cluster.layout.names
    assert re.fullmatch("[0-9]+", cpus_of_a_job(cluster, small))
    assert re.fullmatch("[0-9]+", cpus_of_a_job(cluster, large, "--cpus-per-task=1", "--ntasks=1"))
    if max(cluster.layout.each(cluster.layout.cpus)) > 1:
        assert re.fullmatch("[0-9]+[-,][0-9]+", cpus_of_a_job(cluster, large, "--cpus-per-task=2"))
    with pytest.raises(ClusterError, match="not available"):
        cluster.run(["srun", f"--nodelist={small}", "--cpus-per-task=2", "true"])


def test_control_groups_hold_a_job_to_its_memory(site: Cluster, tmp_path: Path) -> None:
    if not site.layout.cgroups:
        pytest.skip(str(cgroups.why_not()))
    name = site.layout.names[1]
    big = "python3 -c 'bytearray(300 << 20)'"
    number = site.sbatch(f"cat /proc/self/cgroup; {big}", f"--account={HELD}", f"--nodelist={name}", "--mem=50",
                         f"--output={tmp_path}/said")  # fmt: skip
    assert site.wait_for_job(number)["JobState"] == "OUT_OF_MEMORY"
    said = (tmp_path / "said").read_text()
    for controller in ("cpuset", "memory", "freezer"):
        assert f":{controller}:/slurm_{name}/uid_0/job_{number}/" in said
    assert {path.name for path in cgroups.groups(name)} == {f"slurm_{name}"}


def test_a_job_must_say_its_account(site: Cluster) -> None:
    with pytest.raises(ClusterError, match="Invalid account"):
        site.sbatch("true", "--output=/dev/null")
    number = site.sbatch("true", "--output=/dev/null", f"--account={HELD}")
    assert site.wait_for_job(number)["JobState"] == "COMPLETED"


def test_the_sixth_job_in_the_queue_is_refused(site: Cluster) -> None:
    words = ("--output=/dev/null", f"--account={HELD}", "--hold")
    for _ in range(5):
        site.sbatch("true", *words)
    with pytest.raises(ClusterError, match="QOSMaxSubmitJobPerUserLimit"):
        site.sbatch("true", *words)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--partition=elsewhere"], "Access/permission denied"),
        (["--partition=small", "--mem=1000"], "Memory required by task is not available"),
        (["--partition=small", "--nodes=2"], "[Nn]ode count"),
        (["--partition=shared", "--exclusive"], "takes no --exclusive jobs"),
    ],
)
def test_partitions_with_rules_refuse(site: Cluster, options: list[str], words: str) -> None:
    for dry in ([], ["--test-only"]):
        with pytest.raises(ClusterError, match=words):
            site.run(["sbatch", f"--account={HELD}", *options, *dry], input="#!/bin/sh\ntrue\n")


def test_the_nodes_lack_a_program_that_the_login_side_has(site: Cluster) -> None:
    ask = ["sh", "-c", "command -v fio"]
    for name in site.layout.names:
        assert (
            site.run(["srun", f"--account={HELD}", f"--nodelist={name}", *ask], check=False).stdout
            == ""
        )
    assert site.run(ask).stdout.endswith("/fio\n")


def test_a_drained_node_takes_no_new_job(cluster: Cluster) -> None:
    name = cluster.layout.names[0]
    cluster.drain(name, "a broken fan")
    number = cluster.sbatch("true", "--output=/dev/null", f"--nodelist={name}")
    assert "DRAIN" in cluster.node_states(name)
    cluster.wait_for_job(number, "PENDING")
    assert "a broken fan" in cluster.run(["sinfo", "--list-reasons", "--noheader"]).stdout
    cluster.resume(name)
    assert cluster.wait_for_job(number)["JobState"] == "COMPLETED"


def test_sacct_tells_of_jobs(site: Cluster) -> None:
    good = site.sbatch("true", "--output=/dev/null", f"--account={HELD}")
    bad = site.sbatch("exit 3", "--output=/dev/null", f"--account={HELD}")
    for number in (good, bad):
        site.wait_for_job(number)

    def rows() -> set[str]:
        ask = [
            "sacct",
            "-n",
            "-X",
            "-P",
            "-o",
            "JobID,State,ExitCode,Account",
            "-j",
            f"{good},{bad}",
        ]
        return set(site.run(ask).stdout.split())

    wanted = {f"{good}|COMPLETED|0:0|tests", f"{bad}|FAILED|3:0|tests"}
    wait_until(lambda: rows() == wanted, 30, "sacct has both jobs with their ends")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"cpus": (1, 2, 3)}, "cpus gives 3 numbers for 2 nodes"),
        ({"memory": (1, 0)}, "1 or more MiB, not 0"),
        ({"max_submit": 5}, "want accounting"),
        ({"cpus": 4096, "binding": True}, "cannot claim 4096 CPUs"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(options: dict[str, object], sentence: str) -> None:
    if reason := why_not():
        pytest.skip(reason)
    with pytest.raises(ClusterError, match=sentence):
        Cluster.start(**options)
