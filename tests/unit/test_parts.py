"""What `make test` says at its end: real closing lines of pytest and of a test in C."""

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from tests import parts

ROOT = Path(__file__).parents[2]
TEST_IN_C = """
#include "check.h"
static void one(void **state) { (void)state; skip_because("the cache has %d MiB", 300); }
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(one)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
"""


SAID = "SKIPPED [2] test_it.py:6: no device: sda\nSKIPPED [1] test_it.py:9: no such CPU\n"
"""As pytest -ra says it."""


def test_tests_that_were_skipped_are_counted_by_their_reason(tmp_path):
    (tmp_path / "it.c").write_text(TEST_IN_C)
    program = tmp_path / "it"
    words = ["gcc", "-DPLAIN_CHECKS", f"-I{ROOT}/tests/kernels", "-o", str(program)]
    subprocess.run([*words, str(tmp_path / "it.c")], check=True)
    done = subprocess.run([program], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    reasons = {"no device: sda": 2, "no such CPU": 1, "the cache has 300 MiB": 1}
    assert parts.skipped(SAID + done.stdout) == Counter(reasons)


MAKEFILE = """
lint: ; @echo words of lint
test-unit: ; @echo words of unit; until [ -e build/tests/test-workflow.log ]; do sleep 0.02; done
test-kernels: ; @echo words of kernels; until [ -e going -a -e build/tests/test-faults.log ]; do sleep 0.02; done; exit $(KERNELS)
test-workflow: ; @echo words of workflow
test-cluster: ; @echo words of cluster; touch going; until [ -e build/tests/test-kernels.log ]; do sleep 0.02; done
test-faults: ; @echo words of faults
"""
PARTS = ["lint", "test-kernels", "test-workflow", "test-unit", "test-cluster", "test-faults"]


@pytest.fixture
def makefile(tmp_path, monkeypatch):
    """Parts that end only if others run beside them, as two CPUs allow it."""
    (tmp_path / "Makefile").write_text(MAKEFILE)
    monkeypatch.setattr(parts, "ROOT", tmp_path)
    monkeypatch.setattr(parts, "LOGS", tmp_path / "build" / "tests")
    monkeypatch.setattr(parts.os, "sched_getaffinity", lambda _: {0, 1})
    for name, value in (("MAKE", "make"), ("MAKEFLAGS", ""), ("KERNELS", "0")):
        monkeypatch.setenv(name, value)


def test_what_waits_runs_beside_the_others_and_its_words_are_whole(makefile, capfd):
    assert parts.main(PARTS) == 0
    lines = capfd.readouterr().out.splitlines()
    for part in ("lint", "test-workflow", "test-cluster", "test-faults"):
        first = lines.index(f"== {part} said:")
        assert lines[first + 1] == f"words of {part.removeprefix('test-')}"
        assert lines[first + 2].startswith(f"== {part}: ")
    shown = [line.split()[-1] for line in lines if line.startswith("words of ")]
    for first, second in (("kernels", "unit"), ("lint", "workflow")):
        assert shown.index(first) < shown.index(second)
    assert {line.split()[0] for line in lines[-8:-2]} == set(PARTS)


def test_after_a_failure_no_part_begins_and_what_runs_is_still_told(makefile, capfd, monkeypatch):
    monkeypatch.setenv("KERNELS", "3")
    assert parts.main(PARTS) == 1
    text = capfd.readouterr().out
    assert "words of unit" not in text
    assert "== test-cluster said:" in text
    assert re.search(r"^test-kernels +[0-9]+ s  FAILED$", text, re.MULTILINE)
