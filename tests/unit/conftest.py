"""What several test files share because it takes seconds to make."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit import campaign_data as make

from peakmark.figures import figures
from peakmark.reporting import report


@pytest.fixture(scope="session")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole campaign with every figure and its report; tests must not change it."""
    config = {"report": {"title": "Limits", "author": "Jane Dœ", "course": "CS 553", "language": "de"}}
    folder = make.write(tmp_path_factory.mktemp("results") / "sweep", make.sweep(), config=config)
    figures.build(folder)
    report.build(folder)
    return folder
