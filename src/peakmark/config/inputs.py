"""Files that ``report:`` of the configuration names: logo, layout of the tables, the author's
texts.

A bundle holds copies of them below ``inputs/``, with a list that maps configured files to copies. If
a folder has such a list, its copies are used: the report can be built without the original files.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec

from peakmark import files
from peakmark.catalogue import SUBSYSTEMS
from peakmark.config import layouts
from peakmark.config.types import Author
from peakmark.errors import ConfigError, RecordError
from peakmark.formatting import listed
from peakmark.resources import ROOT

FOLDER = "inputs"
INDEX = f"{FOLDER}/inputs.json"
KEYS = ("logo", "tables", "text", "bibliography")
TEXTS = (
    "introduction",
    "design",
    *SUBSYSTEMS,
    "discussion",
    "improvements",
    "conclusion",
    "contributions",
    "acknowledgements",
)
"""Chapters of ``report.text``, in their order."""
KINDS = {"text": (".md", ".typ"), "bibliography": (".bib", ".yml", ".yaml")}

LARGEST = 16 << 20
"""Largest text, bibliography or logo in bytes."""
LOGOS = {".svg": b"<", ".png": b"\x89PNG", ".jpg": b"\xff\xd8", ".jpeg": b"\xff\xd8"}
"""Ending of a logo -> the first bytes of such a file."""


def check_logo(name: str | None) -> Path | None:
    """Return the file of ``report.logo``, None without one. Errors: ConfigError when it is no
    image.
    """
    if not name:
        return None
    path = Path(name)
    try:
        kind = LOGOS[path.suffix.lower()]
        whole = False
        if path.is_file():
            # An SVG file may begin with a byte order mark and blanks.
            begin = files.read_bytes(path, LARGEST)[:1024].lstrip(b"\xef\xbb\xbf \r\n\t")
            whole = begin.startswith(kind)
    except (KeyError, OSError, ValueError):
        whole = False
    if not whole:
        raise ConfigError(
            f"report.logo: {name!r} is not an image that exists here: allowed are {', '.join(LOGOS)} files"
        )
    return path


def locate(name: str) -> Path:
    """Return the path of a text: from the working folder, else from the checkout, as presets name
    theirs.
    """
    if Path(name).exists():
        return Path(name)
    return ROOT / name


def check_text(key: str, name: Any) -> Path:
    """Return the file of a chapter (``text.design``) or of the bibliography. Errors: ConfigError
    when it cannot be read.
    """
    path, kinds = locate(str(name)), KINDS[key.partition(".")[0]]
    if path.suffix.lower() not in kinds:
        why = "of no kind that a report takes"
    elif not path.is_file():
        why = "not a file that exists here"
    else:
        try:
            files.read_bytes(path, LARGEST).decode()
            return path
        except (OSError, ValueError) as error:
            why = f"not readable as UTF-8 text ({getattr(error, 'strerror', None) or error})"
    raise ConfigError(f"report.{key}: {str(name)!r} is {why}: allowed are {listed(kinds)} files")


def check_texts(section: Mapping[str, Any]) -> None:
    """Check that all texts and the bibliography can be read. Errors: ConfigError."""
    for key, value in (section.get("text") or {}).items():
        if value:
            check_text(f"text.{key}", value)
    if section.get("bibliography"):
        check_text("bibliography", section["bibliography"])


def _values(value: Any) -> list[Any]:
    """Return the files of a key, which names one, a list of them, or some by name."""
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, list):
        return value
    return [value]


def names(section: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return (key, value) of all files that a ``report:`` section names."""
    found = []
    for key in KEYS:
        for file in _values(section.get(key)):
            if file:
                found.append((key, str(file)))
    return found


def index(section: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return key -> configured value -> path of the copy below the campaign, for all files of a
    ``report:`` section.
    """
    places: dict[str, dict[str, str]] = {}
    for key, value in names(section):
        suffix = Path(value).suffix.lower()
        if key == "tables":
            suffix = ".yaml"
        copies = places.setdefault(key, {})
        # Each copy has its own folder, as two files may have one name.
        name = Path(value).name.removesuffix(suffix)
        copies[value] = f"{FOLDER}/{key}/{len(copies)}/{name}{suffix}"
    return places


def collect(directory: Path, section: Mapping[str, Any]) -> list[tuple[str, Path]]:
    """Return the path of each copy in a bundle of the campaign in ``directory``, and its source
    file.

    Errors: ConfigError when one is not there.
    """
    sources = dict(zip(names(section), names(resolve(directory, section)), strict=True))
    copied = []
    for key, copies in index(section).items():
        for value, name in copies.items():
            source = sources[key, value][1]
            path = locate(source)
            if key == "tables":
                path = layouts.path_of(source)
            if not path.is_file():
                raise ConfigError(
                    f"report.{key} names {value!r}, which is not here: put it back, or change the key"
                )
            copied.append((name, path))
    return copied


def _is_inside(directory: Path, copy: Path) -> bool:
    """Return whether a copy lies below ``inputs/``, also behind links. Errors: ValueError for a
    null byte.
    """
    return Path(os.path.realpath(copy)).is_relative_to(os.path.realpath(directory / FOLDER))


def resolve(directory: Path, section: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``report:`` with the copies of a bundle in place of the configured files, if there are
    copies.

    Errors: RecordError for a damaged list, or one that points out of the folder.
    """
    path = directory / INDEX
    if not path.is_file():
        return dict(section)
    try:
        places = files.parse_json(files.read_bytes(path), dict[str, dict[str, str]])
        copies: dict[str, dict[str, Path]] = {}
        outside = []
        for key, named in places.items():
            copies[key] = {value: directory / name for value, name in named.items()}
            outside += [copy for copy in copies[key].values() if not _is_inside(directory, copy)]
    except (OSError, ValueError) as error:
        raise RecordError(
            f"{path} is damaged ({error}): get the bundle again from where it came from"
        ) from error
    if outside:
        raise RecordError(
            f"{path} names {str(outside[0])!r}, which is not below {FOLDER}/: this is no bundle of peakmark"
        )
    return {key: _with_copies(value, copies.get(key, {})) for key, value in section.items()}


def _with_copies(value: Any, copies: Mapping[str, Path]) -> Any:
    """Return the value of a key with copies in place of the files. It names one, a list of them, or
    some by name.
    """
    if isinstance(value, dict):
        return {name: _with_copies(part, copies) for name, part in value.items()}
    if isinstance(value, list):
        return [_with_copies(part, copies) for part in value]
    if str(value) in copies:
        return str(copies[str(value)])
    return value


def authors(report: Mapping[str, Any]) -> list[Author]:
    """Return the authors of ``report.authors``, else the one that ``report.author`` names."""
    named = report.get("authors") or []
    if not named and report.get("author"):
        named = [{"name": report["author"]}]
    return msgspec.convert(named, list[Author])


def author_line(report: Mapping[str, Any]) -> str:
    """Return all authors on one line: ``Jane Doe, John Roe (IIT), Max Muster (TU Wien)``. An
    affiliation follows the last of those who share it.
    """
    groups = groupby(authors(report), key=lambda author: author.affiliation)
    parts = []
    for affiliation, persons in groups:
        part = ", ".join(person.name for person in persons)
        if affiliation:
            part += f" ({affiliation})"
        parts.append(part)
    return ", ".join(parts)
