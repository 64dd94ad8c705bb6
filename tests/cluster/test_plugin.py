"""Snakemake's own Slurm plugin: peakmark works with it as with any other executor."""

from pathlib import Path

from testcluster import Cluster

from workflow import Workflow


def test_peakmark_with_the_standard_plugin(site: Cluster, tmp_path: Path) -> None:
    """Slower, and all the same: to the report, a missing tool named and nothing else lost."""
    workflow = Workflow.make(site, tmp_path / "checkout")
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
        site=workflow.site("{account: tests}"),
    )
    done = workflow.snakemake("--executor", "slurm")
    assert done.returncode == 0, done.stdout + done.stderr
    states = {name.split("/")[1]: record["status"] for name, record in workflow.records().items()}
    assert states == {"cpubench": "ok", "rambench": "ok", "pmbw": "unavailable"}
    assert (workflow.results / "report.pdf").exists()
    assert workflow.planned() == set()
