"""What several test files share because it takes seconds to make."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest
from tests.unit import campaign_data as make

from peakmark.figures import figures
from peakmark.reporting import report


@pytest.fixture(scope="session")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole campaign with every figure and its report, made once for all processes; tests must not change it."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "sweep"
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "report.pdf").exists():
            config = {"report": {"title": "Limits", "author": "Jane Dœ", "course": "CS 553", "date_language": "de"}}
            make.write(folder, make.sweep(), config=config)
            figures.build(folder)
            report.build(folder)
    return folder
