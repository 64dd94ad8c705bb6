"""What tables and report are made by: when it has changed, they are made anew from the records,
which stay.

A rule holds the digest as a parameter, so that Snakemake sees the change after an update of the
checkout or of a layout.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from peakmark.config import inputs
from peakmark.resources import IS_CHECKOUT, PACKAGE, ROOT

ANALYSIS = "analysis.json"
"""In the folder of a campaign: all that its report says."""
# Of ``reports/``, what is chosen by name, and what stands in Snakemake's own report.
_CHOSEN = ("layouts", "published", "snakemake")


def digest(section: Mapping[str, Any], root: Path = ROOT) -> str:
    """Digest of the code, of templates and texts, and of the files that
    ``report:`` names.
    """
    package = root / "src" / "peakmark" if IS_CHECKOUT else PACKAGE
    code = (path for path in package.rglob("*") if path.suffix in (".py", ".csv", ".yaml"))
    pages = (root / "reports").rglob("*")
    shared = (path for path in pages if path.parent.name not in _CHOSEN)
    files = {*code, *shared, *_named(root, section)}
    total = hashlib.sha256()
    for path in sorted(file for file in files if file.is_file()):
        name = path.relative_to(root) if path.is_relative_to(root) else path
        total.update(f"{name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return total.hexdigest()[:16]


def _named(root: Path, section: Mapping[str, Any]) -> list[Path]:
    """Files that ``report:`` names by path or, as layouts and published results, by name."""
    folders = {"tables": ("layouts", ".yaml"), "published": ("published", ".csv")}
    paths = []
    for key, value in inputs.names(section):
        folder, suffix = folders.get(key, ("", ""))
        paths += [Path(value), root / value, root / "reports" / folder / f"{value}{suffix}"]
    return paths
