"""Tables and report are made anew when what makes them has changed, and only then."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from peakmark.report import makers
from peakmark.resources import ROOT

SECTION = {"logo": None, "tables": "file-io-lab", "published": ["file-io-lab"]}
OTHER = "disk-patterns-2020"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for folder in ("src/peakmark", "reports"):
        shutil.copytree(
            ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__")
        )
    return tmp_path


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("src/peakmark/tables/tables.py", True),
        ("src/peakmark/analysis/checks.py", True),
        ("src/peakmark/data/memory.csv", True),
        ("reports/layouts/file-io-lab.yaml", True),
        ("reports/published/file-io-lab.csv", True),
        ("src/peakmark/figures/style.py", True),
        ("src/peakmark/report/html_report.py", True),
        ("reports/template/main.typ", True),
        ("reports/captions.yaml", True),
        ("reports/html/report.css", True),
        ("src/peakmark/run/measure.py", False),
        (f"reports/layouts/{OTHER}.yaml", False),
        (f"reports/published/{OTHER}.csv", False),
    ],
)
def test_what_makes_them_is_in_the_digest(checkout: Path, name: str, counts: bool) -> None:
    before = makers.digest(SECTION, checkout)
    (checkout / name).write_text((checkout / name).read_text() + "\n")
    after = makers.digest(SECTION, checkout)
    assert (before != after) == counts


def test_files_of_the_users_own_count_too_and_a_moved_checkout_does_not(
    checkout: Path, tmp_path: Path
) -> None:
    logo = tmp_path / "logo.svg"
    section = {**SECTION, "logo": str(logo)}
    found = set()
    for text in ("<svg/>", "<svg></svg>"):
        logo.write_text(text)
        found.add(makers.digest(section, checkout))
    assert len(found) == 2
    moved = shutil.copytree(checkout / "src", tmp_path / "moved" / "src").parent
    shutil.copytree(checkout / "reports", moved / "reports")
    assert makers.digest(SECTION, moved) == makers.digest(SECTION, checkout)
