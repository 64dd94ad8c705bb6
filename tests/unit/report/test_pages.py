"""How the report's pages are filled: each is drawn small, and looked at."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.unit import pdf
from tests.unit.tables.test_presets import small_campaign

from peakmark.report import pdf_report

DPI = 20
TOP_MM, END_MM = 16, 282  # as in reports/template
PALE = 200
LEAST = 0.5
MOST = {"sweep": 8, "full": 13}  # pages


def _filled(drawn: Path, folder: Path) -> list[float]:
    """Of each page the share of its height that is used: from the top margin to the lowest ink
    above the footer.
    """
    if shutil.which("pdftoppm") is None:
        pytest.skip("pdftoppm (poppler-utils) is not installed")
    subprocess.run(
        ["pdftoppm", "-r", str(DPI), "-gray", str(drawn), str(folder / "page")], check=True
    )
    shares = []
    for page in sorted(folder.glob("page-*.pgm")):
        header, _, pixels = page.read_bytes().partition(b"\n255\n")
        width, height = map(int, header.split()[1:3])
        assert height > width
        lines = [
            pixels[start : start + width]
            for start in range(0, width * int(END_MM * DPI / 25.4), width)
        ]
        lowest = max(number for number, line in enumerate(lines) if min(line) < PALE)
        shares.append((lowest * 25.4 / DPI - TOP_MM) / (END_MM - TOP_MM))
    return shares


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of the longest preset, whose tables take several pages."""
    folder = small_campaign(tmp_path_factory.mktemp("results"), "full")
    return pdf_report.build(folder)


def test_no_page_but_the_last_stays_half_empty(swept: Path, tmp_path: Path) -> None:
    shares = _filled(swept / "report.pdf", tmp_path)
    assert 4 < len(shares) <= MOST["sweep"], "the report grows"
    assert min(shares[:-1]) > LEAST, [f"{share:.2f}" for share in shares]


def test_no_page_of_a_long_report_stays_half_empty(long: Path, tmp_path: Path) -> None:
    shares = _filled(long, tmp_path)
    assert 10 < len(shares) <= MOST["full"], "the report grows"
    assert min(shares[:-1]) > LEAST, [f"{share:.2f}" for share in shares]


def test_no_word_is_drawn_over_another(swept: Path, long: Path) -> None:
    assert pdf.overlaps(swept / "report.pdf") == pdf.overlaps(long) == []


def test_a_caption_stands_with_its_table(long: Path) -> None:
    for page in pdf.text(long).split("\f"):
        lines = [line for line in page.splitlines() if line.strip()][
            :-1
        ]  # the last one is the footer
        assert not any(re.match(r" *Table \d+: ", line) for line in lines[-2:]), lines[-2:]
