"""Fixtures that several tests of this folder share."""

from __future__ import annotations

import pytest
from tests.unit.workflow.slurm_site import Site


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Site:
    return Site(monkeypatch)
