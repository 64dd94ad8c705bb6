"""A scheduler that is not Slurm, by Snakemake's executor cluster-generic."""

import os

import pytest
from tests.checkout import TINY, TO_TABLES
from tests.programs import executable, path_without

SLURM = {"scontrol", "sinfo", "squeue", "sbatch", "srun"}
QSUB = """#!/bin/sh
# Like PBS on one node: run the script, which is the last word, at once, and print the job's number.
echo "began $2" >> {folder}/jobs
for last; do :; done
export PBS_JOBID=$$.here
(setsid sh "$last"; echo "ended $2" >> {folder}/jobs) > {folder}/said.$$ 2>&1 &
echo $$.here
"""
SUBMIT = (
    "qsub -l select={resources.nodes}:ncpus={resources.cpus_per_task}:mem={resources.mem_mb}mb"
    " -l walltime=00:{resources.runtime}:00"
)


@pytest.fixture
def run(checkout, tmp_path):
    """Run a campaign of a CPU cell and a network cell as jobs of a PBS."""
    programs = path_without(tmp_path / "programs", os.environ["PATH"], SLURM)
    executable(programs / "qsub", QSUB.format(folder=tmp_path))
    grid = [{"workloads": ["DP"], "concurrency": [1]}]
    values = {**TINY, "cpu": grid, "memory": [], "disk": [], "repetitions": 1}
    values["network"] = [{**TINY["network"][0], "workloads": ["TCP"]}]

    def snakemake(*until, code=0, **more):
        (tmp_path / "jobs").unlink(missing_ok=True)
        config = checkout.write_config("tiny.yaml", values | more)
        words = ["--jobs", "2", "--configfile", str(config), *until]
        executor = ["--executor", "cluster-generic", "--cluster-generic-submit-cmd", SUBMIT]
        executor += ["--seconds-between-status-checks", "1"]
        done = checkout.run("snakemake", *executor, *words, env={"PATH": str(programs)})
        assert done.returncode == code, done.stdout + done.stderr
        return done.stderr

    return snakemake


def jobs(folder, hosts):
    """Words of the jobs with this number of hosts, in order."""
    lines = (folder / "jobs").read_text().splitlines()
    return [line.split()[0] for line in lines if f"select={hosts}:" in line]


def test_a_scheduler_without_slurm_measures_what_one_node_can_do(run, checkout, tmp_path):
    assert "2 cells as jobs of a scheduler other than Slurm" in run(*TO_TABLES)
    records = checkout.records("tiny")
    found = sorted(record["status"] for record in records.values())
    assert found == ["ok", "unavailable"], records
    reasons = {record["reason"] for record in records.values() if record["status"] != "ok"}
    assert all("two nodes of one Slurm job" in reason for reason in reasons)
    assert all(record["context"]["job_id"].endswith(".here") for record in records.values())
    assert jobs(tmp_path, 1) == ["began", "ended"]
    assert jobs(tmp_path, 2) == ["began", "ended"]
