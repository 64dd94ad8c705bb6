"""Site files: facts that no tool can read on a node. ``config/sites/example.yaml`` shows every key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from peakmark import yamlfile
from peakmark.catalogue import SUBSYSTEMS
from peakmark.config.types import Site
from peakmark.errors import ConfigError
from peakmark.validation import read

_CHOSEN = (
    "job-name", "output", "comment", "parsable", "nodes", "nodelist", "dependency", "ntasks",
    "ntasks-per-node", "cpus-per-task",
)  # fmt: skip
MANAGED = {
    "mem": "memory_factor",
    "mem-per-cpu": "memory_factor",
    "time": "runtime_factor",
    "partition": "partition",
    "account": "account",
    "qos": "qos",
    "constraint": "constraint",
    "reservation": "reservation",
    **dict.fromkeys(_CHOSEN, ""),
}
"""Option of sbatch that peakmark sets for each job -> the key of ``slurm:`` to use instead, or empty."""

_DECIDED = ("array", "chdir", "clusters", "nodefile", "test-only", "wrap")
"""Further options of sbatch, which would change which cell runs, where, or how many at a time."""
Files = Path | str | Sequence[str]
"""Path of a site file, or of several."""


REMOVED = {
    "formulas": "the numbers that reports print as theoretical are in reports/published",
    "formula_set": "limits are computed from the facts; state what is known under cpu, memory, disk and network",
}
"""Key of earlier versions -> its replacement, in words."""


def load(files: Files) -> dict[str, Any]:
    """Return the checked values of a site file, or of several merged ones, of which later ones win.

    Errors: ConfigError with one sentence that names the file, the key, and what is allowed.
    """
    result: dict[str, Any] = {}
    for path in _paths(files):
        part = _read(path)
        if result:
            part["name"] = f"{result['name']} and {part['name']}"
            # The first match counts: entries of later files come first.
            part["nodes"] = [*(part.get("nodes") or ()), *(result.get("nodes") or ())]
        _lay_over(result, part)
    return result


def conflicts(files: Files) -> list[str]:
    """Return a sentence for each value in which two of the files differ. Errors: ConfigError."""
    sentences: list[str] = []
    result: dict[str, Any] = {}
    for path in _paths(files):
        part = _read(path)
        for key in ("name", "description", "nodes"):
            part.pop(key, None)
        for later, earlier in _lay_over(result, part):
            sentences.append(
                f"site file {path} says {later}, an earlier one {earlier}: the later counts"
            )
    return sentences


def _paths(files: Files) -> list[str]:
    if isinstance(files, str | Path):
        return [str(files)]
    return [str(path) for path in files]


def _read(path: str) -> dict[str, Any]:
    """Return the checked values of a site file. Errors: ConfigError."""
    site = yamlfile.read(path, "site file")
    for key in REMOVED:
        if key in site:
            raise ConfigError(
                f"site file {path}: the key {key} was removed: delete it; {REMOVED[key]}"
            )
    read(site, Site, f"site file {path}: ")
    _check_extra(path, str((site.get("slurm") or {}).get("extra", "")))
    return site


def _lay_over(
    base: dict[str, Any], extra: Mapping[str, Any], place: str = ""
) -> list[tuple[str, str]]:
    """Merge ``extra`` into ``base``, mappings key by key, and join the sources of values.

    Returns:
        The values that ``extra`` changes, and their earlier values, in words.
    """
    differences = []
    for key, value in extra.items():
        if isinstance(value, dict) and isinstance(base.get(key), dict):
            differences += _lay_over(base[key], value, f"{place}{key}.")
        elif key == "source" and base.get(key, value) != value:
            base[key] = f"{base[key]}; {value}"
        else:
            if base.get(key, value) != value:
                differences.append((f"{place}{key}: {value}", str(base[key])))
            base[key] = value
            if isinstance(value, dict):
                base[key] = dict(value)  # a copy, as later files change it
    return differences


def _check_extra(path: str | Path, extra: str) -> None:
    """Check that ``extra`` holds no option that peakmark sets for each job. sbatch also takes
    shortened names. Errors: ConfigError.
    """
    for word in extra.split():
        short = word[2:].partition("=")[0]
        for name in (*MANAGED, *_DECIDED):
            if name.startswith(short):
                how = "peakmark chooses it for each job"
                if MANAGED.get(name):
                    how = f"set slurm.{MANAGED[name]} instead"
                raise ConfigError(
                    f"site file {path}: slurm.extra has {word}, which cannot be given there: {how}"
                )


def for_host(site: Mapping[str, Any], host: str | None) -> dict[str, Any]:
    """Return the site's values for one host. The first entry of ``nodes`` whose pattern matches
    overrides the others.
    """
    merged = {key: value for key, value in site.items() if key != "nodes"}
    if host is None:
        return merged
    for entry in site.get("nodes") or ():
        if fnmatchcase(host, entry["match"]):
            for part in SUBSYSTEMS:
                if part in entry:
                    merged[part] = {**(merged.get(part) or {}), **entry[part]}
            break
    return merged
