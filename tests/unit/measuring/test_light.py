"""What the process of a cell does beside measuring: which modules it loads, what it starts, how often it waits for the disk.

Counted in a real process that measures a real cell; how long it takes depends on the machine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import peakmark
from peakmark.cell import Cell
from peakmark.measuring import build, code
from peakmark.resources import ROOT, version
from peakmark.storage import planfile, records

CELLS = [
    Cell("cpu", "cpubench", "SP", "", None, 1, "any", number, {"seconds": 0.01, "warmup": 0.0}) for number in range(3)
]
MAIN = Path(peakmark.__file__).with_name("__main__.py")

WATCH = """
import os, sys
counted = {"os.fork": [], "os.exec": [], "os.posix_spawn": [], "subprocess.Popen": [], "fsync": []}
fsync = os.fsync
def counting(descriptor):
    counted["fsync"].append(os.readlink(f"/proc/self/fd/{descriptor}"))
    fsync(descriptor)
os.fsync = counting
sys.addaudithook(lambda event, words: counted[event].append(str(words[:1])) if event in counted else None)
end = os._exit
def told(code):
    if os.getpid() == own:
        import json
        here = [*sys.modules]
        open(path, "w").write(json.dumps({"modules": here, "code": code, **counted}))
    end(code)
own, path = os.getpid(), sys.argv[1]
os._exit = told
sys.argv = sys.argv[2:]
exec(compile(open(sys.argv[0]).read(), sys.argv[0], "exec"), {"__name__": "__main__", "__file__": sys.argv[0], "__package__": None})
"""
"""Runs what the rules run, and writes down what it did."""

TOO_LONG = frozenset(
    [
        "argparse",
        "ast",
        "asyncio",
        "bz2",
        "ctypes",
        "dataclasses",
        "datetime",
        "decimal",
        "gettext",
        "hashlib",
        "importlib.metadata",
        "inspect",
        "ipaddress",
        "locale",
        "logging",
        "lzma",
        "platform",
        "random",
        "secrets",
        "shlex",
        "shutil",
        "site",
        "socket",
        "subprocess",
        "tempfile",
        "threading",
        "tokenize",
        "typing",
        "urllib.parse",
        "xml",
        "zlib",
        "_hashlib",
        "_ssl",
        "fastjsonschema",
        "jsonschema",
        "matplotlib",
        "numpy",
        "pandas",
        "pyarrow",
        "rich",
        "seaborn",
        "snakemake",
        "yaml",
    ]
)
"""Each of these costs every cell its loading: see peakmark.lean for what stands in its place."""


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    """A planned campaign whose first cell has been measured on this host."""
    if not all(Path(program).is_file() for program in build.programs(build.BUILD)):
        pytest.skip("the kernels are not compiled: make kernels")
    folder = tmp_path / "results" / "light"
    cells = [{"id": cell.id, "job": "any.own", **cell.to_json()} for cell in CELLS]
    plan = {"campaign": "light", "config": {"tools": {}, "modules": {}}, "cluster": None, "cells": cells}
    planfile.write(folder / "plan.json", plan)
    build.python()
    code.keep(folder)
    run(folder, "--cell", CELLS[0].id)
    return folder


def run(folder: Path, *words: str) -> dict[str, Any]:
    told = folder / "told.json"
    argv = [
        sys.executable,
        "-S",
        "-c",
        WATCH,
        str(told),
        str(MAIN),
        "measure",
        "--plan",
        str(folder / "plan.json"),
        *words,
    ]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, cwd=ROOT)
    assert told.exists(), done.stderr
    found: dict[str, Any] = json.loads(told.read_text())
    assert found["code"] == 0, done.stderr
    return found


def record(folder: Path, cell: Cell) -> dict[str, Any]:
    return records.read(folder / "cells" / f"{cell.id}.json")


def test_a_cell_loads_what_it_needs_and_nothing_else(campaign: Path) -> None:
    modules = set(run(campaign, "--cell", CELLS[1].id)["modules"])
    assert not TOO_LONG & modules
    ours = {name for name in modules if name.partition(".")[0] == "peakmark"}
    assert {name for name in ours if name.startswith("peakmark.instruments.")} == {
        f"peakmark.instruments.{name}" for name in ("base", "common", "cpubench", "documents", "kernel")
    }
    assert len(ours) < 50


def test_a_cell_starts_its_kernel_and_a_guard_and_waits_twice_for_the_disk(campaign: Path) -> None:
    found = run(campaign, "--cell", CELLS[1].id)
    assert len(found["os.fork"]) == 2, "the guard and the kernel"
    assert not [*found["subprocess.Popen"], *found["os.posix_spawn"], *found["os.exec"]]
    place = campaign / "cells" / Path(CELLS[1].id).parent
    assert [Path(path) == place for path in found["fsync"]] == [False, True]
    assert Path(found["fsync"][0]).name.startswith(".1.json.")


def test_a_job_does_no_more_for_each_of_its_cells(campaign: Path) -> None:
    found = run(campaign, "--job", "any.own")
    assert len(found["os.fork"]) == 2 * 2, "the first cell was measured before"
    assert len(found["fsync"]) == (2 + 1) * 2, "each record, and what the job says in the end"
    assert all(record(campaign, cell)["status"] == "ok" for cell in CELLS)


def test_every_record_tells_code_and_tool(campaign: Path) -> None:
    run(campaign, "--cell", CELLS[1].id)
    first, second = (record(campaign, cell)["context"] for cell in CELLS[:2])
    assert first["peakmark"] == second["peakmark"] == version()
    assert first["tool"] == second["tool"] and second["tool"]["version"] == peakmark.__version__


@pytest.mark.parametrize("what", ["python", "kernels", "root", "damaged", "absent"])
def test_code_that_changed_is_asked_for_again(campaign: Path, what: str) -> None:
    path = campaign / code.FILE
    known = {**json.loads(path.read_text()), "version": "of another time"}
    if what in ("python", "kernels"):
        # As if a file were changed after git was asked.
        changed = next(name for name in known[what] if name.endswith(("cell.py", "cpubench.c")))
        known[what][changed] -= 1
    elif what == "root":
        known["root"] = "/elsewhere"
    path.write_text("{" if what == "damaged" else json.dumps(known))
    if what == "absent":
        path.unlink()
    assert len(run(campaign, "--cell", CELLS[1].id)["subprocess.Popen"]) == 1
    assert record(campaign, CELLS[1])["context"]["peakmark"] == version()


def test_code_that_is_the_same_is_not(campaign: Path) -> None:
    path = campaign / code.FILE
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": "as it was told"}))
    run(campaign, "--cell", CELLS[1].id)
    assert record(campaign, CELLS[1])["context"]["peakmark"] == "as it was told"


def test_a_tool_is_asked_again_when_it_is_another(campaign: Path) -> None:
    (known,) = (campaign / "tools" / os.uname().nodename).iterdir()
    kept = json.loads(known.read_text())
    kept["file"][-1] -= 1
    known.write_text(json.dumps({**kept, "version": "of an earlier build"}))
    assert len(run(campaign, "--cell", CELLS[1].id)["subprocess.Popen"]) == 1
    assert record(campaign, CELLS[1])["context"]["tool"]["version"] == peakmark.__version__


def test_a_script_is_asked_every_time(tmp_path: Path) -> None:
    from peakmark.instruments.base import Tool
    from peakmark.measuring import known

    script = tmp_path / "tool"
    script.write_text("#!/bin/sh\n")
    asked = []

    def ask(path: str) -> Tool:
        asked.append(path)
        return Tool("tool", path, str(len(asked)))

    assert [known.tool(tmp_path, "tool", str(script), ask).version for _ in range(2)] == ["1", "2"]
    program = [known.tool(tmp_path, "true", "/bin/true", ask).version for _ in range(2)]
    assert program == ["3", "3"] and known.tool(tmp_path, "gone", "/nowhere", ask).version == "4"


def test_a_program_keeps_the_name_that_it_gave_itself(tmp_path: Path) -> None:
    from peakmark.instruments.base import Tool
    from peakmark.measuring import known

    # HPL within hpcc reads other files than xhpl: which of the two it is must not be forgotten.
    found = [known.tool(tmp_path, "hpl", "/bin/true", lambda path: Tool("hpcc", path, "unknown")) for _ in range(2)]
    assert [tool.name for tool in found] == ["hpcc", "hpcc"]


def test_a_path_is_still_an_address_when_it_is_asked_for() -> None:
    """Loaded without what makes addresses of paths, pathlib finds it then."""
    found = "from peakmark import __main__ as m; m._paths_without_urls(); import pathlib, urllib.parse as u; "
    found += "print(pathlib.Path('/a b').as_uri(), u.quote('c d'))"
    argv = [sys.executable, "-S", "-c", f"import sys; sys.path.insert(0, {str(MAIN.parents[1])!r}); {found}"]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.stdout == "file:///a%20b c%20d\n", done.stderr


def test_what_is_installed_is_found_when_it_is_needed() -> None:
    """Reading YAML takes a package that Python does not look for when it starts."""
    argv = [sys.executable, "-S", str(MAIN), "plan", "--configfile", "config/presets/quick.yaml"]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert "cpubench" in done.stdout
