"""Whether the kernels are those of the sources, as make leaves them."""

import os
import shutil
import subprocess

import pytest
from tests.checkout import OTHER_BUILDS
from tests.programs import executable

from peakmark.errors import PeakmarkError
from peakmark.resources import ROOT
from peakmark.run import kernel_build
from peakmark.workflow import startup


@pytest.fixture
def sources(tmp_path):
    """A copy of the kernels' sources beside what make has made of them."""
    for name in ("src/kernels", "build/kernels"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns(*OTHER_BUILDS))
    (tmp_path / "src/peakmark").mkdir()
    shutil.copy(ROOT / "src/peakmark/__init__.py", tmp_path / "src/peakmark")
    _make(tmp_path / "src/kernels")
    return tmp_path / "src/kernels"


def _make(sources):
    done = subprocess.run(["make", "-C", str(sources)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_what_make_calls_up_to_date_is(sources):
    """Also where a newer source belongs to one program or to none, or a program is missing."""
    built = sources.parents[1] / "build/kernels"
    assert kernel_build.up_to_date(sources, built)
    for name in ("net/plan.c", "net/plan.h", "cppcheck.cfg"):
        newest = max(path.stat().st_mtime_ns for path in built.iterdir())
        os.utime(sources / name, ns=(newest + 1, newest + 1))
        assert not kernel_build.up_to_date(sources, built), name
        _make(sources)
        assert kernel_build.up_to_date(sources, built), name
    (built / "netbench").unlink()
    assert not kernel_build.up_to_date(sources, built)
    _make(sources)
    assert kernel_build.up_to_date(sources, built)


def test_of_a_wheel_the_cache_has_kernels_for_each_compiler(tmp_path, monkeypatch):
    """And the processes that a run starts, on nodes without a compiler too, use those of the run."""
    monkeypatch.setattr(kernel_build, "IS_CHECKOUT", False)
    monkeypatch.setattr(kernel_build, "CACHE", tmp_path)

    def key(version):
        executable(tmp_path / "gcc", f"#!/bin/sh\necho {version}\n")
        kernel_build.folder.cache_clear()
        return kernel_build.folder()

    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv(kernel_build.VARIABLE, raising=False)
    first = key("gcc 12")
    assert first.parent == tmp_path
    assert key("gcc 13") == first
    monkeypatch.delenv(kernel_build.VARIABLE)
    assert key("gcc 13") != first
    kernel_build.folder.cache_clear()


@pytest.mark.parametrize("missing", ["make", "gcc"])
def test_what_compiling_lacks_is_one_sentence(missing, tmp_path, monkeypatch):
    programs = tmp_path / "bin"
    startup.check_compiler(tmp_path)
    for name in {"make", "gcc"} - {missing}:
        executable(programs / name, "#!/bin/sh\nexit 1\n")
    monkeypatch.setenv("PATH", str(programs))
    with pytest.raises(PeakmarkError, match=f"{missing} is not here"):
        startup.check_compiler(tmp_path)
