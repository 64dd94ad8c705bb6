"""What tables and report are made by: when it has changed, they are made anew from the records,
which stay.

A rule holds the digest as a parameter, so that Snakemake sees the change after an update of the
checkout or of a layout.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from peakmark.config import inputs
from peakmark.resources import ROOT

# Of the package, what neither tables nor report are made by. All else counts, as a new module will.
_MEASURES = ("run", "workflow", "bundle", "commands", "cli.py", "__main__.py")
_DRAWS = ("figures", "report")
# Of ``reports/``, what is chosen by name, and what stands in Snakemake's own report.
_CHOSEN = ("layouts", "published", "snakemake")


def of_tables(section: Mapping[str, Any], root: Path = ROOT) -> str:
    """Digest of the code of the tables, and of the layout and the published results that
    ``report:`` names.
    """
    files = _package(root, (*_MEASURES, *_DRAWS))
    return _digest(root, [*files, *_named(root, section, ("tables", "published"))])


def of_report(section: Mapping[str, Any], root: Path = ROOT) -> str:
    """Digest of the code of figures, PDF and page, of template and texts, and of the files that
    ``report:`` names.
    """
    pages = _below(root / "reports", _CHOSEN)
    return _digest(root, [*_package(root, _MEASURES), *pages, *_named(root, section, inputs.KEYS)])


def _package(root: Path, without: Collection[str]) -> list[Path]:
    return [
        path
        for path in _below(root / "src" / "peakmark", without)
        if path.suffix in (".py", ".csv")
    ]


def _below(folder: Path, without: Collection[str]) -> list[Path]:
    """What is in a folder but for some of its own entries."""
    return [path for path in folder.rglob("*") if path.relative_to(folder).parts[0] not in without]


def _named(root: Path, section: Mapping[str, Any], keys: Iterable[str]) -> list[Path]:
    """Files that ``report:`` names by path or, as layouts and published results, by name."""
    folders = {"tables": ("layouts", ".yaml"), "published": ("published", ".csv")}
    paths = []
    for key, value in inputs.names(section):
        if key in keys:
            folder, suffix = folders.get(key, ("", ""))
            paths += [Path(value), root / "reports" / folder / f"{value}{suffix}"]
    return paths


def _digest(root: Path, paths: Iterable[Path]) -> str:
    """One digest of names and contents; what is not there is told by the program that needs it."""
    total = hashlib.sha256()
    for path in sorted(file for file in set(paths) if file.is_file()):
        name = path.relative_to(root) if path.is_relative_to(root) else path
        total.update(f"{name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return total.hexdigest()[:16]
