"""Real campaigns whose tables and report must not change unless somebody means it.

``tests/unit/data/golden/NAME.tar.xz`` holds the records of a campaign, ``NAME/`` the tables made of
them and ``report.txt``, what the report says. ``PEAKMARK_GOLDEN=write pytest
tests/unit/tables/test_golden.py`` writes them anew: look at the difference before you commit it.
"""

import hashlib
import json
import os
import re
import shutil

import pytest
from tests.unit import campaign_data as make

from peakmark.resources import ROOT
from peakmark.rows import build
from peakmark.storage import planfile
from peakmark.views.report import document

GOLDEN = ROOT / "tests" / "unit" / "data" / "golden"
LONG = ("runs.csv",)
"""Tables of a line for each measurement: only their checksum is kept."""
CAMPAIGNS = {
    "local": "local",  # quick on one machine, shortened
    "two-nodes": "two-nodes",  # quick on two equal nodes beside the jobs of another user
    "partial": "partial",  # cells that failed, are missing or are not possible
    "fleet": "fleet",  # eight nodes, each by itself
    "layout": "two-nodes",  # with the layout of a paper
}
WIDTH = 480
"""Longest line of ``report.txt`` that holds a list or an object whole."""

CELL = re.compile(r'\{"text": "([^"]*)", "pad": "([^"]*)"\}')
"""A cell of a column of numbers."""


def copied(name, golden, folder):
    """A copy of a real campaign with its rows."""
    shutil.copytree(golden(CAMPAIGNS[name]), folder)
    if name == "layout":
        plan = json.loads((folder / "plan.json").read_text())
        report = plan["config"]["report"] or {}
        plan["config"]["report"] = {**report, "tables": "reports/layouts/paper.yaml"}
        (folder / "plan.json").unlink()
        planfile.write(folder / "plan.json", plan)
    return folder


def report_text(frames):
    """What the report says."""
    data = document.build(frames)
    return "\n".join(line for name, value in data.items() for line in outline(name, value)) + "\n"


def outline(name, value, indent=""):
    """A JSON value as indented lines, short ones whole; numbers with their padding in brackets."""
    text = CELL.sub(r'"\1[\2]"', json.dumps(value, ensure_ascii=False)).replace('[]"', '"')
    line = f"{indent}{name}: {text}"
    if len(line) <= WIDTH or not isinstance(value, dict | list):
        yield line
        return
    yield f"{indent}{name}:"
    for key, entry in value.items() if isinstance(value, dict) else (("-", one) for one in value):
        yield from outline(key, entry, indent + " ")


def built(folder):
    """Name -> content of every table and of the report; a checksum stands for a long table."""
    make.tables(folder)
    contents = {path.name: path.read_bytes() for path in (folder / "tables").glob("*.csv")}
    for name in LONG:
        digest = hashlib.sha256(contents.pop(name)).hexdigest()
        contents[f"{name}.sha256"] = f"{digest}\n".encode()
    return contents | {"report.txt": report_text(build.load(folder)).encode()}


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_tables_and_report_of_a_real_campaign_stay_as_they_are(tmp_path, monkeypatch, golden, name):
    monkeypatch.chdir(ROOT)
    now = built(copied(name, golden, tmp_path / "campaign"))
    kept = GOLDEN / name
    if os.environ.get("PEAKMARK_GOLDEN") == "write":
        kept.mkdir(exist_ok=True)
        for path in kept.iterdir():
            path.unlink()
        for file, content in now.items():
            (kept / file).write_bytes(content)
    before = {path.name: path.read_bytes() for path in kept.iterdir()}
    assert sorted(now) == sorted(before)
    assert [file for file in sorted(now) if now[file] != before[file]] == []
