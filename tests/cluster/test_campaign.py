"""A campaign on the cluster as a user runs it: to the PDF, through every kind of trouble, and on from there."""

import csv
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from testcluster import Cluster, ClusterError
from testcluster.processes import wait_until
from tests.checkout import TO_TABLES

from workflow import Workflow

DISK = {"workloads": ["WS"], "blocks": ["64KiB"], "concurrency": [1], "size": "1MiB"}
FIO_FIRST = 4
"""The seed with which the first two cells are ones of fio: on two nodes, as each of them waits there."""


@pytest.fixture
def workflow(cluster: Cluster, tmp_path: Path) -> Workflow:
    return Workflow.make(cluster, tmp_path / "a checkout")  # with a space: paths reach no shell unquoted


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
            assert context["network"]["address"] == {"node1": "10.77.0.12", "node2": "10.77.0.11"}[node]
            assert set(context["server_noise"]) == {"before", "during", "after"}
        else:
            assert context["server_noise"] is None
    with (workflow.results / "tables" / "network_throughput.csv").open() as stream:
        ends = {row["Node"]: (row["Client"], row["Server"]) for row in csv.DictReader(stream)}
    assert ends == {"node1": ("node1", "node2"), "node2": ("node2", "node1")}
    pages = " ".join(
        subprocess.check_output(["pdftotext", str(workflow.results / "report.pdf"), "-"], text=True).split()
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
        assert datetime.fromisoformat(start) + timedelta(seconds=seconds) <= datetime.fromisoformat(following)
    assert workflow.planned() == set()
    assert "10 of 10 cells done" in workflow.peakmark("status", "results/short")
    planned = workflow.peakmark("plan", "--slurm", "--configfile", "test.yaml")
    assert "partition     main: 2 nodes" in planned
    assert "node-hours" in planned


@pytest.mark.trouble
def test_a_cell_without_memory_is_told_and_measured_when_it_has_some(workflow: Workflow) -> None:
    """A pool of 1 GiB does not fit into half of what its job would ask for; what the other cell needs does."""
    workflow.configure(
        site=workflow.site("{exclusive: false, memory_factor: 0.5}"),
        cpu=[{"workloads": ["DP"], "concurrency": [1]}],
        memory=[
            {
                "workloads": ["RS"],
                "variants": ["pool"],
                "blocks": ["1MiB"],
                "concurrency": [1],
                "pool": "1GiB",
                "seconds": 5,
            }
        ],
    )
    first = workflow.snakemake()
    said = first.stdout + first.stderr
    assert first.returncode == 1, said
    lost = "memory/rambench/RS-pool_1MiB_x1/any/0"
    assert set(workflow.attempts()) == {lost}, said
    before = workflow.started()
    assert set(before) == {"cpu/cpubench/DP_none_x1/any/0"}
    reason = workflow.attempts()[lost]
    words = "OUT_OF_MEMORY: it used more memory than it had been granted (854M); memory_factor in the site file's"
    assert words in reason, said
    context = json.loads((workflow.results / "attempts" / lost / "0.json").read_text())["context"]
    node = workflow.cluster.job(int(context["job_id"]))["BatchHost"]
    for text in (said, workflow.peakmark("status", "results/short")):
        lines = [line.strip() for line in text.splitlines()]
        assert f"{node}: {reason}" in lines, text
        log = next(line.split(None, 1)[1] for line in lines if line.startswith("log "))
        assert "exceeded memory limit" in Path(log).read_text()
        again = next(line.split(None, 1)[1] for line in lines if line.startswith("again "))
    workflow.peakmark("report", "--partial", "results/short")
    pdf = str(workflow.results / "report.pdf")
    appendix = " ".join(subprocess.check_output(["pdftotext", pdf, "-"], text=True).split())
    assert "OUT_OF_MEMORY: it used more memory than it had been granted (854M)" in appendix

    workflow.site("{exclusive: false, memory_factor: 1.5}")
    assert workflow.planned() == {lost}
    assert f"results/short/cells/{lost}.json" in again
    second = workflow.snakemake()
    assert second.returncode == 0, second.stdout + second.stderr
    after = workflow.started()
    assert {name: after[name] for name in before} == before and set(after) == {*before, lost}
    assert workflow.attempts() == {lost: reason}, "the failed attempt stays"


@pytest.mark.trouble
def test_repetitions_go_on_until_the_interval_is_narrow(workflow: Workflow) -> None:
    """Nothing is as sure as that after seven repetitions: a job for each of them, then one job of a node for all."""
    grid = [{"workloads": ["DP"], "concurrency": [1], "repetitions": {"min": 6, "max": 7, "until": "0.000001%"}}]
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
    decisions = sorted(path.name for path in (workflow.directory / "results/whole/repetitions").iterdir())
    assert decisions == ["node1.own.json", "node2.own.json"]


MODULE = """#%Module1.0
prepend-path PATH {folder}
"""


def test_one_job_for_each_node_tools_from_a_module_and_slurmdbd(site: Cluster, tmp_path: Path) -> None:
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
    assert set(before) == {f"disk/diskbench/WS-psync_{block}_x1/{node}/0" for block in blocks for node in nodes}
    failed = workflow.attempts()
    assert set(failed) == {f"disk/fio/WS-psync_{block}_x1/{node}/0" for block in blocks for node in nodes}
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


@pytest.mark.trouble
def test_every_way_to_lose_a_job_is_told_and_only_the_lost_are_measured_again(workflow: Workflow) -> None:
    blocks = ["4KiB", "8KiB"]
    asked = {f"disk/fio/WS-psync_{block}_x1/{node}/0" for block in blocks for node in ("node1", "node2")}
    tool = workflow.holding("/usr/bin/fio")
    grid = {**DISK, "blocks": blocks, "references": {"fio": {"seconds": 0.1}}}
    workflow.configure(disk=[grid], nodes="all", tools={"fio": tool})
    hold, fail, cluster = workflow.directory / "hold", workflow.directory / "fail", workflow.cluster
    hold.touch()
    process = workflow.start()
    kept = workflow.wait_for_tools(2)
    status = workflow.peakmark("status", "results/short")
    assert "running" in status and "pending" in status and "RUNNING".lower() in status
    numbers = {
        node: int(cluster.run(["squeue", "-h", "--states=running", "-w", node, "-o", "%i"]).stdout) for node in kept
    }
    cluster.run(["scancel", str(numbers["node1"])])
    cluster.expire(numbers["node2"])
    assert cluster.wait_for_job(numbers["node2"])["JobState"] == "TIMEOUT"
    workflow.wait_for_tools(2)
    cluster.kill_slurmd("node2")
    wait_until(lambda: "DOWN" in cluster.node_states("node2"), 60, "node2 is down", 0.2)
    cluster.start_slurmd("node2")
    fail.touch()
    hold.unlink()
    workflow.end_tools("node1")
    assert workflow.end(process) == 1
    reasons = workflow.attempts()
    assert set(reasons) <= asked
    text = " ".join(reasons.values())
    for word in ("CANCELLED", "TIMEOUT", "NODE_FAIL"):
        assert word in text, workflow.said
    assert "ended with signal SIGKILL" in text  # the tool that was killed above
    for name in reasons:
        assert name in workflow.said, "the list at the end names it"
        assert f"results/short/cells/{name}.json" in workflow.said, "with a command to measure it again"
    assert not (workflow.results / "report.pdf").exists()
    partial = workflow.peakmark("report", "--partial", "results/short")
    assert "report.pdf" in partial

    fail.unlink()
    cluster.wait_for_node("node2", "IDLE")
    before = workflow.started()
    lost = asked - set(before)
    assert workflow.planned() == lost == set(reasons)
    command = next(line.split(None, 1)[1] for line in workflow.said.splitlines() if line.strip().startswith("again "))
    pasted = cluster.run(
        ["sh", "-c", f"PATH={os.environ['PATH']} {command}"],
        cwd=workflow.directory,
        env=workflow.environment,
        timeout=120,
        check=False,
    )
    assert pasted.returncode == 0, pasted.stderr
    mended = set(workflow.started()) - set(before)
    assert len(mended) == 1
    assert workflow.planned() == lost - mended
    again = workflow.snakemake()
    assert again.returncode == 0, again.stdout + again.stderr
    after = workflow.started()
    assert set(after) - set(before) == lost
    assert {name: after[name] for name in before} == before
    assert workflow.attempts() == reasons, "failed attempts stay"


@pytest.mark.trouble
def test_a_node_lost_in_the_middle_costs_its_cell_only_and_its_files_are_found(workflow: Workflow) -> None:
    """All its processes die at once, the guard of the scratch directory with them, as when the power goes."""
    blocks, scratch = ["4KiB", "8KiB", "16KiB"], workflow.directory / "scratch"
    scratch.mkdir()
    tool = workflow.holding("/usr/bin/fio")
    workflow.configure(
        disk=[{**DISK, "blocks": blocks, "references": {"fio": {"seconds": 0.1}}}],
        seed=FIO_FIRST,
        tools={"fio": tool},
        scratch=str(scratch),
    )
    hold, cluster = workflow.directory / "hold", workflow.cluster
    hold.touch()
    process = workflow.start()
    workflow.wait_for_tools(2)
    cluster.kill_node("node2")
    wait_until(lambda: "DOWN" in cluster.node_states("node2"), 60, "node2 is down", 0.2)
    hold.unlink()
    workflow.end_tools("node1")
    assert workflow.end(process) == 1
    reasons = workflow.attempts()
    assert "NODE_FAIL" in " ".join(reasons.values()), workflow.said
    before = workflow.started()
    assert workflow.planned() == set(reasons)
    assert len(before) + len(reasons) == 2 * len(blocks)
    (left,) = scratch.iterdir()

    cluster.start_node("node2")
    cluster.wait_for_node("node2", "IDLE")
    again = workflow.snakemake()
    assert again.returncode == 0, again.stdout + again.stderr
    after = workflow.started()
    assert len(after) == 2 * len(blocks)
    assert {name: after[name] for name in before} == before
    # The next cell on that node removes what is older than a minute; `clean` does it in any case.
    assert set(scratch.iterdir()) <= {left}
    clean = ["srun", "--nodelist=node2", sys.executable, "-m", "peakmark", "clean", str(scratch)]
    wait_until(  # it must be older than a minute
        lambda: cluster.run(clean, cwd=workflow.directory, env=workflow.environment).stdout and not left.exists(),
        120,
        "what the dead node left is removed",
        2.0,
    )
    assert not list(scratch.iterdir())


def test_batches_of_cells_share_a_job(workflow: Workflow) -> None:
    workflow.configure(cpu=[{"workloads": ["DP", "SP"], "concurrency": [1], "repetitions": 3}], fan_out={"batch": 4})
    done = workflow.snakemake(*TO_TABLES)
    assert done.returncode == 0, done.stdout + done.stderr
    records = workflow.records()
    assert len(records) == 6 and len({record["context"]["job_id"] for record in records.values()}) == 2
    lost = sorted(records)[0]
    (workflow.results / "cells" / f"{lost}.json").unlink()
    again = workflow.snakemake(*TO_TABLES)
    assert again.returncode == 0, again.stdout + again.stderr
    after = workflow.records()
    assert {name: after[name] for name in records if name != lost} == {
        name: record for name, record in records.items() if name != lost
    }
    assert lost in after


def test_a_row_stays_on_its_node_until_that_is_drained(workflow: Workflow) -> None:
    workflow.configure(cpu=[{"workloads": ["DP", "SP"], "concurrency": [1], "seconds": 1, "repetitions": 6}])
    process = workflow.start()
    wait_until(lambda: len(workflow.records()) >= 4, 120, "some repetitions are measured")
    hosts = hosts_of_rows(workflow)
    assert all(len(found) == 1 for found in hosts.values()), "each row is on one node"
    row, (node,) = min(hosts.items())
    workflow.cluster.drain(node, "a disk")
    assert workflow.end(process) == 0, workflow.said
    assert len(workflow.records()) == 12
    assert hosts_of_rows(workflow)[row] == {"node1", "node2"}
    assert f"rows that began on {node} go on wherever there is room, and say that they mix hosts" in workflow.said
    with (workflow.results / "tables" / "cpu.csv").open() as stream:
        notes = {line["Workload"]: line["Notes"] for line in csv.DictReader(stream)}
    assert "measured on 2 different hosts" in notes[row.split("/")[2].partition("_")[0]]


def hosts_of_rows(workflow: Workflow) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for name, record in workflow.records().items():
        found.setdefault(name.rpartition("/")[0], set()).add(record["context"]["host"])
    return found


def test_the_doctor_asks_slurm_and_a_node_of_each_kind(workflow: Workflow) -> None:
    said = workflow.peakmark("doctor", "--slurm")
    assert "one node      Slurm would take such a job" in said
    assert re.findall("^1 x ([0-9]) CPUs, [0-9]+ MiB: node([12])$", said, re.MULTILINE) == [("1", "1"), ("2", "2")]
    assert "scratch" in said and "cpubench" in said and "a core" in said
    site = workflow.directory / "site.yaml"
    site.write_text("{schema: 1, name: here, slurm: {partition: nowhere}}")
    with pytest.raises(ClusterError, match="has no partition 'nowhere'"):
        workflow.peakmark("doctor", "--slurm", "--site", str(site))
