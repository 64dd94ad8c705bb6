"""docs/performance.md: a short table for each CPU, with the numbers of the long ones beside it."""

import csv
import re

import pytest

from peakmark.resources import ROOT

FOLDER = ROOT / "docs"
SECTIONS = (FOLDER / "performance.md").read_text().split("\n## Figures: ")[1:]
SHORT = 30
COMPARED = re.compile(r"^\| row \| against .*\n\|[-|: ]+\n((?:\|.*\n)+)", re.MULTILINE)
"""The lines of a table with a ratio to something."""


@pytest.mark.parametrize("text", SECTIONS, ids=lambda text: text.partition("\n")[0])
def test_figures_of_a_cpu_are_few_and_those_of_the_files_beside_them(text):
    named = [FOLDER / name for name in re.findall(r"\]\((performance/[\w-]+\.csv)\)", text)]
    beside = [row for path in named for row in csv.DictReader(path.read_text().splitlines())]
    known = {(row["row"], row["against"], row["ratio"]) for row in beside if "row" in row}
    tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert max(len(table.splitlines()) for table in tables) <= SHORT
    shown = [
        line.strip("|").split("|")
        for table in COMPARED.findall(text)
        for line in table.splitlines()
    ]
    assert 10 < len(shown) < len(beside)
    assert {tuple(cells[column].strip() for column in (0, 1, 4)) for cells in shown} <= known
