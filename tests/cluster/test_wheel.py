"""A wheel in a home that the nodes share: kernels compiled on the login side measure on the nodes."""

import pytest
from tests.checkout import records
from tests.wheel import Installation

from workflow import CPU, LIMIT_S, NETWORK, SHORT


@pytest.mark.packages
def test_a_wheel_measures_on_the_nodes(cluster, tmp_path):
    installed = Installation.make(tmp_path / "a shared home")
    values = {**SHORT, "nodes": "all", "cpu": [CPU], "network": [NETWORK]}
    config = installed.write_config("short.yaml", values)
    argv = [str(installed.environment / "bin/peakmark"), "run", config.name, "--slurm"]
    where = {"cwd": installed.directory, "env": {**cluster.environment(), **installed.variables}}
    done = cluster.run(argv, check=False, timeout=LIMIT_S, **where)
    assert done.returncode == 0, done.stdout + done.stderr
    results = installed.directory / "results" / "short"
    found = records(results)
    assert {record["status"] for record in found.values()} == {"ok"}
    assert {record["context"]["host"] for record in found.values()} == {"node1", "node2"}
    assert (results / "report.pdf").is_file()
