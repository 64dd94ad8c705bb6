"""A scheduler that is not Slurm, by Snakemake's executor cluster-generic."""

import os
import socket
from pathlib import Path

from tests.checkout import TINY, TO_TABLES
from tests.programs import executable

SLURM = {"scontrol", "sinfo", "squeue", "sbatch", "srun"}
QSUB = """#!/bin/sh
# Like PBS on one node: run the script, which is the last word, at once, and print the job's number.
echo "began $2" >> {folder}/jobs
for last; do :; done
export PBS_JOBID=$$.here PBS_NODEFILE={folder}/nodes
(setsid sh "$last"; echo "ended $2" >> {folder}/jobs) > {folder}/said.$$ 2>&1 &
echo $$.here
"""
SSH = """#!/bin/sh
for last; do :; done
exec sh -c "$last"
"""
SUBMIT = (
    "qsub -l select={resources.nodes}:ncpus={resources.cpus_per_task}:mem={resources.mem_mb}mb"
    " -l walltime=00:{resources.runtime}:00"
)


def without_slurm(folder):
    """A folder for PATH with links to the machine's programs, apart from those of Slurm."""
    folder.mkdir()
    for name in os.environ["PATH"].split(":"):
        for program in Path(name).glob("*"):
            if program.name not in SLURM and not (folder / program.name).exists():
                (folder / program.name).symlink_to(program)
    return folder


def test_the_hosts_of_a_pbs_job_measure_network_cells_one_at_a_time(checkout, tmp_path):
    programs = without_slurm(tmp_path / "programs")
    (programs / "ssh").unlink(missing_ok=True)
    (tmp_path / "nodes").write_text(f"{socket.gethostname()}\nlocalhost\n")
    executable(programs / "qsub", QSUB.format(folder=tmp_path))
    executable(programs / "ssh", SSH)
    grid = [{"workloads": ["DP"], "concurrency": [1]}]
    values = {**TINY, "cpu": grid, "memory": [], "disk": [], "repetitions": 1}
    config = checkout.write_config("tiny.yaml", values)
    executor = ["--executor", "cluster-generic", "--cluster-generic-submit-cmd", SUBMIT]
    words = ["--jobs", "3", "--configfile", str(config), *TO_TABLES]
    path = {"PATH": str(programs)}
    done = checkout.run("snakemake", *executor, *words, env=path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 cells as jobs of a scheduler other than Slurm" in done.stderr
    records = checkout.records("tiny")
    assert [record["status"] for record in records.values()] == ["ok"] * 3, records
    assert all(record["context"]["job_id"].endswith(".here") for record in records.values())
    lines = (tmp_path / "jobs").read_text().splitlines()
    assert sum(line.startswith("began select=1:ncpus=") for line in lines) == 1
    pairs = [line.split()[0] for line in lines if "select=2:" in line]
    assert pairs == ["began", "ended", "began", "ended"]
