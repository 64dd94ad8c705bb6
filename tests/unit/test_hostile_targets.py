"""Whatever a campaign, a plan or a command line says: files of others are neither replaced nor
written through.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit import campaign_data as make
from tests.unit.hostile import CELL, KERNELS, Said, copied, stored

from peakmark.storage import planfile

WORDS = "years of work\n"
NAMES = ("report.pdf", "report.html", "plan.json", "notes.txt", "0.json", "tables/cpu.csv", "any.0")


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    """Somebody's folder, named as the parts of a campaign are."""
    folder = tmp_path / "precious"
    for name in NAMES:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(WORDS)
    return folder


def untouched(precious: Path) -> bool:
    files = [path for path in precious.rglob("*") if path.is_file()]
    return len(files) == 7 and all(path.read_text() == WORDS for path in files)


@pytest.mark.parametrize(
    "words", [["bundle"], ["report", "--anonymise"], ["html", "--anonymise"], ["tables"]]
)
@pytest.mark.parametrize("name", ["../../precious", "absolute", "..", "a/b"])
def test_a_campaign_is_called_by_a_name(
    words: list[str],
    name: str,
    small: Path,
    precious: Path,
    tmp_path: Path,
    peakmark: Callable[..., Said],
) -> None:
    folder = copied(small, tmp_path)
    plan = json.loads((folder / "plan.json").read_text())
    plan["campaign"] = str(precious) if name == "absolute" else name
    (folder / "plan.json").write_text(json.dumps(plan))
    first, *more = words
    done = peakmark(first, folder, *more)
    assert done.returncode == 1 and "campaign" in done.stderr
    assert untouched(precious)


@pytest.mark.parametrize("folder", ["cells", "attempts"])
def test_raw_output_lies_beside_its_record(
    folder: str, small: Path, precious: Path, tmp_path: Path, peakmark: Callable[..., Said]
) -> None:
    campaign = copied(small, tmp_path)
    name = os.path.relpath(precious / "notes.txt", campaign / folder / Path(CELL.id).parent)
    path = stored(campaign, raw={name: hashlib.sha256(WORDS.encode()).hexdigest()})
    if folder == "attempts":
        place = campaign / "attempts" / f"{CELL.id}.json"
        place.parent.mkdir(parents=True)
        path.rename(place)
    done = peakmark("bundle", campaign, "--partial", "--anonymise", "-o", tmp_path / "b.zip")
    assert done.returncode == 0
    assert "notes.txt" in peakmark("tables", campaign).stderr
    assert untouched(precious)


@pytest.mark.parametrize("target", ["notes.txt", "0.json", "plan.json"])
def test_decisions_are_written_where_the_campaign_has_them(
    target: str, small: Path, precious: Path, tmp_path: Path, peakmark: Callable[..., Said]
) -> None:
    folder = copied(small, tmp_path)
    plan = folder / "plan.json"
    refused = peakmark("decide", "--plan", plan, "--round", 0, "--output", precious / target)
    assert refused.returncode == 2
    assert str(folder / "repetitions" / "0.json") in refused.stderr
    assert untouched(precious)
    place = folder / "repetitions" / "0.json"
    assert peakmark("decide", "--plan", plan, "--round", 0, "--output", place).returncode == 0
    assert place.exists()


def test_a_plan_replaces_no_plan_of_another_campaign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, peakmark: Callable[..., Said]
) -> None:
    monkeypatch.chdir(tmp_path)
    path, small = tmp_path / "plan.json", ["--config", "repetitions=1", "tools_on=nodes"]
    assert peakmark("plan", *small, "campaign=one", "--write", path).returncode == 0
    before = path.read_bytes()
    refused = peakmark("plan", *small, "campaign=two", "--write", path)
    assert refused.returncode == 1 and "the campaign one" in refused.stderr
    assert path.read_bytes() == before
    assert peakmark("plan", *small, "campaign=one", "seed=2", "--write", path).returncode == 0
    assert path.read_bytes() != before


LINKS = [
    "tables", "figures", "tables/cpu.csv", "tables/measurements.csv", "figures/overview.svg",
    "report.pdf", "report.html",
]  # fmt: skip


@pytest.mark.parametrize("name", LINKS)
def test_nothing_is_written_through_a_link(
    name: str, small: Path, precious: Path, tmp_path: Path, peakmark: Callable[..., Said]
) -> None:
    folder = copied(small, tmp_path)
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    behind = precious / "tables" if "." not in name else precious / "notes.txt"
    path.symlink_to(behind)
    command = name.partition("/")[0].partition(".")[0]
    command = "tables" if command == "figures" else command
    done = peakmark(command, folder, *(["--html"] if name == "report.html" else []))
    assert done.returncode == 1 and str(path) in done.stderr
    assert untouched(precious)


def test_a_table_with_another_name_leaves_that_as_it_is(
    small: Path, precious: Path, tmp_path: Path, peakmark: Callable[..., Said]
) -> None:
    """As in a copy that was made with ``cp -l``."""
    folder = copied(small, tmp_path)
    (folder / "tables").mkdir()
    (folder / "tables" / "cpu.csv").hardlink_to(precious / "notes.txt")
    assert peakmark("tables", folder).returncode == 0
    assert (folder / "tables" / "cpu.csv").read_text() != WORDS
    assert untouched(precious)


@pytest.mark.parametrize("link", [Path.symlink_to, Path.hardlink_to])
def test_a_list_of_what_was_written_is_no_link(
    link: Callable[[Path, Path], None],
    small: Path,
    precious: Path,
    tmp_path: Path,
    peakmark: Callable[..., Said],
) -> None:
    folder = copied(small, tmp_path)
    link(folder / "written.sha256", precious / "notes.txt")
    assert peakmark("html", folder, "-o", tmp_path / "r.html").returncode == 0
    assert untouched(precious)


def test_a_job_is_called_by_a_name(
    precious: Path, tmp_path: Path, peakmark: Callable[..., Said]
) -> None:
    name = os.path.relpath(precious / "any.0", tmp_path / "m" / "nodes")
    plan: dict[str, Any] = {"schema": 1, "campaign": "m", "cluster": None, "adaptive": {}}
    plan["config"] = {"tools": {}, "modules": {}}
    plan["cells"] = [{"id": CELL.id, "job": name, **CELL.to_json()}]
    path = tmp_path / "m" / "plan.json"
    planfile.write(path, plan)
    done = peakmark("measure", "--plan", path, "--job", name, "--kernels", KERNELS)
    assert done.returncode == 1 and "job" in done.stderr
    assert untouched(precious)


def test_a_lock_is_no_link(precious: Path, tmp_path: Path) -> None:
    from peakmark.workflow import startup

    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "running").symlink_to(precious / "notes.txt")
    with pytest.raises(OSError, match="symbolic links"):
        startup.lock(tmp_path / "c")
    assert untouched(precious)


def test_no_message_advises_to_delete(
    small: Path, tmp_path: Path, peakmark: Callable[..., Said]
) -> None:
    """Of a record that does not count, and of a bundle that was added to."""
    folder = copied(small, tmp_path)
    path = folder / "cells" / f"{CELL.id}.json"
    path.write_text(path.read_text().replace("4e", "5e").replace("4000000000", "5000000000"))
    said = peakmark("status", folder).stdout
    assert "delete" not in said and "sets it aside" in said
    record = make.record(CELL, [make.measurement(CELL, "rate", 4e9)]) | {"raw": {}}
    whole = make.write(tmp_path / "whole", [record])
    assert peakmark("bundle", whole, "-o", tmp_path / "w.zip").returncode == 0
    with zipfile.ZipFile(tmp_path / "w.zip") as archive:
        archive.extractall(tmp_path / "w")
    (tmp_path / "w" / "cells" / "more.json").write_text("{}")
    done = peakmark("report", tmp_path / "w")
    assert done.returncode == 1 and "more.json" in done.stderr and "delete" not in done.stderr
