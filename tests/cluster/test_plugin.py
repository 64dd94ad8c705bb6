"""Snakemake's own Slurm plugin: it works on the test cluster as on any other, and peakmark with it as with any other executor."""

import os
import sys
from pathlib import Path

import pytest
from testcluster import Cluster

SNAKEFILE = """
rule all:
    input: expand("{{node}}.txt", node={nodes})

rule ask:
    output: "{{node}}.txt"
    resources: slurm_extra=lambda wildcards: f"--exclusive --nodelist={{wildcards.node}}"
    shell: "hostname > {{output}}"
"""
PROFILE = """executor: slurm
jobs: 10
scheduler: greedy
latency-wait: 5
slurm-status-command: squeue
slurm-init-seconds-before-status-checks: 1
default-resources:
  slurm_partition: main
  slurm_account: tests
  runtime: 5
  mem_mb: 500
"""


@pytest.mark.parametrize("name", ["cluster", "site"])
def test_two_jobs_by_the_slurm_plugin(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    cluster: Cluster = request.getfixturevalue(name)
    (tmp_path / "Snakefile").write_text(SNAKEFILE.format(nodes=cluster.layout.names))
    (tmp_path / "slurm").mkdir()
    (tmp_path / "slurm" / "config.yaml").write_text(PROFILE)
    # As a person on a cluster would have it: the inner Snakemake of a job loses SLURM_CONF and must find the configuration by itself.
    environment = {**os.environ, "HOME": str(tmp_path)}
    done = cluster.run(
        [sys.executable, "-m", "snakemake", "--profile", "slurm"],
        cwd=tmp_path,
        env=environment,
        timeout=90,
        check=False,
    )
    logs = "".join(log.read_text() for log in sorted((tmp_path / ".snakemake" / "slurm_logs").rglob("*.log")))
    assert done.returncode == 0, done.stdout + done.stderr + logs
    for node in cluster.layout.names:
        assert (tmp_path / f"{node}.txt").read_text() == f"{node}\n"
    assert "2 of 3 steps" in done.stderr
