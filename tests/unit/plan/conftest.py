"""Plans in a folder that holds no campaign."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from tests.unit.plan.planned import made

from peakmark.plan.plan import Plan


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Plan]:
    """A plan on a cluster, from keys of a configuration."""
    return partial(made, tmp_path, monkeypatch)
