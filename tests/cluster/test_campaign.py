"""A campaign on the cluster as a user runs it, to the PDF."""

import csv
import itertools
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from testcluster import ClusterError
from testcluster.processes import wait_until
from tests.checkout import TO_RECORDS, TO_TABLES
from tests.programs import executable

from peakmark.machine import software
from workflow import CPU, DISK, NETWORK, Workflow, spans

ADDRESSES = {"node1": "10.77.0.11", "node2": "10.77.0.12"}


def test_from_config_to_pdf_and_then_nothing_to_do(workflow):
    network = {**NETWORK, "workloads": ["TCP", "LAT-TCP"], "references": {"ping": {"count": 3}}}
    workflow.configure(nodes="all", cpu=[{**CPU, "concurrency": [1, 128]}], network=[network])
    assert "SLURM account" not in workflow.snakemake()
    assert (workflow.results / "report.pdf").read_bytes().startswith(b"%PDF")
    records = workflow.records()
    assert len(records) == 10
    for name, record in records.items():
        context, node = record["context"], name.split("/")[3]
        assert record["status"] == "ok", record["reason"]
        assert context["host"] == node and context["job_id"]  # each node is measured by itself
        if not name.startswith("network/"):
            assert "server_noise" not in context
            continue
        network, (peer,) = context["network"], set(ADDRESSES) - {node}
        assert context["server_host"] == peer
        assert (network["loopback"], network["interface"]) == (False, "eth0")
        assert network["address"] == ADDRESSES[peer]
        assert "during" in context["server_noise"]
    with (workflow.results / "tables" / "network_throughput.csv").open() as stream:
        ends = {row["Node"]: (row["Client"], row["Server"]) for row in csv.DictReader(stream)}
    assert ends == {"node1": ("node1", "node2"), "node2": ("node2", "node1")}
    pdf = ["pdftotext", str(workflow.results / "report.pdf"), "-"]
    pages = " ".join(subprocess.check_output(pdf, text=True).split())
    assert "node1 → node2" in pages and "node2 → node1" in pages
    assert "node1 → node2" in (workflow.results / "report.html").read_text()
    # Network cells never overlap in time, whatever nodes they run on.
    cells = spans(one for name, one in records.items() if name.startswith("network/"))
    assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(cells))
    assert workflow.planned() == set()
    assert "10 of 10 cells done" in workflow.peakmark("status", "results/short")
    planned = workflow.peakmark("plan", "test.yaml", "--slurm")
    assert "partition     main: 2 nodes" in planned and "node-hours" in planned


def test_one_job_for_each_node_tools_from_a_module_and_slurmdbd(site_workflow, tmp_path):
    workflow, site = site_workflow, site_workflow.cluster
    # fio stands on the login side only; what the module brings is all that the nodes have.
    shutil.copy2("/usr/bin/fio", tmp_path / "its-own")
    tool = Path(workflow.holding(str(tmp_path / "its-own"), "fio"))
    modules = tmp_path / "modulefiles"
    modules.mkdir()
    (modules / "our-fio").write_text(f"#%Module1.0\nprepend-path PATH {tool.parent}\n")
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
    first = workflow.snakemake(code=1, MODULEPATH=str(modules))
    before, failed = workflow.records(), workflow.attempts()
    own, theirs = (
        {
            f"disk/{name}/WS-psync_{block}_x1/{node}/0"
            for block in blocks
            for node in site.layout.names
        }
        for name in ("diskbench", "fio")
    )
    assert set(before) == own and set(failed) == theirs
    assert all(name in first for name in failed)  # the list at the end names it
    numbers = {record["context"]["job_id"] for record in before.values()}
    assert len(numbers) == 2  # all cells of a node in one job

    fail.unlink()
    workflow.snakemake(*TO_RECORDS, MODULEPATH=str(modules))
    after = workflow.records()
    assert {name: after[name] for name in before} == before  # what was measured stays
    assert set(after) - set(before) == theirs
    for name in theirs:
        context = after[name]["context"]
        assert context["host"] == name.split("/")[3]
        assert context["tool"]["path"] == str(tool)  # the module's tool, not the one of /usr/bin

    def has_accounts():
        states = site.run(["sacct", "-n", "-X", "--format=State"]).stdout.split()
        return states.count("COMPLETED") >= 2 and "FAILED" in states

    # slurmctld hands its accounts to slurmdbd later.
    wait_until(has_accounts, 60.0, "Slurm's accounts say the same", 0.5)


def test_a_tool_that_was_missing_is_measured_once_it_is_there(site_workflow):
    workflow = site_workflow
    tool = workflow.directory / "our-fio"
    grid = {**DISK, "references": {"fio": {"seconds": 0.1}}}
    site = workflow.site("{account: tests}")
    # Six jobs, of which the site takes five at a time.
    workflow.configure(nodes="all", cpu=[CPU], disk=[grid], tools={"fio": str(tool)}, site=site)
    workflow.snakemake(*TO_RECORDS)
    before = workflow.started()
    fio = {name for name, record in workflow.records().items() if record["status"] != "ok"}
    assert {name.split("/")[1] for name in fio} == {"fio"} and len(fio) == 2
    assert workflow.planned() == set()
    shutil.copy2("/usr/bin/fio", tool)  # the nodes have none on PATH
    said = workflow.snakemake(*TO_RECORDS)
    assert "2 without the tools" in said
    assert {name for name in before if workflow.started()[name] != before[name]} == fio
    assert all(record["status"] == "ok" for record in workflow.records().values())


def test_the_doctor_asks_slurm_and_tries_mpi(workflow):
    site = workflow.site("{partition: main}")
    said = workflow.peakmark("doctor", "--slurm", "--site", site)
    assert "one node      Slurm would take such a job" in said
    *_, last = said.splitlines()
    assert last.startswith("ready: ") and last.endswith(
        f"run quick --slurm --site {shlex.quote(site)}"
    )
    if not software.why_no_mpi({}):
        starts = "^ok      MPI           srun --mpi=pmix starts ranks on two nodes over tcp"
        fails = "^note    MPI           srun --mpi=none starts no ranks on two nodes: ."
        assert re.search(starts, said, re.MULTILINE) and re.search(fails, said, re.MULTILINE)
    site = workflow.site("{partition: nowhere}")
    with pytest.raises(ClusterError, match="has no partition 'nowhere'"):
        workflow.peakmark("doctor", "--slurm", "--site", site)


# What a shell makes of it leaves a file called pwned-N. No slash, as it is one name.
HOSTILE = '-x $(touch pwned-1) `touch pwned-2`; touch pwned-3 & "d" é|* > pwned-4 #~'


def hostile_config(folder):
    """A configuration whose scratch, tool, site, title and author have a hostile name, in a new folder."""
    scratch, site = folder / "scratch", folder / "site.yaml"
    scratch.mkdir(parents=True)
    tool = executable(folder / "fio", '#!/bin/sh\nexec /usr/bin/fio "$@"\n')
    facts = {"schema": 1, "name": "hostile", "description": folder.name}
    site.write_text(yaml.safe_dump({**facts, "slurm": {"extra": "--nice=10"}}))
    disk = [{**DISK, "references": {"fio": {"seconds": 0.1}}}]
    words = {"title": folder.name, "author": f"#{folder.name}$x$ @y", "course": folder.name}
    paths = {"scratch": str(scratch), "tools": {"fio": str(tool)}, "site": str(site)}
    return {"disk": disk, "network": [NETWORK], "report": words, **paths}


def test_hostile_names_reach_no_shell(cluster, tmp_path, monkeypatch):
    """Through a real Slurm: submission, job script, job step, measurement."""
    workflow = Workflow.make(cluster, tmp_path / f"{HOSTILE} %s \\")
    values = hostile_config(tmp_path / f"{HOSTILE} 'q'\n{{b}}")
    workflow.configure(**values)
    monkeypatch.setenv("HOSTILE", HOSTILE)  # jobs inherit the environment
    workflow.snakemake(*TO_TABLES)
    records = workflow.records()
    assert [record["status"] for record in records.values()] == ["ok"] * 3, records
    places = [*tmp_path.rglob("pwned*"), *Path.cwd().glob("pwned*"), *Path("/").glob("pwned*")]
    assert not places and not list(Path(values["scratch"]).iterdir())
    assert workflow.planned() == set()


OPTIONS = (
    "--slurm-status-command", "squeue", "--slurm-init-seconds-before-status-checks", "5",
)  # fmt: skip
"""For the test cluster, which has no accounting. After a question to which no job has ended it waits ten seconds more."""


def test_another_executor_measures_every_cell(workflow):
    cpu = [{"workloads": ["DP"], "concurrency": [1], "repetitions": 2}]
    workflow.configure(cpu=cpu, network=[NETWORK])
    options = ["--executor", "slurm", *OPTIONS, "--jobs", "3"]
    said = workflow.snakemake(*options, *TO_RECORDS)
    assert said.count("this executor starts Snakemake in every job") == 1
    records = workflow.records()
    assert [record["status"] for record in records.values()] == ["ok"] * 3, records
    numbers = {record["context"]["job_id"] for record in records.values()}
    assert len(numbers) == 3 and None not in numbers
    (context,) = (one["context"] for name, one in records.items() if name.startswith("network/"))
    assert {context["host"], context["server_host"]} == {"node1", "node2"}
    # peakmark's executor finds nothing left to do.
    assert workflow.planned() == set()
