"""A round of pairs: who is ready waits for the others."""

import io
import subprocess
import sys

import pytest

from peakmark.errors import MeasurementError
from peakmark.run import job, pair


def test_a_ready_pair_starts_when_it_is_told(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.StringIO("go\n"))
    job.wait_for_start(None)
    assert capsys.readouterr().out == "ready\n"


def test_a_ready_pair_ends_when_another_one_failed(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    with pytest.raises(MeasurementError, match="did not become ready"):
        job.wait_for_start(None)


@pytest.mark.parametrize(("script", "is_ready"), [
    ("echo welcome; echo ready; cat", True),
    ("echo welcome", False),
    ("exec cat", False),
])  # fmt: skip
def test_readiness_is_a_line_of_its_own(script, is_ready):
    with subprocess.Popen(
        ["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    ) as process:
        assert pair.prints(process, "ready", 0.5) == is_ready
        process.stdin.close()
