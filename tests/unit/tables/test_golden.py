"""Campaigns whose tables and report must not change unless somebody means it: real records, edited.

``node`` is a node with GPUs, partly measured: cells failed, are missing or are not possible.
``cluster`` is four nodes, of which node3 is slow: rows of any node, of each node and of each pair,
which no single campaign of a user has.
``tests/unit/data/golden/NAME.tar.xz`` holds the records of a campaign, ``NAME/`` the tables made of
them and ``report.txt``, what the report says. ``PEAKMARK_GOLDEN=write pytest
tests/unit/tables/test_golden.py`` writes them anew: look at the difference before you commit it.
"""

import hashlib
import json
import os
import re
import shutil
from dataclasses import replace

import pandas as pd
import pytest

from peakmark.resources import ROOT
from peakmark.rows import build
from peakmark.storage import planfile
from peakmark.views import document
from peakmark.views.table_files import write_tables

GOLDEN = ROOT / "tests" / "unit" / "data" / "golden"
LONG = ("runs.csv",)
"""Tables of a line for each measurement: only their checksum is kept."""
CAMPAIGNS = {
    "node": "node",
    "cluster": "cluster",
    "layout": "cluster",  # with the layout of a paper
    "altered": "cluster",  # with what no campaign at hand has, see ``altered``
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


def altered(frames):
    """The frames with bounds, energies, slow nodes of two classes, and a place that is wrong on all."""
    rows = frames.rows.copy()
    number = pd.Series(pd.factorize(rows["point"])[0], rows.index)
    own = rows["point"].map(rows[rows["is_own"]].set_index("point")["value"])
    is_bound = number.mod(3).eq(0)
    bounds = own * number.mod(5).add(11).div(10)
    rows.loc[is_bound, ["limit", "efficiency"]] = float("nan")
    rows.loc[is_bound, "limit_kind"] = "at_most"
    rows.loc[is_bound, "bound"] = bounds[is_bound]
    rows.loc[is_bound, "share"] = (rows["value"] / bounds)[is_bound]
    rows["joules"] = number.add(10.0).where(rows["is_own"] & number.mod(2).eq(0))
    rows["watts"] = rows["joules"].mul(3)
    rows["is_slow"] = rows["is_own"] & number.mod(7).eq(0)
    rows["behind"] = number.div(100).where(rows["is_slow"])
    rows["node_class"] = rows["node"].isin(["node4"]).map({True: "new", False: "old"})
    rows.loc[rows["place"].eq(rows["place"].iloc[0]), "wrong_codes"] = "cached"
    return replace(frames, rows=rows)


def report_text(frames):
    """What the report says."""
    data = document.build(frames)
    return "\n".join(line for name, value in data.items() for line in outline(name, value)) + "\n"


def tables_text(frames):
    """What the tables of the report say."""
    parts = [part for chapter in document.build(frames)["sections"] for part in chapter["parts"]]
    found = [line for part in parts for line in outline(part["name"], part["table"])]
    return "\n".join(found) + "\n"


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


def built(folder, is_altered):
    """Name -> content of every table and of the report; a checksum stands for a long table."""
    frames, shown = build.load(folder), report_text
    if is_altered:
        frames, shown = altered(frames), tables_text
    write_tables(frames, folder / "tables")
    contents = {path.name: path.read_bytes() for path in (folder / "tables").glob("*.csv")}
    for name in LONG:
        digest = hashlib.sha256(contents.pop(name)).hexdigest()
        contents[f"{name}.sha256"] = f"{digest}\n".encode()
    return contents | {"report.txt": shown(frames).encode()}


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_tables_and_report_of_a_real_campaign_stay_as_they_are(tmp_path, monkeypatch, golden, name):
    monkeypatch.chdir(ROOT)
    now = built(copied(name, golden, tmp_path / "campaign"), name == "altered")
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
