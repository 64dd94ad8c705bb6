"""The package stays small: each folder has a ceiling, which is lowered when code goes.

A new warning, figure, sentence, key or command replaces one.
"""

import ast

import pytest

from peakmark.resources import ROOT

PACKAGE = ROOT / "src" / "peakmark"
CEILINGS = {
    "": 9_590,
    "check": 2_150,
    "config": 5_200,
    "data": 330,
    "limits": 5_720,
    "machine": 9_190,
    "plan": 8_370,
    "rows": 23_600,
    "slurm": 4_610,
    "run": 11_170,
    "storage": 2_940,
    "tools": 16_740,
    "views": 26_670,
    "workflow": 6_010,
}
"""Folder of the package -> most expressions and statements in it; "" for the modules of the package itself."""


def nodes(folder):
    """The number of expressions and statements in a folder and below it, or in the package itself."""
    files = (PACKAGE / folder).rglob("*.py") if folder else PACKAGE.glob("*.py")
    trees = [ast.parse(path.read_text()) for path in files]
    return sum(isinstance(node, ast.expr | ast.stmt) for tree in trees for node in ast.walk(tree))


@pytest.mark.parametrize("folder", CEILINGS)
def test_a_folder_stays_below_its_ceiling(folder):
    assert nodes(folder) <= CEILINGS[folder]


def test_every_folder_has_a_ceiling():
    folders = {path.parent.relative_to(PACKAGE).parts[:1] for path in PACKAGE.rglob("*.py")}
    assert {"".join(parts) for parts in folders} == set(CEILINGS)
