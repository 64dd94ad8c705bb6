"""A job of several cells that runs again measures what is not measured yet."""

import json
from pathlib import Path
from socket import gethostname

from tests.checkout import ROOT
from tests.programs import executable, needs
from tests.unit.plan.planned import DISK, made, where

from peakmark.run import job
from peakmark.storage import planfile

WRAPPER = """#!/bin/sh
echo "$*" >> {log}
exec fio "$@"
"""


@needs("fio")
def test_a_changed_program_measures_its_cells_again(tmp_path, monkeypatch):
    for name in ("old", "new"):
        log = tmp_path / f"{name}.log"
        tool = executable(tmp_path / name, WRAPPER.format(log=log))
        grid = {**DISK, "references": {"fio": {}}}
        config = {"seconds": 0.02, "warmup": 0, "repeat_disturbed": 0, "fan_out": "node"}
        one = made(
            tmp_path, monkeypatch, where(nodes=(gethostname(),)),
            disk=[grid], tools={"fio": str(tool)}, **config,
        )  # fmt: skip
        folder = Path("results/c")
        planfile.write(folder / "plan.json", one.to_json())
        (job_name,) = one.jobs
        job.run(planfile.job(folder / "plan.json", job_name), job_name, ROOT / "build" / "kernels")
    times = [path.stat().st_mtime_ns for path in sorted(folder.glob("cells/disk/*/*/*/0.json"))]
    assert len(times) == 2 and "--bs=4096" in (tmp_path / "new.log").read_text()
    # diskbench's cell, the first by name, was not measured again.
    assert times[0] < (tmp_path / "new").stat().st_mtime_ns < times[1]
    records = [json.loads(path.read_text()) for path in folder.glob("cells/disk/fio/*/*/0.json")]
    assert [record["context"]["tool"]["path"] for record in records] == [str(tmp_path / "new")]
