"""`peakmark run` and `init`: what Snakemake is started with, and files that are there already."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from peakmark import cli
from peakmark.resources import ROOT

PROFILE, QUICK = str(ROOT / "local"), str(ROOT / "config/presets/quick.yaml")
HYPERION = f"site={ROOT / 'config/sites/hyperion.yaml'}"
CASES = [
    ("run", ["--profile", PROFILE]),
    ("run --slurm -- -n", ["--profile", str(ROOT / "slurm"), "-n"]),
    ("run quick -- --until x", ["--configfile", QUICK, "--profile", PROFILE, "--until", "x"]),
    ("run mine -- -n", ["--configfile", "mine", "--profile", PROFILE, "-n"]),
    ("run quick mine", ["--configfile", QUICK, "mine", "--profile", PROFILE]),
    ("run --site hyperion", ["--profile", PROFILE, "--config", HYPERION]),
    (
        "run --site hyperion -- --config seed=2",
        ["--profile", PROFILE, "--config", "seed=2", "--config", "seed=2", HYPERION],
    ),
]


@pytest.mark.parametrize(("words", "expected"), CASES)
def test_run_starts_snakemake(
    words: str, expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine").touch()
    monkeypatch.chdir(tmp_path)
    started: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda _, argv: started.append(argv))
    assert cli.main(words.split()) == 0
    (argv,) = started
    assert argv[1:] == ["-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), *expected]


@pytest.mark.parametrize("command", ["run", "plan"])
def test_an_unknown_preset_is_told(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([command, "quickest"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "'quickest'" in line and "quick," in line


def test_init_writes_what_is_missing_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config, site = Path("config/config.yaml"), Path("config/sites/mine.yaml")
    config.parent.mkdir()
    config.write_text("of the user")
    assert cli.main(["init"]) == 0
    assert config.read_text() == "of the user"
    assert site.read_text() == (ROOT / "config/sites/example.yaml").read_text()
