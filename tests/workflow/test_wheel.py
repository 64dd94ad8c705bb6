"""What a wheel measures in an empty folder, and that it writes nowhere else."""

import shutil
import tomllib

import pytest
from tests import presets
from tests.checkout import LIMIT_S, ROOT, TINY, TO_TABLES
from tests.wheel import Installation

SHORT = ("--config", "scale=0.02", "repetitions=1", "reference_repetitions=1")
ONE_CELL = {
    **{**TINY, "memory": [], "disk": [], "network": []},
    "cpu": [{"workloads": ["DP"], "concurrency": [1]}],
    "repetitions": 1,
}
MODULE = """
module peakmark:
    snakefile: "{}/Snakefile"
    config: {}
use rule * from peakmark
onstart:
    peakmark.onstart()
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    return Installation.make(tmp_path_factory.mktemp("a user"))  # paths reach no shell unquoted


def files(folder):
    """Path of each file -> when it was changed."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def test_a_wheel_measures_in_an_empty_folder(installed):
    config = installed.write_config("mine.yaml", ONE_CELL)
    before = files(installed.environment)
    kernels = {"PEAKMARK_KERNELS": str(ROOT / "build/kernels")}
    done = installed.peakmark("run", config.name, "--", *TO_TABLES, env=kernels)
    assert done.returncode == 0, done.stderr
    assert (installed.directory / "results/tiny/tables/cpu.csv").is_file()
    assert files(installed.environment) == before
    assert {path.name for path in installed.home.glob(".cache/*")} <= {"peakmark"}


@pytest.mark.packages
def test_the_first_run_compiles_and_writes_nothing_outside(tmp_path):
    """From the shipped preset to the report; the next folder finds the kernels compiled."""
    installed = Installation.make(tmp_path / "a user")
    before = files(installed.environment)
    assert installed.peakmark("doctor").returncode == 0
    done = installed.peakmark("run", "quick", "--", *SHORT, limit_s=3 * LIMIT_S)
    assert done.returncode == 0, done.stderr
    results = installed.directory / "results" / "quick"
    presets.assert_whole(results, installed.records("quick"))
    assert files(installed.environment) == before
    assert [path.name for path in installed.home.iterdir()] == [".cache"]
    assert [path.name for path in installed.home.glob(".cache/*")] == ["peakmark"]
    folders = {path.name for path in (tmp_path / "a user").iterdir() if path.is_dir()}
    assert folders == {"environment", "home", "work"}  # what measured the disk is gone

    compiled = files(installed.home / ".cache" / "peakmark")
    installed.directory = tmp_path / "next"
    installed.directory.mkdir()
    module = MODULE.format(installed.packages / "peakmark/checkout", ONE_CELL)
    (installed.directory / "Snakefile").write_text(module)
    argv = [str(installed.environment / "bin/python"), "-m", "snakemake", "--cores", "all"]
    done = installed.run(*argv)
    assert done.returncode == 0, done.stderr
    assert (installed.directory / "results/tiny/report.pdf").is_file()
    assert compiled.items() <= files(installed.home / ".cache" / "peakmark").items()


def lowest():
    """The lowest version of each dependency that pyproject.toml allows, as pip's requirements."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return [word.replace(">=", "==") for word in project["dependencies"]]


@pytest.mark.packages
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "lowest"])
def test_what_pip_resolves_measures_to_the_report(version, tmp_path):
    python = shutil.which(f"python{'3.11' if version == 'lowest' else version}")
    if python is None:
        pytest.skip(f"no python{version} on PATH")
    constraints = lowest() if version == "lowest" else []
    installed = Installation.resolved(tmp_path, python, *constraints)
    config = installed.write_config("tiny.yaml", TINY)
    done = installed.peakmark("run", config.name, limit_s=3 * LIMIT_S)
    assert done.returncode == 0, done.stderr
    assert (installed.directory / "results/tiny/report.pdf").is_file()
