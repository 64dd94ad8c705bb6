"""Plans in a folder that holds no campaign."""

from functools import partial

import pytest
from tests.unit.plan.planned import made


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def planned(tmp_path, monkeypatch):
    """A plan on a cluster, from keys of a configuration."""
    return partial(made, tmp_path, monkeypatch)
