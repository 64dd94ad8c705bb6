"""The test cluster: its hosts are apart, and its rules hold."""

import os
import re

import pytest
from testcluster import ClusterError

ACCOUNT = "--account=tests"


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
