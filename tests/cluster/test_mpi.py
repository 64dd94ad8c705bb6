"""MPI between two nodes and on one, started by srun and by mpirun."""

import json
import math
import re
import shutil
import signal
from itertools import chain
from pathlib import Path

import pandas
import pytest
import yaml
from testcluster.processes import wait_until
from tests.checkout import TO_TABLES
from tests.programs import needs

from peakmark.machine import software
from peakmark.rows import build
from peakmark.tools import REGISTRY
from workflow import Workflow

# Ranks of one machine would take the memory that all nodes share for their own.
ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_btl": "tcp,vader,self",
    "UCX_TLS": "tcp,self",
}
BETWEEN = {"workloads": ["PINGPONG", "RATE"], "concurrency": [1], "blocks": ["8B", "64KiB"]}
OSU = {"references": {"osu": {"count": 20, "workloads": ["PINGPONG"]}}}
WITHIN = {"workloads": ["PINGPONG"], "variants": ["same-socket"], "concurrency": [2], "blocks": ["8B"]}  # fmt: skip
MANY = {"workloads": ["MSGRATE"], "concurrency": [1], "blocks": ["8B"]}


@pytest.fixture(autouse=True)
def with_library():
    if reason := software.why_no_mpi({}):
        pytest.skip(reason)


def measure(workflow, settings, code=0, **more):
    """Run a campaign as ``write_site`` configures it, and return what it prints."""
    write_site(workflow, settings, **more)
    return workflow.snakemake(*TO_TABLES, code=code)


def write_site(workflow, settings, **more):
    """Configure a campaign with these ``settings`` as the section ``mpi`` of the site file."""
    path = workflow.directory / "site.yaml"
    facts = {"environment": ENVIRONMENT, **settings}
    path.write_text(yaml.safe_dump({"schema": 1, "name": "here", "mpi": facts}))
    workflow.configure(**{"mpi": [BETWEEN], "site": str(path), "fan_out": "node", **more})


@pytest.mark.parametrize("settings", [
    pytest.param({}, id="default"),
    pytest.param({"launch": "srun"}, id="srun", marks=pytest.mark.trouble),
    pytest.param({"launch": "mpirun"}, id="mpirun", marks=pytest.mark.trouble),
])  # fmt: skip
def test_ranks_measure_between_two_nodes_and_on_one(equal_workflow, settings):
    measure(equal_workflow, settings, mpi=[BETWEEN, WITHIN, MANY])
    # By default mpirun is taken if no ranks of srun start.
    ways = tuple(settings.values()) or ("srun", "mpirun")
    for record in equal_workflow.records().values():
        assert record["status"] == "ok", record["reason"]
        context, (value,) = record["context"], record["measurements"]
        assert context["library"]["launch"].startswith(ways) and "MPI" in context["library"]["mpi"]
        hosts = [place.partition(":")[0] for place in value["details"]["rank_cpus"].split()]
        is_between = record["cell"]["variant"] == "2-nodes"
        assert len(set(hosts)) == 1 + is_between and hosts == sorted(hosts)
        if is_between:
            assert context["library"]["transport"].startswith("tcp")
            assert context["network"]["interface"] == "eth0" and context["server_host"] in hosts
    frames = build.load(equal_workflow.results)
    assert frames.rows.groupby("table").size().to_dict() == {
        "mpi_latency": 3,
        "mpi_message_rate": 1,
        "mpi_throughput": 2,
    }
    assert equal_workflow.planned() == set()


@pytest.mark.trouble
def test_osu_measures_the_same_rows(equal_workflow):
    path = REGISTRY["osu"].on_path()
    if path is None:
        pytest.skip("no OSU Micro-Benchmarks: on PATH or in the folder OSU_PATH")
    grids = [{**BETWEEN, **OSU}, {**WITHIN, **OSU}]
    measure(equal_workflow, {}, mpi=grids, tools={"osu": path})
    rows = build.load(equal_workflow.results).rows
    of_osu = rows[rows["instrument"].eq("osu")]
    own = rows[rows["is_own"] & rows["workload"].eq("PINGPONG")]
    assert sorted(of_osu["point"]) == sorted(own["point"]) and len(own) == 3
    assert of_osu["value"].gt(0).all() and of_osu["ratio"].notna().all()


@pytest.mark.trouble
@needs("hpcc")
def test_hpcc_measures_the_row_of_8_bytes(equal_workflow):
    grid = {**BETWEEN, "references": {"hpcc": {"repetitions": 1}}}
    # Ranks of nodes that share two CPUs must not spin.
    settings = {"environment": {**ENVIRONMENT, "OMPI_MCA_mpi_yield_when_idle": "1"}}
    measure(equal_workflow, settings, mpi=[grid], tools={"hpcc": shutil.which("hpcc")})
    (output,) = equal_workflow.results.glob("cells/mpi/hpcc/**/0.hpccoutf.txt")
    (printed,) = re.findall(r"^AvgPingPongLatency_usec=(\S+)$", output.read_text(), re.MULTILINE)
    rows = build.load(equal_workflow.results).rows
    (row,) = rows[rows["instrument"].eq("hpcc")].itertuples()
    assert (row.workload, row.variant, row.block_bytes) == ("PINGPONG", "2-nodes", 8)
    assert row.value == pytest.approx(1e-6 * float(printed)) and row.ratio > 0
    assert equal_workflow.planned() == set()


@pytest.mark.trouble
def test_ranks_run_on_two_and_on_all_nodes_and_on_pairs(fleet, tmp_path):
    workflow = Workflow.make(fleet, tmp_path / "checkout")
    grid = {"workloads": ["ALLREDUCE", "BARRIER"], "concurrency": [1], "blocks": ["8B"]}
    pairs = {**BETWEEN, "blocks": ["8B"], "workloads": ["PINGPONG"], "pairs": {"rounds": 1}}
    measure(workflow, {}, mpi=[{**grid, "nodes": [2, "all", 64]}, pairs], nodes="all")
    for record in workflow.records().values():
        assert record["status"] == "ok", record["reason"]
        (value,) = record["measurements"]
        hosts = [place.partition(":")[0] for place in value["details"]["rank_cpus"].split()]
        count = int(record["cell"]["variant"].partition("-")[0])
        named = [record["cell"]["node"], record["cell"].get("peer")]
        assert hosts == (
            sorted(named) if named[1] else ["node1", "node2", "node3", "node4"][:count]
        )
    rows = build.load(workflow.results).rows
    assert sorted(set(rows["variant"])) == ["2-nodes", "4-nodes"] and len(rows) == 6
    assert workflow.planned() == set()


@pytest.mark.trouble
@needs("hpcc")
@pytest.mark.parametrize("settings", [{}, {"launch": "mpirun"}], ids=["srun", "mpirun"])
def test_nodes_solve_one_system_with_hpl(fleet, tmp_path, settings):
    """The record has what hpcc says of the system, its processes and their rate, from one node to four."""
    workflow = Workflow.make(fleet, tmp_path / "checkout")
    grid = {"workloads": ["DP"], "concurrency": [1]}
    hpl = {"nodes": [1, 2, "all", 64], "memory": 2e-5, "budget_s": 2, "nb": 32}
    # Ranks of nodes that share two CPUs must not spin.
    settings = {**settings, "environment": {**ENVIRONMENT, "OMPI_MCA_mpi_yield_when_idle": "1"}}
    grid["references"] = {"hpl": hpl}
    measure(
        workflow, settings, nodes="all", tools={"hpl": shutil.which("hpcc")}, mpi=[], cpu=[grid]
    )
    found = {}
    for name, record in workflow.records().items():
        if record["cell"]["subsystem"] != "mpi":
            continue
        assert record["status"] == "ok", record["reason"]
        (value,) = record["measurements"]
        details, raw = value["details"], f"cells/{name}.raw/0.hpccoutf.txt"
        said = dict(
            re.findall(r"^(\w+)=(\S+)$", (workflow.results / raw).read_text(), re.MULTILINE)
        )
        nodes = int(value["variant"].partition("-")[0])
        found[nodes] = value["value"]
        room = 2e-5 * nodes * record["cell"]["options"]["node_bytes"]
        assert details["N"] == int(math.sqrt(room / 8)) // 32 * 32
        assert int(said["CommWorldProcs"]) == nodes == details["P"] * details["Q"]
        assert (int(said["HPL_N"]), int(said["HPL_nprow"])) == (details["N"], details["P"])
        assert value["value"] == pytest.approx(1e12 * float(said["HPL_Tflops"]), rel=0.01)
        assert details["threads"] == len(details["rank_cpus"].split(",")) == value["concurrency"]
    assert sorted(found) == [1, 2, 4]
    rows = build.load(workflow.results).rows
    limits = rows.query("table == 'mpi_rate'")["limit"].tolist()
    assert limits == pytest.approx([limits[0] * nodes for nodes in (1, 2, 4)])
    tables = pandas.read_csv(workflow.results / "tables/mpi_rate.csv")
    shares = [100 * found[nodes] / found[1] / nodes for nodes in (2, 4)]
    assert tables["Parallel Efficiency (%)"].tolist()[1:] == pytest.approx(shares)
    assert workflow.planned() == set()


@pytest.mark.trouble
def test_a_start_that_fails_is_not_possible_until_the_site_file_has_another_way(equal_workflow):
    measure(equal_workflow, {"launch": "srun", "type": "none"})
    reason = "two ranks of MPI do not start on two nodes: srun --mpi=none: "
    assert equal_workflow.planned() == set() and not equal_workflow.attempts()
    for record in equal_workflow.records().values():
        assert record["status"] == "unavailable" and record["reason"].startswith(reason)
    said = measure(equal_workflow, {})
    assert "4 without the tools" in said
    assert {record["status"] for record in equal_workflow.records().values()} == {"ok"}


@pytest.mark.trouble
@pytest.mark.parametrize("settings", [{}, {"launch": "mpirun"}], ids=["srun", "mpirun"])
def test_a_lost_rank_is_one_sentence_and_a_cancelled_campaign_leaves_nothing(
    equal_workflow, settings
):
    shared = Path("/dev/shm")
    before = {*shared.iterdir()}

    def running(*names):
        processes = chain.from_iterable(map(equal_workflow.cluster.processes, ("node1", "node2")))
        return [process for process in processes if process.name in names]

    def ranks():
        """The ranks of the cell, which measures for 8 s, without those of a trial."""
        found = [(one, Path(f"/proc/{one.pid}/cmdline")) for one in running("mpibench")]
        return [one for one, line in found if line.exists() and b"\0008\0" in line.read_bytes()]

    def started():
        process = equal_workflow.start(*TO_TABLES)
        wait_until(lambda: len(ranks()) >= 2, 60.0, "the ranks run", 0.1)
        return process

    write_site(equal_workflow, settings, mpi=[{**MANY, "seconds": 8}])
    process = started()
    ranks()[-1].end()
    assert equal_workflow.end(process)
    (reason,) = equal_workflow.attempts().values()
    assert re.fullmatch(
        r"(srun|mpirun) ended with [^:]+: .*(node[12]|rank \d).*[Kk]illed.*", reason
    )
    process = started()
    process.send_signal(signal.SIGINT)
    equal_workflow.end(process)
    wait_until(lambda: not equal_workflow.queued(), 60.0, "no job is left", 0.1)
    assert not running("mpibench", "srun", "mpirun", "orted")
    assert {*shared.iterdir()} <= before and not equal_workflow.records()
    equal_workflow.snakemake(*TO_TABLES)
    (record,) = equal_workflow.records().values()
    assert record["status"] == "ok"


def test_a_library_without_compiler_is_one_line(equal_workflow):
    lacking = {"environment": {"PATH": "/usr/sbin"}}
    cpu = {"workloads": ["DP"], "concurrency": [1]}
    measure(equal_workflow, lacking, cpu=[cpu])
    plan = json.loads((equal_workflow.results / "plan.json").read_text())
    assert plan["left_out"]["mpi"].startswith("no MPI is measured: mpicc not found;")
    assert {record["cell"]["subsystem"] for record in equal_workflow.records().values()} == {"cpu"}
