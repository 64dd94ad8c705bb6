"""docs/performance.md: a short table for each CPU, with the numbers of the long ones beside it."""

import csv
import re

import pytest

from peakmark.resources import ROOT

FOLDER = ROOT / "docs"
SECTIONS = re.split(r"^## Figures: ", (FOLDER / "performance.md").read_text(), flags=re.MULTILINE)[
    1:
]
SHORT = 30


def lines(text: str) -> list[list[str]]:
    """The cells of the lines of all tables with a ratio to something."""
    found: list[list[str]] = []
    for table in re.findall(r"^\| row \| against .*\n\|[-|: ]+\n((?:\|.*\n)+)", text, re.MULTILINE):
        found += [
            [cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines()
        ]
    return found


@pytest.mark.parametrize("text", SECTIONS, ids=lambda text: text.partition("\n")[0])
def test_the_figures_of_a_cpu_are_short_and_those_of_the_files_beside_them(text: str) -> None:
    named = [FOLDER / name for name in re.findall(r"\]\((performance/[\w-]+\.csv)\)", text)]
    beside = [row for path in named for row in csv.DictReader(path.read_text().splitlines())]
    there = {(row["row"], row["against"], row["ratio"]) for row in beside if "row" in row}
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert len(table.splitlines()) <= SHORT
    shown = lines(text)
    assert 10 < len(shown) < len(beside)
    assert not [cells for cells in shown if (cells[0], cells[1], cells[4]) not in there]


def test_one_of_the_cpus_has_avx512() -> None:
    assert len(SECTIONS) > 1 and any("AVX-512" in text.partition("|")[0] for text in SECTIONS)
