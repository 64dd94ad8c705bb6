"""Bundles: the same report elsewhere, the same bytes twice, and nothing changed or hostile."""

import hashlib
import shutil
import zipfile
from pathlib import Path

import pytest
from tests.unit import campaign_data as make
from tests.unit import pdf

from peakmark import bundle as pack
from peakmark.errors import PeakmarkError
from peakmark.rows import schema
from peakmark.views import rendering
from peakmark.workflow import status

RAW = "Command line used: iozone -a\n\tchildren = 1\n"


def campaign(folder, **config):
    """Two own kernels and a reference with a raw output, one failed attempt, facts of the machine."""
    own = make.cell("cpubench", "DP", subsystem="cpu")
    disk, theirs = (
        make.cell(name, "WS", subsystem="disk", variant="psync", block=1 << 20)
        for name in ("diskbench", "iozone")
    )
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
    raw = (written / "cells" / f"{theirs.id}.json").parent / "0.raw" / "0.stdout"
    raw.parent.mkdir(parents=True)
    raw.write_text(RAW)
    return written


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bundle")
    return pack.write(campaign(folder / "small"))


def unpack(archive, folder):
    with zipfile.ZipFile(archive) as file:
        file.extractall(folder)
    return folder


def contents(archive):
    with zipfile.ZipFile(archive) as file:
        return {name: file.read(name) for name in file.namelist()}


def test_the_same_pdf_elsewhere(tmp_path, peakmark):
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    folder = campaign(here / "small", tables="file-io-lab", author="Jane")
    original = rendering.pdf(status.collect_report(folder))
    made = pack.write(folder)
    assert made == here / "small.zip"
    elsewhere.mkdir()
    shutil.move(made, elsewhere / "got.zip")
    shutil.rmtree(here)
    assert peakmark("report", elsewhere / "got.zip").returncode == 0
    assert (elsewhere / "got.pdf").read_bytes() == original
    # And so does the unpacked folder.
    unpacked = status.collect_report(unpack(elsewhere / "got.zip", elsewhere / "got"))
    assert rendering.pdf(unpacked) == original


def test_the_authors_chapters_travel_in_the_bundle(tmp_path, peakmark):
    (tmp_path / "words").mkdir()
    (tmp_path / "words" / "discussion.md").write_text("Larger records need fewer calls.")
    folder = campaign(tmp_path / "small", text=str(tmp_path / "words"))
    made = pack.write(folder)
    shutil.rmtree(tmp_path / "words")
    assert peakmark("report", made).returncode == 0
    assert "Larger records need fewer" in pdf.text(made.with_suffix(".pdf"))


def test_a_report_needs_the_rows_of_a_bundle_alone(packed, tmp_path, peakmark):
    with zipfile.ZipFile(tmp_path / "rows.zip", "w") as archive:
        for name, content in contents(packed).items():
            if name.startswith("rows/"):
                archive.writestr(name, content)
    done = peakmark("report", tmp_path / "rows.zip")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "rows.pdf").read_bytes().startswith(b"%PDF")


def test_a_bundle_has_rows_tables_records_and_raw_outputs(packed):
    files = contents(packed)
    rows = {f"rows/{name}.csv" for name in schema.FILES}
    assert {*rows, "rows/campaign.json", "plan.json", "tables/cpu.csv"} <= set(files)
    assert "machine/node1.json" in files
    assert any(name.endswith("0.raw/0.stdout") for name in files)
    assert any(name.startswith("attempts/") for name in files)


def test_a_file_that_is_no_bundle_is_one_sentence(packed, tmp_path):
    bad, whole = tmp_path / "bad.zip", packed.read_bytes()
    with zipfile.ZipFile(packed) as archive:
        start = archive.getinfo("rows/rows.csv").header_offset
    holed = whole[: start + 100] + b"\0" * 900 + whole[start + 1000 :]
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("readme.txt", "a holiday")
    other = (tmp_path / "other.zip").read_bytes()
    for content in (whole[: len(whole) // 2], b"", b"PK nonsense", holed, other):
        bad.write_bytes(content)
        with (
            pytest.raises(PeakmarkError, match="no bundle of peakmark") as caught,
            pack.opened(bad),
        ):
            pass
        assert "\n" not in str(caught.value)


def test_the_same_records_give_the_same_bytes(packed, tmp_path):
    again = pack.write(campaign(tmp_path / "small"), tmp_path / "again.zip")
    assert contents(again)["tables/cpu.csv"] == contents(packed)["tables/cpu.csv"]


def test_commands_read_a_bundle_as_its_folder_or_say_how(packed, tmp_path, peakmark):
    copy = Path(shutil.copy(packed, tmp_path / "small.zip"))
    folder = packed.with_suffix("")
    for command in ("compare", "fleet", "export"):
        words = ([copy, copy], [folder, folder]) if command == "compare" else ([copy], [folder])
        more = ["--json-lines"] if command == "export" else []
        of_bundle, of_folder = (peakmark(command, *each, *more) for each in words)
        assert of_bundle.returncode == 0, of_bundle.stderr
        assert of_bundle.stdout == of_folder.stdout
    for command in ("status", "tables", "bundle"):
        done = peakmark(command, copy)
        (line,) = done.stderr.splitlines()
        assert done.returncode == 4 and f"{copy} is a file" in line and "unzip" in line


def test_a_folder_that_is_no_campaign_and_a_place_that_is_none_are_one_sentence(tmp_path, peakmark):
    folder = campaign(tmp_path / "small")
    absent = tmp_path / "no"
    done = peakmark("bundle", folder, "-o", absent / "b.zip")
    assert done.returncode == 4 and str(absent) in done.stderr
    assert "is no campaign" in peakmark("report", tmp_path / "none.zip").stderr
