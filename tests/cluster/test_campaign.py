"""A campaign on the cluster as a user runs it: to the PDF, with repetitions, modules and jobs of
several cells.
"""

import csv
import itertools
import re
import shutil
import subprocess
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from testcluster import Cluster, ClusterError
from tests.checkout import TO_TABLES

from workflow import DISK, Workflow


def test_from_config_to_pdf_and_then_nothing_to_do(workflow: Workflow) -> None:
    workflow.configure(
        nodes="all",
        cpu=[{"workloads": ["DP"], "concurrency": [1, 128]}],
        network=[
            {
                "workloads": ["TCP", "LAT-TCP"],
                "blocks": ["1KiB"],
                "concurrency": [1],
                "references": {"ping": {"count": 3}},
            }
        ],
    )
    done = workflow.snakemake()
    assert done.returncode == 0, done.stdout + done.stderr
    assert (workflow.results / "report.pdf").read_bytes().startswith(b"%PDF")
    assert "SLURM account" not in done.stderr
    records = workflow.records()
    assert len(records) == 10
    for name, record in records.items():
        context, node = record["context"], name.split("/")[3]
        assert record["status"] == "ok", record["reason"]
        assert context["host"] == node, "each node is measured by itself"
        assert context["job_id"]
        if name.startswith("network/"):
            assert context["server_host"] == {"node1": "node2", "node2": "node1"}[node]
            assert context["network"]["loopback"] is False
            assert context["network"]["interface"] == "eth0"
            assert (
                context["network"]["address"]
                == {"node1": "10.77.0.12", "node2": "10.77.0.11"}[node]
            )
            assert set(context["server_noise"]) == {"before", "during", "after"}
        else:
            assert context["server_noise"] is None
    with (workflow.results / "tables" / "network_throughput.csv").open() as stream:
        ends = {row["Node"]: (row["Client"], row["Server"]) for row in csv.DictReader(stream)}
    assert ends == {"node1": ("node1", "node2"), "node2": ("node2", "node1")}
    pages = " ".join(
        subprocess.check_output(
            ["pdftotext", str(workflow.results / "report.pdf"), "-"], text=True
        ).split()
    )
    assert "node1 → node2" in pages and "node2 → node1" in pages
    assert "node1 → node2" in (workflow.results / "report.html").read_text()
    # Network cells never overlap in time, whatever nodes they run on.
    spans = sorted(
        (record["context"]["started"], record["context"]["seconds"], name)
        for name, record in records.items()
        if name.startswith("network/")
    )
    for (start, seconds, _), (following, _, _) in itertools.pairwise(spans):
        assert datetime.fromisoformat(start) + timedelta(seconds=seconds) <= datetime.fromisoformat(
            following
        )
    assert workflow.planned() == set()
    assert "10 of 10 cells done" in workflow.peakmark("status", "results/short")
    planned = workflow.peakmark("plan", "--slurm", "--configfile", "test.yaml")
    assert "partition     main: 2 nodes" in planned
    assert "node-hours" in planned


@pytest.mark.trouble
def test_repetitions_go_on_until_the_interval_is_narrow(workflow: Workflow) -> None:
    """Nothing is as sure as that after seven repetitions: a job for each of them, then one job of a
    node for all.
    """
    grid = [
        {
            "workloads": ["DP"],
            "concurrency": [1],
            "repetitions": {"min": 6, "max": 7, "until": "0.000001%"},
        }
    ]
    workflow.configure(cpu=grid)
    done = workflow.snakemake()
    assert done.returncode == 0, done.stdout + done.stderr
    records = workflow.records()
    assert len({record["context"]["job_id"] for record in records.values()}) == len(records) == 7
    last = max(records.values(), key=lambda record: str(record["context"]["started"]))
    assert last["cell"]["repetition"] == 6, "asked for by what the others showed"
    assert workflow.planned() == set()

    workflow.configure(campaign="whole", nodes="all", fan_out="node", cpu=grid)
    done = workflow.snakemake()
    assert done.returncode == 0, done.stdout + done.stderr
    status = workflow.peakmark("status", "results/whole")
    assert "14 of 14 cells done" in status
    decisions = sorted(
        path.name for path in (workflow.directory / "results/whole/repetitions").iterdir()
    )
    assert decisions == ["node1.own.json", "node2.own.json"]


MODULE = """#%Module1.0
prepend-path PATH {folder}
"""


def test_one_job_for_each_node_tools_from_a_module_and_slurmdbd(
    site: Cluster, tmp_path: Path
) -> None:
    workflow = Workflow.make(site, tmp_path / "checkout")
    # fio stands on the login side only; what the module brings is all that the nodes have.
    shutil.copy2("/usr/bin/fio", tmp_path / "its-own")
    tool = Path(workflow.holding(str(tmp_path / "its-own"), "fio"))
    modules = tmp_path / "modulefiles"
    modules.mkdir()
    (modules / "our-fio").write_text(MODULE.format(folder=tool.parent))
    places = {"MODULEPATH": str(modules)}
    blocks = ["4KiB", "8KiB"]
    workflow.configure(
        nodes="all",
        fan_out="node",
        disk=[{**DISK, "blocks": blocks, "references": {"fio": {"seconds": 0.1}}}],
        modules={"fio": ["our-fio"]},
        site=workflow.site("{account: tests}"),
    )
    fail = workflow.directory / "fail"
    fail.touch()
    first = workflow.snakemake(env=places)
    assert first.returncode == 1, first.stdout + first.stderr
    before = workflow.records()
    nodes = site.layout.names
    assert set(before) == {
        f"disk/diskbench/WS-psync_{block}_x1/{node}/0" for block in blocks for node in nodes
    }
    failed = workflow.attempts()
    assert set(failed) == {
        f"disk/fio/WS-psync_{block}_x1/{node}/0" for block in blocks for node in nodes
    }
    for name in failed:
        assert name in first.stdout + first.stderr, "the list at the end names it"
    numbers = {record["context"]["job_id"] for record in before.values()}
    assert len(numbers) == 2, "all cells of a node in one job"

    fail.unlink()
    second = workflow.snakemake(env=places)
    assert second.returncode == 0, second.stdout + second.stderr
    after = workflow.records()
    assert {name: after[name] for name in before} == before, "what was measured stays"
    assert set(after) - set(before) == set(failed)
    for name in failed:
        context = after[name]["context"]
        assert context["host"] == name.split("/")[3]
        assert context["tool"]["path"] == str(tool), "the module's tool, not the one of /usr/bin"
    assert (workflow.results / "report.pdf").read_bytes().startswith(b"%PDF")
    states = site.run(["sacct", "-n", "-X", "--format=State"]).stdout.split()
    assert states.count("COMPLETED") >= 2 and "FAILED" in states, "Slurm's accounts say the same"


def test_batches_of_cells_share_a_job(workflow: Workflow) -> None:
    workflow.configure(
        cpu=[{"workloads": ["DP", "SP"], "concurrency": [1], "repetitions": 3}],
        fan_out={"batch": 4},
    )
    done = workflow.snakemake(*TO_TABLES)
    assert done.returncode == 0, done.stdout + done.stderr
    records = workflow.records()
    assert (
        len(records) == 6 and len({record["context"]["job_id"] for record in records.values()}) == 2
    )
    lost = sorted(records)[0]
    (workflow.results / "cells" / f"{lost}.json").unlink()
    again = workflow.snakemake(*TO_TABLES)
    assert again.returncode == 0, again.stdout + again.stderr
    after = workflow.records()
    assert {name: after[name] for name in records if name != lost} == {
        name: record for name, record in records.items() if name != lost
    }
    assert lost in after


def test_the_doctor_asks_slurm_and_a_node_of_each_kind(workflow: Workflow) -> None:
    said = workflow.peakmark("doctor", "--slurm")
    assert "one node      Slurm would take such a job" in said
    assert re.findall("^1 x ([0-9]) CPUs, [0-9]+ MiB: node([12])$", said, re.MULTILINE) == [
        ("1", "1"),
        ("2", "2"),
    ]
    assert "scratch" in said and "cpubench" in said and "a core" in said
    site = workflow.directory / "site.yaml"
    site.write_text("{schema: 1, name: here, slurm: {partition: nowhere}}")
    with pytest.raises(ClusterError, match="has no partition 'nowhere'"):
        workflow.peakmark("doctor", "--slurm", "--site", str(site))
