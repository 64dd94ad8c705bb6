"""`peakmark run` ends with peakmark's exit codes, whatever Snakemake's are."""

import subprocess

import pytest

from peakmark.resources import command

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
