"""Nodes that use a shared file system at one moment."""

import csv
import json
import shutil

import pytest
from testcluster.hosts import checked
from testcluster.processes import wait_until
from tests.checkout import TO_TABLES

from peakmark.rows import build
from workflow import Workflow, spans

SITE = "{scratch_shared: true}"


@pytest.fixture
def shared(fleet, tmp_path):
    """A checkout, with a folder that all four nodes see."""
    workflow = Workflow.make(fleet, tmp_path / "checkout")
    (tmp_path / "scratch").mkdir()
    return workflow, tmp_path / "scratch"


def configure(workflow, scratch, *grids, **values):
    values |= {"nodes": "all", "fan_out": "node", "site": workflow.site(SITE)}
    workflow.configure(scratch=str(scratch), disk=[*grids], **values)


def test_nodes_of_a_job_start_at_one_moment_and_make_one_row(shared):
    workflow, scratch = shared
    usual = {"concurrency": [1], "size": "2MiB", "together": [1, "all"]}
    references = {"fio": {}} if shutil.which("fio") else {}
    rows = {**usual, "workloads": ["WS"], "blocks": ["64KiB"], "references": references}
    all_nodes = {**usual, "together": ["all"]}
    one_file = {**all_nodes, "workloads": ["WS"], "blocks": ["64KiB"], "one_file": True}
    metadata = {**all_nodes, "workloads": ["META"]}
    configure(workflow, scratch, rows, one_file, metadata, seconds=0.3)
    workflow.snakemake(*TO_TABLES)
    by_job = {}
    for record in workflow.records().values():
        assert record["status"] == "ok", record["reason"]
        by_job.setdefault(record["context"]["job_id"], []).append(record)
    for records in by_job.values():
        assert len(records) in (1, 4)
        hosts = [record["context"]["host"] for record in records]
        assert len({*hosts}) == len(hosts)
        began, ended = zip(*spans(records), strict=True)
        assert max(began) < min(ended)
    rows = build.load(workflow.results).rows
    usual = {"psync-nodes1", "psync-nodes4", "psync-nodes4-onefile"}
    metadata = {f"{operation}-nodes4" for operation in ("create", "stat", "unlink")}
    assert set(rows.query("instrument == 'diskbench'")["variant"]) == usual | metadata
    with (workflow.results / "tables" / "disk_throughput.csv").open() as stream:
        engines = [line["Engine"] for line in csv.DictReader(stream)]
    assert "psync, 4 nodes" in engines and "psync, 4 nodes, one file" in engines
    assert not list(scratch.iterdir())
    assert workflow.planned() == set()


def test_a_cancelled_job_of_several_nodes_leaves_nothing_behind(shared):
    workflow, scratch = shared
    grid = {"workloads": ["WS"], "blocks": ["64KiB"], "concurrency": [1], "size": "2MiB"}
    configure(workflow, scratch, {**grid, "together": ["all"]}, seconds=60)
    campaign = workflow.start(*TO_TABLES)
    running = ["squeue", "--noheader", "--states=running", "--format=%i"]

    def benches() -> set[str]:
        names = workflow.cluster.layout.names
        return {
            name
            for name in names
            if "diskbench" in {each.name for each in workflow.cluster.processes(name)}
        }

    wait_until(lambda: len(benches()) == 4, 120, "diskbench runs on all nodes")
    workflow.cluster.run(["scancel", *workflow.cluster.run(running).stdout.split()])
    wait_until(lambda: not benches(), 60, "the programs end")
    workflow.end(campaign, 1)
    wait_until(lambda: not list(scratch.iterdir()), 60, "the folder is empty")
    assert not workflow.records()


def test_a_folder_that_only_one_node_sees_is_refused(shared):
    workflow, scratch = shared
    plan = {"workloads": ["META"], "concurrency": [1], "together": ["all"]}
    configure(workflow, scratch, plan, seconds=0.1)
    # The folder of one node is hidden below a mount of its own.
    node = workflow.cluster.layout.names[-1]
    inside = workflow.cluster.hosts.enter(node)
    checked([*inside, "mount", "-t", "tmpfs", "none", str(scratch)])
    try:
        said = workflow.snakemake(*TO_TABLES, code=1)
        assert "set scratch to a folder on a file system that all nodes share" in said
    finally:
        checked([*inside, "umount", str(scratch)])
    assert not workflow.records()
    assert json.loads((workflow.results / "plan.json").read_text())["cells"]
