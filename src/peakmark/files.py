"""Read and write peakmark's files.

Writing replaces a file atomically.
"""

from __future__ import annotations

import os
import pwd
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from peakmark.formatting import gigabytes


def user_name(number: int) -> str:
    """Return the name of a user, or ``user NUMBER`` if the system does not know it."""
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"


def set_aside(path: Path, folder: Path) -> Path:
    """Move a file into a folder, under the next free number, and return its new path.

    Errors: OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    number = 0
    while (target := folder / f"{path.stem}.{number}{path.suffix}").exists():
        number += 1
    return path.rename(target)


def parse_json(content: bytes, kind: Any = Any) -> Any:
    """Parse a JSON text in UTF-8.

    Args:
        content: the text.
        kind: type of the value.

    Raises:
        ValueError: the text is no JSON or not of the type, or has an invalid character.
    """
    import msgspec  # late: peakmark check runs with the standard library alone

    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from error


def unusable(folder: Path) -> str | None:
    """Return why no file can be written in a folder; None if a test file could be written.

    The reported free space alone does not tell: /proc reports some, but allows no files.
    """
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"0")
    except OSError as error:
        return error.strerror
    return None


LEAST_BYTES = 8 << 10
"""Free bytes below which a disk counts as full, because a record takes two blocks of 4 KiB."""
MARGIN = 1.2
"""Free space that is demanded before files are written, as a multiple of their size."""


def full(folder: Path, need: int = LEAST_BYTES) -> str | None:
    """Return a message if the disk of a folder has too little free space; otherwise None.

    If the folder does not exist, its nearest existing parent is checked.

    Args:
        folder: the folder.
        need: bytes that will be written; by default those of a record.
    """
    while not folder.exists():
        folder = folder.absolute().parent
    available = shutil.disk_usage(folder).free
    if available >= need * MARGIN:
        return None
    return (
        f"No space left on device: {folder} has {gigabytes(available)} free, {gigabytes(need * MARGIN)} are needed; "
        "free disk space, or set scratch: to another directory, then start again; earlier records are complete"
    )


def scratch(asked: object = None) -> Path:
    """Return the folder for the files of cells: ``asked`` if given, else ``$TMPDIR`` if set, else /tmp."""
    return Path(str(asked or os.environ.get("TMPDIR") or "/tmp"))  # noqa: S108 - only private folders are made in it


def write_text(path: Path, text: str) -> None:
    """Write a text as ``write_bytes`` does, into a folder that need not exist yet. Errors: OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Replace a file atomically and durably. Errors: OSError, after which the old file is unchanged."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with naming(path):
        try:
            with temporary.open("wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            temporary.replace(path)
        except OSError:
            with suppress(OSError):
                temporary.unlink()
            raise
        _sync_folder(path.parent)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Add ``path`` as the file name to an OSError of the ``with`` block that has no file name.

    Errors of ``write``, ``fsync`` and locks have no file name.
    """
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


def _sync_folder(folder: Path) -> None:
    """Sync the entries of a folder to the disk, so that a renamed file has its new name after a crash.

    Some filesystems cannot sync a folder. The content of the file is already synced.
    """
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def renew(path: Path, text: str) -> None:
    """Write a text, unless the file already has this text. Errors: OSError."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        write_text(path, text)
