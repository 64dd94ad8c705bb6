"""What a PDF says, for the tests that look into one."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

_WORD = re.compile(
    r'<word xMin="([\d.]+)" yMin="([\d.]+)" xMax="([\d.]+)" yMax="([\d.]+)">([^<]*)</word>'
)


def text(pdf: Path) -> str:
    """All texts in the places where they stand; a form feed ends a page."""
    if shutil.which("pdftotext") is None:
        pytest.skip("pdftotext (poppler-utils) is not installed")
    done = subprocess.run(
        ["pdftotext", "-layout", str(pdf), "-"], capture_output=True, text=True, check=True
    )
    return done.stdout


def overlaps(pdf: Path, slack: float = 0.5) -> list[tuple[int, str, str]]:
    """Pairs of words that are drawn over each other by more than ``slack`` points, with their page
    from 1.
    """
    if shutil.which("pdftotext") is None:
        pytest.skip("pdftotext (poppler-utils) is not installed")
    done = subprocess.run(
        ["pdftotext", "-bbox", str(pdf), "-"], capture_output=True, text=True, check=True
    )
    found = []
    for number, page in enumerate(done.stdout.split("<page ")[1:], 1):
        words = [(*map(float, box), word) for *box, word in _WORD.findall(page)]
        for at, (left, top, right, bottom, word) in enumerate(words):
            for other in words[at + 1 :]:
                across = min(right, other[2]) - max(left, other[0])
                if across > slack and min(bottom, other[3]) - max(top, other[1]) > 6 * slack:
                    found.append((number, word, other[4]))
    return found
