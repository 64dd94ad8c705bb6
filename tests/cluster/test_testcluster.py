"""The test cluster: its hosts are apart, its rules hold, and it leaves nothing, however it ends."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from testcluster import Cluster, ClusterError, why_not
from testcluster.processes import members, namespace, wait_until

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]
ACCOUNT = "--account=tests"
# Folders and files of the machine that a Slurm of its own would use.
OUTSIDE = "/etc/slurm /etc/munge /run/munge /var/lib/slurm /var/spool /var/lib/mysql /etc/hosts"


def test_each_host_has_its_name_its_network_and_its_processes(cluster, tmp_path):
    on_node = ["srun", "--nodelist=node2"]
    assert cluster.run([*on_node, "ls", "/sys/class/net"]).stdout.split() == ["eth0", "lo"]
    programs = cluster.run([*on_node, "ps", "-e", "-o", "comm="]).stdout.split()
    assert programs.count("slurmd") == 1 and "slurmctld" not in programs
    foreign = {"SLURM_JOB_ID": "999", "SBATCH_PARTITION": "of-another-cluster"}
    words = ["sh", "-c", "hostname; pwd; env"]
    login = cluster.run(words, cwd=tmp_path, env={**os.environ, **foreign, "MARK": "here"}).stdout
    assert login.splitlines()[:2] == ["login", str(tmp_path)] and "MARK=here" in login
    assert not re.findall("^(SLURM_|SBATCH_)", login, re.MULTILINE)


def test_a_site_with_rules_refuses_and_lacks_fio_on_its_nodes(site):
    for options, words in (
        ([], "Invalid account"),
        ([ACCOUNT, "--partition=elsewhere"], "Access/permission denied"),
        ([ACCOUNT, "--partition=small", "--nodes=2"], "[Nn]ode count"),
        ([ACCOUNT, "--partition=shared", "--exclusive"], "takes no --exclusive jobs"),
    ):
        with pytest.raises(ClusterError, match=words):
            site.sbatch("true", *options)
    node = ["srun", ACCOUNT, f"--nodelist={site.layout.names[0]}"]
    assert site.run([*node, "sh", "-c", "command -v fio"], check=False).stdout == ""


@pytest.fixture
def machine():
    """The machine's mounts, interfaces, host name and configuration are the same afterwards."""
    if reason := why_not():
        pytest.skip(reason)
    before = picture()
    yield
    assert picture() == before


def picture():
    links = json.loads(subprocess.check_output(["ip", "-json", "link"]))
    roots = [Path(name) for name in OUTSIDE.split()]
    paths = [path for root in roots for path in (root, *root.rglob("*")) if path.exists()]
    files = sorted((str(path), path.lstat().st_mtime) for path in paths)
    mounts = Path("/proc/self/mountinfo").read_text()
    return mounts, [link["ifname"] for link in links], os.uname().nodename, files


def namespaces(cluster):
    """Every namespace of the cluster that it does not share with the machine."""
    hosts = cluster.hosts
    processes = (hosts.keeper, hosts.controller, *hosts.nodes.values())
    kinds = ("mnt", "net", "uts", "pid")
    own = {(kind, namespace(one.pid, kind)) for one in processes for kind in kinds}
    return own - {(kind, namespace(os.getpid(), kind)) for kind in kinds}


def inhabitants(numbers):
    """Processes in the namespaces."""
    return [process for kind, number in numbers for process in members(kind, number)]


def sleeper(cluster):
    """A program on the login side, whose process id is its own."""
    child = cluster.popen(["sleep", "600"])
    wait_until(lambda: Path(f"/proc/{child.pid}/comm").read_text() == "sleep\n", 60, "it runs")
    return child


OWNER = """
import sys
from testcluster import Cluster
print(Cluster.start(1).layout.directory, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("way", ["owner killed", "keeper killed"])
def test_a_cluster_that_ends_leaves_nothing(machine, way):
    pipe = subprocess.PIPE
    argv = [sys.executable, "-c", OWNER]
    with subprocess.Popen(argv, cwd=HERE, stdin=pipe, stdout=pipe, text=True) as owner:
        assert owner.stdout
        try:
            cluster = Cluster.attach(Path(owner.stdout.readline().strip()))
            numbers, login = namespaces(cluster), sleeper(cluster)
            # The login side, its daemons' mounts and process table, the node.
            assert len(numbers) == 3 + 2 + 4
            job = cluster.sbatch("sleep 600", "--output=/dev/null")
            cluster.wait_for_job(job, "RUNNING")
            names = {process.name for process in inhabitants(numbers)}
            assert names >= {"munged", "slurmctld", "slurmd", "sleep"}
            if way == "keeper killed":
                os.kill(cluster.hosts.keeper.pid, signal.SIGKILL)
                controller = cluster.hosts.controller
                wait_until(lambda: not controller.alive(), 60, "the daemons end with the keeper")
                cluster.down()
        finally:
            owner.kill()
    wait_until(lambda: not inhabitants(numbers), 60, "no process of the cluster is left")
    wait_until(lambda: not cluster.layout.directory.exists(), 60, "its files are gone")
    assert login.wait(60) == -signal.SIGKILL
    cluster.down()  # a second time is no error
    with pytest.raises(ClusterError, match="does not run any more"):
        cluster.run(["sinfo"])
