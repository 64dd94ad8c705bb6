"""Snakemake's own Slurm plugin: it works on the test cluster as on any other, and peakmark with it as with any other executor."""

import os
import sys
from pathlib import Path

import pytest
from testcluster import Cluster

from workflow import Workflow

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
        timeout=240,
        check=False,
    )
    logs = "".join(log.read_text() for log in sorted((tmp_path / ".snakemake" / "slurm_logs").rglob("*.log")))
    assert done.returncode == 0, done.stdout + done.stderr + logs
    for node in cluster.layout.names:
        assert (tmp_path / f"{node}.txt").read_text() == f"{node}\n"
    assert "2 of 3 steps" in done.stderr


def test_peakmark_with_the_standard_plugin(cluster: Cluster, tmp_path: Path) -> None:
    """Slower, and all the same: to the report, a missing tool named and nothing else lost."""
    workflow = Workflow.make(cluster, tmp_path / "checkout")
    workflow.configure(
        cpu=[{"workloads": ["DP"], "concurrency": [1]}],
        memory=[
            {
                "workloads": ["LAT"],
                "blocks": ["16KiB"],
                "concurrency": [1],
                "references": {"pmbw": {}},
            }
        ],
        tools={"pmbw": "no-such-program"},
    )
    plugin = [
        "--executor",
        "slurm",
        "--slurm-status-command",
        "squeue",
        "--slurm-init-seconds-before-status-checks",
        "1",
    ]
    done = workflow.snakemake(*plugin)
    assert done.returncode == 0, done.stdout + done.stderr
    states = {name.split("/")[1]: record["status"] for name, record in workflow.records().items()}
    assert states == {"cpubench": "ok", "rambench": "ok", "pmbw": "unavailable"}
    assert (workflow.results / "report.pdf").exists()
    assert workflow.planned() == set()
