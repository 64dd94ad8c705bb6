"""A record that lands while the report of the others is made."""

import subprocess

import pytest
from tests.unit import campaign_data as make

from peakmark import files
from peakmark.storage.results import Results


@pytest.mark.parametrize("command", ["html", "report"])
def test_a_report_beside_a_cell_that_ends_is_not_taken_for_one_of_all_cells(
    peakmark, tmp_path, monkeypatch, command
):
    folder = make.write(tmp_path / "c", make.runs("cpubench", "DP", 4e10, 4.01e10, 4.02e10))
    late, *others = (Results.read(folder).record_path(cell) for cell in Results.read(folder).cells)
    kept = late.rename(tmp_path / "kept")
    read, unread = files.read_bytes, set(others)

    def read_and_land(path, *words):
        content = read(path, *words)
        unread.discard(path)
        if not unread and kept.exists():
            kept.rename(late)
        return content

    monkeypatch.setattr(files, "read_bytes", read_and_land)
    done = peakmark(command, "--partial", folder)
    assert done.returncode == 0 and late.exists(), done.stderr
    assert "complete" in peakmark("status", folder).stdout
    after = peakmark(command, folder)
    assert after.returncode == 0, after.stderr


def test_fleet_only_asks(peakmark, tmp_path, own_mounts):
    """The results of another user, who has measured on since the tables were made."""
    folder = make.golden("fleet", tmp_path / "c")
    assert peakmark("tables", folder).returncode == 0
    first = next((folder / "cells").rglob("*.json"))
    first.touch()
    for words in (["--bind"], ["-o", "remount,bind,ro"]):
        subprocess.run(["mount", *words, folder, folder], check=True)
    try:
        done = peakmark("fleet", folder)
    finally:
        subprocess.run(["umount", folder], check=True)
    assert done.stdout and "Read-only" not in done.stderr, done.stderr
