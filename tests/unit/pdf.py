"""What a PDF says, for the tests that look into one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


def text(pdf: Path) -> str:
    """All texts in the places where they stand; a form feed ends a page."""
    if shutil.which("pdftotext") is None:
        pytest.skip("pdftotext (poppler-utils) is not installed")
    done = subprocess.run(["pdftotext", "-layout", str(pdf), "-"], capture_output=True, text=True, check=True)
    return done.stdout
