"""The shipped presets on clusters as strangers have them: to the report, with what is missing named and nothing else lost."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from testcluster import Cluster

from workflow import Workflow

ONCE = {"repetitions": 1, "reference_repetitions": 1}
SHORT: dict[str, dict[str, Any]] = {"quick": {**ONCE, "scale": 0.25}, "full": {**ONCE, "scale": 0.0001}}
"""What is said beside a preset's own file, so that it ends soon."""

PROGRAMS = {"hpl": ("xhpl", "hpcc"), "pmbw": ("pmbw",), "fio": ("fio",), "iozone": ("iozone",), "iperf3": ("iperf3",)}
PROGRAMS |= {"qperf": ("qperf",), "ping": ("ping",), "likwid-bench": ("likwid-bench",)}


def missing_on(cluster: Cluster) -> set[str]:
    """The reference tools that the nodes of the cluster do not have."""
    return {
        tool
        for tool, names in PROGRAMS.items()
        if not any(shutil.which(name) and name not in cluster.layout.without for name in names)
    }


def to_the_report(cluster: Cluster, folder: Path, preset: str, fan_out: str) -> None:
    workflow = Workflow.make(cluster, folder / "checkout")
    # What a site's administrator would tell its users to write.
    told = {"site": workflow.site("{account: tests}")} if cluster.layout.account else {}
    done = workflow.preset(preset, **SHORT[preset], **told, fan_out=fan_out)
    said = done.stdout + done.stderr
    assert done.returncode == 0, f"{said}\n{json.dumps(workflow.attempts(), indent=1)}"
    assert (workflow.results / "report.pdf").read_bytes().startswith(b"%PDF")
    assert (workflow.results / "report.html").exists()
    assert "Traceback" not in said
    assert not workflow.attempts()
    records, missing = workflow.records(), missing_on(cluster)
    planned = json.loads((workflow.results / "plan.json").read_text())["cells"]
    assert len(records) == len(planned)
    for name, record in records.items():
        tool = name.split("/")[1]
        not_there = record["status"] == "unavailable" and "not found on" in record["reason"]
        assert not_there == (tool in missing), f"{name} is {record['status']}: {record['reason']}"
        if tool == "hpl" and tool not in missing and preset == "quick":
            assert record["status"] == "ok", record["reason"]
    enough_cpus(cluster, records)
    assert not cluster.run(["squeue", "--noheader"]).stdout


def enough_cpus(cluster: Cluster, records: dict[str, dict[str, Any]]) -> None:
    """Two threads ran on two CPUs: on the node that has them, and not on one of them."""
    cpus = dict(zip(cluster.layout.names, cluster.layout.each(cluster.layout.cpus), strict=True))
    most = max(cpus.values())
    for name, record in records.items():
        context = record["context"]
        if record["status"] != "ok" or name.startswith("network/"):
            continue
        assert len(context["cpus"]) == cpus[context["host"]], f"{name} did not have its node's CPUs"
        threads = record["cell"]["concurrency"]
        # A word such as `cores` is as many as the node has, whichever it is.
        if record["cell"]["node"] == "any" and isinstance(threads, int):
            assert len(context["cpus"]) >= min(threads, most), name


def test_quick_with_a_job_for_each_cell_on_a_site_with_rules(site: Cluster, tmp_path: Path) -> None:
    to_the_report(site, tmp_path, "quick", "cell")


def test_quick_with_a_job_for_each_node_without_slurmdbd(cluster: Cluster, tmp_path: Path) -> None:
    to_the_report(cluster, tmp_path, "quick", "node")


@pytest.mark.trouble
def test_quick_with_a_job_for_each_node_on_a_site_with_rules(site: Cluster, tmp_path: Path) -> None:
    to_the_report(site, tmp_path, "quick", "node")


@pytest.mark.trouble
def test_quick_with_a_job_for_each_cell_without_slurmdbd(cluster: Cluster, tmp_path: Path) -> None:
    to_the_report(cluster, tmp_path, "quick", "cell")


@pytest.mark.trouble
def test_full_with_a_job_for_each_cell_without_slurmdbd(cluster: Cluster, tmp_path: Path) -> None:
    to_the_report(cluster, tmp_path, "full", "cell")


@pytest.mark.trouble
def test_full_with_a_job_for_each_node_on_a_site_with_rules(site: Cluster, tmp_path: Path) -> None:
    to_the_report(site, tmp_path, "full", "node")
