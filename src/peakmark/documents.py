"""Where finished documents go (report, page, bundle): never over anything that this campaign has
not written there.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from peakmark import files
from peakmark.errors import PeakmarkError, sentence

WRITTEN = "written.sha256"
"""In the campaign's folder: checksums and places of what was written outside it, as ``sha256sum``
prints them.
"""
OWN = ("report.pdf", "report.html", "report-anonymous.pdf", "report-anonymous.html")
"""What a campaign's folder itself holds is made anew whenever it is asked for."""
_LINK = "{} is a link: nothing is written through it; move it away, then run the same command again"


def write(target: Path, content: bytes, campaign: Path | None = None) -> None:
    """Write a document in one step. Links are followed; what is no regular file (a pipe, a device)
    is written through.

    campaign  folder of the campaign that the document is of; what it wrote earlier, unchanged
              since, is replaced

    Errors: PeakmarkError when there is something else at ``target``, which then stays, or when it
    cannot be written.
    """
    try:
        _write(target, content, campaign)
    except OSError as error:
        raise PeakmarkError(f"cannot write {target}: {sentence(error, path=False)}") from error


def _write(target: Path, content: bytes, campaign: Path | None) -> None:
    if is_stream(target):
        with target.open("wb") as stream:
            stream.write(content)
        return
    place = place_of(target)
    if place.exists() and place.read_bytes() == content:
        return
    if not _may_replace(target, place, campaign):
        raise PeakmarkError(
            f"{target} is there already, and not as this campaign wrote it: nothing was overwritten; move it away, or give "
            "another name with -o"
        )
    if campaign is not None and place.parent != campaign.resolve():
        # A campaign that is read-only can be reported, but not be told where. Its list is replaced,
        # as it may be a link.
        with suppress(OSError, ValueError):
            known = campaign / WRITTEN
            before = files.read_text(known) if known.exists() else ""
            files.write_text(known, f"{before}{hashlib.sha256(content).hexdigest()}  {place}\n")
    files.write_bytes(place, content)


def own_folder(campaign: Path, name: str) -> Path:
    """A folder of made files below a campaign, in which each name is a file of its own.

    A file that has another name too (a hard link, as ``cp -l`` makes them) is copied, so that the
    other stays as it is. Errors: PeakmarkError for a link, as what is behind it may be anybody's;
    OSError.
    """
    folder = campaign / name
    if folder.is_symlink():
        raise PeakmarkError(_LINK.format(folder))
    folder.mkdir(parents=True, exist_ok=True)
    for place, folders, names in os.walk(folder):
        for path in (Path(place) / part for part in (*folders, *names)):
            if path.is_symlink():
                raise PeakmarkError(_LINK.format(path))
            if path.is_file() and path.stat().st_nlink > 1:
                copied = path.with_name(f".{path.name}.{os.getpid()}.tmp")
                shutil.copy2(path, copied)
                copied.replace(path)
    return folder


def place_of(target: Path) -> Path:
    """Where a document goes that is no stream. Asked before it is made, too: that may take long.

    Errors: PeakmarkError when it is a folder, or there is none for it.
    """
    place = Path(os.path.realpath(target))
    if place.is_dir():
        raise PeakmarkError(f"cannot write {target}: it is a folder; give the name of a file in it")
    if not place.parent.is_dir():
        raise PeakmarkError(f"cannot write {target}: there is no folder {place.parent}")
    return place


def _may_replace(target: Path, place: Path, campaign: Path | None) -> bool:
    if not place.exists() or place.stat().st_size == 0:
        return True
    if campaign is None:
        return False
    if place.parent == campaign.resolve() and place.name in OWN and not target.is_symlink():
        return True
    with suppress(OSError):
        lines = (campaign / WRITTEN).read_text(encoding="utf-8", errors="replace").splitlines()
        return hashlib.sha256(place.read_bytes()).hexdigest() in {
            line.partition("  ")[0] for line in lines
        }
    return False


def is_stream(target: Path) -> bool:
    """Whether a document is written through ``target`` rather than put in its place: a pipe, a
    device, /dev/stdout.
    """
    if str(target).startswith(("/dev/", "/proc/")):
        return True
    try:
        mode = target.stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


@contextmanager
def workplace(campaign: Path, parts: tuple[str, ...]) -> Iterator[Path]:
    """The campaign's folder, or where it is read-only a folder with links to its ``parts``, to
    build a report in.
    """
    import tempfile

    folders = [campaign / name for name in ("tables", "figures")]
    if all(os.access(folder, os.W_OK) for folder in (campaign, *folders) if folder.exists()):
        yield campaign
        return
    with tempfile.TemporaryDirectory(prefix="peakmark-report-") as name:
        folder = Path(name) / campaign.resolve().name
        folder.mkdir()
        for part in (*parts, WRITTEN):
            if (campaign / part).exists():
                (folder / part).symlink_to((campaign / part).resolve())
        yield folder
