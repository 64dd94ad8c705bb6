"""The test cluster is one: its hosts are apart, its rules hold, and it leaves nothing behind, however
it ends.
"""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from testcluster import Cluster, ClusterError, cgroups, config, why_not
from testcluster.hosts import Hosts, start_keeper
from testcluster.processes import Process, describe, members, namespace, wait_until

from peakmark.slurm import hostlist

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]
ACCOUNT = "--account=tests"
OUTSIDE = [
    "/etc/slurm",
    "/etc/munge",
    "/run/munge",
    "/var/lib/slurm",
    "/var/spool",
    "/var/lib/mysql",
    "/etc/hosts",
]
"""Folders and files of the machine that a Slurm of its own would use."""

# Started on both nodes by one srun: the first rank serves, the other connects to it by name.
TALK = """
import os, socket, time
if os.environ["SLURM_PROCID"] == "0":
    connection, peer = socket.create_server(("", 5999)).accept()
    print("server on", socket.gethostname(), "heard", connection.makefile().readline().strip(), "from", peer[0])
else:
    deadline = time.monotonic() + 20
    while True:
        try:
            client = socket.create_connection(("node1", 5999), timeout=5)
            break
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
    client.sendall((socket.gethostname() + "\\n").encode())
"""


def test_the_hosts_have_names_networks_and_processes_of_their_own(
    cluster: Cluster, tmp_path: Path
) -> None:
    (tmp_path / "talk.py").write_text(TALK)
    done = cluster.run(["srun", "--nodes=2", "--ntasks=2", "python", "talk.py"], cwd=tmp_path)
    assert done.stdout == "server on node1 heard node2 from 10.77.0.12\n"
    on_node = ["srun", "--nodelist=node2"]
    assert cluster.run([*on_node, "ls", "/sys/class/net"]).stdout.split() == ["eth0", "lo"]
    programs = cluster.run([*on_node, "ps", "-e", "-o", "comm="]).stdout.split()
    assert programs.count("slurmd") == 1 and "slurmctld" not in programs
    foreign = {"SLURM_JOB_ID": "999", "SBATCH_PARTITION": "of-another-cluster"}
    words = ["sh", "-c", "hostname; pwd; env"]
    login = cluster.run(words, cwd=tmp_path, env={**os.environ, **foreign, "MARK": "here"}).stdout
    assert login.splitlines()[:2] == ["login", str(tmp_path)] and "MARK=here" in login
    assert not re.findall("^(SLURM_|SBATCH_)", login, re.MULTILINE)


def test_slurm_reads_the_names_of_nodes_as_we_write_them(cluster: Cluster) -> None:
    names = [f"cn{number:03}" for number in range(1, 200, 3)]
    names += ["cn008", "cn9", "cn10", "cn11", "r1c2", "r1c3", "login"]
    read = cluster.run(["scontrol", "show", "hostnames", hostlist(names)]).stdout.split()
    assert sorted(read) == sorted(set(names))


def test_scancel_ends_a_job_with_its_processes(cluster: Cluster) -> None:
    number = cluster.sbatch("sleep 600", "--nodelist=node1", "--output=/dev/null")
    cluster.wait_for_process("node1", "sleep")
    cluster.run(["scancel", str(number)])
    assert cluster.wait_for_job(number)["JobState"] == "CANCELLED"
    programs = cluster.processes
    wait_until(
        lambda: {process.name for process in programs("node1")} == {"slurmd"}, 60, "only slurmd"
    )


def cpus_of_a_job(cluster: Cluster, node: str, *options: str) -> str:
    ask = ["srun", f"--nodelist={node}", *options, "grep", "Cpus_allowed_list", "/proc/self/status"]
    return cluster.run(ask).stdout.split()[-1]


def test_a_job_runs_on_the_cpus_it_was_given(cluster: Cluster) -> None:
    small, large = cluster.layout.names
    assert re.fullmatch("[0-9]+", cpus_of_a_job(cluster, small))
    assert re.fullmatch("[0-9]+", cpus_of_a_job(cluster, large, "--cpus-per-task=1", "--ntasks=1"))
    if max(cluster.layout.each(cluster.layout.cpus)) > 1:
        assert re.fullmatch("[0-9]+[-,][0-9]+", cpus_of_a_job(cluster, large, "--cpus-per-task=2"))


def test_control_groups_hold_a_job_to_its_memory(site: Cluster, tmp_path: Path) -> None:
    if not site.layout.cgroups:
        pytest.skip(str(cgroups.why_not()))
    name = site.layout.names[1]
    script = "cat /proc/self/cgroup; python3 -c 'bytearray(300 << 20)'"
    place = (f"--nodelist={name}", "--mem=50", f"--output={tmp_path}/said")
    number = site.sbatch(script, ACCOUNT, *place)
    assert site.wait_for_job(number)["JobState"] == "OUT_OF_MEMORY"
    said = (tmp_path / "said").read_text()
    for controller in ("cpuset", "memory", "freezer"):
        assert f":{controller}:/slurm_{name}/uid_0/job_{number}/" in said
    assert {path.name for path in cgroups.groups(name)} == {f"slurm_{name}"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "Invalid account"),
        ([ACCOUNT, "--partition=elsewhere"], "Access/permission denied"),
        ([ACCOUNT, "--partition=small", "--mem=1000"], "Memory required by task is not available"),
        ([ACCOUNT, "--partition=small", "--nodes=2"], "[Nn]ode count"),
        ([ACCOUNT, "--partition=shared", "--exclusive"], "takes no --exclusive jobs"),
    ],
)
def test_a_site_with_rules_refuses(site: Cluster, options: list[str], words: str) -> None:
    for dry in ([], ["--test-only"]):
        with pytest.raises(ClusterError, match=words):
            site.run(["sbatch", *options, *dry], input="#!/bin/sh\ntrue\n")


def test_a_site_with_rules_takes_five_jobs_and_lacks_fio_on_its_nodes(site: Cluster) -> None:
    ask = ["sh", "-c", "command -v fio"]
    for name in site.layout.names:
        node = ["srun", ACCOUNT, f"--nodelist={name}"]
        assert site.run([*node, *ask], check=False).stdout == ""
    assert site.run(ask).stdout.endswith("/fio\n")
    for _ in range(5):
        site.sbatch("true", "--output=/dev/null", ACCOUNT, "--hold")
    with pytest.raises(ClusterError, match="QOSMaxSubmitJobPerUserLimit"):
        site.sbatch("true", "--output=/dev/null", ACCOUNT, "--hold")


# -- from the start to the end


@pytest.fixture
def machine() -> Iterator[None]:
    """The machine's mounts, interfaces, host name and configuration are the same afterwards."""
    if reason := why_not():
        pytest.skip(reason)
    before = picture()
    yield
    assert picture() == before


def picture() -> tuple[str, list[str], str, list[tuple[str, float]]]:
    links = json.loads(subprocess.check_output(["ip", "-json", "link"]))
    paths = [
        path for one in OUTSIDE for path in (Path(one), *Path(one).rglob("*")) if path.exists()
    ]
    files = sorted((str(path), path.lstat().st_mtime) for path in paths)
    mounts = Path("/proc/self/mountinfo").read_text()
    return mounts, [link["ifname"] for link in links], os.uname().nodename, files


def worlds(cluster: Cluster) -> set[tuple[str, int]]:
    """Every namespace of the cluster that it does not share with the machine."""
    hosts = cluster.hosts
    processes = (hosts.keeper, hosts.controller, *hosts.nodes.values())
    kinds = ("mnt", "net", "uts", "pid")
    found = {(kind, namespace(one.pid, kind)) for one in processes for kind in kinds}
    shared = {(kind, namespace(os.getpid(), kind)) for kind in kinds}
    return {(kind, number) for kind, number in found - shared if number is not None}


def inhabitants(found: set[tuple[str, int]]) -> list[Process]:
    return [process for kind, number in found for process in members(kind, number)]


def sleeper(cluster: Cluster) -> "subprocess.Popen[str]":
    """A program on the login side, whose process id is its own."""
    child = cluster.popen(["sleep", "600"])
    wait_until(lambda: Path(f"/proc/{child.pid}/comm").read_text() == "sleep\n", 60, "it runs")
    return child


def test_down_leaves_nothing_behind(machine: None) -> None:
    cluster = Cluster.start(1)
    found, directory = worlds(cluster), cluster.layout.directory
    # The login side, its daemons' mounts and process table, the node.
    assert len(found) == 3 + 2 + 4
    cluster.wait_for_job(cluster.sbatch("sleep 600", "--output=/dev/null"), "RUNNING")
    left = sleeper(cluster)
    programs = {"munged", "slurmctld", "slurmd", "sleep"}
    wait_until(lambda: programs <= {one.name for one in inhabitants(found)}, 60, "all of them run")
    cluster.down()
    assert inhabitants(found) == [] and not directory.exists()
    assert left.wait(60) == -signal.SIGKILL
    cluster.down()  # a second time is no error
    with pytest.raises(ClusterError, match="does not run any more"):
        cluster.run(["sinfo"])


OWNER = """
import sys
from testcluster import Cluster
print(Cluster.start(1).layout.directory, flush=True)
sys.stdin.read()
"""


def test_the_cluster_ends_when_its_owner_is_killed(machine: None) -> None:
    pipe = subprocess.PIPE
    argv = [sys.executable, "-c", OWNER]
    with subprocess.Popen(argv, cwd=HERE, stdin=pipe, stdout=pipe, text=True) as owner:
        assert owner.stdout
        try:
            cluster = Cluster.attach(Path(owner.stdout.readline().strip()))
            found, left = worlds(cluster), sleeper(cluster)
        finally:
            owner.kill()
    wait_until(lambda: not inhabitants(found), 60, "no process of the cluster is left")
    wait_until(lambda: not cluster.layout.directory.exists(), 60, "the state directory is gone")
    assert left.wait(60) == -signal.SIGKILL


def test_down_clears_up_after_a_killed_keeper(machine: None) -> None:
    cluster = Cluster.start(1)
    found, left = worlds(cluster), sleeper(cluster)
    os.kill(cluster.hosts.keeper.pid, signal.SIGKILL)
    wait_until(lambda: not cluster.hosts.controller.alive(), 60, "the daemons end with the keeper")
    cluster.down()
    assert inhabitants(found) == [] and not cluster.layout.directory.exists()
    assert left.wait(60) == -signal.SIGKILL


def test_a_start_that_fails_halfway_leaves_nothing_behind(
    machine: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, bad = config.slurm_conf, "PartitionName=bad Nodes=node99\n"
    monkeypatch.setattr(config, "slurm_conf", lambda layout: good(layout) + bad)
    monkeypatch.setattr("testcluster.daemons.READY_SECONDS", 3.0)
    directory = Path(f"/tmp/pm-halfway-{os.getpid()}")
    keepers: list[Process] = []

    def watched(directory: Path, remove: bool, log: Path) -> "tuple[subprocess.Popen[str], Hosts]":
        child, hosts = start_keeper(directory, remove, log)
        keepers.extend([hosts.keeper, hosts.controller])
        return child, hosts

    monkeypatch.setattr("testcluster.cluster.start_keeper", watched)
    with pytest.raises(ClusterError, match="node99"):
        Cluster.start(1, directory=directory)
    assert len(keepers) == 2
    # The last to end is killed by the end of another, which nobody waits for.
    wait_until(lambda: all(describe(one.pid) != one for one in keepers), 60, "both have ended")
    assert not directory.exists()


def test_the_command_line(machine: None) -> None:
    directory = Path(f"/tmp/pm-cli-{os.getpid()}")

    def cli(action: str, *words: str) -> "subprocess.CompletedProcess[str]":
        line = [sys.executable, "-m", "tests.cluster.testcluster", action]
        line += ["--directory", str(directory), *words]
        return subprocess.run(line, cwd=CHECKOUT, capture_output=True, text=True, timeout=60)

    up = cli("up", "--nodes", "1")
    assert up.returncode == 0, up.stderr
    found = worlds(Cluster.attach(directory))
    try:
        again = cli("up", "--nodes", "1")
        assert again.returncode == 1 and "is not empty" in again.stderr
        assert "node1" in cli("status").stdout
        inside = cli("exec", "--", "sh", "-c", "hostname; pwd; srun hostname; exit 5")
        assert inside.stdout.split() == ["login", str(CHECKOUT), "node1"]
        assert inside.returncode == 5
    finally:
        down = cli("down")
    assert down.returncode == 0, down.stderr
    assert inhabitants(found) == [] and not directory.exists()
    gone = cli("status")
    assert gone.returncode == 1 and "no test cluster runs" in gone.stderr
    assert "Traceback" not in gone.stderr + again.stderr


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"nodes": 0}, "1 to 64 nodes, not 0"),
        ({"cpus": 0}, "1 or more CPUs, not 0"),
        ({"directory": Path("/tmp") / ("x" * 60)}, "too long a name"),
        ({"directory": HERE}, "is not empty"),
        ({"cpus": (1, 2, 3)}, "cpus gives 3 numbers for 2 nodes"),
        ({"memory": (1, 0)}, "1 or more MiB, not 0"),
        ({"max_submit": 5}, "want accounting"),
        ({"cpus": 4096, "binding": True}, "cannot claim 4096 CPUs"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(
    machine: None, options: dict[str, object], sentence: str
) -> None:
    with pytest.raises(ClusterError, match=sentence):
        Cluster.start(**options)  # type: ignore[arg-type]


def test_why_not_names_what_is_missing(machine: None, monkeypatch: pytest.MonkeyPatch) -> None:
    # As in most containers: root, but without the capability that namespaces and mounts need.
    ask = [sys.executable, "-c", "from testcluster import why_not; print(why_not())"]
    drop = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"]
    done = subprocess.run([*drop, *ask], cwd=HERE, capture_output=True, text=True, check=True)
    assert "refuses" in done.stdout and done.stdout.count("\n") == 1
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("testcluster.requirements.search_path", lambda: "/nowhere")
    assert "slurmctld" in str(why_not())
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "needs root" in str(why_not())
