"""Whether the kernels are those of the sources, as make leaves them."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.checkout import OTHER_BUILDS

from peakmark.resources import ROOT
from peakmark.run import build


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A copy of the kernels' sources beside what make has made of them."""
    for name in ("src/kernels", "build/kernels"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns(*OTHER_BUILDS))
    (tmp_path / "src/peakmark").mkdir()
    shutil.copy(ROOT / "src/peakmark/__init__.py", tmp_path / "src/peakmark")
    _make(tmp_path / "src/kernels")
    return tmp_path / "src/kernels"


def _make(sources: Path) -> None:
    done = subprocess.run(["make", "-C", str(sources)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["net/plan.c", "net/plan.h", "cppcheck.cfg", "netbench"])
def test_what_make_calls_up_to_date_is(sources: Path, name: str) -> None:
    """Also where a newer source belongs to one program or to none, or a program is missing."""
    built = sources.parents[1] / "build/kernels"
    assert build.up_to_date(sources, built)
    newest = max(path.stat().st_mtime_ns for path in built.iterdir())
    if name == "netbench":
        (built / name).unlink()
    else:
        os.utime(sources / name, ns=(newest + 1, newest + 1))
    assert not build.up_to_date(sources, built)
    _make(sources)
    assert build.up_to_date(sources, built)
