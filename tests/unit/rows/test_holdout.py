"""Changed campaigns are judged as they were, and show every warning that there is.

``tests/unit/data/holdout.csv`` has a checksum of each column of the rows, warnings and verdicts of each
campaign. ``PEAKMARK_GOLDEN=write pytest tests/unit/rows/test_holdout.py`` writes it anew: a change of a
column that you did not mean to change is a fault.
"""

import ast
import csv
import hashlib
import os

import pandas as pd
import pytest
from tests.unit.rows import mutated
from tests.unit.rows.mutated import Campaign

from peakmark.resources import ROOT
from peakmark.rows import build, checks
from peakmark.storage.results import Results

KEPT = ROOT / "tests" / "unit" / "data" / "holdout.csv"
FILES = ("rows", "warnings", "fleet")
GOLDEN = ("local", "two-nodes", "partial", "fleet")
SEEDS = (1, 2)
JUDGES = ("checks", "core_checks", "row_warnings", "row_runs")
"""Modules of ``rows/`` that make warnings."""


def made(folder):
    """Yield name and folder of each changed campaign."""
    for name in GOLDEN:
        for seed in SEEDS:
            campaign = Campaign(name, folder / f"{name}-{seed}")
            mutated.shake(campaign, f"{name} {seed}")
            if seed == SEEDS[-1]:
                mutated.unequal(campaign)
            yield f"{name}-{seed}", campaign.write(folder / f"{name}-{seed}" / "campaign")
    others = {
        "pairs": ("two-nodes", mutated.pairs),
        "energy": ("two-nodes", mutated.energy),
        "slow": ("fleet", mutated.one_slow),
        "spoilt": ("two-nodes", mutated.spoil),
    }
    for name, (golden, change) in others.items():
        campaign = Campaign(golden, folder / name)
        change(campaign)
        yield name, campaign.write(folder / name / "campaign")
        mutated.shake(campaign, name)
        yield f"{name}-shaken", campaign.write(folder / f"{name}-shaken" / "campaign")
    yield "shapes", mutated.shapes(folder / "shapes")
    yield "gpus", mutated.gpus(folder / "gpus")


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """Name of each campaign -> its frames."""
    folder = tmp_path_factory.mktemp("holdout")
    return {name: build.judge(Results.read(path)) for name, path in made(folder)}


def checksums(frame):
    """Return column -> checksum, of numbers with nine digits."""
    found = {}
    for column in frame:
        text = frame[[column]].to_csv(index=False, float_format="%.9g")
        found[column] = hashlib.sha256(text.encode()).hexdigest()[:8]
    return found


def test_changed_campaigns_are_judged_as_they_were(judged):
    now = {}
    for name, frames in judged.items():
        for file in FILES:
            for column, digest in checksums(getattr(frames, file)).items():
                now.setdefault((file, column), {})[name] = digest
    if os.environ.get("PEAKMARK_GOLDEN") == "write":
        lines = [{"file": file, "column": column, **each} for (file, column), each in now.items()]
        pd.DataFrame(lines).to_csv(KEPT, index=False)
    with KEPT.open() as stream:
        lines = {(line.pop("file"), line.pop("column")): line for line in csv.DictReader(stream)}
    assert [*lines] == [*now]
    differ = {place: sorted(each.items() - lines[place].items()) for place, each in now.items()}
    assert {place: each for place, each in differ.items() if each} == {}


def test_every_column_has_a_value_in_some_campaign(judged):
    rows = pd.concat([frames.rows for frames in judged.values()])
    is_empty = (rows.isna() | rows.eq("") | rows.eq(False)).all()
    assert rows.columns[is_empty].tolist() == []


def test_every_warning_is_shown_by_some_campaign(judged):
    seen = set()
    for frames in judged.values():
        seen |= set(frames.warnings["code"])
    assert sorted(seen ^ codes_of_modules()) == []


def codes_of_modules():
    """Return the codes of all messages that the modules make, by their source."""
    events = [*checks.EVERYWHERE, *checks.OF_NETWORK, *checks.OF_GPU]
    codes = {event.partition(" ")[0] for event in events}
    for name in JUDGES:
        tree = ast.parse((ROOT / "src" / "peakmark" / "rows" / f"{name}.py").read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and node.args and called(node) in ("message", "repeated"):
                parts = ast.walk(node.args[0])
                if isinstance(node.args[0], ast.Constant | ast.IfExp):
                    values = [part.value for part in parts if isinstance(part, ast.Constant)]
                    codes |= {value for value in values if isinstance(value, str)}
    return codes


def called(node):
    """Return the name of what a call calls."""
    return getattr(node.func, "attr", "") or getattr(node.func, "id", "")
