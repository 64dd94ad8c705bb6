"""Nodes that use a shared file system at one moment."""

import csv
import json
import shutil
from datetime import datetime

import pytest
from testcluster.hosts import checked
from testcluster.processes import wait_until
from tests.checkout import TO_TABLES

from peakmark.rows import build
from workflow import Workflow

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


def spans(records):
    """Begin and end of each record's cell."""
    for record in records:
        context = record["context"]
        begin = datetime.fromisoformat(context["started"]).timestamp()
        yield begin, begin + context["seconds"]


def test_the_rows_of_several_nodes_have_their_sum(shared):
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
    values = {}
    for records in by_job.values():
        assert len(records) in (1, 4)
        hosts = [record["context"]["host"] for record in records]
        assert len({*hosts}) == len(hosts)
        began, ended = zip(*spans(records), strict=True)
        assert max(began) < min(ended)
        for measured in zip(*(record["measurements"] for record in records), strict=True):
            first = measured[0]
            point = (records[0]["cell"]["instrument"], first["metric"], first["workload"])
            total = sum(each["value"] for each in measured)
            values.setdefault((*point, first["variant"]), []).append(total)
    assert ("diskbench", "throughput", "WS", "psync-nodes4-onefile") in values
    assert ("diskbench", "metadata", "META", "create-nodes4") in values
    frames = build.load(workflow.results)
    runs = frames.runs[frames.runs["kept"]]
    for (instrument, metric, workload, variant), totals in values.items():
        if metric not in ("throughput", "metadata"):
            continue
        keys = {"instrument": instrument, "metric": metric, "workload": workload}
        shown = runs[runs["variant"].eq(variant) & runs["table"].ne("")]
        for name, value in keys.items():
            shown = shown[shown[name].eq(value)]
        assert sorted(shown["value"]) == pytest.approx(sorted(totals)), (keys, variant)
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
