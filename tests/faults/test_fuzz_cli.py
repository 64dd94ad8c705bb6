"""A small part of ``make fuzz-cli``: each kind of hostile input, a few times."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.faults import fuzz_cli, hostile_kinds

from peakmark.resources import ROOT

COUNT = 28


def test_hostile_input_ends_in_a_sentence_or_a_result() -> None:
    argv = [sys.executable, "-m", "tests.faults.fuzz_cli", "--seed", "5", "--count", str(COUNT)]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{COUNT} inputs, 0 failed" in done.stdout


NOTES = hostile_kinds.PRECIOUS / "notes.txt"
WRONG = {
    "a traceback": ("print('Traceback')", "traceback"),
    "a crash": ("import faulthandler, os; faulthandler.disable(); os.abort()", "ended with -6"),
    "advice to delete": ("print('Delete it')", "delete"),
    "a file of others": (f"open('{NOTES}', 'a').write('x')", "files of others"),
    "what a terminal obeys": ("print(chr(27))", "terminal"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_the_judge_sees_what_is_wrong(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = tmp_path / "base"
    hostile_kinds.prepare(base)
    code, words = WRONG[kind]
    monkeypatch.setattr(fuzz_cli.cli, "main", lambda _: exec(code) or 0)  # noqa: S102
    status = lambda *_: hostile_kinds.Input(["status"])  # noqa: E731
    wrong, _, _ = fuzz_cli.one(base, tmp_path / "place", "1", status)
    assert len(wrong) == 1 and words in wrong[0]
