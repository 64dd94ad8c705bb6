"""Pack a campaign into one zip file with checksums (a bundle), and unpack it.

On another machine, ``peakmark report`` builds the same PDF from the bundle alone. A bundle may come
from a stranger: no file is unpacked outside its folder, and files without a matching checksum are
refused.
"""

from __future__ import annotations

import hashlib
import io
import json
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

from peakmark import files as filesystem
from peakmark.errors import ConfigError, PeakmarkError, RecordError, sentence
from peakmark.formatting import gigabytes
from peakmark.resources import ROOT
from peakmark.rows import build, schema
from peakmark.rows.names import FOLDER
from peakmark.storage import planfile, records
from peakmark.storage.results import Results, StoredRecord
from peakmark.views.report import document, rendering
from peakmark.workflow import csv_files, documents

SUMS = "SHA256SUMS"
"""File of a bundle that lists the checksums of all other files."""
PINNED = ROOT / "envs" / "requirements.txt"
"""File of Python requirements that a bundle includes."""
OLDEST = (1980, 1, 1, 0, 0, 0)
"""Earliest time that a zip file can store."""


def write(campaign: Path, target: Path | None = None, *, partial: bool = False) -> Path:
    """Write the bundle of a campaign. The same records give the same bytes.

    Args:
        campaign: folder of the campaign.
        target: zip file; by default next to the folder, with the folder's name.
        partial: whether cells may be missing.

    Returns:
        Path of the zip file.

    Raises:
        PeakmarkError: cells are missing, or the file cannot be written.
        RecordError: a record or raw output is damaged.
    """
    results = Results.read(campaign)
    document.must_be_complete(
        build.load(campaign, keep=False).campaign, partial, "bundle", campaign
    )
    whole = results.directory.resolve()
    target = target or whole.parent / f"{whole.name}.zip"
    filesystem.document_place(target)
    with tempfile.TemporaryDirectory(prefix="peakmark-bundle-") as name:
        folder = Path(name) / results.name
        paths = copy(results, folder)
        build_all(folder, partial)
        # Write rows/ without the state of the files, which changes when they are unpacked.
        schema.write(folder, build.judge(Results.read(folder)))
        paths += ["report.pdf", "report.html"]
        for pattern in ("tables/**/*.csv", f"{FOLDER}/*"):
            paths += [path.relative_to(folder).as_posix() for path in folder.glob(pattern)]
        content = {path: (folder / path).read_bytes() for path in paths}
        content["requirements.txt"] = PINNED.read_bytes()
        content = dict(sorted(content.items()))
        content[SUMS] = checksums(content).encode()
        packed = _zip(content, results.newest)
    filesystem.write_document(target, packed, results.directory)
    return target


def build_all(campaign: Path, partial: bool) -> Path:
    """Build tables, figures, PDF and HTML report of a campaign. Return the path of the PDF."""
    report = documents.collect(campaign, partial)
    csv_files.write_tables(campaign)
    rendering.write_html(report)
    return rendering.write_pdf(report)


def checksums(content: Mapping[str, bytes]) -> str:
    """Return the checksums of files in the format of ``sha256sum --check``."""
    return "".join(
        f"{hashlib.sha256(text).hexdigest()}  {path}\n" for path, text in content.items()
    )


def _zip(content: Mapping[str, bytes], when: datetime) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path, text in content.items():
            entry = zipfile.ZipInfo(path, max(OLDEST, when.timetuple()[:6]))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix, on every platform
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, text)
    return packed.getvalue()


def copy(results: Results, target: Path) -> list[str]:
    """Copy the files from which the report of a campaign is built.

    Returns:
        Sorted paths of the files, relative to ``target``, with slashes.

    Raises:
        RecordError: a raw output is missing, or differs from the checksum in its record.
    """
    content: dict[str, bytes] = {}
    folder = results.directory
    for name in ("plan.json", "config.json"):
        if (folder / name).is_file():
            content[name] = _json(_read_json(folder / name))
    for node, known in results.facts.items():
        content[f"machine/{node}.json"] = records.text_of(known).encode()
    for record in (*results.records, *results.attempts):
        for name, raw in raw_outputs(results, record):
            content[str(PurePosixPath(record.path).parent / name)] = raw
        content[record.path] = records.text_of(record.data).encode()
    for name, text in content.items():
        place = filesystem.below(target, name)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text)
    return sorted(content)


def _read_json(path: Path) -> Any:
    try:
        return filesystem.read_json(path)
    except ValueError as error:
        raise RecordError(f"{path} is damaged ({error})", planfile.ANEW) from error


def _json(value: Any) -> bytes:
    """Return a value as JSON. Keys keep their order, in which the report shows them."""
    text = json.dumps(value, indent=1, allow_nan=False)
    return f"{text}\n".encode()


def raw_outputs(results: Results, record: StoredRecord) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of each raw output of a record.

    All outputs match their checksums, because records with changed outputs do not count.

    Raises:
        RecordError: a raw output is missing.
    """
    place = results.directory / record.path
    for name in sorted(record.data["raw"]):
        path = filesystem.below(place.parent, name)
        try:
            yield name, filesystem.read_bytes(path)
        except OSError as error:
            raise RecordError(
                f"the raw output {path} cannot be read ({error.strerror}): restore it, or move "
                f"its record {place} away and run the campaign again, which measures this cell again"
            ) from error


def rebuild(bundle: Path, target: Path | None = None, partial: bool = False) -> tuple[Path, str]:
    """Build the report of a bundle from its records alone.

    Args:
        bundle: the zip file.
        target: the PDF to write; by default ``<name>.pdf`` next to the bundle.
        partial: whether cells may be missing.

    Returns:
        Path of the PDF, and a sentence that compares it with the PDF in the bundle.

    Raises:
        PeakmarkError: the bundle is damaged or was changed, or its campaign is incomplete.
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
        return path, "identical to the report in the bundle"
    why = "it was made with --partial, or by other versions of peakmark, Typst or matplotlib"
    return path, f"differs from the report in the bundle: {why}"


@contextmanager
def opened(path: Path) -> Iterator[Path]:
    """Yield the folder of a campaign. A bundle is unpacked into a temporary folder for the block.

    In messages of errors that the block raises, the temporary folder is replaced by the bundle.

    Raises:
        PeakmarkError: the bundle is damaged or was changed.
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
    """Unpack all files of a bundle that have a checksum, and check them. Errors: PeakmarkError."""
    try:
        with zipfile.ZipFile(bundle) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
            free = filesystem.free(folder)
            if size > free:
                raise PeakmarkError(
                    f"{bundle} unpacks to {gigabytes(size)}, but {folder.parent} has "
                    f"{gigabytes(free)} free: free some space, or set TMPDIR to another folder"
                )
            for line in archive.read(SUMS).decode().splitlines():
                digest, _, name = line.partition("  ")
                content = archive.read(name)
                if hashlib.sha256(content).hexdigest() != digest:
                    raise RecordError(f"{name} does not have its checksum in {SUMS}")
                place = filesystem.below(folder, name)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(content)
    except OSError as error:
        raise PeakmarkError(f"cannot unpack the bundle {bundle}: {sentence(error)}") from error
    except Exception as error:  # zipfile and its decompressors raise many kinds for damaged data
        if type(error) is PeakmarkError:
            raise
        why = " ".join(str(error).split()).rstrip(".")
        raise PeakmarkError(
            f"{bundle} is damaged or no bundle of peakmark ({why}): download or copy it again"
        ) from error
