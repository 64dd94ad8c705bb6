"""The test cluster: its hosts are apart."""

import os
import re


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
