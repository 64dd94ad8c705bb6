"""The kernels of gpubench as PTX: assembled for every generation of GPUs."""

import stat
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "src" / "kernels" / "gpu"
CHIPS = ("75", "80", "86", "89", "90a", "100a", "120a")
"""Compute capabilities without the point; the a is of instructions that later chips lack."""


def target(module):
    """Return the number and the suffix of the oldest chip that a module is for."""
    text = module.read_text().partition(".target sm_")[2].split()[0]
    return int(text.rstrip("a")), text.endswith("a")


@pytest.fixture(scope="module")
def ptxas():
    try:
        files = metadata.files("nvidia-cuda-nvcc") or []
    except metadata.PackageNotFoundError:
        pytest.skip("the package nvidia-cuda-nvcc, which holds ptxas, is not installed")
    path = next(Path(file.locate()) for file in files if file.name == "ptxas")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.mark.parametrize("chip", CHIPS)
def test_every_module_is_assembled_for_the_chips_that_it_is_for(ptxas, chip, tmp_path):
    number = int(chip.rstrip("a"))
    assembled = 0
    subprocess.run([sys.executable, FOLDER / "ptx.py", tmp_path], check=True)
    for module in sorted([*FOLDER.glob("*.ptx"), *tmp_path.glob("*.ptx")]):
        oldest, only_there = target(module)
        if oldest > number or (only_there and oldest != number):
            continue
        argv = [
            ptxas,
            f"--gpu-name=sm_{chip}",
            "--warning-as-error",
            module,
            "-o",
            tmp_path / "code",
        ]
        done = subprocess.run(argv, capture_output=True, text=True)
        assert done.returncode == 0, f"{module.name}: {done.stderr}"
        assembled += 1
    assert assembled >= 8
