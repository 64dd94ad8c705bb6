"""Files that ``report:`` of the configuration names: logo, layout of the tables, the
author's texts.

A bundle holds copies of them below ``inputs/`` with a list of which stands for what; where such a
list is, its copies are used, so that the report can be built where the files are not.
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
"""Bytes of a text, a bibliography or a logo."""
LOGOS = {".svg": b"<", ".png": b"\x89PNG", ".jpg": b"\xff\xd8", ".jpeg": b"\xff\xd8"}
"""Endings of logos, and what such a file begins with."""


def check_logo(name: str | None) -> Path | None:
    """The file of ``report.logo``, None without one. Errors: ConfigError when it is no image."""
    if not name:
        return None
    path = Path(name)
    try:
        kind = LOGOS[path.suffix.lower()]
        whole = path.is_file() and files.read_bytes(path, LARGEST)[:1024].lstrip(
            b"\xef\xbb\xbf \r\n\t"
        ).startswith(kind)
    except (KeyError, OSError, ValueError):
        whole = False
    if not whole:
        raise ConfigError(
            f"report.logo: {name!r} is not an image that exists here: allowed are {', '.join(LOGOS)} files"
        )
    return path


def locate(name: str) -> Path:
    """The path of a text: from the working folder, else from the checkout, as presets name theirs."""
    return Path(name) if Path(name).exists() else ROOT / name


def check_text(key: str, name: Any) -> Path:
    """The file of a chapter (``text.design``) or of the bibliography. Errors: ConfigError when it
    is none that can be read.
    """
    path, kinds = locate(str(name)), KINDS[key.partition(".")[0]]
    why = (
        "of no kind that a report takes"
        if path.suffix.lower() not in kinds
        else "not a file that exists here"
    )
    if path.suffix.lower() in kinds and path.is_file():
        try:
            files.read_bytes(path, LARGEST).decode()
            return path
        except (OSError, ValueError) as error:
            why = f"not readable as UTF-8 text ({getattr(error, 'strerror', None) or error})"
    raise ConfigError(f"report.{key}: {str(name)!r} is {why}: allowed are {listed(kinds)} files")


def check_texts(section: Mapping[str, Any]) -> None:
    """Errors: ConfigError for a text or bibliography that cannot be read."""
    for key, value in (section.get("text") or {}).items():
        if value:
            check_text(f"text.{key}", value)
    if section.get("bibliography"):
        check_text("bibliography", section["bibliography"])


def _values(value: Any) -> list[Any]:
    """What a key names: one file, a list of them, or some by name."""
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else [value]


def names(section: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(key, value) of all files that a ``report:`` section names."""
    return [(key, str(file)) for key in KEYS for file in _values(section.get(key)) if file]


def index(section: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Key and configured value -> path of the copy below the campaign, for all files that a
    ``report:`` section names.
    """
    places: dict[str, dict[str, str]] = {}
    for key, value in names(section):
        suffix = ".yaml" if key == "tables" else Path(value).suffix.lower()
        copies = places.setdefault(key, {})
        # A folder keeps two of one name apart.
        copies[value] = (
            f"{FOLDER}/{key}/{len(copies)}/{Path(value).name.removesuffix(suffix)}{suffix}"
        )
    return places


def collect(directory: Path, section: Mapping[str, Any]) -> list[tuple[str, Path]]:
    """Path of each copy below a bundle of the campaign in ``directory``, and the file it is made
    of.

    Errors: ConfigError when one is not there.
    """
    sources = dict(zip(names(section), names(resolve(directory, section)), strict=True))
    copied = []
    for key, copies in index(section).items():
        for value, name in copies.items():
            source = sources[key, value][1]
            path = layouts.path_of(source) if key == "tables" else locate(source)
            if not path.is_file():
                raise ConfigError(
                    f"report.{key} names {value!r}, which is not here: put it back, or change the key"
                )
            copied.append((name, path))
    return copied


def _is_inside(directory: Path, copy: Path) -> bool:
    """Whether a copy lies below ``inputs/``, also behind links. Errors: ValueError for a null byte."""
    return Path(os.path.realpath(copy)).is_relative_to(os.path.realpath(directory / FOLDER))


def resolve(directory: Path, section: Mapping[str, Any]) -> dict[str, Any]:
    """``report:`` with the copies of a bundle in place of the configured files, where there are
    any.

    Errors: RecordError for a damaged list, or one that points out of the folder.
    """
    path = directory / INDEX
    if not path.is_file():
        return dict(section)
    try:
        places = files.parse_json(files.read_bytes(path), dict[str, dict[str, str]])
        copies = {
            key: {value: directory / name for value, name in named.items()}
            for key, named in places.items()
        }
        paths = [copy for named in copies.values() for copy in named.values()]
        outside = [copy for copy in paths if not _is_inside(directory, copy)]
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
    """The file that a key names, a list of them, or some by name, with copies in their place."""
    if isinstance(value, dict):
        return {name: _with_copies(part, copies) for name, part in value.items()}
    if isinstance(value, list):
        return [_with_copies(part, copies) for part in value]
    return str(copies[str(value)]) if str(value) in copies else value


def authors(report: Mapping[str, Any]) -> list[Author]:
    """Those of ``report.authors``, else the one that ``report.author`` names."""
    named = report.get("authors") or ([{"name": report["author"]}] if report.get("author") else [])
    return msgspec.convert(named, list[Author])


def author_line(report: Mapping[str, Any]) -> str:
    """``Jane Doe, John Roe (IIT), Max Muster (TU Wien)``: an affiliation stands behind the last of
    those who share it.
    """
    groups = groupby(authors(report), key=lambda author: author.affiliation)
    parts = [
        (", ".join(person.name for person in persons), affiliation)
        for affiliation, persons in groups
    ]
    return ", ".join(
        names + (f" ({affiliation})" if affiliation else "") for names, affiliation in parts
    )
