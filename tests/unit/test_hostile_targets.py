"""Where commands write: over nothing of others, behind links, elsewhere when a campaign is read-only."""

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from tests.unit.hostile import CELL, KERNELS, change, refused

from peakmark.storage import planfile
from peakmark.workflow import startup

COMMANDS = {"report": "r.pdf", "html": "r.html", "bundle": "r.zip"}
WORDS = "years of work"
SMALL = ["--config", "repetitions=1", "tools_on=nodes"]


@pytest.fixture
def thesis(tmp_path):
    """Somebody's file, which no test may change."""
    path = tmp_path / "thesis"
    path.write_text(WORDS)
    return path


@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_is_overwritten_but_what_this_campaign_wrote(command, campaign, tmp_path, peakmark):
    target = tmp_path / COMMANDS[command]
    assert peakmark(command, campaign, "-o", target).returncode == 0
    first = target.read_bytes()
    # What it wrote itself is replaced when the campaign has changed, and only for this campaign.
    change(campaign / "plan.json", config={"report": {"title": "Another title"}})
    other = Path(shutil.copytree(campaign, tmp_path / "other"))
    (other / "written.sha256").unlink()
    done = peakmark(command, other, "-o", target)
    assert done.returncode == 4
    assert f"{target} exists, and this campaign" in done.stderr and target.read_bytes() == first
    assert peakmark(command, campaign, "-o", target).returncode == 0
    assert target.read_bytes() != first


def test_a_link_is_followed_to_an_own_document_alone(campaign, thesis, tmp_path, peakmark):
    link, own, target = (tmp_path / name for name in ("link", "own", "r.pdf"))
    link.symlink_to(thesis)
    for path in (thesis, link):
        assert peakmark("report", campaign, "-o", path).returncode == 4
        assert thesis.read_text() == WORDS
    own.symlink_to(target)
    target.write_bytes(b"")
    assert peakmark("report", campaign, "-o", own).returncode == 0
    assert own.is_symlink() and target.stat().st_size > 1000
    assert not list(tmp_path.rglob("*.tmp"))


@pytest.mark.parametrize(("command", "kind"), [
    ("report", "a pipe"), ("html", "a device"), ("bundle", "a folder"),
])  # fmt: skip
def test_pipes_devices_and_folders_are_not_written(command, kind, campaign, tmp_path, peakmark):
    """Every command has its target checked alike."""
    os.mkfifo(tmp_path / "pipe")
    targets = {"a pipe": tmp_path / "pipe", "a device": "/dev/null", "a folder": tmp_path}
    kinds = {"a pipe": stat.S_ISFIFO, "a device": stat.S_ISCHR, "a folder": stat.S_ISDIR}
    done = peakmark(command, campaign, "-o", targets[kind])
    assert done.returncode == 4
    refused(done.stderr, str(targets[kind]))
    assert kinds[kind](os.stat(targets[kind]).st_mode)


def test_a_bundle_has_the_name_of_the_folder(campaign, peakmark):
    other = campaign.with_name("quick.zip")
    other.write_bytes(b"another campaign's")
    assert peakmark("bundle", campaign).stdout.strip() == str(campaign.with_suffix(".zip"))
    assert other.read_bytes() == b"another campaign's"


def test_a_read_only_campaign_is_reported_elsewhere(campaign, tmp_path, peakmark, own_mounts):
    """As an archive is mounted; a user without rights would see the same by the folder's mode."""
    for command in ("tables", "figures"):
        assert peakmark(command, campaign).returncode == 0
    subprocess.run(["mount", "--bind", campaign, campaign], check=True)
    subprocess.run(["mount", "-o", "remount,bind,ro", campaign], check=True)
    try:
        for command in ("tables", "figures", "report", "html"):
            done = peakmark(command, campaign)
            assert done.returncode == 4
            refused(done.stderr, "Read-only")
        for command, name in COMMANDS.items():
            done = peakmark(command, campaign, "-o", tmp_path / name)
            assert done.returncode == 0, done.stderr
            assert (tmp_path / name).stat().st_size > 1000
    finally:
        subprocess.run(["umount", "--lazy", campaign], check=True)


@pytest.mark.parametrize("kind", ["a file", "a folder", "a device", "a pipe"])
def test_a_plan_is_written_over_nothing_but_a_plan(kind, tmp_path, monkeypatch, peakmark):
    """A device has no end, a pipe no beginning: neither is waited for, read, or replaced."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "other"
    makers = {"a file": Path.touch, "a folder": Path.mkdir, "a pipe": os.mkfifo}
    makers.get(kind, lambda path: path.symlink_to("/dev/zero"))(path)
    before = path.lstat()
    done = peakmark("plan", *SMALL, "--write", path)
    assert done.returncode == 4
    refused(done.stderr, str(path), "no plan")
    after = path.lstat()
    for name in ("st_ino", "st_mode", "st_mtime"):
        assert getattr(after, name) == getattr(before, name)
    done = peakmark("measure", "--plan", path, "--cell", "cpu/cpubench/DP_none_x1/any/0")
    assert done.returncode == 4
    refused(done.stderr, str(path))


def test_a_plan_replaces_no_plan_of_another_campaign(tmp_path, monkeypatch, peakmark):
    monkeypatch.chdir(tmp_path)
    path, contents = tmp_path / "plan.json", []
    for words, code in (
        (["campaign=one"], 0),
        (["campaign=two"], 4),
        (["campaign=one", "seed=2"], 0),
    ):
        done = peakmark("plan", *SMALL, *words, "--write", path)
        assert done.returncode == code
        assert done.stdout.startswith(f"{path}: ") if code == 0 else "campaign one" in done.stderr
        contents.append(path.read_bytes())
    assert contents[0] == contents[1] != contents[2]


def test_a_job_is_called_by_a_name(thesis, tmp_path, peakmark):
    name = os.path.relpath(thesis, tmp_path / "m" / "nodes")
    plan = {"schema": 1, "campaign": "m", "cluster": None}
    plan["config"] = {"tools": {}, "modules": {}}
    plan["cells"] = [{"id": CELL.id, "job": name, **CELL.to_json()}]
    path = tmp_path / "m" / "plan.json"
    planfile.write(path, plan)
    done = peakmark("measure", "--plan", path, "--job", name, "--kernels", KERNELS)
    assert done.returncode == 4 and "job" in done.stderr
    assert thesis.read_text() == WORDS


@pytest.mark.parametrize(("mask", "rights"), [(0o002, 0o664), (0o022, 0o644), (0o027, 0o640)])
def test_who_may_write_a_campaign_may_lock_it(campaign, mask, rights):
    before = os.umask(mask)
    try:
        os.close(startup.lock(campaign))
    finally:
        os.umask(before)
    assert (campaign / "running").stat().st_mode & 0o777 == rights


@pytest.mark.parametrize("kind", ["named pipe", "folder", "link"])
def test_a_campaigns_lock_is_a_file(campaign, thesis, kind):
    makers = {"named pipe": os.mkfifo, "folder": os.mkdir}
    makers.get(kind, lambda path: path.symlink_to(thesis))(campaign / "running")
    with pytest.raises(OSError, match=f"it is a {kind}.*running"):
        startup.lock(campaign)
    assert thesis.read_text() == WORDS
