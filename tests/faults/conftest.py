"""Every test has a bench of its own; mounts are made in a namespace that ends with the tests."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests import mounts

sys.path.insert(0, str(Path(__file__).resolve().parent))

from bench import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture(scope="session")
def private_mounts() -> None:
    """From here on, what this process mounts is seen by itself and its children only."""
    if reason := mounts.take():
        pytest.skip(reason)


@pytest.fixture
def mount(private_mounts: None) -> Iterator[Callable[..., None]]:
    """Mount something at a folder until the test is over: ``mount(folder, "tmpfs", "size=8m")``."""
    mounted: list[Path] = []

    def do(folder: Path, kind: str, options: str, device: str = "none") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        words = ["mount", "-t", kind, "-o", options, device, str(folder)]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"this kernel cannot mount {kind} with {options}: {done.stderr.strip()}")
        mounted.append(folder)

    yield do
    for folder in reversed(mounted):
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
