"""What users write, wrongly: each is refused in one sentence that says where and what is allowed,
before anything runs.

No traceback, no hang, nothing lost in silence. Records, bundles, signals and full disks:
``test_hostile_files.py``.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.unit import campaign_data as make
from tests.unit.hostile import SECONDS, refused

from peakmark import cli
from peakmark.config import campaign, layouts, overrides, site
from peakmark.errors import ConfigError
from peakmark.resources import ROOT


def bomb(width: int = 10, depth: int = 9) -> str:
    lines = [f"a0: &a0 [{', '.join('x' * width)}]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * width)}]" for n in range(1, depth)]
    return "\n".join(lines)


FILES = {
    "a key twice": (
        "memory: [{}]\ncpu: []\nmemory: []\n",
        ["line 3", "'memory'", "line 1", "one list"],
    ),
    "an inner key twice": ("report:\n  title: a\n  title: b\n", ["line 3", "'title'", "line 2"]),
    "a key twice in JSON": ('{"cpu": [], "cpu": []}', ["'cpu' twice"]),
    "anchors that multiply": (bomb(), ["200000", "aliases"]),
    "merges that multiply": (
        "a0: &a0 {x: 1}\n"
        + "\n".join(f"a{n}: &a{n}\n  <<: [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)),
        ["200000", "aliases"],
    ),
    "an anchor in itself": ("a: &a [*a]", ["nested too deeply"]),
    "an open bracket": ("campaign: x\ncpu: [\n", ["line 3", "not valid YAML"]),
    "tabs": ("cpu:\n\t- x\n", ["line 2", "not valid YAML"]),
    "two documents": ("a: 1\n---\nb: 2\n", ["not valid YAML"]),
    "brackets without end": ("a: " + "[" * 5000, ["nested too deeply"]),
    "a list": ("- 1\n", ["must hold keys and values"]),
    "a word": ("x", ["must hold keys and values"]),
    "a Python object": ("a: !!python/object/apply:os.system [id]", ["line 1", "not valid YAML"]),
    "a date that is none": ("a: 2026-99-99", ["not valid YAML"]),
    "Latin-1": ("title: Stra\xdfe\n".encode("latin-1"), ["UTF-8"]),
    "UTF-16": ("cpu: []\n".encode("utf-16"), ["UTF-8"]),
    "null bytes": (b"\0\0\0\0", ["not valid YAML"]),
    "half a megabyte": ("#" * (1 << 20), ["allowed are"]),
}


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("read", ["configuration", "site file", "layout", "command line"])
def test_a_broken_file(kind: str, read: str, tmp_path: Path) -> None:
    text, words = FILES[kind]
    path = tmp_path / "own.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    start = time.process_time()
    with pytest.raises(ConfigError) as caught:
        if read == "configuration":
            overrides.read([path])
        elif read == "site file":
            site.load(path)
        elif read == "layout":
            layouts.load(str(path))
        else:
            overrides.check_command_line(["--profile", "local", "--configfile", str(path), "-n"])
    assert time.process_time() - start < SECONDS
    refused(str(caught.value), "own.yaml", *words)


def test_what_looks_strange_and_is_right(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(
        "\ufefftitle: Straße 东京\nx: &x {a: 1}\ny: {<<: *x, b: 2}\n".encode()
    )
    (tmp_path / "b.json").write_text('{\n\t"seconds": 1e-07\n}')
    (tmp_path / "empty.yaml").write_text("# nothing\n")
    read = overrides.read([tmp_path / "a.yaml", tmp_path / "b.json", tmp_path / "empty.yaml"])
    assert (read["title"], read["y"], read["seconds"]) == ("Straße 东京", {"a": 1, "b": 2}, 1e-7)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("seconds: .nan", ["seconds", "NaN", "finite"]),
        ("report: {title: .inf}", ["report.title", "text"]),
        ("scale: -.INF", ["scale", "-Infinity", "finite"]),
        ("warmup: 1.0e+999", ["warmup", "Infinity", "finite"]),
        ('{"seconds": NaN}', ["seconds", "NaN", "finite"]),
        ('{"report": {"title": "\\ud800"}}', ["report.title", "half characters"]),
        ('report: {title: "\\ud800"}', ["report.title", "half characters"]),
        ("a: {x: 1, x: 2}", ["line 1", "'x'"]),
    ],
)
def test_a_value_that_is_none(text: str, words: list[str], tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        campaign.complete(overrides.read([path]))
    refused(str(caught.value), *words)


def not_files(folder: Path) -> dict[str, tuple[Path, str]]:
    pipe, inside = folder / "pipe", folder / "socket"
    os.mkfifo(pipe)
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(os.path.relpath(inside))
    loop = folder / "loop"
    loop.symlink_to(loop)
    return {
        "nothing": (folder / "absent.yaml", "No such file"),
        "a folder": (folder, "a folder"),
        "a pipe": (pipe, "pipe"),
        "a socket": (inside, "No such device"),
        "a device": (Path("/dev/zero"), "device"),
        "a link to itself": (loop, "symbolic links"),
        "a long name": (folder / ("x" * 300), "too long"),
        "a null byte": (Path("a\0b"), "null"),
    }


def test_what_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for path, words in not_files(tmp_path).values():
        for read in (lambda path=path: overrides.read([path]), lambda path=path: site.load(path)):
            with pytest.raises(ConfigError) as caught:
                read()
            refused(str(caught.value), "cannot be read", words)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["plan", "--config", "scale"], ["'scale'", "KEY=VALUE"]),
        (["plan", "--config", "=1"], ["'=1'", "KEY=VALUE"]),
        (["plan", "--config", "cpu=[{"], ["--config cpu", "not valid YAML"]),
        (["plan", "--config", "scale=nan"], ["scale", "NaN", "finite"]),
        (["plan", "--config", "scale=1e999"], ["scale", "Infinity", "finite"]),
        (["plan", "--config", "scale=-1"], ["scale", "-1", "more than 0"]),
        (["plan", "--configfile", "absent.yaml"], ["absent.yaml", "No such file"]),
        (["plan", "--config", "give_up_after=never"], ["give_up_after", "never", "30 min"]),
        (["plan", "--config", "formula_set=mine"], ["formula_set", "mine", "site"]),
        (["plan", "--config", f"seed={10**23 - 1}"], ["seed", "at most 1000000000000000"]),
        (["doctor", "--site", "mine.yaml"], ["--site", "give --slurm too"]),
    ],
)
def test_a_wrong_command_line(
    arguments: list[str], words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(arguments) == 2
    refused(capsys.readouterr().err, *words)


WITH = ["--profile", "local"]


WITHOUT = ["-c1"]


READ_BY_SNAKEMAKE = {
    "nothing": WITHOUT,
    "a key twice": WITH,
    "an open bracket": WITHOUT,
    "anchors that multiply": WITHOUT,
    "an unknown key": WITH,
}


@pytest.mark.parametrize("kind", READ_BY_SNAKEMAKE)
def test_snakemake_says_it_in_the_same_sentence(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "own.yaml"
    if kind != "nothing":
        path.write_text(str({**FILES, "an unknown key": ["cpuu: []"]}[kind][0]))
    assert cli.main(["plan", "--configfile", str(path)]) == 2
    sentence = capsys.readouterr().err.removeprefix("peakmark: ").strip()
    words = [*READ_BY_SNAKEMAKE[kind], "-n", "--configfile", str(path)]
    argv = [sys.executable, "-m", "snakemake", *words]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode != 0
    # First, the profile's name.
    assert [line for line in done.stderr.splitlines()[1:] if line] == [f"Error: {sentence}"]


GRID = make.cell("cpubench", "DP", subsystem="cpu")
WRONG_PLANS: dict[str, Any] = {
    "a list": [],
    "a number": 5,
    "nothing": None,
    "empty": {},
    "cells that are a number": {"cells": 5},
    "a cell that is nothing": {"cells": [None]},
    "a cell without keys": {"cells": [{}]},
    "no cells": {"cells": []},
    "a cell twice": {"cells": [GRID.to_json(), GRID.to_json()]},
    "a schema of another version": {"schema": 99},
    "a name that is a number": {"campaign": 5},
    "a configuration that is a number": {"config": 5},
    "grids that are a number": {"config": {"cpu": 5}},
    "a site that is a text": {"config": {"site_facts": "mine"}},
    "tools that are numbers": {"config": {"tools": {"fio": 5}}},
    "a report that is a number": {"config": {"report": 5}},
    "published results that are a number": {"config": {"report": {"published": 5}}},
    "a title that is a list": {"config": {"report": {"title": ["x"]}}},
    "references that are a number": {"references": 5},
    "a reference that is a word": {"references": ["hpl"]},
    "repetitions that are a list": {"adaptive": [1]},
    "a criterion of other words": {"adaptive": {"a": {"nope": 1}}},
    "absurd numbers": {"adaptive": {GRID.row: {"least": 6, "most": 10**9, "until": 0.02}}},
}


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    record = make.record(GRID, [make.measurement(GRID, "rate", 4e10)])
    return make.write(tmp_path / "c", [record])


@pytest.mark.parametrize("kind", WRONG_PLANS)
def test_a_plan_with_something_else_in_it(
    kind: str, measured: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, wrong = measured / "plan.json", WRONG_PLANS[kind]
    if isinstance(wrong, dict) and wrong:
        wrong = {**json.loads(path.read_text()), **wrong}
    path.write_text(json.dumps(wrong))
    for command in ("status", "summary", "tables", "report", "html", "bundle"):
        assert cli.main([command, str(measured)]) != 0, command
        refused(capsys.readouterr().err, "plan.json")


@pytest.mark.parametrize(
    "name, command", [("tables",) * 2, ("figures", "tables"), ("cells", "report")]
)
def test_a_file_where_a_folder_must_be(
    name: str, command: str, measured: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(measured / name, ignore_errors=True)
    (measured / name).write_text("mine")
    assert cli.main([command, str(measured)]) != 0
    refused(capsys.readouterr().err, str(measured))
    assert (measured / name).read_text() == "mine"
