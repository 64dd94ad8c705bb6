"""What `make test` says at its end: real closing lines of pytest and of a test in C."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from tests import parts

ROOT = Path(__file__).parents[2]
TEST = """
import pytest

@pytest.mark.parametrize("number", [1, 2])
def test_one(number):
    pytest.skip("no such device: sda")

@pytest.mark.skipif(True, reason="no such CPU")
def test_two():
    pass

def test_three():
    pass
"""
TEST_IN_C = """
#include "check.h"
static void one(void **state) { (void)state; skip_because("the cache has %d MiB", 300); }
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(one)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
"""


def test_tests_that_were_skipped_are_counted_by_their_reason(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TEST)
    words = [
        sys.executable,
        "-m",
        "pytest",
        "-ra",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
        str(tmp_path),
    ]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert parts.skipped(done.stdout) == Counter({"no such device: sda": 2, "no such CPU": 1})


def test_a_test_in_c_says_its_reason_in_the_same_form(tmp_path: Path) -> None:
    (tmp_path / "it.c").write_text(TEST_IN_C)
    program = tmp_path / "it"
    words = [
        "gcc",
        "-DPLAIN_CHECKS",
        f"-I{ROOT}/tests/kernels",
        "-o",
        str(program),
        str(tmp_path / "it.c"),
    ]
    subprocess.run(words, check=True)
    done = subprocess.run([program], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert parts.skipped(done.stdout) == Counter({"the cache has 300 MiB": 1})


def test_the_end_tells_times_failures_and_what_was_skipped() -> None:
    seen = [
        parts.Part("lint", 0, 3.2, Counter()),
        parts.Part("test-unit", 1, 61.0, Counter({"no AMX": 2, "no disk": 1})),
    ]
    assert parts.told(seen, 61.4).splitlines() == [
        "lint               3 s",
        "test-unit         61 s  FAILED",
        "all               61 s",
        "skipped here: 3 tests: 2 x no AMX; 1 x no disk",
    ]


MAKEFILE = """
lint: ; @echo words of lint; until [ -e going ]; do sleep 0.02; done
test-unit: ; @echo words of unit; exit $(UNIT)
test-kernels: ; @echo words of kernels
test-cluster: ; @echo words of cluster; touch going; until [ -e build/tests/test-unit$(LOG).log ]; do sleep 0.02; done
test-faults: ; @echo words of faults
"""
PARTS = ["lint", "test-unit", "test-kernels", "test-cluster", "test-faults"]


@pytest.fixture
def makefile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts that end only if others run beside them, as two CPUs allow it."""
    (tmp_path / "Makefile").write_text(MAKEFILE)
    monkeypatch.setattr(parts, "ROOT", tmp_path)
    monkeypatch.setattr(parts, "LOGS", tmp_path / "build" / "tests")
    monkeypatch.setattr(parts.os, "sched_getaffinity", lambda _: {0, 1})
    for name, value in (("MAKE", "make"), ("MAKEFLAGS", ""), ("UNIT", "0"), ("LOG", "")):
        monkeypatch.setenv(name, value)


def test_what_waits_runs_beside_the_others_and_its_words_are_whole(
    makefile: None, capfd: pytest.CaptureFixture[str]
) -> None:
    assert parts.main(PARTS) == 0
    said = capfd.readouterr().out.splitlines()
    for name in ("cluster", "faults"):
        first = said.index(f"== test-{name} said:")
        assert said[first + 1] == f"words of {name}"
        assert said[first + 2].startswith(f"== test-{name}: ")
    shown = [line for line in said if line.startswith("words of ")]
    assert [line for line in shown if line.split()[-1] not in ("cluster", "faults")] == [
        "words of lint",
        "words of unit",
        "words of kernels",
    ]
    assert {line.split()[0] for line in said[-7:-2]} == set(PARTS)


def test_after_a_failure_no_part_begins_and_what_runs_is_still_told(
    makefile: None, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNIT", "3")
    assert parts.main(PARTS) == 1
    said = capfd.readouterr().out
    assert "words of kernels" not in said
    assert "== test-cluster said:" in said
    assert re.search(r"^test-unit +[0-9]+ s  FAILED$", said, re.MULTILINE)


def test_many_rounds_go_on_after_a_failure(
    makefile: None, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNIT", "3")
    assert parts.main(["--times", "2", "test-unit", "test-kernels"]) == 1
    said = capfd.readouterr().out
    assert said.count("words of kernels") == 2
    assert "passed: 2 of 4" in said


def test_on_one_cpu_everything_runs_in_order(
    makefile: None,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(parts.os, "sched_getaffinity", lambda _: {0})
    (tmp_path / "going").touch()
    assert parts.main(PARTS) == 0
    said = [
        line.split()[-1]
        for line in capfd.readouterr().out.splitlines()
        if line.startswith("words of ")
    ]
    assert said == ["lint", "unit", "kernels", "cluster", "faults"]


def test_busy_processes_end_with_the_block() -> None:
    def children() -> int:
        return len(Path(f"/proc/self/task/{threads[0].name}/children").read_text().split())

    threads = list(Path("/proc/self/task").iterdir())
    if not Path(f"/proc/self/task/{threads[0].name}/children").exists():
        pytest.skip("this kernel does not list a process's children")
    before = children()
    with parts.busy(2):
        assert children() == before + 2
    assert children() == before
