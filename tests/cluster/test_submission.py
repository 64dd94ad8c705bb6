"""Jobs that Slurm would never start: doctor and a campaign find the same before any is submitted."""

import sys
from contextlib import contextmanager

import pytest

from workflow import CPU

DOCTOR = [sys.executable, "-m", "peakmark", "doctor", "--slurm", "--site", "site.yaml"]
SHORT = "{account: tests, partition: short}"


@contextmanager
def partition(cluster, name, **settings):
    """A partition with other settings, such as State; afterwards they are as before."""
    fields = cluster.run(["scontrol", "--oneliner", "show", "partition", name]).stdout.split()
    before = dict(field.split("=", 1) for field in fields)
    update = ["scontrol", "update", f"PartitionName={name}"]
    cluster.run([*update, *(f"{key}={value}" for key, value in settings.items())])
    try:
        yield
    finally:
        cluster.run([*update, *(f"{key}={before[key]}" for key in settings)])


def doctor(workflow):
    done = workflow.call(DOCTOR)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(("slurm", "state", "words"), [
    ("{}", "UP", ["nvalid account", "slurm.account"]),
    (SHORT, "DRAIN", ["short, which is drain", "slurm.partition"]),
])  # fmt: skip
def test_jobs_that_never_start_are_found_by_doctor_and_by_the_run(
    site_workflow, slurm, state, words
):
    workflow = site_workflow
    workflow.configure(cpu=[CPU], site=workflow.site(slurm))
    before = workflow.queued("--states=all")
    with partition(workflow.cluster, "short", State=state):
        code, said = doctor(workflow)
        run = workflow.snakemake(code=1)
    assert code == 4 and "\nnot ready: Slurm would reject" in said
    for word in words:
        assert word in said and run.count(word) == 1, said + run
    assert not workflow.attempts() and not workflow.records()
    assert workflow.queued("--states=all") <= before
