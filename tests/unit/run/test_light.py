"""What the process of a cell does beside measuring, in a real process that measures a real cell."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import peakmark
from peakmark.cell import Cell
from peakmark.resources import ROOT, version
from peakmark.run import kernel_build
from peakmark.storage import planfile, records

CELLS = [
    Cell("cpu", "cpubench", "SP", "", None, 1, "any", number, {"seconds": 0.01, "warmup": 0.0})
    for number in range(3)
]

HEAVY = {"IPython", "jsonschema", "matplotlib", "numpy", "pandas", "pyarrow"}
HEAVY |= {"rich", "seaborn", "snakemake"}
"""What a cell's process does without: each takes longer to load than a short cell to measure."""


WATCH = """
import atexit, json, os, sys
asked = []
sys.addaudithook(lambda event, words: asked.append(words[1][0]) if event == "subprocess.Popen" else None)
atexit.register(lambda: open(path, "w").write(json.dumps({"modules": [*sys.modules], "started": asked})))
path = sys.argv.pop(1)
from pathlib import Path
from peakmark.cli import main
from peakmark.run import lock
lock.DIRECTORY = Path(path).parent
sys.exit(main())
"""
"""Runs what the rules run, and writes down what it did.

It waits for no other measurement on this machine, as these may last longer than ``lock.WAIT_S``.
"""


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A planned campaign whose first cell has been measured on this host."""
    if not all(Path(program).is_file() for program in kernel_build.programs()):
        pytest.skip("the kernels are not compiled: make kernels")
    folder = tmp_path_factory.mktemp("results") / "light"
    cells = [{"id": cell.id, "job": "any.own", **cell.to_json()} for cell in CELLS]
    config = {"tools": {}, "modules": {}}
    plan = {"campaign": "light", "config": config, "cluster": None, "cells": cells}
    planfile.write(folder / "plan.json", plan)
    kernel_build.keep_version(folder)
    run(folder, "--cell", CELLS[0].id)
    return folder


@pytest.fixture
def campaign(measured, tmp_path):
    """A copy of ``measured``, in which more may be measured."""
    return Path(shutil.copytree(measured, tmp_path / "results" / "light"))


def run(folder, *words):
    told = folder / "told.json"
    plan = str(folder / "plan.json")
    argv = [sys.executable, "-c", WATCH, str(told), "measure", "--plan", plan, *words]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return json.loads(told.read_text())


def record(folder, cell):
    return records.read(folder / "cells" / f"{cell.id}.json")


def test_a_cell_is_light_and_a_job_measures_each_of_its_cells_once(campaign):
    modules = set(run(campaign, "--cell", CELLS[1].id)["modules"])
    assert not HEAVY & modules
    programs = {name for name in modules if name.startswith("peakmark.tools.programs.")}
    assert programs == {"peakmark.tools.programs.cpubench"}
    before = (campaign / "cells" / f"{CELLS[0].id}.json").stat().st_mtime_ns
    run(campaign, "--job", "any.own")
    assert (campaign / "cells" / f"{CELLS[0].id}.json").stat().st_mtime_ns == before
    assert all(record(campaign, cell).status == "ok" for cell in CELLS)
    context, cpus = record(campaign, CELLS[1]).context, sorted(os.sched_getaffinity(0))
    assert context.allowed.cpus == tuple(cpus) and context.placed.threads == 1


@pytest.mark.parametrize("what", ["older", "root", "absent", "same"])
def test_code_that_changed_is_asked_for_again(campaign, what):
    path = campaign / kernel_build.VERSION_FILE
    kept = {**json.loads(path.read_text()), "version": "an earlier answer"}
    path.write_text(json.dumps(kept | ({"root": "/elsewhere"} if what == "root" else {})))
    if what == "older":  # as if a source were changed after git was asked
        os.utime(path, ns=(0, 0))
    elif what == "absent":
        path.unlink()
    asked = "git" in run(campaign, "--cell", CELLS[1].id)["started"]
    first, second = (record(campaign, cell).context for cell in CELLS[:2])
    if what == "same":
        assert second.peakmark == "an earlier answer"
    else:
        assert asked and first.peakmark == second.peakmark == version()
    assert first.tool == second.tool and second.tool.version == peakmark.__version__
