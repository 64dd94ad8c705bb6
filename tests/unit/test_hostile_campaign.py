"""What stands in the place of a campaign's files: exit codes, a sentence, nothing of others touched."""

import hashlib
import json
import os
import zipfile

import pytest
from tests.unit import campaign_data as make
from tests.unit.cases import tables
from tests.unit.hostile import CELL, change, in_time, refused, stored

from peakmark.bundle import pack
from peakmark.storage import facts, records

WORDS = "years of work\n"
NAMES = ("report.pdf", "report.html", "plan.json", "notes.txt", "0.json", "tables/cpu.csv", "any.0")
RECORD = f"cells/{CELL.id}.json"
RAW = f"cells/{CELL.id}.raw/0.stdout"
FACTS = "machine/node1.json"
HUGE = 3 << 30


@pytest.fixture
def precious(tmp_path):
    """Somebody's folder, named as the parts of a campaign are."""
    folder = tmp_path / "precious"
    for name in NAMES:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(WORDS)
    return folder


def untouched(precious):
    files = [path for path in precious.rglob("*") if path.is_file()]
    return len(files) == len(NAMES) and all(path.read_text() == WORDS for path in files)


def spoil(folder, name, broken):
    """Put something else in the place of a file, or change keys and seal it as it was."""
    path = folder / name
    if broken == HUGE:
        with path.open("ab") as file:
            file.truncate(HUGE)
    elif isinstance(broken, str):
        path.unlink()
        make_other = {"a named pipe": os.mkfifo, "a folder": os.mkdir}
        make_other.get(broken, lambda path: os.symlink("/dev/zero", path))(path)
    elif name == RECORD:
        stored(folder, **broken)
    elif name == FACTS:
        known = {
            key: {**make.VM.get(key, {}), **part} if isinstance(part, dict) else part
            for key, part in broken.items()
        }
        path.write_text(records.text_of(make.VM | known))
    elif isinstance(broken, dict) and broken:
        change(path, **broken)
    else:
        path.write_text(json.dumps(broken))


ENDS = {
    "plan.json": dict.fromkeys(("status", "summary", "tables", "report", "html", "bundle"), 4),
    RECORD: {"status": 0, "summary": 0, "tables": 0, "report": 4},
    RAW: {"status": 0, "tables": 0, "report": 4},
    FACTS: {"status": 0, "summary": 0, "tables": 0},
}
"""File of a campaign -> the exit code of commands where it is broken."""
FILES = dict(zip(("plan", "record", "output", "facts"), ENDS, strict=True))
KINDS = {"a named pipe": "a named pipe", "a folder": "a folder", "/dev/zero": "a device"}
"""What stands in the place of a file -> how a sentence calls it."""
NO_FILES = [
    *((file, kind, words) for file in FILES for kind, words in KINDS.items()),
    *((file, HUGE, "") for file in ("plan", "record", "facts")),
]
BROKEN_VALUES = [
    *tables("campaign")["test_a_broken_value_is_one_sentence"][1:],
    ("plan", {"cells": [CELL.to_json()] * 2}, ""),
    ("facts", {"memory": {"total": 10**400}}, "total"),
    ("record", {"measured": {"value": 10**400}}, "value"),
    ("record", {"context": {"scratch": "\ud800"}}, ""),
]


def check_sentences(peakmark, campaign, name, word, ends):
    """Each of these commands ends with its exit code, and names the broken file in one sentence."""
    for command, code in ends.items():
        with in_time():
            done = peakmark(command, campaign)
        said = done.stdout + done.stderr
        assert (command, done.returncode) == (command, code)
        assert "Traceback" not in said
        if code:
            refused(done.stderr, str(campaign / name), word)
        elif command != "summary":
            assert str(campaign / name) in said and word in said
            assert ("collects the facts again" in said) == ((name, command) == (FACTS, "tables"))


@pytest.fixture
def whole(campaign):
    """A campaign with facts of its machine and a raw output."""
    raw = campaign / RAW
    raw.parent.mkdir()
    raw.touch()
    stored(campaign, raw={"0.raw/0.stdout": hashlib.sha256().hexdigest()})
    facts.write(campaign / FACTS, make.VM)
    return campaign


@pytest.mark.parametrize(("file", "kind", "word"), NO_FILES, ids=str)
def test_what_is_no_file_is_one_sentence_of_each_command(
    file, kind, word, whole, precious, peakmark
):
    spoil(whole, FILES[file], kind)
    check_sentences(peakmark, whole, FILES[file], word, ENDS[FILES[file]])
    assert untouched(precious)


@pytest.mark.parametrize(("file", "broken", "word"), BROKEN_VALUES, ids=str)
def test_a_broken_value_is_one_sentence(file, broken, word, whole, precious, peakmark):
    """Every command reads plan, records and facts alike, which the test before tries."""
    spoil(whole, FILES[file], broken)
    check_sentences(peakmark, whole, FILES[file], word, {"status": ENDS[FILES[file]]["status"]})
    assert untouched(precious)


@pytest.mark.parametrize(("command", "name"), [
    ("tables", "tables"), ("figures", "figures"), ("report", "cells"),
    ("tables", "tables/cpu.csv"), ("tables", "tables/runs.csv"), ("tables", "rows/checksums.txt"),
    ("figures", "figures/.state"), ("figures", "figures/cpu_rounds.svg"),
    ("report", "report.pdf"), ("html", "report.html"),
])  # fmt: skip
def test_nothing_is_written_through_a_link(command, name, campaign, precious, peakmark):
    path = campaign / name
    if path.is_dir():
        path.rename(campaign / "moved")
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(
        precious / ("tables" if path.name in ("tables", "figures", "cells") else "notes.txt")
    )
    done = peakmark(command, campaign)
    assert done.returncode == 4
    refused(done.stderr, str(campaign))
    assert untouched(precious)


@pytest.mark.parametrize(("command", "name"), [("tables", "tables"), ("figures", "figures")])
def test_a_file_in_the_place_of_a_folder_stays(command, name, campaign, peakmark):
    (campaign / name).write_text(WORDS)
    done = peakmark(command, campaign)
    assert done.returncode == 4
    refused(done.stderr, str(campaign))
    assert (campaign / name).read_text() == WORDS


@pytest.mark.parametrize("folder", ["cells", "attempts"])
def test_raw_output_lies_beside_its_record(folder, campaign, precious, tmp_path, peakmark):
    place = campaign / folder / f"{CELL.id}.json"
    place.parent.mkdir(parents=True, exist_ok=True)
    name = os.path.relpath(precious / "notes.txt", place.parent)
    stored(campaign, raw={name: hashlib.sha256(WORDS.encode()).hexdigest()}).rename(place)
    done = peakmark("bundle", campaign, "--partial", "-o", tmp_path / "b.zip")
    assert done.returncode == 0
    assert "notes.txt" in peakmark("tables", campaign).stderr
    assert untouched(precious)


HARD_LINKS = """written.sha256 config.json machine repetitions/0.json attempts rows/checksums.txt rows/rows.csv
tables/cpu.csv figures/cpu_rounds.svg figures/.state"""


def test_files_with_another_name_leave_that_as_it_is(campaign, precious, tmp_path, peakmark):
    """As in a copy that was made with ``cp -l``."""
    for name in HARD_LINKS.split():
        path = campaign / name
        path.parent.mkdir(exist_ok=True)
        path.hardlink_to(precious / "notes.txt")
    for words in (["tables"], ["figures"], ["html", "-o", tmp_path / "r.html"]):
        assert peakmark(*words, campaign).returncode == 0
    assert (campaign / "tables" / "cpu.csv").read_text() != WORDS
    assert untouched(precious)


@pytest.mark.parametrize("name", ["plan.json", "machine", "attempts", "written.sha256"])
def test_links_in_the_place_of_what_is_read_are_not_written(
    name, campaign, precious, tmp_path, peakmark
):
    (campaign / name).unlink(missing_ok=True)
    (campaign / name).symlink_to(precious / "notes.txt")
    done = peakmark("html", campaign, "-o", tmp_path / "r.html")
    assert done.returncode == (4 if name == "plan.json" else 0)
    assert untouched(precious)


def test_a_row_far_above_its_limit_is_drawn(tmp_path, peakmark):
    clocks = {"clock_hz": {"nominal": 2e9, "maximum": None, "observed": 2e9}}
    known = {**make.VM, "cpu": {**make.VM["cpu"], **clocks}}
    cells = [make.cell("cpubench", "DP", subsystem="cpu", repetition=number) for number in range(3)]
    folder = make.write(tmp_path / "c", [], planned=cells, facts=known)
    for of, value in zip(cells, (2e10, 2e10, 1e21), strict=True):
        stored(folder, of, measured={"value": value})
    assert peakmark("figures", folder).returncode == 0
    assert (folder / "figures" / "cpu_rounds.svg").stat().st_size < 1 << 20


def packed(path, content):
    with zipfile.ZipFile(path, "w") as archive:
        for entry, data in content.items():
            archive.writestr(entry, data)
    return path


def test_a_bundle_that_was_sealed_again_is_blamed_itself(campaign, tmp_path, peakmark):
    assert peakmark("bundle", campaign, "-o", tmp_path / "b.zip").returncode == 0
    with zipfile.ZipFile(tmp_path / "b.zip") as archive:
        whole = {entry: archive.read(entry) for entry in archive.namelist()}
    del whole["SHA256SUMS"]
    content = {**whole, "plan.json": b"{}"}
    sums = pack.checksums(content).encode()
    done = peakmark("report", packed(tmp_path / "c.zip", {**content, "SHA256SUMS": sums}))
    assert done.returncode == 4
    refused(done.stderr.splitlines()[-1], "plan.json")
    assert "peakmark-bundle" not in done.stderr
    # Names with escapes are shown as such.
    name = "../\033[2Jx"
    sums = pack.checksums({name: b""}).encode()
    done = peakmark("report", packed(tmp_path / "d.zip", {**whole, name: b"", "SHA256SUMS": sums}))
    assert done.returncode == 4
    assert "\033" not in done.stderr and "x1b" in done.stderr
