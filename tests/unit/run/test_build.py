"""Whether the kernels are those of the sources, as make leaves them."""

from __future__ import annotations

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
    """A copy of the kernels' sources beside what make has made of them, so that little is left to
    compile.
    """
    for name in ("src/kernels", "build/kernels"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns(*OTHER_BUILDS))
    shutil.copytree(
        ROOT / "src/peakmark",
        tmp_path / "src/peakmark",
        ignore=lambda _, names: {*names} - {"__init__.py"},
    )
    _make(tmp_path / "src/kernels")
    return tmp_path / "src/kernels"


def _make(sources: Path) -> None:
    done = subprocess.run(["make", "-C", str(sources)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def _is_up_to_date(sources: Path) -> bool:
    return build.up_to_date(sources, sources.parents[1] / "build/kernels")


@pytest.mark.parametrize("name", ["net/plan.c", "net/plan.h", "cppcheck.cfg"])
def test_what_make_calls_up_to_date_is(sources: Path, name: str) -> None:
    """Also where a newer source, as after git pull, belongs to one program or to none."""
    assert _is_up_to_date(sources)
    newest = max(
        path.stat().st_mtime_ns for path in (sources.parents[1] / "build/kernels").iterdir()
    )
    os.utime(sources / name, ns=(newest + 1, newest + 1))
    assert not _is_up_to_date(sources)
    _make(sources)
    assert _is_up_to_date(sources)


def test_a_missing_program_is_not_up_to_date(sources: Path) -> None:
    (sources.parents[1] / "build/kernels/netbench").unlink()
    assert not _is_up_to_date(sources)
    _make(sources)
    assert _is_up_to_date(sources)
