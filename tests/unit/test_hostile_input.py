"""What users write, wrongly: refused in one sentence before anything runs."""

import subprocess
import sys

import pytest
from tests.unit.cases import cases, tables
from tests.unit.hostile import in_time, refused, refuses

from peakmark.config import campaign, layouts, site
from peakmark.resources import ROOT

READERS = {
    "configuration": lambda path: campaign.read([path]),
    "site": site.load,
    "layout": lambda path: layouts.load(str(path)),
    "command line": lambda path: campaign.check_command_line(
        ["--profile", "local", "--configfile", str(path), "-n"]
    ),
}


@pytest.mark.parametrize(("content", "words"), [
    *tables("configuration")["broken_yaml"][1:],
    (b"\0\0\0\0", ["not valid YAML"]),
    ("title: Stra\xdfe\n".encode("latin-1"), ["UTF-8"]),
    ("cpu: []\n".encode("utf-16"), ["UTF-8"]),
], ids=lambda value: str(value)[:20])  # fmt: skip
@pytest.mark.parametrize("reader", READERS)
def test_a_broken_file(reader, content, words, tmp_path):
    path = tmp_path / "own.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with in_time():
        refuses(lambda: READERS[reader](path), "own.yaml", *words)


@cases("configuration")
def test_a_value_that_is_none(text, words, tmp_path):
    path = tmp_path / "own.yaml"
    path.write_text(text)
    refuses(lambda: campaign.complete(campaign.read([path])), *words)


@cases("configuration")
def test_a_wrong_command_line(arguments, words, peakmark):
    done = peakmark(*arguments.split())
    assert done.returncode == 2
    refused(done.stderr, *words)


LOCAL = ["--profile", "local"]


@pytest.mark.parametrize(("content", "words"), [
    ("campaign: x\ncpu: [\n", LOCAL), ("repetitions: 0", ["-c1"]),
], ids=["an open bracket", "a wrong value without a profile"])  # fmt: skip
def test_snakemake_says_it_in_the_same_sentence(content, words, tmp_path, peakmark):
    path = tmp_path / "own.yaml"
    path.write_text(content)
    sentence = peakmark("plan", path).stderr.removeprefix("peakmark: ").strip()
    argv = [sys.executable, "-m", "snakemake", *words, "-n", "--configfile", str(path)]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode != 0
    said = done.stdout + done.stderr  # Snakemake's own log of a dry run is on standard output
    lines = [line for line in said.splitlines() if line and not line.startswith("Using ")]
    assert lines == [f"Error: {sentence}"]


BARE = """
import sys
from pathlib import Path
sys.path = [p for p in sys.path if not (Path(p) / "snakemake_logger_plugin_peakmark").is_dir()]
sys.argv[0] = "snakemake"
from snakemake.cli import main
main()
"""
"""Snakemake as in an environment that lacks peakmark."""


@pytest.mark.parametrize("words", [
    ["--profile", "slurm"], ["--cores", "1", "-s", "workflow/Snakefile"],
], ids=" ".join)  # fmt: skip
def test_snakemake_without_the_package_says_what_is_missing(words):
    argv = [sys.executable, "-c", BARE, *words]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1 and not done.stdout
    lines = [line for line in done.stderr.splitlines() if not line.startswith("Using ")]
    assert len(lines) == 1 and "peakmark is not installed" in lines[0] and "make setup" in lines[0]
