"""What users write, wrongly: each is refused in one sentence that says where and what is allowed, before anything runs.

No traceback, no hang, nothing lost in silence. Records, bundles, signals and full disks: ``test_hostile_files.py``.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from peakmark import cli
from peakmark.errors import ConfigError
from peakmark.planning import given, site
from peakmark.resources import ROOT
from peakmark.tables import layouts

SECONDS = 20.0
"""Far above what reading any file takes, far below the minute and more that an anchor bomb took."""


def refused(said: str, *words: str) -> None:
    """One sentence for people."""
    assert said.strip() and "\n" not in said.strip()
    for word in words:
        assert word in said, said
    for ugly in ("Traceback", "\\u", "Error(", "<class", "None"):
        assert ugly not in said, said


def bomb(width: int = 10, depth: int = 9) -> str:
    lines = [f"a0: &a0 [{', '.join('x' * width)}]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * width)}]" for n in range(1, depth)]
    return "\n".join(lines)


FILES = {
    "a key twice": ("memory: [{}]\ncpu: []\nmemory: []\n", ["line 3", "'memory'", "line 1", "one list"]),
    "an inner key twice": ("report:\n  title: a\n  title: b\n", ["line 3", "'title'", "line 2"]),
    "a key twice in JSON": ('{"cpu": [], "cpu": []}', ["'cpu' twice"]),
    "anchors that multiply": (bomb(), ["line", "anchors and aliases", "200000"]),
    "merges that multiply": (
        "a0: &a0 {x: 1}\n" + "\n".join(f"a{n}: &a{n}\n  <<: [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)),
        ["anchors and aliases"],
    ),
    "an anchor in itself": ("a: &a [*a]", ["line 1", "holds itself"]),
    "an open bracket": ("campaign: x\ncpu: [\n", ["line 3", "not valid YAML"]),
    "tabs": ("cpu:\n\t- x\n", ["line 2", "not valid YAML"]),
    "two documents": ("a: 1\n---\nb: 2\n", ["not valid YAML"]),
    "brackets without end": ("a: " + "[" * 5000, ["nested too deeply"]),
    "a list": ("- 1\n", ["must hold keys and values"]),
    "a word": ("x", ["must hold keys and values"]),
    "not a number": ("seconds: .nan\n", ["line 1", ".nan", "finite"]),
    "infinity": ("x:\n  y: -.INF\n", ["line 2", "-.INF", "finite"]),
    "infinity by size": ("x: 1.0e+999\n", ["1.0e+999", "finite"]),
    "not a number in JSON": ('{"seconds": NaN}', ["NaN", "finite"]),
    "a Python object": ("a: !!python/object/apply:os.system [id]", ["line 1", "not valid YAML"]),
    "a date that is none": ("a: 2026-99-99", ["not valid YAML"]),
    "Latin-1": ("title: Stra\xdfe\n".encode("latin-1"), ["UTF-8"]),
    "UTF-16": ("cpu: []\n".encode("utf-16"), ["UTF-8"]),
    "null bytes": (b"\0\0\0\0", ["not valid YAML"]),
    "half a megabyte": ("#" * (1 << 20), ["512 KiB"]),
}


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("read", ["configuration", "site file", "layout", "command line"])
def test_a_broken_file(kind: str, read: str, tmp_path: Path) -> None:
    text, words = FILES[kind]
    path = tmp_path / "own.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    start = time.monotonic()
    with pytest.raises(ConfigError) as caught:
        if read == "configuration":
            given.read([path])
        elif read == "site file":
            site.load(path)
        elif read == "layout":
            layouts.load(str(path))
        else:
            given.check_command_line(["--profile", "local", "--configfile", str(path), "-n"])
    assert time.monotonic() - start < SECONDS
    refused(str(caught.value), "own.yaml", *words)


def test_what_looks_strange_and_is_right(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes("\ufefftitle: Straße 东京\nx: &x {a: 1}\ny: {<<: *x, b: 2}\n".encode())
    (tmp_path / "b.json").write_text('{\n\t"seconds": 1e-07\n}')
    (tmp_path / "empty.yaml").write_text("# nothing\n")
    read = given.read([tmp_path / "a.yaml", tmp_path / "b.json", tmp_path / "empty.yaml"])
    assert (read["title"], read["y"], read["seconds"]) == ("Straße 东京", {"a": 1, "b": 2}, 1e-7)


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
        "a pipe": (pipe, "a pipe"),
        "a socket": (inside, "socket"),
        "a device": (Path("/dev/zero"), "device"),
        "a link to itself": (loop, "symbolic links"),
        "a long name": (folder / ("x" * 300), "too long"),
        "a null byte": (Path("a\0b"), "null"),
    }


@pytest.mark.parametrize(
    "kind",
    ["nothing", "a folder", "a pipe", "a socket", "a device", "a link to itself", "a long name", "a null byte"],
)
def test_what_is_no_file(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path, words = not_files(tmp_path)[kind]
    for read in (lambda: given.read([path]), lambda: site.load(path)):
        with pytest.raises(ConfigError) as caught:
            read()
        refused(str(caught.value), "cannot be read", words)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["plan", "--config", "scale"], ["'scale'", "KEY=VALUE"]),
        (["plan", "--config", "=1"], ["'=1'", "KEY=VALUE"]),
        (["plan", "--config", "cpu=[{"], ["--config cpu", "not valid YAML"]),
        (["plan", "--config", "scale=nan"], ["scale", "nan", "finite"]),
        (["plan", "--config", "scale=1e999"], ["scale", "inf", "finite"]),
        (["plan", "--config", "scale=-1"], ["scale", "-1", "more than 0"]),
        (["plan", "--configfile", "absent.yaml"], ["absent.yaml", "No such file"]),
    ],
)
def test_a_wrong_command_line(arguments: list[str], words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(arguments) == 2
    refused(capsys.readouterr().err, *words)


@pytest.mark.parametrize("kind", ["nothing", "a key twice", "an open bracket", "anchors that multiply"])
def test_snakemake_says_it_in_the_same_sentence(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "own.yaml"
    if kind != "nothing":
        path.write_text(str(FILES[kind][0]))
    assert cli.main(["plan", "--configfile", str(path)]) == 2
    sentence = capsys.readouterr().err.removeprefix("peakmark: ").strip()
    argv = [sys.executable, "-m", "snakemake", "--profile", "local", "-n", "--configfile", str(path)]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode != 0
    assert done.stderr.splitlines()[1:] == [f"Error: {sentence}"], "the first line names the profile"


def test_snakemake_without_the_profile_loses_nothing_in_silence(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text("cpu: [{workloads: [DP], concurrency: [1]}]\ncpu: [{workloads: [SP], concurrency: [1]}]\n")
    argv = [sys.executable, "-m", "snakemake", "-c1", "-n", "--configfile", str(path)]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode != 0
    assert "own.yaml, line 2: the key 'cpu' stands in line 1 already" in done.stdout + done.stderr
