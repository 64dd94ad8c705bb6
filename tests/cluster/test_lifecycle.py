"""A test cluster leaves nothing behind, however it ends, and says clearly why it does not start."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from testcluster import Cluster, ClusterError, config, why_not
from testcluster.hosts import Hosts, start_keeper
from testcluster.processes import Process, describe, members, namespace, wait_until

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]

OWNER = """
import sys
from testcluster import Cluster
cluster = Cluster.start(1)
print(cluster.layout.directory, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def may() -> None:
    if reason := why_not():
        pytest.skip(reason)


@pytest.fixture
def machine() -> Iterator[None]:
    """What the machine has of its own is the same after the test as before: mounts, interfaces,
    host name, configuration.
    """
    before = picture()
    yield
    assert picture() == before


def picture() -> tuple[str, list[str], str, list[tuple[str, float]]]:
    links = [
        link["ifname"] for link in json.loads(subprocess.check_output(["ip", "-json", "link"]))
    ]
    files = sorted(
        (str(path), path.lstat().st_mtime)
        for folder in (
            "/etc/slurm",
            "/etc/munge",
            "/run/munge",
            "/var/lib/slurm",
            "/var/spool",
            "/var/lib/mysql",
            "/etc/hosts",
        )
        for path in (Path(folder), *Path(folder).rglob("*"))
        if path.exists()
    )
    return Path("/proc/self/mountinfo").read_text(), links, os.uname().nodename, files


def worlds(cluster: Cluster) -> set[tuple[str, int]]:
    """Every namespace of the cluster; those it shares with the machine are left out."""
    hosts = cluster.hosts
    found = set()
    for process in (hosts.keeper, hosts.controller, *hosts.nodes.values()):
        for kind in ("mnt", "net", "uts", "pid"):
            number = namespace(process.pid, kind)
            assert number is not None
            if number != namespace(os.getpid(), kind):
                found.add((kind, number))
    return found


def inhabitants(found: set[tuple[str, int]]) -> list[Process]:
    return [process for kind, number in found for process in members(kind, number)]


def test_down_leaves_nothing_behind(machine: None) -> None:
    cluster = Cluster.start(1)
    found, directory = worlds(cluster), cluster.layout.directory
    assert (
        len(found) == 3 + 2 + 4
    )  # the login side, its daemons' mounts and process table, the node
    cluster.wait_for_job(cluster.sbatch("sleep 600", "--output=/dev/null"), "RUNNING")
    left = cluster.popen(["sleep", "600"])
    all_of_them = {"munged", "slurmctld", "slurmd", "sleep"}
    wait_until(
        lambda: all_of_them <= {process.name for process in inhabitants(found)},
        60,
        "all of them run",
    )
    cluster.down()
    assert inhabitants(found) == []
    assert left.wait(60) == -signal.SIGKILL
    assert not directory.exists()
    cluster.down()  # a second time is no error
    with pytest.raises(ClusterError, match="does not run any more"):
        cluster.run(["sinfo"])


def test_the_cluster_ends_when_its_owner_is_killed(machine: None) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER],
        cwd=HERE,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert owner.stdout and owner.stdin
    with owner.stdin, owner.stdout:
        try:
            cluster = Cluster.attach(Path(owner.stdout.readline().strip()))
            found = worlds(cluster)
            left = cluster.popen(["sleep", "600"])
            wait_until(
                lambda: "sleep" in {process.name for process in inhabitants(found)},
                60,
                "the command runs",
            )
        finally:
            owner.kill()
            owner.wait()
    wait_until(lambda: not inhabitants(found), 60, "no process of the cluster is left")
    wait_until(lambda: not cluster.layout.directory.exists(), 60, "the state directory is gone")
    assert left.wait(60) == -signal.SIGKILL


def test_down_clears_up_after_a_killed_keeper(machine: None) -> None:
    cluster = Cluster.start(1)
    found = worlds(cluster)
    left = cluster.popen(["sleep", "600"])
    wait_until(
        lambda: Path(f"/proc/{left.pid}/comm").read_text() == "sleep\n", 60, "the command is inside"
    )
    os.kill(cluster.hosts.keeper.pid, signal.SIGKILL)
    wait_until(lambda: not cluster.hosts.controller.alive(), 60, "the daemons end with the keeper")
    cluster.down()
    assert inhabitants(found) == []
    assert left.wait(60) == -signal.SIGKILL
    assert not cluster.layout.directory.exists()


def test_a_start_that_fails_halfway_leaves_nothing_behind(
    machine: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = config.slurm_conf
    monkeypatch.setattr(
        config, "slurm_conf", lambda layout: good(layout) + "PartitionName=bad Nodes=node99\n"
    )
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
    for process in keepers:
        # The last to end is killed by the end of another, which nobody waits for.
        wait_until(
            lambda process=process: describe(process.pid) != process, 60, f"{process} has ended"
        )  # type: ignore[misc]
    assert not directory.exists()


def test_the_command_line(machine: None) -> None:
    directory = Path(f"/tmp/pm-cli-{os.getpid()}")

    def cli(*words: str) -> "subprocess.CompletedProcess[str]":
        line = [sys.executable, "-m", "tests.cluster.testcluster", *words]
        return subprocess.run(
            line, cwd=CHECKOUT, capture_output=True, text=True, timeout=60, check=False
        )

    there = ("--directory", str(directory))
    up = cli("up", "--nodes", "1", *there)
    assert up.returncode == 0, up.stderr
    found = worlds(Cluster.attach(directory))
    try:
        again = cli("up", "--nodes", "1", *there)
        assert (
            again.returncode == 1
            and "is not empty" in again.stderr
            and "Traceback" not in again.stderr
        )
        assert "node1" in cli("status", *there).stdout
        inside = cli("exec", *there, "--", "sh", "-c", "hostname; pwd; srun hostname; exit 5")
        assert inside.stdout.split() == ["login", str(CHECKOUT), "node1"]
        assert inside.returncode == 5
    finally:
        down = cli("down", *there)
    assert down.returncode == 0, down.stderr
    assert inhabitants(found) == [] and not directory.exists()
    gone = cli("status", *there)
    assert (
        gone.returncode == 1
        and "no test cluster runs" in gone.stderr
        and "Traceback" not in gone.stderr
    )


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"nodes": 0}, "1 to 64 nodes, not 0"),
        ({"cpus": 0}, "1 or more CPUs, not 0"),
        ({"directory": Path("/tmp") / ("x" * 60)}, "too long a name"),
        ({"directory": HERE}, "is not empty"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(options: dict[str, object], sentence: str) -> None:
    with pytest.raises(ClusterError, match=sentence):
        Cluster.start(**options)  # type: ignore[arg-type]
    assert HERE.exists()


def test_why_not_names_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("testcluster.requirements.search_path", lambda: "/nowhere")
    assert "slurmctld" in str(why_not())
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "needs root" in str(why_not())


def test_why_not_tells_of_a_root_without_rights() -> None:
    """As in most containers: root, but without the capability that namespaces and mounts need."""
    ask = [sys.executable, "-c", "from testcluster import why_not; print(why_not())"]
    drop = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"]
    said = subprocess.run(
        [*drop, *ask], cwd=HERE, capture_output=True, text=True, timeout=60, check=True
    ).stdout
    assert "refuses" in said and said.count("\n") == 1
