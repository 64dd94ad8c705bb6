"""A campaign as one zip file with checksums and a description (RO-Crate 1.1), and the way back.

The artifact of a paper is made of it too: the appendix on a campaign that SC and ACM ask for.

From the file alone ``peakmark report`` builds the same PDF elsewhere. A bundle that came from
elsewhere is unpacked into no other folder, and trusted no further than its checksums.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from mimetypes import MimeTypes
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

import msgspec

from peakmark import __version__, data, output
from peakmark import files as filesystem
from peakmark.analysis import Analysis
from peakmark.analysis.history import StoredCampaign, StoredHistory
from peakmark.analysis.label_formatter import LabelFormatter
from peakmark.analysis.row import Row, Series
from peakmark.config import inputs
from peakmark.errors import ConfigError, PeakmarkError, RecordError, sentence
from peakmark.formatting import gigabytes, mapped
from peakmark.messages import message
from peakmark.report import (
    ANALYSIS,
    ReportContent,
    appendix,
    incomplete,
    must_be_complete,
    rendering,
    write_analysis,
)
from peakmark.resources import ROOT
from peakmark.storage import planfile, records
from peakmark.storage.results import Results, StoredRecord
from peakmark.views import latex

SUMS = "SHA256SUMS"
PINNED = ROOT / "envs" / "requirements.txt"
OLDEST = (1980, 1, 1, 0, 0, 0)
"""A zip file knows no time before."""
_LICENCE = re.compile(r"(https?://\S+|[A-Za-z0-9][A-Za-z0-9.+-]*)")

Replace = Callable[[str], str]
"""What every text of a copied campaign passes through: values in JSON, raw outputs, paths."""


def write(
    campaign: Path,
    target: Path | None = None,
    *,
    partial: bool = False,
    licence: str | None = None,
    replace: Replace = str,
) -> Path:
    """Write the bundle of a campaign; the same records give the same bytes.

    Args:
        campaign: its folder.
        target: the zip file; by default it lies beside the folder, with the folder's name.
        partial: whether cells may be missing.
        licence: an SPDX identifier or an address.
        replace: what every text passes through, see ``copy``.

    Returns:
        Path of the zip file.

    Raises:
        PeakmarkError: cells are missing, or the file cannot be written.
        RecordError: a record or raw output is damaged.
        ConfigError: the licence is none.
    """
    if licence is not None and not _LICENCE.fullmatch(licence):
        raise ConfigError(
            f"--license {licence!r} is neither an SPDX identifier such as CC-BY-4.0 nor an address"
        )
    results = Results.read(campaign)
    must_be_complete(incomplete(results), partial, "bundle", campaign)
    whole = results.directory.resolve()
    target = target or whole.parent / f"{whole.name}.zip"
    filesystem.document_place(target)
    with tempfile.TemporaryDirectory(prefix="peakmark-bundle-") as name:
        folder = Path(name) / results.name
        paths = copy(results, folder, replace)
        build_all(folder, partial)
        paths += ["report.pdf", "report.html"]
        paths += [path.relative_to(folder).as_posix() for path in folder.glob("tables/**/*.csv")]
        content = {path: (folder / path).read_bytes() for path in paths}
        stored = filesystem.read_json(folder / ANALYSIS)
        content[ANALYSIS] = _json({"history": stored["history"]})
        content["requirements.txt"] = PINNED.read_bytes()
        content = dict(sorted(content.items()))
        content[SUMS] = checksums(content).encode()
        copied = Results.read(folder)
        content[CRATE_NAME] = describe(copied, content, licence).encode()
        packed = _zip(content, copied.newest)
    filesystem.write_document(target, packed, results.directory)
    return target


def build_all(campaign: Path, partial: bool) -> Path:
    """Tables, figures, PDF and HTML report of a campaign. Returns the path of the PDF."""
    report = ReportContent.read(campaign, partial)
    rendering.write_html(report)
    return rendering.write_pdf(report)


def checksums(content: Mapping[str, bytes]) -> str:
    """Lines as ``sha256sum --check`` reads them."""
    return "".join(
        f"{hashlib.sha256(text).hexdigest()}  {path}\n" for path, text in content.items()
    )


def _zip(content: Mapping[str, bytes], when: datetime) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path, text in content.items():
            entry = zipfile.ZipInfo(path, max(OLDEST, when.timetuple()[:6]))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix, wherever this runs.
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, text)
    return packed.getvalue()


def copy(results: Results, target: Path, replace: Replace = str) -> list[str]:
    """Copy what the report of a campaign needs, with every text passed through ``replace``.

    The checksums in the records are those of the new raw outputs.

    Returns:
        The POSIX paths written below ``target``, sorted.

    Raises:
        RecordError: a raw output is missing or is not what its record says.
        ConfigError: a file that the configuration names is missing.
    """
    written = []

    def path_of(name: str) -> str:
        return "/".join(map(replace, name.split("/")))

    def put(name: str, content: bytes) -> None:
        place = filesystem.below(target, path_of(name))
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        written.append(path_of(name))

    folder = results.directory
    paths = [folder / name for name in ("plan.json", "config.json")]
    for path in paths:
        if path.is_file():
            put(path.relative_to(folder).as_posix(), _json(mapped(_read_json(path), replace)))
    for node, known in results.facts.items():
        put(f"machine/{node}.json", records.text_of(mapped(known, replace)).encode())
    for record in (*results.records, *results.attempts):
        digests = {}
        for name, raw in raw_outputs(results, record):
            text = replace(raw.decode("utf-8", "surrogateescape"))
            content = text.encode("utf-8", "surrogateescape")
            digests[path_of(name)] = hashlib.sha256(content).hexdigest()
            put(str(PurePosixPath(record.path).parent / name), content)
        copied = {**mapped(record.data, replace), "raw": digests}
        put(record.path, records.text_of(copied).encode())
    section = results.config.get("report") or {}
    for name, path in inputs.collect(folder, section):
        put(name, filesystem.read_bytes(path))
    index = inputs.index(section)
    if index:
        put(inputs.INDEX, _json(mapped(index, replace)))
    return sorted(written)


def _read_json(path: Path) -> Any:
    try:
        return filesystem.read_json(path)
    except ValueError as error:
        raise RecordError(f"{path} is damaged ({error})", planfile.ANEW) from error


def _json(value: Any) -> bytes:
    """JSON as the plan is written; the report shows keys in this order."""
    text = json.dumps(value, indent=1, allow_nan=False)
    return f"{text}\n".encode()


def raw_outputs(results: Results, record: StoredRecord) -> Iterator[tuple[str, bytes]]:
    """Name and content of each raw output; a record whose outputs were changed does not count.

    Errors: RecordError when one is missing.
    """
    place = results.directory / record.path
    for name in sorted(record.data["raw"]):
        path = filesystem.below(place.parent, name)
        try:
            yield name, filesystem.read_bytes(path)
        except OSError as error:
            raise RecordError(
                f"the raw output {path} cannot be read ({error.strerror}): put it back, or move "
                f"its record {place} away and run the campaign again to measure this cell anew"
            ) from error


def histories(paths: Iterable[Path]) -> list[StoredCampaign]:
    """What is stored of campaigns and bundles, in the order of their time, each under the name of
    its folder or file and once. Those without are passed over, and named on standard error.
    """
    stored: dict[tuple[str, float], StoredCampaign] = {}
    passed_over = []
    for path in paths:
        try:
            if path.is_dir():
                content = filesystem.read_bytes(path / ANALYSIS)
            else:
                with zipfile.ZipFile(path) as archive, archive.open(ANALYSIS) as member:
                    content = member.read(filesystem.LARGEST)
            campaign = filesystem.parse_json(content, StoredHistory).history
        except Exception:  # zipfile and its decompressors raise many for damaged data.
            passed_over.append(str(path))
            continue
        name = path.name.removesuffix(".zip")
        key = campaign.name, campaign.began
        stored.setdefault(key, msgspec.structs.replace(campaign, name=name))
    if passed_over:
        output.tell(message("passed-over", first=passed_over[0], count=len(passed_over)).text)
    return sorted(stored.values(), key=lambda campaign: campaign.began)


def rebuild(bundle: Path, target: Path | None = None, partial: bool = False) -> tuple[Path, str]:
    """Build the report of a bundle from its records alone.

    Args:
        bundle: a zip file.
        target: the PDF; by default ``<name>.pdf`` beside the bundle.
        partial: whether cells may be missing.

    Returns:
        The PDF, and how it compares with the one in the bundle.

    Raises:
        PeakmarkError: the bundle is damaged or was changed, or holds no whole campaign.
    """
    path = target or bundle.with_suffix(".pdf")
    with tempfile.TemporaryDirectory(prefix="peakmark-bundle-") as folder:
        _unpack(bundle, Path(folder))
        earlier = Path(folder) / "report.pdf"
        before = earlier.read_bytes() if earlier.exists() else b""
        try:
            after = build_all(Path(folder), partial).read_bytes()
        except PeakmarkError as error:
            raise PeakmarkError(str(error).replace(folder, str(bundle))) from error
    filesystem.write_document(path, after)
    if before == after:
        return path, "the same, byte by byte, as the report in the bundle"
    why = "it was made with --partial, or by other versions of peakmark, Typst or matplotlib"
    return path, f"not the same bytes as the report in the bundle: {why}"


@contextmanager
def opened(path: Path) -> Iterator[Path]:
    """Yield the folder of a campaign; a bundle is unpacked until the block ends.

    Raises:
        PeakmarkError: the bundle is damaged or was changed; errors of the block name the bundle.
    """
    if not path.is_file():
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="peakmark-bundle-") as parent:
        folder = Path(parent) / path.stem
        folder.mkdir()
        _unpack(path, folder)
        try:
            yield folder
        except PeakmarkError as error:
            kind = ConfigError if isinstance(error, ConfigError) else PeakmarkError
            raise kind(str(error).replace(str(folder), str(path))) from error


def _unpack(bundle: Path, folder: Path) -> None:
    """Write the files of a bundle that have a checksum in it. Errors: PeakmarkError, see ``rebuild``."""
    try:
        with zipfile.ZipFile(bundle) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
            free = filesystem.free(folder)
            if size > free:
                raise PeakmarkError(
                    f"{bundle} unpacks to {gigabytes(size)}, and {folder.parent} has "
                    f"{gigabytes(free)} free: make room, or set TMPDIR to another folder"
                )
            for line in archive.read(SUMS).decode().splitlines():
                digest, _, name = line.partition("  ")
                content = archive.read(name)
                if hashlib.sha256(content).hexdigest() != digest:
                    raise RecordError(f"{name} is not what {SUMS} says")
                place = filesystem.below(folder, name)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(content)
    except OSError as error:
        raise PeakmarkError(f"cannot unpack the bundle {bundle}: {sentence(error)}") from error
    except Exception as error:  # zipfile and its decompressors raise many for damaged data.
        if type(error) is PeakmarkError:
            raise
        why = " ".join(str(error).split()).rstrip(".")
        raise PeakmarkError(
            f"{bundle} is damaged or no bundle of peakmark ({why}): get it again from where it came "
            "from"
        ) from error


CRATE_NAME = "ro-crate-metadata.json"
_KINDS = MimeTypes()
"""Without those of this machine, so that a bundle has the same bytes everywhere."""


def describe(results: Results, content: Mapping[str, bytes], licence: str | None = None) -> str:
    """The JSON-LD of a bundle (RO-Crate 1.1).

    Args:
        results: the campaign.
        content: POSIX path -> content of each file.
        licence: an SPDX identifier or an address.
    """
    config = results.report_config
    authors = [
        {
            "id": f"https://orcid.org/{author.orcid}" if author.orcid else f"#author-{number}",
            "name": author.name,
            "affiliation": author.affiliation,
        }
        for number, author in enumerate(inputs.authors(config), 1)
    ]
    publisher = config.get("publisher")
    names = [*(author["affiliation"] for author in authors), publisher]
    address = licence or "#licence"
    if licence and "://" not in licence:
        address = f"https://spdx.org/licenses/{quote(licence)}"
    files = [
        {
            "path": path,
            "kind": _KINDS.guess_type(path)[0] or "text/plain",
            "size": len(text),
            "digest": hashlib.sha256(text).hexdigest(),
        }
        for path, text in content.items()
    ]
    return data.rendered(
        "crate.json.j2",
        crate=CRATE_NAME,
        title=config.get("title") or "Performance report",
        campaign=results.name,
        measured=len(results.cells) - len(results.missing),
        planned=len(results.cells),
        date=results.newest.isoformat(timespec="seconds"),
        licence=licence,
        licence_address=address,
        authors=authors,
        publisher=publisher,
        organisations=list(dict.fromkeys(filter(None, names))),
        files=files,
    )


FOLDER = "artifact"
HPL_FILES = {
    "hpccoutf.txt": "HPL.out",
    "stdout": "HPL.out",
    "hpccinf.txt": "HPL.dat",
    "HPL.dat": "HPL.dat",
}
"""Raw output of a record of HPL -> its name for readers of HPL; ``hpcc`` prints nothing."""


def write_artifact(campaign: Path) -> Path:
    """Write ``artifact/`` of a campaign: ``appendix.tex``, and ``HPL.out`` and ``HPL.dat`` where HPL
    was measured. The analysis is made anew, as the appendix says how long it takes.

    Returns:
        The appendix.

    Raises:
        PeakmarkError: there is another's file, or the folder cannot be written.
        RecordError: an output of HPL is missing or was changed.
    """
    began = time.monotonic()
    analysis = Analysis.of(campaign)
    values = write_analysis(analysis)
    seconds = time.monotonic() - began
    files = dict(_hpl_files(analysis.results))
    text = latex.template("artifact.tex.j2").render(
        values,
        version=__version__,
        rows=[
            _expected(row, row.own)
            for rows in analysis.rows.values()
            for row in rows
            if row.own is not None
        ],
        seconds=seconds,
        pinned=hashlib.sha256(PINNED.read_bytes()).hexdigest(),
        hpl=sorted(files),
    )
    folder = filesystem.made_folder(campaign, FOLDER)
    files["appendix.tex"] = text.encode()
    for name, content in files.items():
        filesystem.write_document(folder / name, content, campaign)
    return folder / "appendix.tex"


def _hpl_files(results: Results) -> Iterator[tuple[str, bytes]]:
    """Name and content of the output and the settings of the fastest run of HPL."""
    runs = [each for each in results.records if each.ok and each.cell.instrument == "hpl"]
    fastest = max(runs, key=lambda each: float(each.data["measurements"][0]["value"]), default=None)
    if fastest is None:
        return
    for name, content in raw_outputs(results, fastest):
        shown = HPL_FILES.get(name.partition("/")[2].partition(".")[2])
        if shown:
            yield shown, content


def _expected(row: Row, own: Series) -> Sequence[str]:
    """Of a row: table, label, median, ends and level of its interval, unit, repetitions."""
    labels, summary = LabelFormatter.of(row), own.summary
    values = (summary.median, summary.low, summary.high)
    numbers = [labels.number(value, own.step) for value in values]
    level = f"{100 * summary.level:.0f} %" if summary.n > 1 else ""
    table = row.table.full_title
    label = appendix.row_label(labels, row)
    return table, label, *numbers, level, labels.unit, str(summary.n)
