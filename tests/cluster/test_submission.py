"""Jobs that Slurm would never start: doctor and a campaign find the same, before anything is
submitted.
"""

import json
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from testcluster import Cluster
from testcluster.processes import wait_until
from tests.checkout import TO_TABLES

from workflow import Workflow

ACCOUNT = "account: tests"
CPU = [{"workloads": ["DP"], "concurrency": [1]}]
NETWORK = [{"workloads": ["TCP"], "blocks": ["1KiB"], "concurrency": [1]}]


@pytest.fixture
def workflow(site: Cluster, tmp_path: Path) -> Workflow:
    return Workflow.make(site, tmp_path / "checkout")


@contextmanager
def partition(cluster: Cluster, name: str, **settings: str) -> Iterator[None]:
    """A partition with other settings, such as State; afterwards they are as before."""
    fields = cluster.run(["scontrol", "--oneliner", "show", "partition", name]).stdout.split()
    before = dict(field.split("=", 1) for field in fields)
    update = ["scontrol", "update", f"PartitionName={name}"]
    cluster.run([*update, *(f"{key}={value}" for key, value in settings.items())])
    try:
        yield
    finally:
        cluster.run([*update, *(f"{key}={before[key]}" for key in settings)])


@contextmanager
def unenforced(cluster: Cluster) -> Iterator[None]:
    """sbatch takes what its partition never starts, as Slurm does unless a site says otherwise."""
    path = cluster.layout.path("slurm/slurm.conf")
    before = path.read_text()
    path.write_text(before.replace("EnforcePartLimits=ALL", "EnforcePartLimits=NO"))
    cluster.run(["scontrol", "reconfigure"])
    try:
        yield
    finally:
        path.write_text(before)
        cluster.run(["scontrol", "reconfigure"])


@contextmanager
def quality_of_service(cluster: Cluster, limit: str) -> Iterator[None]:
    """The QOS denies jobs above a limit, such as MaxTRESPerJob=node=1."""
    modify = ["sacctmgr", "--immediate", "--quiet", "modify", "qos", "normal", "set"]
    cluster.run([*modify, limit, "Flags=DenyOnLimit"])
    try:
        yield
    finally:
        cluster.run([*modify, f"{limit.rpartition('=')[0]}=-1", "Flags=-1"])


def doctor(workflow: Workflow) -> tuple[int, str]:
    command = [sys.executable, "-m", "peakmark", "doctor", "--slurm", "--site", "site.yaml"]
    done = workflow.cluster.run(
        command, cwd=workflow.directory, env=workflow.environment, check=False, timeout=120
    )
    return done.returncode, done.stdout + done.stderr


def submitted(cluster: Cluster) -> set[str]:
    return set(cluster.run(["squeue", "--noheader", "--states=all", "--format=%i"]).stdout.split())


@pytest.mark.parametrize("state", ["DOWN", "DRAIN", "INACTIVE"])
def test_a_partition_that_starts_no_job_is_found_by_doctor_and_by_the_run(
    workflow: Workflow, state: str
) -> None:
    site = workflow.site(f"{{{ACCOUNT}, partition: short}}")
    workflow.configure(cpu=CPU, site=site)
    before = submitted(workflow.cluster)
    with partition(workflow.cluster, "short", State=state):
        code, said = doctor(workflow)
        run = workflow.snakemake()
    for text in (said, run.stderr):
        assert f"short, which is {state}" in text and "slurm.partition" in text, text
    assert code == 1 and run.returncode == 1
    assert "Traceback" not in run.stderr and not workflow.attempts()
    assert submitted(workflow.cluster) == before


def test_doctor_asks_for_no_more_time_than_the_partition_gives(workflow: Workflow) -> None:
    workflow.site(f"{{{ACCOUNT}, partition: short}}")
    with unenforced(workflow.cluster), partition(workflow.cluster, "short", MaxTime="00:02:00"):
        code, said = doctor(workflow)
    assert code == 0 and said.count("a core") == 2, said


ASK = """
import json, sys
from peakmark.slurm import submission
asked = json.loads(sys.argv[1])
print(submission.check(asked, [f"--{name}={value}" for name, value in asked.items()]))
"""


@pytest.mark.parametrize(
    ("name", "time", "nodes", "words"),
    [
        ("short", "10", "1", "MaxTime"),
        ("small", "2", "2", "MaxNodes"),
        ("main,short", "10", "1", "None"),
        ("main", "2", "1", "None"),
    ],
)
def test_a_limit_that_sbatch_does_not_enforce(
    site: Cluster, name: str, time: str, nodes: str, words: str
) -> None:
    asked = {"account": "tests", "partition": name, "time": time, "nodes": nodes}
    with unenforced(site):
        said = site.run([sys.executable, "-c", ASK, json.dumps(asked)]).stdout
    assert words in said


def test_a_quality_of_service_of_one_node_leaves_the_network_cells_out(workflow: Workflow) -> None:
    workflow.configure(cpu=CPU, network=NETWORK, site=workflow.site(f"{{{ACCOUNT}}}"))
    before = submitted(workflow.cluster)
    with quality_of_service(workflow.cluster, "MaxTRESPerJob=node=1"):
        refused = workflow.snakemake()
        assert refused.returncode == 1 and submitted(workflow.cluster) == before
        assert "QOSMaxNodePerJobLimit" in refused.stderr and "slurm.account" not in refused.stderr
        assert "--config network=[]" in refused.stderr
        done = workflow.snakemake("--config", "network=[]", *TO_TABLES)
    assert done.returncode == 0, done.stderr
    assert {name.split("/")[0] for name in workflow.records()} == {"cpu"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_doctor_that_is_ended_leaves_no_job(workflow: Workflow, number: signal.Signals) -> None:
    cluster = workflow.cluster
    for node in cluster.layout.names:
        place = (f"--nodelist={node}", "--exclusive", "--account=tests", "--output=/dev/null")
        cluster.wait_for_job(cluster.sbatch("sleep 600", *place), "RUNNING")
    workflow.site(f"{{{ACCOUNT}}}")
    command = [sys.executable, "-m", "peakmark", "doctor", "--slurm", "--site", "site.yaml"]
    process = cluster.popen(
        command,
        cwd=workflow.directory,
        env=workflow.environment,
        preexec_fn=lambda: [
            signal.signal(each, signal.SIG_DFL) for each in (signal.SIGHUP, signal.SIGINT)
        ],
    )

    def queued() -> str:
        return cluster.run(["squeue", "--noheader", "--name=peakmark-doctor", "--format=%i"]).stdout

    wait_until(queued, 60, "doctor's job is in the queue")
    process.send_signal(number)
    assert process.wait(60) > 0
    wait_until(lambda: not queued(), 10, "doctor's job is cancelled")
