"""What `make test` says at its end: real closing lines of pytest and of a test in C."""

from __future__ import annotations

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
    words = [sys.executable, "-m", "pytest", "-ra", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert parts.skipped(done.stdout) == Counter({"no such device: sda": 2, "no such CPU": 1})


def test_a_test_in_c_says_its_reason_in_the_same_form(tmp_path: Path) -> None:
    (tmp_path / "it.c").write_text(TEST_IN_C)
    program = tmp_path / "it"
    words = ["gcc", "-DPLAIN_CHECKS", f"-I{ROOT}/tests/kernels", "-o", str(program), str(tmp_path / "it.c")]
    subprocess.run(words, check=True)
    done = subprocess.run([program], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert parts.skipped(done.stdout) == Counter({"the cache has 300 MiB": 1})


def test_the_end_tells_times_failures_and_what_was_skipped() -> None:
    seen = [
        parts.Part("lint", 0, 3.2, Counter()),
        parts.Part("test-unit", 1, 61.0, Counter({"no AMX": 2, "no disk": 1})),
    ]
    assert parts.told(seen).splitlines() == [
        "lint               3 s",
        "test-unit         61 s  FAILED",
        "all               64 s",
        "skipped here: 3 tests: 2 x no AMX; 1 x no disk",
    ]


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
