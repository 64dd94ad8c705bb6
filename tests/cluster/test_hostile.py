"""Names that a shell would take for commands, through a real Slurm: submission, job script, job
step, measurement.
"""

import os
import shutil
from pathlib import Path

import yaml
from testcluster import Cluster

from workflow import Workflow

# What a shell makes of it leaves a file called pwned-N, on the login side or on a node.
FOLDER = '-x $(touch pwned-1) `touch pwned-2`; touch pwned-3 & "d" é|* > pwned-4 #~ %s \\'
HOSTILE = f"{FOLDER} 'q'"


def test_a_hostile_configuration_in_a_hostile_folder_reaches_no_shell(
    cluster: Cluster, tmp_path: Path
) -> None:
    workflow = Workflow.make(cluster, tmp_path / FOLDER)
    folder = tmp_path / f"{HOSTILE}\n{{b}}"
    scratch = folder / "scratch"
    scratch.mkdir(parents=True)
    tool = folder / "fio"
    tool.write_text(f'#!/bin/sh\nexec {shutil.which("fio") or "fio"} "$@"\n')
    tool.chmod(0o755)
    site = folder / "site.yaml"
    site.write_text(
        yaml.safe_dump(
            {
                "schema": 1,
                "name": "hostile",
                "description": HOSTILE,
                "slurm": {"extra": "--nice=10"},
            }
        )
    )
    workflow.configure(
        scratch=str(scratch),
        site=str(site),
        tools={"fio": str(tool)},
        report={"title": f"{HOSTILE}\n{{b}}", "author": HOSTILE},
        disk=[
            {
                "workloads": ["WS"],
                "blocks": ["64KiB"],
                "concurrency": [1],
                "size": "1MiB",
                "references": {"fio": {"seconds": 0.1}},
            }
        ],
        network=[{"workloads": ["TCP"], "blocks": ["1KiB"], "concurrency": [1]}],
    )
    os.environ["HOSTILE"] = HOSTILE  # jobs inherit the environment
    try:
        done = workflow.snakemake()
    finally:
        del os.environ["HOSTILE"]
    assert done.returncode == 0, done.stdout + done.stderr
    records = workflow.records()
    assert len(records) == 3
    assert {record["status"] for record in records.values()} == {"ok"}, records
    assert not list(tmp_path.rglob("pwned*")), "a shell has read a name"
    assert not list(Path.cwd().glob("pwned*"))
    assert not list(Path("/").glob("pwned*"))
    assert not list(scratch.iterdir())
    assert workflow.planned() == set()
