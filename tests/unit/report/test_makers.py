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
    ("name", "tables", "report"),
    [
        ("src/peakmark/tables/tables.py", True, True),
        ("src/peakmark/analysis/checks.py", True, True),
        ("src/peakmark/data/memory.csv", True, True),
        ("reports/layouts/file-io-lab.yaml", True, True),
        ("reports/published/file-io-lab.csv", True, True),
        ("src/peakmark/figures/style.py", False, True),
        ("src/peakmark/report/html_report.py", False, True),
        ("reports/template/main.typ", False, True),
        ("reports/captions.yaml", False, True),
        ("reports/html/report.css", False, True),
        ("src/peakmark/run/measure.py", False, False),
        (f"reports/layouts/{OTHER}.yaml", False, False),
        (f"reports/published/{OTHER}.csv", False, False),
    ],
)
def test_what_makes_them_is_in_the_digest(
    checkout: Path, name: str, tables: bool, report: bool
) -> None:
    before = makers.of_tables(SECTION, checkout), makers.of_report(SECTION, checkout)
    (checkout / name).write_text((checkout / name).read_text() + "\n")
    after = makers.of_tables(SECTION, checkout), makers.of_report(SECTION, checkout)
    assert (before[0] != after[0], before[1] != after[1]) == (tables, report)


def test_files_of_the_users_own_count_too_and_a_moved_checkout_does_not(
    checkout: Path, tmp_path: Path
) -> None:
    logo = tmp_path / "logo.svg"
    section = {**SECTION, "logo": str(logo)}
    found = set()
    for text in ("<svg/>", "<svg></svg>"):
        logo.write_text(text)
        found.add(makers.of_report(section, checkout))
    assert len(found) == 2
    moved = shutil.copytree(checkout / "src", tmp_path / "moved" / "src").parent
    shutil.copytree(checkout / "reports", moved / "reports")
    assert makers.of_report(SECTION, moved) == makers.of_report(SECTION, checkout)
