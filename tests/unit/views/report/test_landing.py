"""A record that lands while the report of the others is made."""

import os
import shutil
import subprocess
import time

from tests.unit import campaign_data as make

from peakmark import resources
from peakmark.resources import ROOT
from peakmark.storage import records
from peakmark.storage.results import Results


def test_a_report_beside_a_cell_that_ends_is_not_taken_for_one_of_all_cells(
    peakmark, tmp_path, monkeypatch
):
    folder = make.write(tmp_path / "c", make.runs("cpubench", "DP", 4e10, 4.01e10, 4.02e10))
    late, *others = (Results.read(folder).record_path(cell) for cell in Results.read(folder).cells)
    kept = late.rename(tmp_path / "kept")
    read, unread = records.read, set(others)

    def read_and_land(path):
        content = read(path)
        unread.discard(path)
        if not unread and kept.exists():
            kept.rename(late)
            tick = time.time() - 0.009  # some kernels stamp files with the time of their last tick
            os.utime(late.parent, (tick, tick))
        return content

    monkeypatch.setattr(records, "read", read_and_land)
    done = peakmark("report", folder)
    assert done.returncode == 0 and late.exists(), done.stderr
    assert "Partial report" in (folder / "report.html").read_text(encoding="utf-8")
    assert "complete" in peakmark("status", folder).stdout
    after = peakmark("report", folder)
    assert after.returncode == 0, after.stderr
    assert "Partial report" not in (folder / "report.html").read_text(encoding="utf-8")


def test_fleet_only_asks(peakmark, tmp_path, golden, own_mounts):
    """The results of another user, who has measured on since the tables were made."""
    folder = shutil.copytree(golden("cluster"), tmp_path / "c")
    first = next((folder / "cells").rglob("*.json"))
    first.touch()
    for words in (["--bind"], ["-o", "remount,bind,ro"]):
        subprocess.run(["mount", *words, folder, folder], check=True)
    try:
        done = peakmark("fleet", folder)
    finally:
        subprocess.run(["umount", folder], check=True)
    assert done.stdout and "Read-only" not in done.stderr, done.stderr


def test_the_digest_of_what_judges_changes_with_code_data_and_templates(tmp_path, monkeypatch):
    root = tmp_path / "checkout"
    for folder in ("src/peakmark", "reports"):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    digests = {resources.code_digest()}
    monkeypatch.setattr(resources, "ROOT", root)
    monkeypatch.setattr(resources, "PACKAGE", root / "src/peakmark")
    digests.add(resources.code_digest())
    assert len(digests) == 1
    (root / "reports/published/file-io-lab/report.pdf").write_text("made by a reader")
    digests.add(resources.code_digest())
    assert len(digests) == 1
    for name in (
        "src/peakmark/rows/rows.py",
        "src/peakmark/data/memory.csv",
        "reports/method.yaml",
    ):
        path = root / name
        path.write_text(path.read_text() + "\n")
        digests.add(resources.code_digest())
    assert len(digests) == 4
