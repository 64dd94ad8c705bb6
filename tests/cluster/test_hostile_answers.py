"""Real daemons behind a wrapper of sbatch, variables of a user, a hidden partition and maintenance."""

import json
import shutil
import sys

import pytest
from testcluster.processes import wait_until
from tests.programs import executable

WRAPPERS = {
    "banner": 'echo; echo "--> Verifying valid submit host...OK"; exec {sbatch} "$@"',
    "note": '{sbatch} "$@"; echo "12 hours are left"; echo "see the page of the site" >&2',
    "without --parsable": 'shift; exec {sbatch} "$@"',
    "other numbers": 'echo 2026; {sbatch} "$@"; echo 100',
    "no number": '{sbatch} "$@" > /dev/null; echo accepted',
    "failure afterwards": '{sbatch} "$@"; exit 3',
}
VARIABLES = {
    **{"SQUEUE_PARTITION": "short", "SQUEUE_STATES": "COMPLETED", "SQUEUE_FORMAT": "%i", "SQUEUE_NAMES": "x"},
    **{"SINFO_PARTITION": "small", "SINFO_FORMAT": "%N", "SCANCEL_STATE": "SUSPENDED", "SBATCH_PARTITION": "none"},
}  # fmt: skip
ASK = """
import json, sys
from peakmark import slurm
options = ["--comment=c/x 1", "--account=tests", "--partition=main,short", "--time=2"]
options += ["--nodes=1", "--output=/dev/null"]
number = slurm.submit(options, "#!/bin/sh\\nsleep 600\\n")
jobs = [job.number for job in slurm.jobs() if job.comment == "c/x 1"]
nodes = [(node.name, node.partition, node.usable) for node in slurm.nodes("main, short")]
slurm.cancel([number])
names = [name for name, _, _ in nodes]
print(json.dumps([number, jobs, nodes, slurm.nodes_unavailable(names)]))
"""


@pytest.fixture
def ask(site, tmp_path, monkeypatch):
    """A function that submits a job behind a wrapper, and returns all that Slurm says of it."""

    def answers(wrapper):
        real = shutil.which("sbatch", path=site.environment()["PATH"])
        executable(tmp_path / "sbatch", f"#!/bin/sh\n{wrapper.format(sbatch=real)}\n")
        # The wrapper and the variables go through env: the test cluster drops those of a caller.
        path = f"PATH={tmp_path}:{site.environment()['PATH']}"
        variables = [path, *(f"{name}={value}" for name, value in VARIABLES.items())]
        return json.loads(site.run(["env", *variables, sys.executable, "-c", ASK]).stdout)

    return answers


@pytest.mark.parametrize("wrapper", list(WRAPPERS))
def test_a_job_behind_a_wrapper_is_known_by_its_number(site, ask, wrapper):
    number, jobs, nodes, unavailable = ask(WRAPPERS[wrapper])
    assert jobs == [number] and int(number) > 0
    assert nodes == [[name, "main,short", True] for name in site.layout.names] and not unavailable
    assert site.wait_for_job(int(number), "CANCELLED")["Comment"] == "c/x"


def test_a_hidden_partition_hides_no_job_and_no_node(site, ask):
    hidden = ["scontrol", "update", "PartitionName=main"]
    site.run([*hidden, "Hidden=YES"])
    try:
        number, jobs, nodes, _ = ask('exec {sbatch} "$@"')
    finally:
        site.run([*hidden, "Hidden=NO"])
    assert jobs == [number] and [name for name, _, _ in nodes] == list(site.layout.names)


def test_a_node_in_maintenance_is_away_for_planning_and_for_waiting(site, ask):
    node, other = site.layout.names
    site.run([
        *("scontrol", "create", "reservation", "ReservationName=tuesday", "StartTime=now", "Duration=60"),
        *(f"Nodes={node}", "Users=root", "Flags=MAINT,IGNORE_JOBS"),
    ])  # fmt: skip
    try:
        site.update_node(other, "Comment=a State=DOWN")
        wait_until(
            lambda: "MAINTENANCE" in site.node_states(node), 60.0, f"{node} is in maintenance"
        )
        _, _, nodes, unavailable = ask('exec {sbatch} "$@"')
    finally:
        site.update_node(other, "Comment=")
        site.run(["scontrol", "delete", "ReservationName=tuesday"])
    assert {name: usable for name, _, usable in nodes} == {node: False, other: True}
    assert list(unavailable) == [node] and "MAINTENANCE" in unavailable[node]
