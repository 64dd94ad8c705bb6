"""Pack a campaign into one zip file with checksums, and unpack it.

From the file alone ``peakmark report`` builds the same PDF elsewhere. A bundle that came from
elsewhere is unpacked into no other folder, and trusted no further than its checksums.
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
from peakmark.workflow import documents

SUMS = "SHA256SUMS"
PINNED = ROOT / "envs" / "requirements.txt"
OLDEST = (1980, 1, 1, 0, 0, 0)
"""Earliest time that a zip file can store."""


def write(campaign: Path, target: Path | None = None, *, partial: bool = False) -> Path:
    """Write the bundle of a campaign; the same records give the same bytes.

    Args:
        campaign: its folder.
        target: the zip file; by default it lies beside the folder, with the folder's name.
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
        # Without the state of the files, which is another wherever they are unpacked.
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
    """Tables, figures, PDF and HTML report of a campaign. Returns the path of the PDF."""
    report = documents.collect(campaign, partial)
    documents.write_tables(campaign)
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


def copy(results: Results, target: Path) -> list[str]:
    """Copy what the report of a campaign needs.

    Returns:
        The POSIX paths written below ``target``, sorted.

    Raises:
        RecordError: a raw output is missing or is not what its record says.
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
    """Write those files of a bundle for which it has a checksum. Errors: PeakmarkError, see ``rebuild``."""
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
