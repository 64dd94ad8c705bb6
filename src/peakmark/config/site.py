"""Site files: what no tool can read on a node. ``config/sites/example.yaml`` shows every key."""

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
"""Options of sbatch that peakmark sets for each job -> the key of the section slurm instead."""

_DECIDED = ("array", "chdir", "clusters", "nodefile", "test-only", "wrap")
"""Further ones that would change which cell runs, where, or how many at a time."""
Files = Path | str | Sequence[str]
"""A site file, or several."""


REMOVED = {
    "formulas": "the numbers that reports print as theoretical are in reports/published",
    "formula_set": "limits are computed from the facts; state what is known under cpu, memory, disk and network",
}
"""Key that earlier versions had -> what is there in its place."""


def load(files: Files) -> dict[str, Any]:
    """A site file, checked, or several, of which later ones count.

    Errors: ConfigError with one sentence that names the file, the key, and what is allowed.
    """
    result: dict[str, Any] = {}
    for part in map(_read, _paths(files)):
        if result:
            part = {**part, "name": f"{result['name']} and {part['name']}"}  # noqa: PLW2901
            part["nodes"] = [
                *(part.get("nodes") or ()),
                *(result.get("nodes") or ()),
            ]  # the first match counts
        _lay_over(result, part)
    return result


def conflicts(files: Files) -> list[str]:
    """A sentence for each value that two of the files say differently. Errors: ConfigError."""
    sentences: list[str] = []
    result: dict[str, Any] = {}
    for path in _paths(files):
        part = {
            key: value
            for key, value in _read(path).items()
            if key not in ("name", "description", "nodes")
        }
        sentences += [
            f"site file {path} says {later}, an earlier one {earlier}: the later counts"
            for later, earlier in _lay_over(result, part)
        ]
    return sentences


def _paths(files: Files) -> list[str]:
    return [str(files)] if isinstance(files, str | Path) else [str(path) for path in files]


def _read(path: str) -> dict[str, Any]:
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
    """``extra`` over ``base``, mappings key by key; where both say where values are from, both are
    named. Returns what is said otherwise in ``extra``, and what was said before.
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
            base[key] = dict(value) if isinstance(value, dict) else value
    return differences


def _check_extra(path: str | Path, extra: str) -> None:
    """Errors: ConfigError for an option that peakmark sets for each job; sbatch takes names cut
    short.
    """
    for word in extra.split():
        short = word[2:].partition("=")[0]
        name = next((name for name in (*MANAGED, *_DECIDED) if name.startswith(short)), None)
        if name is not None:
            instead = MANAGED.get(name)
            how = f"set slurm.{instead} instead" if instead else "peakmark chooses it for each job"
            raise ConfigError(
                f"site file {path}: slurm.extra has {word}, which cannot be given there: {how}"
            )


def for_host(site: Mapping[str, Any], host: str | None) -> dict[str, Any]:
    """The site's values for one host: the first entry of ``nodes`` whose pattern matches lies over
    the rest.
    """
    merged = {key: value for key, value in site.items() if key != "nodes"}
    entries = site.get("nodes") or () if host is not None else ()
    its_own: Mapping[str, Any] = next(
        (entry for entry in entries if fnmatchcase(str(host), entry["match"])), {}
    )
    return merged | {
        part: {**(merged.get(part) or {}), **its_own[part]}
        for part in SUBSYSTEMS
        if part in its_own
    }
