"""Read and write peakmark's files.

- Reading refuses everything except regular files, and never blocks.
- Writing replaces a file atomically.
- A document (report or bundle) replaces only files that the same campaign wrote. An OpenMetrics file
  also replaces those of other campaigns.
"""

from __future__ import annotations

import errno
import hashlib
import os
import pwd
import re
import shutil
import stat
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Any

from peakmark.errors import PeakmarkError, RecordError, sentence
from peakmark.formatting import gigabytes

LARGEST = 128 << 20
"""Largest file in bytes that is read: three times the size of a plan with 100,000 cells."""
MARGIN = 1.2
"""Free space that a disk cell needs before it starts, as a multiple of the bytes that it writes."""
_KINDS = (
    (stat.S_ISDIR, errno.EISDIR, "it is a folder"),
    (stat.S_ISFIFO, errno.EINVAL, "it is a named pipe, not a file"),
    (stat.S_ISCHR, errno.EINVAL, "it is a device, not a file"),
    (stat.S_ISBLK, errno.EINVAL, "it is a device, not a file"),
)
_REFUSALS = {
    errno.ENXIO: "it is a socket or a device, not a file",
    errno.ENODEV: "it is a device, not a file",
    errno.EISDIR: "it is a folder",
    errno.ELOOP: "it is a link, or its symbolic links lead back to it",
}
"""Error number of Linux -> kind of file for which it is raised."""
_NO_FOLDER_SYNC = frozenset(
    (errno.EBADF, errno.EINVAL, errno.EISDIR, errno.ENOSYS, errno.EOPNOTSUPP, errno.EACCES)
)
"""Errors of filesystems that cannot sync folders, and of folders without read permission.

These errors are ignored, because the file itself was synced before (as in PostgreSQL's ``fsync_fname``).
"""
_NO_SYNC = frozenset((errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP))
"""Errors of filesystems that cannot sync files."""


def open_regular(path: Path, flags: int) -> int:
    """Open a regular file as ``os.open`` does, and return its descriptor.

    Everything else is refused: opening a named pipe would block, and a lock on a device has no effect.

    Raises:
        OSError: the path cannot be opened, or is no regular file.
    """
    try:
        descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    except OSError as error:
        reason = _REFUSALS.get(error.errno or 0)
        if reason is None or not os.path.lexists(path):
            raise
        raise OSError(error.errno, reason, str(path)) from None
    kind = os.fstat(descriptor).st_mode
    for is_kind, number, reason in _KINDS:
        if is_kind(kind):
            os.close(descriptor)
            raise OSError(number, reason, str(path))
    return descriptor


def user_name(number: int) -> str:
    """Return the name of a user, or ``user NUMBER`` if the system does not know it."""
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"


def how_to_read(path: Path) -> str:
    """Return who must run which command, so that this process can read a file.

    The command names the outermost folder that this process cannot enter, or the file itself.
    """
    place = path
    while not os.access(place.parent, os.X_OK) and place != place.parent:
        place = place.parent
    try:
        owner = user_name(place.lstat().st_uid)
    except OSError:
        return f"its owner, or root, must run chmod -R a+rX {place}"
    return f"it belongs to {owner}, who (or root) must run chmod -R a+rX {place}"


def read_bytes(path: Path, most: int = LARGEST) -> bytes:
    """Read a regular file of at most ``most`` bytes.

    Raises:
        OSError: the file cannot be read, is larger, or is no regular file.
    """
    descriptor = open_regular(path, os.O_RDONLY)
    try:
        about = os.fstat(descriptor)
        if about.st_size > most:
            reason = f"it has {gigabytes(about.st_size)}, allowed are {gigabytes(most)}"
            raise OSError(errno.EFBIG, reason, str(path))
        stream = os.fdopen(descriptor, "rb")
    except OSError:
        os.close(descriptor)
        raise
    with stream:
        return stream.read()


def read_text(path: Path) -> str:
    """Read a text file. Errors: OSError; UnicodeDecodeError, a ValueError."""
    return read_bytes(path).decode("utf-8")


def set_aside(path: Path, folder: Path) -> Path:
    """Move a file into a folder, under the next free number, and return its new path.

    Errors: OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    number = 0
    while (target := folder / f"{path.stem}.{number}{path.suffix}").exists():
        number += 1
    return path.rename(target)


def read_json(path: Path) -> Any:
    """Read a JSON file. Errors: OSError; ValueError as in ``parse_json``."""
    return parse_json(read_bytes(path))


def parse_json(content: bytes, kind: Any = Any) -> Any:
    """Parse a JSON text in UTF-8.

    Args:
        content: the text.
        kind: type of the value.

    Raises:
        ValueError: the text is no JSON or not of the type, has an invalid character or a number that
            is too large for a float, or is nested too deeply.
    """
    import msgspec  # late: peakmark check runs with the standard library alone

    try:
        return msgspec.json.decode(content, type=kind)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from error


def below(folder: Path, name: str) -> Path:
    """Return the path ``folder / name``, after a check that it is below ``folder``.

    The name comes from an untrusted list, such as the contents of a bundle.

    Raises:
        RecordError: the path is not below ``folder``.
    """
    place = folder / name
    is_valid = bool(name) and "\0" not in name
    if not is_valid or not Path(os.path.normpath(place)).is_relative_to(os.path.normpath(folder)):
        raise RecordError(f"{name!r} lies outside its folder, {folder}")
    return place


def unusable(folder: Path) -> str | None:
    """Return why no file can be written in a folder, or None if one can.

    The function writes a file, because free space alone is not enough: /proc reports free space but
    allows no files.
    """
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"0")
    except (OSError, ValueError) as error:
        return getattr(error, "strerror", None) or str(error)
    return None


def free(folder: Path) -> int:
    """Return the free bytes, for ordinary users, on the disk of a folder. Errors: OSError."""
    return shutil.disk_usage(folder).free


def no_room(place: Path, need: int, who: str) -> str | None:
    """Return a message if a disk has too little free space; otherwise None. Errors: OSError.

    Args:
        place: folder on the disk.
        need: bytes that will be written.
        who: subject of the message, such as ``the cell``.
    """
    if not need or free(place) >= need * MARGIN:
        return None
    return (
        f"{place} has {gigabytes(free(place))} free, {who} needs {gigabytes(need * MARGIN)}: free some space, set scratch: "
        "to another directory, or make size: smaller"
    )


def scratch(asked: object = None) -> Path:
    """Return the folder for the files of cells: ``asked``, or ``$TMPDIR``, or /tmp, in this order."""
    return Path(str(asked or os.environ.get("TMPDIR") or "/tmp"))  # noqa: S108 - only private folders are made in it


def write_text(path: Path, text: str) -> None:
    """Create the folder of a file, and write a text as ``write_bytes`` does.

    Raises:
        OSError: the file cannot be written.
        ValueError: the text has an invalid character (a lone surrogate).
    """
    content = text.encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, content)


def write_bytes(path: Path, content: bytes) -> None:
    """Replace a file atomically and durably. Errors: OSError, after which the old file is unchanged."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with naming(path):
        try:
            with temporary.open("wb") as stream:
                stream.write(content)
                stream.flush()
                _sync(stream.fileno(), _NO_SYNC)
            temporary.replace(path)
        except OSError:
            with suppress(OSError):
                temporary.unlink()
            raise
        _sync_folder(path.parent)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Add ``path`` to an OSError of the block, if the error has no file name.

    Errors of ``write``, ``fsync`` and locks have no file name.
    """
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


def _sync(descriptor: int, ignored: Collection[int]) -> None:
    """Sync a file or folder to the disk. Ignore the errors with these numbers."""
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in ignored:
            raise


def _sync_folder(folder: Path) -> None:
    """Sync the entries of a folder to the disk, if its filesystem can."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in _NO_FOLDER_SYNC:
            return
        raise
    try:
        _sync(descriptor, _NO_FOLDER_SYNC)
    finally:
        os.close(descriptor)


def renew(path: Path, text: str) -> None:
    """Write a text, unless the file already has this text. Errors: OSError."""
    with suppress(OSError, ValueError):
        if read_text(path) == text:
            return
    write_text(path, text)


LEAST_BYTES = 8 << 10
"""Free bytes below which a disk counts as full, because a record takes two blocks of 4 KiB."""


def full(folder: Path) -> str | None:
    """Return a message if the disk of a folder has no room for another record; otherwise None.

    If the folder does not exist, its nearest existing parent is checked.
    """
    while not folder.exists() and folder != folder.parent:
        folder = folder.absolute().parent
    try:
        disk = os.statvfs(folder)
    except OSError:
        return None
    if disk.f_bavail * disk.f_frsize >= LEAST_BYTES:
        return None
    return f"No space left on device: the disk of {folder} is full; free disk space, then start again; earlier records are complete"


WRITTEN = "written.sha256"
"""File in the campaign's folder that lists the documents which the campaign wrote elsewhere.

It has checksums and paths in the format of ``sha256sum``.
"""
DOCUMENTS = ("report.pdf", "report.html", "summary.md", "summary.json")
"""Documents in the campaign's folder, which commands may always replace."""


def write_document(
    target: Path,
    content: bytes,
    campaign: Path | None = None,
    replaceable: re.Pattern[bytes] | None = None,
) -> None:
    """Write a document atomically. Links are followed.

    Args:
        target: path of the document.
        content: content of the document.
        campaign: folder of the document's campaign. An existing file is replaced only if this campaign
            wrote it and nobody has changed it since.
        replaceable: pattern of whole files that are replaced too, whichever campaign wrote them.

    Raises:
        PeakmarkError: ``target`` is a file that must not be replaced, or cannot be written.
    """
    place = document_place(target)
    try:
        if place.exists() and place.read_bytes() == content:
            return
        if not _may_replace(target, place, campaign, replaceable):
            raise PeakmarkError(
                f"{target} exists, and this campaign did not write it like this: nothing was overwritten; move it away, or "
                "give another name"
            )
        if campaign is not None and place.parent != campaign.resolve():
            # Ignore errors, because the campaign may be read-only. Replace the list instead of
            # appending to it, because it may be a link.
            with suppress(OSError, ValueError):
                known = campaign / WRITTEN
                before = read_text(known) if known.exists() else ""
                write_text(known, f"{before}{hashlib.sha256(content).hexdigest()}  {place}\n")
        write_bytes(place, content)
    except OSError as error:
        raise PeakmarkError(f"cannot write {target}: {sentence(error, path=False)}") from error


def document_place(target: Path) -> Path:
    """Return the real path of a document, after a check that it can be written.

    Callers also use this check before they build the document, which may take long.

    Raises:
        PeakmarkError: the path is a folder or a device, or its folder does not exist.
    """
    place = Path(os.path.realpath(target))
    if place.exists() and not place.is_file():
        raise PeakmarkError(
            f"cannot write {target}: it is a folder or a device; give the name of a file"
        )
    if not place.parent.is_dir():
        raise PeakmarkError(f"cannot write {target}: there is no folder {place.parent}")
    return place


def _may_replace(
    target: Path, place: Path, campaign: Path | None, replaceable: re.Pattern[bytes] | None
) -> bool:
    """Return whether a document may replace the file at ``place``, if there is one."""
    if not place.exists() or place.stat().st_size == 0:
        return True
    if replaceable is not None and replaceable.fullmatch(place.read_bytes()):
        return True
    if campaign is None:
        return False
    # Documents in the campaign's folder are not listed.
    if place.parent == campaign.resolve() and place.name in DOCUMENTS and not target.is_symlink():
        return True
    with suppress(OSError):
        written = (campaign / WRITTEN).read_text(encoding="utf-8", errors="replace")
        digest = hashlib.sha256(place.read_bytes()).hexdigest()
        return any(line.startswith(digest) for line in written.splitlines())
    return False


def made_folder(campaign: Path, name: str) -> Path:
    """Create a folder for generated files below a campaign if it does not exist, and return it.

    Raises:
        PeakmarkError: the folder is or contains a link, which may lead to another user's files.
        OSError: the folder cannot be created.
    """
    folder = campaign / name
    for path in chain([folder], folder.rglob("*")):
        if path.is_symlink():
            raise PeakmarkError(
                f"{path} is a link: nothing is written through it; move it away, then run the same command again"
            )
        if path.is_file() and path.stat().st_nlink > 1:
            path.unlink()  # a hard link, as from cp -l: the file under the other name is kept
    folder.mkdir(parents=True, exist_ok=True)
    return folder
