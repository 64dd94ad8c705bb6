"""`peakmark run`, `init`, `compare --interleave`: what is started, what is refused, what stays."""

import os
from pathlib import Path

import pytest
import yaml
from tests.checkout import TINY
from tests.unit.hostile import refused

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
    ("run --site hyperion -- --config seed=2",
     ["--profile", PROFILE, "--config", "seed=2", "--config", "seed=2", HYPERION]),
]  # fmt: skip


@pytest.mark.parametrize(("words", "expected"), CASES)
def test_run_starts_snakemake(words, expected, tmp_path, monkeypatch):
    (tmp_path / "mine").touch()
    monkeypatch.chdir(tmp_path)
    started = []
    monkeypatch.setattr(os, "execv", lambda _, argv: started.append(argv))
    assert cli.main(words.split()) == 0
    (argv,) = started
    assert argv[1:] == ["-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), *expected]


@pytest.mark.parametrize("command", ["run", "plan"])
def test_an_unknown_preset_is_told(command, capsys):
    assert cli.main([command, "quickest"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "'quickest'" in line and "quick," in line


def test_init_writes_what_is_missing_only(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config, site = Path("config/config.yaml"), Path("config/sites/mine.yaml")
    config.parent.mkdir()
    config.write_text("of the user")
    assert cli.main(["init"]) == 0
    assert config.read_text() == "of the user"
    assert site.read_text() == (ROOT / "config/sites/example.yaml").read_text()


IN_A_JOB = "srun --exclusive --nodes=1"
ONE_ROW = {"memory": [], "disk": [], "network": []}


@pytest.mark.parametrize(("values", "words"), [
    ({**ONE_ROW, "cpu": [{"workloads": ["HP"], "concurrency": [1]}]}, "no cell in common"),
    ({"nodes": ["n1", "n2"]}, IN_A_JOB),
    ({"nodes": "all"}, IN_A_JOB),
    ({"nodes": "another-host"}, IN_A_JOB),
    ({"site": "cluster.yaml"}, "and this is no job"),
])  # fmt: skip
def test_what_has_no_turn_is_one_sentence(values, words, tmp_path, monkeypatch, peakmark):
    monkeypatch.chdir(tmp_path)
    site = {"schema": 1, "name": "here", "slurm": {"partition": "main"}}
    for name, content in (("a", TINY), ("b", values), ("cluster", site)):
        Path(f"{name}.yaml").write_text(yaml.safe_dump(content))
    done = peakmark("compare", "--interleave", "a.yaml", "b.yaml")
    assert done.returncode == 2 and not Path("results").exists()
    refused(done.stderr, words)
