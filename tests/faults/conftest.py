"""Every test has a bench of its own; mounts are those of the tests' process."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import mounts

sys.path.insert(0, str(Path(__file__).resolve().parent))

from bench import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture
def small_scratch(bench: Bench) -> Iterator[None]:
    """The bench's scratch is a disk of its own with 8 MB."""
    if reason := mounts.take():
        pytest.skip(reason)
    with mounts.tmpfs(bench.scratch, "size=8m"):
        yield
