"""Bundles: the same report elsewhere, the same bytes twice, and nothing that was changed, damaged
or hostile.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.unit import campaign_data as make

from peakmark import cli, files
from peakmark.bundle import bundle, crate
from peakmark.errors import ConfigError, PeakmarkError, RecordError
from peakmark.report import pdf_report
from peakmark.resources import ROOT
from peakmark.tables import tables

RAW = "Command line used: iozone -a\n\tchildren = 1\n"
LOGO = '<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10"><rect width="9" height="9"/></svg>'


def campaign(folder: Path, **config: Any) -> Path:
    """Two own kernels and a reference with a raw output, one failed attempt, facts of the machine."""
    own = make.cell("cpubench", "DP", subsystem="cpu")
    disk = make.cell("diskbench", "WS", subsystem="disk", variant="psync", block=1 << 20)
    theirs = make.cell("iozone", "WS", subsystem="disk", variant="psync", block=1 << 20)
    reference = make.record(theirs, [make.measurement(theirs, "throughput", 9e8)])
    reference["raw"] = {"0.raw/0.stdout": hashlib.sha256(RAW.encode()).hexdigest()}
    failed = make.record(own, status="failed", reason="killed by signal 9") | {"raw": {}}
    records = [
        make.record(own, [make.measurement(own, "rate", 4e10)]) | {"raw": {}},
        make.record(disk, [make.measurement(disk, "throughput", 1e9)]) | {"raw": {}},
        reference,
    ]
    cpu = {"model_name": "AMD EPYC", "cores": 2, "threads": 2, "sockets": 1}
    facts = {"host": "node1", "cpu": cpu}
    written = make.write(folder, records, attempts=[failed], facts=facts, config={"report": config})
    raw = written / "cells" / f"{theirs.id}.json"
    raw = raw.parent / "0.raw" / "0.stdout"
    raw.parent.mkdir(parents=True)
    raw.write_text(RAW)
    return written


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundle")
    return bundle.write(campaign(folder / "small"))


def is_same(packed: Path) -> bool:
    """Whether the report of a bundle is rebuilt with the same bytes."""
    return bundle.rebuild(packed)[1].startswith("the same")


def entities(packed: Path) -> dict[str, Any]:
    """Identifier -> entity of the bundle's description."""
    with zipfile.ZipFile(packed) as archive:
        graph = json.loads(archive.read(crate.NAME))["@graph"]
    found = {entity["@id"]: entity for entity in graph}
    assert len(found) == len(graph)
    return found


Change = Callable[[dict[str, bytes]], Mapping[str, bytes]]


def rewritten(source: Path, target: Path, change: Change) -> Path:
    """A copy of a zip file whose files were changed."""
    with zipfile.ZipFile(source) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in change(files).items():
            archive.writestr(name, content)
    return target


def test_the_same_pdf_elsewhere_from_the_file_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    logo, layout, published = here / "Our logo.svg", here / "mine.yaml", here / "theirs.csv"
    sets = [str(published), "disk-patterns-2020"]
    folder = campaign(
        here / "small", logo=str(logo), tables=str(layout), published=sets, author="Jane"
    )
    logo.write_text(LOGO)
    shutil.copy(ROOT / "reports/layouts/file-io-lab.yaml", layout)
    shutil.copy(ROOT / "reports/published/file-io-lab.csv", published)
    tables.build(folder)
    original = pdf_report.build(folder).read_bytes()
    made = bundle.write(folder)
    assert made == here / "small.zip"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    shutil.move(made, elsewhere / "got.zip")
    shutil.rmtree(here)
    monkeypatch.chdir(elsewhere)
    path, comparison = bundle.rebuild(Path("got.zip"))
    assert path == Path("got.pdf") and path.read_bytes() == original
    assert comparison.startswith("the same")

    # And so does the unpacked folder, twice.
    with zipfile.ZipFile("got.zip") as archive:
        archive.extractall("got")
    for _ in range(2):
        assert is_same(Path("got"))
        assert Path("got/report.pdf").read_bytes() == original


def test_the_same_records_give_the_same_bytes(packed: Path, tmp_path: Path) -> None:
    again = bundle.write(campaign(tmp_path / "small"), tmp_path / "again.zip")
    assert again.read_bytes() == packed.read_bytes()


def test_checksums_are_what_sha256sum_reads_and_name_every_file(
    packed: Path, tmp_path: Path
) -> None:
    with zipfile.ZipFile(packed) as archive:
        archive.extractall(tmp_path)
        names = set(archive.namelist())
    argv = ["sha256sum", "--check", "--strict", "SHA256SUMS"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(done.stdout.splitlines()) == len(names) - 2
    named = "plan.json machine/node1.json report.pdf tables/cpu.csv ro-crate-metadata.json"
    assert set(named.split()) <= names
    assert any(name.endswith("0.raw/0.stdout") for name in names)
    assert any(name.startswith("attempts/") for name in names)


def test_the_description_names_every_file_and_everything_it_refers_to(packed: Path) -> None:
    with zipfile.ZipFile(packed) as archive:
        files = {name: archive.read(name) for name in set(archive.namelist()) - {crate.NAME}}
    found = entities(packed)
    assert found[crate.NAME]["conformsTo"] == {"@id": "https://w3id.org/ro/crate/1.1"}
    assert {"name", "description", "datePublished", "license"} <= set(found["./"])
    assert files["report.html"].startswith(b"<!DOCTYPE html>")
    assert found["requirements.txt"]["encodingFormat"] == "text/plain"
    assert b"--hash=sha256:" in files["requirements.txt"]
    for name, content in files.items():
        assert found[name]["sha256"] == hashlib.sha256(content).hexdigest()
        assert found[name]["contentSize"] == str(len(content))
    named = re.findall(r'{"@id": "([^"]+)"}', json.dumps(list(found.values())))
    assert set(named) - {"https://w3id.org/ro/crate/1.1"} <= set(found)
    assert set(files) <= {part["@id"] for part in found["./"]["hasPart"]}
    assert {"@id": "#iozone-1.2"} in found["#measuring"]["instrument"]
    assert found["#measuring"]["startTime"] == "2026-11-21T04:00:00+00:00"


def test_licence_authors_and_publisher_are_described(tmp_path: Path) -> None:
    authors = [
        {"name": "Jane Doe", "affiliation": "IIT", "orcid": "0000-0002-1825-0097"},
        {"name": "John Roe", "affiliation": "IIT"},
    ]
    folder = campaign(tmp_path / "small", authors=authors, publisher="University Library")
    found = entities(bundle.write(folder, tmp_path / "b.zip", licence="CC-BY-4.0"))
    assert found["./"]["license"] == {"@id": "https://spdx.org/licenses/CC-BY-4.0"}
    both = [{"@id": "https://orcid.org/0000-0002-1825-0097"}, {"@id": "#author-2"}]
    assert found["./"]["author"] == both == found["#measuring"]["agent"]
    assert found["./"]["publisher"] == {"@id": "#University%20Library"}
    assert found["#author-2"]["affiliation"] == {"@id": "#IIT"}
    assert found["#IIT"]["@type"] == found["#University%20Library"]["@type"] == "Organization"
    with pytest.raises(ConfigError, match="neither an SPDX identifier"):
        bundle.write(folder, tmp_path / "c.zip", licence="do what you want")


def test_texts_are_replaced_everywhere_and_the_checksums_follow(tmp_path: Path) -> None:
    folder = campaign(tmp_path / "small", title="About node1", logo=str(tmp_path / "node1.svg"))
    (tmp_path / "node1.svg").write_text(LOGO)

    def replace(text: str) -> str:
        return text.replace("node1", "alpha").replace("iozone -a", "x")

    made = bundle.write(folder, tmp_path / "b.zip", replace=replace)
    with bundle.unpacked(made) as unpacked:
        for path in unpacked.rglob("*"):
            assert "node1" not in path.name
            if path.is_file() and path.suffix != ".pdf":
                assert b"node1" not in path.read_bytes(), path
        assert (unpacked / "machine" / "alpha.json").is_file()
        raw = next(unpacked.rglob("0.stdout")).read_text()
        assert raw == RAW.replace("iozone -a", "x")
        record = json.loads(next(unpacked.glob("cells/disk/iozone/*/any/0.json")).read_text())
        assert record["raw"]["0.raw/0.stdout"] == hashlib.sha256(raw.encode()).hexdigest()
    assert is_same(made)


@pytest.mark.parametrize(("change", "message"), [
    (lambda f: f | {"plan.json": f["plan.json"] + b" "}, r"plan\.json in .*SHA256SUMS"),
    (lambda f: {k: v for k, v in f.items() if k != "report.pdf"}, r"report\.pdf is missing"),
    (lambda f: f | {"cells/more.json": b"{}"}, r"cells/more\.json in .* stands in no line"),
    (lambda f: {k: v for k, v in f.items() if k != "SHA256SUMS"}, "SHA256SUMS cannot be read"),
    (lambda f: f | {"SHA256SUMS": b"\xff\xfe"}, "SHA256SUMS cannot be read"),
    (lambda f: f | {"SHA256SUMS": b"abc  plan.json\n"}, "line 1 of SHA256SUMS"),
    (lambda f: f | {"SHA256SUMS": b"0" * 64 + b"  ../../etc/passwd\n"}, "line 1 of SHA256SUMS"),
    (lambda f: f | {"../evil": b"x"}, r"leads out of it, '\.\./evil'"),
    (lambda f: f | {"/evil": b"x"}, "leads out of it, '/evil'"),
    (lambda f: f | {"a\\..\\evil": b"x"}, "leads out of it"),
    (lambda f: f | {"plan.json/x": b"x"}, "twice"),
    (lambda _: {"readme.txt": b"a holiday"}, "SHA256SUMS cannot be read"),
])  # fmt: skip
def test_a_changed_or_hostile_bundle_is_one_sentence(
    packed: Path,
    tmp_path: Path,
    change: Change,
    message: str,
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    bad = rewritten(packed, folder / "bad.zip", change)
    with pytest.raises(PeakmarkError, match=message) as caught:
        bundle.rebuild(bad)
    assert "\n" not in str(caught.value)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["bad.zip", "in"]


def test_links_doubles_and_bombs_are_refused(
    packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = zipfile.ZipInfo("cells/link")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "link.zip", "w") as archive:
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(PeakmarkError, match="is a link"):
        bundle.rebuild(tmp_path / "link.zip")
    with (
        zipfile.ZipFile(tmp_path / "twice.zip", "w") as archive,
        pytest.warns(UserWarning, match="Duplicate"),
    ):
        archive.writestr("plan.json", "{}")
        archive.writestr("plan.json", "[]")
    with pytest.raises(PeakmarkError, match=r"'plan\.json' twice"):
        bundle.rebuild(tmp_path / "twice.zip")
    # Nothing was unpacked when the size is refused.
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda *_: pytest.fail("it was unpacked"))
    monkeypatch.setattr(files, "free", lambda _: 10)
    with pytest.raises(PeakmarkError, match="make room"):
        bundle.rebuild(packed)
    monkeypatch.setattr(bundle, "MAX_BYTES", 1000)
    with pytest.raises(PeakmarkError, match="unpacks to more than"):
        bundle.rebuild(packed)


def test_a_damaged_file_is_one_sentence(packed: Path, tmp_path: Path) -> None:
    whole = packed.read_bytes()
    with zipfile.ZipFile(packed) as archive:
        start = archive.getinfo("report.pdf").header_offset
    holed = whole[: start + 2000] + b"\0" * 900 + whole[start + 2900 :]
    for number, content in enumerate((whole[: len(whole) // 2], b"", b"PK nonsense", holed)):
        bad = tmp_path / f"{number}.zip"
        bad.write_bytes(content)
        with pytest.raises(PeakmarkError, match="damaged or no bundle of peakmark") as caught:
            bundle.rebuild(bad)
        assert "\n" not in str(caught.value)


def test_a_folder_packed_again_with_its_name_is_understood(packed: Path, tmp_path: Path) -> None:
    def wrap(files: dict[str, bytes]) -> dict[str, bytes]:
        return {f"small/{name}": text for name, text in files.items()}

    wrapped = rewritten(packed, tmp_path / "w.zip", wrap)
    assert is_same(wrapped)


def test_an_unpacked_bundle_is_checked_but_may_be_reported_anew(
    packed: Path, tmp_path: Path
) -> None:
    with zipfile.ZipFile(packed) as archive:
        archive.extractall(tmp_path / "b")
    (tmp_path / "b" / "report.pdf").write_bytes(b"old")
    _, comparison = bundle.rebuild(tmp_path / "b", tmp_path / "r.pdf")
    assert comparison.startswith("not the same")
    assert (tmp_path / "r.pdf").read_bytes().startswith(b"%PDF")
    record = next((tmp_path / "b").glob("cells/cpu/cpubench/*/any/0.json"))
    record.write_text(record.read_text().replace("40000000000.0", "90000000000.0"))
    with pytest.raises(PeakmarkError, match="is not what SHA256SUMS says"):
        bundle.rebuild(tmp_path / "b")


def test_a_list_of_inputs_cannot_point_elsewhere(tmp_path: Path) -> None:
    folder = campaign(tmp_path / "small", logo="logo.svg")
    (folder / "inputs").mkdir()
    for text, message in (
        ('{"logo": {"logo.svg": "inputs/../../x.svg"}}', "not below inputs/"),
        ("[]", "is damaged"),
    ):
        (folder / "inputs" / "inputs.json").write_text(text)
        with pytest.raises(RecordError, match=message):
            bundle.write(folder, tmp_path / "b.zip")


def test_what_cannot_be_bundled_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = campaign(tmp_path / "small", logo="nowhere.svg")
    assert cli.main(["bundle", str(folder)]) == 2
    assert "report.logo names 'nowhere.svg'" in capsys.readouterr().err
    folder = campaign(tmp_path / "other")
    assert cli.main(["bundle", str(folder), "-o", str(tmp_path / "no" / "b.zip")]) == 1
    assert str(tmp_path / "no") in capsys.readouterr().err
    next(folder.rglob("0.stdout")).write_text("another text")
    assert cli.main(["bundle", str(folder)]) == 1
    # A record whose raw output was changed does not count.
    assert "1 of 3 planned cells" in capsys.readouterr().err
    next(folder.rglob("0.stdout")).unlink()
    assert cli.main(["bundle", str(folder)]) == 1
    assert "cannot be read" in capsys.readouterr().err
    next(folder.glob("cells/cpu/cpubench/*/any/0.json")).unlink()
    assert cli.main(["bundle", str(folder)]) == 1
    error = capsys.readouterr().err
    assert "1 of 3 planned cells" in error
    assert f"peakmark bundle --partial {folder}" in error
    assert cli.main(["report", str(tmp_path / "none.zip")]) == 1
    assert "is no campaign" in capsys.readouterr().err


def test_a_partial_bundle_says_how_to_report_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = campaign(tmp_path / "small")
    next(folder.glob("cells/cpu/cpubench/*/any/0.json")).unlink()
    assert cli.main(["bundle", "--partial", str(folder), "-o", str(tmp_path / "p.zip")]) == 0
    assert cli.main(["report", str(tmp_path / "p.zip")]) == 1
    assert f"peakmark report --partial {tmp_path / 'p.zip'}" in capsys.readouterr().err
    assert cli.main(["report", "--partial", str(tmp_path / "p.zip")]) == 0
    assert "the same" in capsys.readouterr().out
