"""A record that lands while the report of the others is made."""

import re
import shutil
import subprocess

from tests.unit import campaign_data as make

from peakmark import files
from peakmark.resources import ROOT, code_digest
from peakmark.rows import build
from peakmark.storage.results import Results
from peakmark.workflow import documents


def test_a_report_beside_a_cell_that_ends_is_not_taken_for_one_of_all_cells(
    peakmark, tmp_path, monkeypatch
):
    folder = make.write(tmp_path / "c", make.runs("cpubench", "DP", 4e10, 4.01e10, 4.02e10))
    late, *others = (Results.read(folder).record_path(cell) for cell in Results.read(folder).cells)
    kept = late.rename(tmp_path / "kept")
    read, unread = files.read_json, set(others)

    def read_and_land(path, *words):
        content = read(path, *words)
        unread.discard(path)
        if not unread and kept.exists():
            kept.rename(late)
        return content

    monkeypatch.setattr(files, "read_json", read_and_land)
    done = peakmark("html", "--partial", folder)
    assert done.returncode == 0 and late.exists(), done.stderr
    assert "complete" in peakmark("status", folder).stdout
    after = peakmark("html", folder)
    assert after.returncode == 0, after.stderr


def test_fleet_only_asks(peakmark, tmp_path, golden, own_mounts):
    """The results of another user, who has measured on since the tables were made."""
    folder = shutil.copytree(golden("fleet"), tmp_path / "c")
    first = next((folder / "cells").rglob("*.json"))
    first.touch()
    for words in (["--bind"], ["-o", "remount,bind,ro"]):
        subprocess.run(["mount", *words, folder, folder], check=True)
    try:
        done = peakmark("fleet", folder)
    finally:
        subprocess.run(["umount", folder], check=True)
    assert done.stdout and "Read-only" not in done.stderr, done.stderr


def test_figures_are_drawn_anew_when_the_layout_of_the_user_changes(tmp_path):
    """The layout is no file of the campaign."""
    layout = tmp_path / "mine.yaml"
    text = (ROOT / "reports" / "layouts" / "file-io-lab.yaml").read_text()
    layout.write_text(text)
    config = {"report": {"tables": str(layout)}}
    folder = make.write(
        tmp_path / "c", make.runs("diskbench", "RS", *make.near(1e9)), config=config
    )
    for name in ("first", "second"):
        layout.write_text(re.sub('(title: "?)[A-Za-z]+', rf"\1{name}", text))
        frames = build.load(folder)
        assert not documents.has_figures(frames, folder), name
        documents.collect(folder)
        assert documents.has_figures(frames, folder)


def test_the_digest_of_what_judges_changes_with_code_data_and_templates(tmp_path):
    root = tmp_path / "checkout"
    for folder in ("src/peakmark", "reports"):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    digests = {code_digest(root), code_digest(shutil.copytree(root, tmp_path / "moved"))}
    assert len(digests) == 1, "a moved checkout is the same"
    for name in (
        "src/peakmark/rows/rows.py",
        "src/peakmark/data/memory.csv",
        "reports/method.yaml",
    ):
        path = root / name
        path.write_text(path.read_text() + "\n")
        digests.add(code_digest(root))
    assert len(digests) == 4
