"""A checkout of one's own for each test, with the compiled kernels of this one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from checkout import LIMIT_S, ROOT, Checkout

OTHERS = ("tests", "address", "thread", "aarch64", "fuzz")
"""What test-kernels leaves beside the kernels: much, and needed by no checkout."""


@pytest.fixture(scope="session")
def kernels() -> Path:
    subprocess.run(["make", "-s", "-C", str(ROOT / "src/kernels"), "-j2"], check=True, timeout=LIMIT_S)
    return ROOT / "build" / "kernels"


@pytest.fixture
def checkout(tmp_path: Path, kernels: Path) -> Checkout:
    directory = tmp_path / "a checkout"  # with a space: paths reach no shell unquoted
    shutil.copytree(
        ROOT,
        directory,
        ignore=lambda _, names: [
            name
            for name in names
            if name in (".git", ".venv", ".snakemake", "results", "build", "__pycache__", "tests", ".mypy_cache")
        ],
    )
    shutil.copytree(kernels, directory / "build" / "kernels", ignore=shutil.ignore_patterns(*OTHERS))
    for source in (directory / "build" / "kernels").iterdir():
        source.touch()
    return Checkout(directory)
