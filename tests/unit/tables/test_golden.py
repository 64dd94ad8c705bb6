"""Real campaigns whose tables must not change unless somebody means it.

``tests/unit/data/golden/NAME.tar.xz`` holds the records of a campaign, ``NAME/`` the tables made of
them. ``PEAKMARK_GOLDEN=write pytest tests/unit/tables/test_golden.py`` writes the tables anew: look
at the difference before you commit it.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest
from tests.unit import campaign_data as make

from peakmark.resources import ROOT
from peakmark.storage import planfile
from peakmark.tables import tables

GOLDEN = ROOT / "tests" / "unit" / "data" / "golden"
LONG = ("measurements.csv", "runs.csv")
"""Tables of a line for each measurement: only their checksum is kept."""
CAMPAIGNS = {
    "local": "local",  # quick on one machine, shortened
    "two-nodes": "two-nodes",  # quick on two equal nodes beside the jobs of another user
    "partial": "partial",  # cells that failed, are missing or are not possible
    "fleet": "fleet",  # eight nodes, each by itself
    "layout": "two-nodes",  # with the layout of a paper
}


def unpacked(name: str, folder: Path) -> Path:
    make.golden(CAMPAIGNS[name], folder)
    if name == "layout":
        plan = json.loads((folder / "plan.json").read_text())
        report = plan["config"]["report"] or {}
        plan["config"]["report"] = {**report, "tables": "reports/layouts/paper.yaml"}
        (folder / "plan.json").unlink()
        planfile.write(folder / "plan.json", plan)
    return folder


def made(folder: Path) -> dict[str, bytes]:
    """Name -> content of every table; a checksum stands for a long one."""
    tables.build(folder)
    found = {path.name: path.read_bytes() for path in sorted((folder / "tables").glob("*.csv"))}
    for name in LONG:
        found[f"{name}.sha256"] = hashlib.sha256(found.pop(name)).hexdigest().encode() + b"\n"
    return found


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_tables_of_a_real_campaign_stay_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(ROOT)
    now = made(unpacked(name, tmp_path / "campaign"))
    kept = GOLDEN / name
    if os.environ.get("PEAKMARK_GOLDEN") == "write":
        kept.mkdir(exist_ok=True)
        for path in kept.iterdir():
            path.unlink()
        for table, content in now.items():
            (kept / table).write_bytes(content)
    before = {path.name: path.read_bytes() for path in sorted(kept.iterdir())}
    assert sorted(now) == sorted(before)
    assert [table for table in now if now[table] != before[table]] == []
