"""Pack a campaign into one zip file (a bundle), and open it again: its rows suffice for every view."""

from __future__ import annotations

import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from peakmark.errors import PeakmarkError, RecordError
from peakmark.rows import CAMPAIGN, FOLDER, build
from peakmark.views import document, table_files

PACKED = (
    "plan.json",
    "config.json",
    f"{FOLDER}/*",
    "tables/**/*",
    "cells/**/*",
    "attempts/**/*",
    "machine/*.json",
    "figures/*",
    "report.pdf",
    "report.html",
    "summary.*",
)
"""Patterns of the files that a bundle holds, below the folder of the campaign."""
OLDEST = (1980, 1, 1, 0, 0, 0)
"""Time of every file in a bundle, the earliest that a zip file can store: equal files give equal bytes."""


def write(campaign: Path, target: Path | None = None) -> Path:
    """Write the bundle of a campaign, after bringing its rows and tables up to date.

    The author's chapters are packed too, although they may be in another folder.

    Args:
        campaign: folder of the campaign.
        target: zip file; by default next to the folder, with the folder's name.

    Returns:
        Path of the zip file.

    Raises:
        PeakmarkError: the folder holds no campaign, or a record is damaged.
    """
    frames = build.load(campaign)
    table_files.write_tables(frames, campaign / table_files.FOLDER)
    folder = campaign.resolve()
    target = target or folder.with_name(f"{folder.name}.zip")
    # Name in the bundle -> the file.
    found: dict[str, Path] = {}
    for pattern in PACKED:
        for path in filter(Path.is_file, folder.glob(pattern)):
            found[path.relative_to(folder).as_posix()] = path
    # A report made from the bundle takes the chapters from its folder ``text`` (``document.PACKED``) first.
    report = frames.campaign["config"].get("report") or {}
    for path in document.texts_of(report, folder / document.PACKED).values():
        found[f"{document.PACKED}/{path.name}"] = path
    with zipfile.ZipFile(target, "w") as archive:
        for name, path in sorted(found.items()):
            entry = zipfile.ZipInfo(name, OLDEST)
            entry.compress_type = zipfile.ZIP_DEFLATED
            # A regular file, rw-r--r--: zip keeps the mode in the upper 16 bits.
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, path.read_bytes())
    return target


@contextmanager
def opened(path: Path) -> Iterator[Path]:
    """Yield the folder of a campaign, for a ``with`` block.

    A bundle is unpacked into a temporary folder that exists during the block. Messages of errors
    that the block raises name the bundle instead of this folder.

    Raises:
        RecordError: the file is no bundle, or it is damaged.
    """
    if not path.is_file():
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="peakmark-bundle-") as parent:
        folder = Path(parent) / path.stem
        _unpack(path, folder)
        try:
            yield folder
        except PeakmarkError as error:
            error.args = (str(error).replace(str(folder), str(path)),)
            raise


def _unpack(bundle: Path, folder: Path) -> None:
    """Unpack a bundle; ``zipfile`` keeps every file inside the folder. Errors: RecordError."""
    try:
        with zipfile.ZipFile(bundle) as archive:
            archive.extractall(folder)
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError) as error:
        raise RecordError(
            f"{bundle} is damaged or no bundle of peakmark ({error}): download or copy it again"
        ) from error
    if not (folder / FOLDER).is_dir():
        raise RecordError(f"{bundle} is no bundle of peakmark: it has no {FOLDER}/")
    # Each unpacked file has the time at which it was unpacked. The rows count as current if no file is newer than
    # the file ``CAMPAIGN``.
    (folder / FOLDER / CAMPAIGN).touch()
