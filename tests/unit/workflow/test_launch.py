"""`peakmark run` ends with peakmark's exit codes, whatever Snakemake's are."""

import subprocess
import sys

import pytest
import snakemake.cli

from peakmark import cli
from peakmark.errors import ConfigError, PeakmarkError
from peakmark.resources import command
from peakmark.run import cleanup
from peakmark.workflow import startup
from peakmark.workflow.startup import as_workflow_error

SMALL = "campaign: small\ncpu: [{workloads: [DP], concurrency: [1]}]\n"


@pytest.mark.parametrize(("text", "words", "code"), [
    (SMALL, ["-n"], 0), ("repetitions: none\n", ["-n"], 2), (SMALL, ["--no-such-option"], 2),
    (SMALL, ["-n", "no-such-target"], 4),
])  # fmt: skip
def test_a_run_ends_with_its_own_exit_codes(text, words, code, tmp_path):
    (tmp_path / "own.yaml").write_text(text)
    argv = command("run", "own.yaml", "--", *words)
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("error", "code"), [
    (None, 0), (PeakmarkError("a job failed"), 4), (ConfigError("a wrong key"), 2),
    (OSError(28, "No space left on device"), 4),
])  # fmt: skip
def test_the_reason_of_a_failure_decides(error, code, monkeypatch):
    def fail():
        raise error

    def main():
        if error:
            with pytest.raises(startup.UserError):
                as_workflow_error(fail)
        raise SystemExit(1 if error else 0)

    monkeypatch.setattr(snakemake.cli, "main", main)
    monkeypatch.setattr(sys, "argv", [])
    monkeypatch.setattr(startup.UserError, "exit_code", 4)
    assert cli.main(["run"]) == code


def test_a_run_that_was_interrupted_ends_as_every_command(monkeypatch):
    def main():
        raise SystemExit(1)

    monkeypatch.setattr(snakemake.cli, "main", main)
    monkeypatch.setattr(sys, "argv", [])
    monkeypatch.setattr(cleanup, "pressed", True)
    assert cli.main(["run"]) == 130
