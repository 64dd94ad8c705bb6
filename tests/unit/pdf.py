"""What a PDF says, for the tests that look into one."""

import re
import shutil
import subprocess

import pytest

_WORD = re.compile(
    r'<word xMin="([\d.]+)" yMin="([\d.]+)" xMax="([\d.]+)" yMax="([\d.]+)">([^<]*)</word>'
)


def poppler(program, *argv):
    """What a program of poppler prints."""
    if shutil.which(program) is None:
        pytest.skip(f"{program} (poppler-utils) is not installed")
    return subprocess.run([program, *argv], capture_output=True, text=True, check=True).stdout


def text(pdf):
    """All texts in the places where they stand; a form feed ends a page."""
    return poppler("pdftotext", "-layout", pdf, "-")


def overlaps(pdf, slack=0.5):
    """Page, from 1, and pairs of words that are drawn over each other by more than ``slack`` points."""
    found = []
    for number, page in enumerate(poppler("pdftotext", "-bbox", pdf, "-").split("<page ")[1:], 1):
        words = sorted((*map(float, box), word) for *box, word in _WORD.findall(page))
        for at, (_, top, right, bottom, word) in enumerate(words):
            for left, *others, further_right, lower, other in words[at + 1 :]:
                if left >= right - slack:
                    break
                across = min(right, further_right) - left
                if across > slack and min(bottom, lower) - max(top, *others) > 6 * slack:
                    found.append((number, word, other))
    return found
