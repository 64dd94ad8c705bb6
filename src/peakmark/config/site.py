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
from peakmark.formatting import evaluate, listed
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


def load(files: Files, formula_set: str | None = None) -> dict[str, Any]:
    """A site file, checked, or several, of which later ones count. ``formula_set`` overrides the
    one that they choose.

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
    if formula_set is not None:
        result["formula_set"] = formula_set
    where = f"site file {listed(_paths(files))}"
    sets = result.get("formulas") or {}
    chosen = result.get("formula_set")
    if chosen is not None and chosen not in sets:
        known = ", ".join(sorted(sets)) or "none"
        raise ConfigError(f"{where}: formula_set is {chosen!r} but the formulas there are {known}")
    for name, entries in sets.items():
        for number, entry in enumerate(entries):
            try:
                evaluate(entry["formula"], formula_names(entry, 1, 1))
            except ConfigError as error:
                raise ConfigError(f"{where}: formulas.{name}.{number}: {error}") from error
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
        elif place == "formulas." and key in base:
            base[key] = [*value, *base[key]]  # the first that is of a row counts
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


def formula_names(
    entry: Mapping[str, Any], concurrency: int, block: int | None
) -> dict[str, float]:
    """The names a formula may use: those of its ``where`` and the row's concurrency and block
    (bytes).
    """
    names = {str(name): float(value) for name, value in (entry.get("where") or {}).items()}
    names["concurrency"] = float(concurrency)
    if block is not None:
        names["block"] = float(block)
    return names
