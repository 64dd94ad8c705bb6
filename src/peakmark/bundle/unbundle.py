"""Read a bundle that came from elsewhere: unpack nothing outside its folder, believe nothing that
its checksums deny.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from peakmark import documents, files
from peakmark.bundle.bundle import SUMS, build_all
from peakmark.bundle.crate import HOME, NAME
from peakmark.errors import ConfigError, PeakmarkError, RecordError, sentence
from peakmark.report import document
from peakmark.report.stored import SOURCES
from peakmark.resources import version
from peakmark.storage.results import Results
from peakmark.units import gigabytes

MAX_FILES = 500_000
MAX_BYTES = 8 << 30
CHUNK = 1 << 20


@dataclass(frozen=True)
class Rebuilt:
    """A report built from a bundle: where it is, and how it stands to the one that came in the
    bundle.
    """

    path: Path
    comparison: str


def is_bundle(path: Path) -> bool:
    """Whether a path is a bundle, packed or not, rather than a campaign."""
    return path.is_file() or (path / SUMS).is_file()


def report(bundle: Path, target: Path | None = None, partial: bool = False) -> Rebuilt:
    """Build the report of a bundle from its records alone; of a zip file as ``<name>.pdf`` beside
    it.

    Errors: PeakmarkError in one sentence when the bundle is damaged or was changed, or holds no
    whole campaign.
    """
    with nullcontext(bundle) if bundle.is_dir() else unpacked(bundle) as folder:
        verify(folder, None if folder is bundle else bundle)
        results = Results.read(folder)
        document.must_be_complete(document.incomplete(results), partial, "report", bundle)
        before = _content(folder / "report.pdf")
        built = build_all(folder, partial)
        content = built.read_bytes()
        path = target or (built if folder is bundle else bundle.with_suffix(".pdf"))
        if path is not built:
            documents.write(path, content, bundle if folder is bundle else None)
        return Rebuilt(path, _compared(folder, before, content))


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _compared(folder: Path, before: bytes | None, after: bytes) -> str:
    if before is None:
        return "the bundle holds no report to compare it with"
    if before == after:
        return "the same, byte by byte, as the report in the bundle"
    theirs = _made_with(folder)
    why = f"that was made with peakmark {theirs}, this is {version()}"
    if theirs == version():
        why = "other versions of Typst, matplotlib or --partial made it"
    return f"not the same bytes as the report in the bundle: {why}"


def _made_with(folder: Path) -> str:
    try:
        graph = files.read_json(folder / NAME)["@graph"]
        return str(next(entity["softwareVersion"] for entity in graph if entity["@id"] == HOME))
    except (OSError, ValueError, KeyError, TypeError, StopIteration):
        return "an unknown version"


@contextmanager
def unpacked(bundle: Path) -> Iterator[Path]:
    """A bundle's files in a folder that exists as long as the context. Errors: PeakmarkError, see
    ``report``.
    """
    with tempfile.TemporaryDirectory(prefix="peakmark-bundle-") as name:
        folder = Path(name)
        try:
            with zipfile.ZipFile(bundle) as archive:
                for entry, path in _entries(bundle, archive):
                    _extract(bundle, archive, entry, folder / path)
        except PeakmarkError:
            raise
        except OSError as error:
            raise PeakmarkError(f"cannot unpack the bundle {bundle}: {sentence(error)}") from error
        except (
            Exception
        ) as error:  # of zipfile, and of what it unpacks with: damage within the compressed data
            raise _damaged(bundle, str(error).rstrip(".")) from error
        try:
            yield folder
        except (
            RecordError,
            ConfigError,
        ) as error:  # what the next run does says nothing to whoever has the bundle
            raise _damaged(bundle, error.fact.replace(f"{folder}/", "")) from error
        except PeakmarkError as error:
            raise PeakmarkError(str(error).replace(f"{folder}/", f"{bundle}: ")) from error


def _damaged(bundle: Path, why: str) -> PeakmarkError:
    return PeakmarkError(
        f"{bundle} is damaged or no bundle of peakmark ({why}): get it again from where it came from"
    )


def _entries(bundle: Path, archive: zipfile.ZipFile) -> list[tuple[zipfile.ZipInfo, str]]:
    """Every file of the archive with its path below the bundle. Errors: PeakmarkError for a path or
    kind that no bundle has, or for more than a disk should be filled with.
    """
    entries = [entry for entry in archive.infolist() if not entry.is_dir()]
    names = [entry.filename for entry in entries]
    for entry in entries:
        parts = PurePosixPath(entry.filename).parts
        kind = entry.external_attr >> 16 & 0o170000
        if (
            not parts
            or entry.filename.startswith("/")
            or ".." in parts
            or {"\\", "\0"} & set(entry.filename)
        ):
            raise _damaged(bundle, f"it holds a path that leads out of it, {entry.filename!r}")
        if kind not in (0, 0o100000):
            raise _damaged(bundle, f"{entry.filename!r} is a link or a special file")
    _check_size(bundle, entries)
    # Who packs an unpacked bundle again often packs its folder.
    folders = {name.partition("/")[0] for name in names}
    prefix = f"{folders.pop()}/" if SUMS not in names and len(folders) == 1 else ""
    return [(entry, name.removeprefix(prefix)) for entry, name in zip(entries, names, strict=True)]


def _check_size(bundle: Path, entries: Sequence[zipfile.ZipInfo]) -> None:
    """Errors: PeakmarkError for a bundle that would fill the disk: too many files or bytes."""
    size = sum(entry.file_size for entry in entries)
    if len(entries) > MAX_FILES or size > MAX_BYTES:
        raise PeakmarkError(
            f"{bundle} unpacks to more than {MAX_FILES} files or {MAX_BYTES >> 30} GiB, which no bundle of peakmark does"
        )
    free = files.free(Path(tempfile.gettempdir()))
    if size > free:
        raise PeakmarkError(
            f"{bundle} unpacks to {gigabytes(size)}, and {tempfile.gettempdir()} has {gigabytes(free)} free: make room, "
            "or set TMPDIR to another folder"
        )


def _extract(bundle: Path, archive: zipfile.ZipFile, entry: zipfile.ZipInfo, place: Path) -> None:
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with archive.open(entry) as source, place.open("xb") as target:
            shutil.copyfileobj(source, target, CHUNK)
    except (FileExistsError, NotADirectoryError) as error:
        raise _damaged(bundle, f"it holds {entry.filename!r} twice") from error


def verify(folder: Path, bundle: Path | None = None) -> None:
    """Compare an unpacked bundle with its checksums. ``bundle`` is the zip file it came from: then
    every file counts, else only what the report is made of.

    Errors: PeakmarkError that names the first file that is missing, changed or unknown.
    """
    shown = bundle or folder
    sums = _read_sums(folder, shown)

    def counts(path: str) -> bool:
        return bundle is not None or path.partition("/")[0] in SOURCES

    for path, digest in filter(lambda line: counts(line[0]), sums.items()):
        file = folder / path
        if not file.is_file():
            raise PeakmarkError(
                f"{shown} is not whole: {path} is missing; get it again from where it came from"
            )
        if hashlib.sha256(files.read_bytes(file)).hexdigest() != digest:
            raise PeakmarkError(
                f"{path} in {shown} is not what {SUMS} says: it was changed or damaged after the bundle was made; get the "
                "bundle again from where it came from"
            )
    for file in sorted(folder.rglob("*")):
        path = file.relative_to(folder).as_posix()
        if counts(path) and file.is_file() and path not in sums and path not in (SUMS, NAME):
            raise PeakmarkError(
                f"{path} in {shown} stands in no line of {SUMS}: it was added after the bundle was made; remove it, or get "
                f"the bundle again from where it came from, or move {SUMS} away to go on with the campaign here"
            )


def _read_sums(folder: Path, shown: Path) -> dict[str, str]:
    try:
        lines = files.read_text(folder / SUMS).splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise _damaged(shown, f"{SUMS} cannot be read") from error
    sums = {}
    for number, line in enumerate(lines, 1):
        digest, separator, path = line.partition("  ")
        if (
            not separator
            or len(digest) != 64
            or path.startswith("/")
            or ".." in PurePosixPath(path).parts
        ):
            raise _damaged(shown, f"line {number} of {SUMS} is not a checksum and a path")
        sums[path] = digest
    return sums
