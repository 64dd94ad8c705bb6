"""Bundles: the same report elsewhere, the same bytes twice, and nothing changed or hostile."""

import hashlib
import shutil
import subprocess
import warnings
import zipfile
from pathlib import Path

import pytest
from tests.unit import campaign_data as make

from peakmark import files
from peakmark.bundle import pack
from peakmark.errors import PeakmarkError
from peakmark.rows import schema
from peakmark.views.report import rendering
from peakmark.workflow import documents

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


LISTED_OUTSIDE = f"{hashlib.sha256(b'x').hexdigest()}  ../evil\n".encode()


def without(files, name):
    del files[name]
    return files


def rewritten(source, target, change):
    """A copy of a zip file whose files were changed."""
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in change(contents(source)).items():
            archive.writestr(name, content)
    return target


def test_the_same_pdf_elsewhere(tmp_path, monkeypatch):
    here, elsewhere = tmp_path / "here", tmp_path / "elsewhere"
    folder = campaign(here / "small", tables="file-io-lab", author="Jane")
    make.tables(folder)
    original = rendering.write_pdf(documents.collect(folder)).read_bytes()
    made = pack.write(folder)
    assert made == here / "small.zip"
    elsewhere.mkdir()
    shutil.move(made, elsewhere / "got.zip")
    shutil.rmtree(here)
    monkeypatch.chdir(elsewhere)
    path, comparison = pack.rebuild(Path("got.zip"))
    assert path == Path("got.pdf") and path.read_bytes() == original
    assert comparison.startswith("identical")
    # And so does the unpacked folder.
    unpacked = documents.collect(unpack(Path("got.zip"), Path("got")))
    assert rendering.write_pdf(unpacked).read_bytes() == original


def test_checksums_are_what_sha256sum_reads(packed, tmp_path):
    argv = ["sha256sum", "--check", "--strict", "SHA256SUMS"]
    done = subprocess.run(argv, cwd=unpack(packed, tmp_path), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    names = set(contents(packed))
    assert len(done.stdout.splitlines()) == len(names) - 1
    named = "plan.json machine/node1.json report.pdf tables/cpu.csv rows/rows.csv"
    assert set(named.split()) <= names
    assert any(name.endswith("0.raw/0.stdout") for name in names)
    assert any(name.startswith("attempts/") for name in names)


def test_a_bundle_has_the_rows_and_what_to_install(packed):
    files = contents(packed)
    assert b"--hash=sha256:" in files["requirements.txt"]
    assert files["report.html"].startswith(b"<!DOCTYPE html>")
    rows = {f"rows/{name}.csv" for name in schema.FILES}
    assert {*rows, "rows/campaign.json"} <= set(files)
    assert len(files["rows/rows.csv"].splitlines()) == 4


@pytest.mark.parametrize(("command", "option"), [
    ("bundle", "--license"), ("bundle", "--anonymise"), ("report", "--artifact"),
])  # fmt: skip
def test_a_removed_option_says_what_to_do_instead(command, option, peakmark):
    done = peakmark(command, "results/none", option)
    assert done.returncode == 2 and f"{option} was removed: " in done.stderr


@pytest.mark.parametrize(("change", "message"), [
    (lambda f: f | {"plan.json": f["plan.json"] + b" "}, r"plan\.json does not have its checksum"),
    (lambda f: without(f, "report.pdf"), r"report\.pdf"),
    (lambda f: without(f, "SHA256SUMS"), "SHA256SUMS"),
    (lambda f: f | {"SHA256SUMS": b"\xff\xfe"}, "damaged"),
    (lambda f: f | {"SHA256SUMS": b"abc  plan.json\n"}, r"plan\.json does not have its checksum"),
    (lambda f: f | {"SHA256SUMS": LISTED_OUTSIDE, "../evil": b"x"}, "lies outside"),
    (lambda _: {"readme.txt": b"a holiday"}, "SHA256SUMS"),
])  # fmt: skip
def test_a_changed_bundle(packed, tmp_path, change, message):
    (tmp_path / "in").mkdir()
    with pytest.raises(PeakmarkError, match=message) as caught:
        pack.rebuild(rewritten(packed, tmp_path / "in" / "bad.zip", change))
    assert "\n" not in str(caught.value)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["bad.zip", "in"]


def test_a_bomb_is_refused_before_it_is_unpacked(packed, monkeypatch):
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda *_: pytest.fail("it was unpacked"))
    monkeypatch.setattr(files, "free", lambda _: 10)
    with pytest.raises(PeakmarkError, match="free some space"):
        pack.rebuild(packed)


def test_links_doubles_and_damaged_files_are_refused(packed, tmp_path):
    bad, whole = tmp_path / "bad.zip", packed.read_bytes()

    def refused(message):
        with pytest.raises(PeakmarkError, match=message) as caught:
            pack.rebuild(bad)
        assert "\n" not in str(caught.value)

    link = zipfile.ZipInfo("cells/link")
    link.external_attr = 0o120777 << 16
    for entries in ([link], ["plan.json"] * 2):
        with zipfile.ZipFile(bad, "w") as archive, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # zipfile's own, about the double
            for entry in entries:
                archive.writestr(entry, "/etc/passwd")
        refused("damaged or no bundle of peakmark")
    with zipfile.ZipFile(packed) as archive:
        start = archive.getinfo("report.pdf").header_offset
    holed = whole[: start + 2000] + b"\0" * 900 + whole[start + 2900 :]
    for content in (whole[: len(whole) // 2], b"", b"PK nonsense", holed):
        bad.write_bytes(content)
        refused("damaged or no bundle of peakmark")


def test_the_same_records_give_the_same_bytes(packed, tmp_path):
    again = pack.write(campaign(tmp_path / "small"), tmp_path / "again.zip")
    assert again.read_bytes() == packed.read_bytes()


def test_files_without_a_checksum_are_passed_over(packed, tmp_path):
    more = {"cells/more.json": b"{}", "../evil": b"x"}
    made = rewritten(packed, tmp_path / "more.zip", lambda files: files | more)
    assert pack.rebuild(made)[1].startswith("identical")
    assert not (tmp_path.parent / "evil").exists()


def test_history_counts_a_bundle_and_its_folder_once(packed, tmp_path, peakmark):
    folder = unpack(packed, tmp_path / packed.name.removesuffix(".zip"))
    both, one = peakmark("history", folder, packed), peakmark("history", packed)
    assert both.returncode == one.returncode == 0, both.stderr
    assert both.stdout == one.stdout


def test_commands_read_a_bundle_as_its_folder_or_say_how(packed, tmp_path, peakmark):
    copy = Path(shutil.copy(packed, tmp_path / "small.zip"))
    folder = packed.with_suffix("")
    for command in ("compare", "fleet", "export"):
        words = ([copy, copy], [folder, folder]) if command == "compare" else ([copy], [folder])
        more = ["--json-lines"] if command == "export" else []
        of_bundle, of_folder = (peakmark(command, *each, *more) for each in words)
        assert of_bundle.returncode == 0, of_bundle.stderr
        assert of_bundle.stdout == of_folder.stdout
    assert peakmark("html", copy).stdout == f"{copy.with_suffix('.html')}\n"
    for command in ("status", "summary", "tables", "bundle"):
        done = peakmark(command, copy)
        (line,) = done.stderr.splitlines()
        assert done.returncode == 4 and f"{copy} is a file" in line and "unzip" in line
    copy.write_bytes(b"PK")
    done = peakmark("compare", copy, folder)
    assert done.returncode == 4 and str(copy) in done.stderr


def test_what_cannot_be_bundled_is_one_sentence(tmp_path, peakmark):
    folder = campaign(tmp_path / "other")
    raw, kernel = next(folder.rglob("0.stdout")), next(folder.glob("cells/cpu/*/*/any/0.json"))

    def refused(*words):
        done = peakmark(*words)
        assert done.returncode == 4
        return done.stderr

    absent = tmp_path / "no"
    assert str(absent) in refused("bundle", folder, "-o", absent / "b.zip")
    raw.write_text("another text")
    # A record whose raw output was changed does not count.
    assert "1 of 3 planned cells" in refused("bundle", folder)
    raw.unlink()
    assert "cannot be read" in refused("bundle", folder)
    kernel.unlink()
    assert f"peakmark bundle --partial {folder}" in refused("bundle", folder)
    assert "is no campaign" in refused("report", tmp_path / "none.zip")


def test_a_partial_bundle_says_how_to_report_it(tmp_path, peakmark):
    folder, made = campaign(tmp_path / "small"), tmp_path / "p.zip"
    next(folder.glob("cells/cpu/cpubench/*/any/0.json")).unlink()
    assert "1 of 3 planned cells" in peakmark("bundle", folder).stderr
    assert peakmark("bundle", "--partial", folder, "-o", made).returncode == 0
    done = peakmark("report", made)
    assert done.returncode == 4 and f"peakmark report --partial {made}" in done.stderr
    done = peakmark("report", "--partial", made)
    assert done.returncode == 0 and "identical" in done.stdout
