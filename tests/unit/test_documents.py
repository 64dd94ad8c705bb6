"""Where documents are written: over nothing of others, behind links, into pipes, elsewhere when a
campaign is read-only.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.hostile import LIMIT_S, Said, copied

COMMANDS = {"report": "r.pdf", "html": "r.html", "bundle": "r.zip"}


@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_is_overwritten_but_what_this_campaign_wrote(
    command: str, small: Path, tmp_path: Path, peakmark: Callable[..., Said]
) -> None:
    folder, target = copied(small, tmp_path), tmp_path / COMMANDS[command]
    assert peakmark(command, folder, "-o", target).returncode == 0
    first = target.read_bytes()
    # What it wrote itself is replaced when the campaign has changed, and only for this campaign.
    plan_path = folder / "plan.json"
    changed = json.loads(plan_path.read_text())
    changed["config"]["report"] = {"title": "Another title"}
    plan_path.write_text(json.dumps(changed))
    other = copied(small, tmp_path, "other")
    shutil.copyfile(plan_path, other / "plan.json")
    refused = peakmark(command, other, "-o", target)
    assert refused.returncode == 1
    assert f"{target} is there already" in refused.stderr and target.read_bytes() == first
    assert peakmark(command, folder, "-o", target).returncode == 0
    assert target.read_bytes() != first


def test_links_are_followed_and_what_is_behind_them_is_safe_as_well(
    small: Path, tmp_path: Path, peakmark: Callable[..., Said]
) -> None:
    folder, target = copied(small, tmp_path), tmp_path / "r.pdf"
    # Somebody's thesis, by its name or through a link; a link to an own document stays a link.
    for name in ("thesis", "link"):
        thesis = tmp_path / "thesis"
        thesis.write_text("years of work")
        if name == "link":
            (tmp_path / name).symlink_to(thesis)
        assert peakmark("report", folder, "-o", tmp_path / name).returncode == 1
        assert thesis.read_text() == "years of work"
    (tmp_path / "own").symlink_to(target)
    target.write_bytes(b"")
    assert peakmark("report", folder, "-o", tmp_path / "own").returncode == 0
    assert (tmp_path / "own").is_symlink() and target.stat().st_size > 1000
    assert not list(tmp_path.rglob("*.tmp"))


@pytest.mark.parametrize("command", COMMANDS)
def test_pipes_and_devices_are_written_through(
    command: str, small: Path, tmp_path: Path, peakmark: Callable[..., Said]
) -> None:
    folder, pipe, got = copied(small, tmp_path), tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    done = peakmark(command, folder, "-o", pipe)
    reader.join(LIMIT_S)
    assert done.returncode == 0 and done.stdout == ""
    assert len(got[0]) > 1000 and stat.S_ISFIFO(pipe.stat().st_mode)
    for device, code, words in (
        ("/dev/null", 0, "/dev/null"),
        ("/dev/full", 1, "No space left on device"),
    ):
        done = peakmark(command, folder, "-o", device)
        assert done.returncode == code
        assert words in done.stderr
        assert stat.S_ISCHR(os.stat(device).st_mode)  # the device is still one
    done = peakmark(command, folder, "-o", tmp_path)
    assert done.returncode == 1 and "it is a folder" in done.stderr


def test_a_bundle_has_the_name_of_the_folder(
    small: Path, tmp_path: Path, peakmark: Callable[..., Said]
) -> None:
    folder = copied(small, tmp_path)
    (tmp_path / "results" / "quick.zip").write_bytes(b"another campaign's")
    for _ in range(2):
        assert peakmark("bundle", folder).stdout.strip() == str(tmp_path / "results" / "before.zip")
    assert (tmp_path / "results" / "quick.zip").read_bytes() == b"another campaign's"


def read_only(folder: Path) -> None:
    """As an archive is mounted; a user without rights would see the same by the folder's mode."""
    subprocess.run(["mount", "--bind", folder, folder], check=True)
    subprocess.run(["mount", "-o", "remount,bind,ro", folder], check=True)


def test_a_read_only_campaign_is_reported_elsewhere(
    small: Path, tmp_path: Path, peakmark: Callable[..., Said], own_mounts: None
) -> None:
    folder = copied(small, tmp_path)
    read_only(folder)
    try:
        for command, name in COMMANDS.items():
            here = peakmark(command, folder) if command != "bundle" else peakmark("tables", folder)
            assert here.returncode == 1
            assert "Read-only file system" in here.stderr and here.stderr.count("\n") == 1
            there = peakmark(command, folder, "-o", tmp_path / name)
            assert there.returncode == 0, there.stderr
            assert (tmp_path / name).stat().st_size > 1000
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.mark.parametrize("kind", ["a thesis", "a folder", "a device", "a pipe"])
def test_a_plan_is_written_over_nothing_but_a_plan(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, peakmark: Callable[..., Said]
) -> None:
    """A device has no end, a pipe no beginning: neither is waited for, read, or put another file in
    the place of.
    """
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "there"
    match kind:
        case "a thesis":
            path.write_text("years of work")
        case "a folder":
            path.mkdir()
        case "a device":
            path.symlink_to("/dev/zero")
        case "a pipe":
            os.mkfifo(path)
    before = path.lstat()
    small = ["--config", "repetitions=1", "tools_on=nodes"]
    done = peakmark("plan", *small, "--write", path)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert f"{path} is there already and is no plan" in done.stderr
    assert (path.lstat().st_ino, path.lstat().st_mode, path.lstat().st_mtime) == (
        before.st_ino,
        before.st_mode,
        before.st_mtime,
    )
    asked = peakmark("measure", "--plan", path, "--cell", "cpu/cpubench/DP_none_x1/any/0")
    assert (asked.returncode, asked.stderr.count("\n")) == (1, 1)
    assert str(path) in asked.stderr
    for _ in range(2):
        assert peakmark("plan", *small, "--write", tmp_path / "new.json").stdout.startswith(
            f"{tmp_path / 'new.json'}: "
        )
