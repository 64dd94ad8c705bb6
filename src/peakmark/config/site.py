"""Read site files, which state facts that no tool can read on a node.

``config/sites/example.yaml`` shows every key.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from peakmark import yamlfile
from peakmark.catalogue import SUBSYSTEMS
from peakmark.config.types import Site
from peakmark.errors import ConfigError
from peakmark.validation import read

_SET_PER_JOB = (
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
    **dict.fromkeys(_SET_PER_JOB, ""),
}
"""Option of sbatch that peakmark sets for each job -> key of ``slurm`` to use instead; empty if none."""

_FORBIDDEN = ("array", "chdir", "clusters", "nodefile", "test-only", "wrap")
"""Further options of sbatch that are forbidden, because they change which cells run, and where."""


def load(path: Path | str) -> Site:
    """Read a site file, and check it.

    Raises:
        ConfigError: a value is not allowed. The message names file, key and allowed values.
    """
    site = read(yamlfile.read(path, "site file"), Site, f"site file {path}: ")
    _check_extra(path, site.get("slurm", {}).get("extra", ""))
    return site


def _check_extra(path: str | Path, extra: str) -> None:
    """Check that ``extra`` has no option that peakmark sets for each job. Errors: ConfigError.

    Abbreviated options are refused too, because sbatch accepts abbreviations.
    """
    for word in extra.split():
        short = word[2:].partition("=")[0]
        for name in (*MANAGED, *_FORBIDDEN):
            if name.startswith(short):
                how = "peakmark chooses it for each job"
                if MANAGED.get(name):
                    how = f"set slurm.{MANAGED[name]} instead"
                raise ConfigError(
                    f"site file {path}: slurm.extra has {word}, which is not allowed there: {how}"
                )


def for_host(site: Mapping[str, Any], host: str | None) -> dict[str, Any]:
    """Return the site's values for one host.

    The first entry of ``nodes`` whose pattern matches the host overrides the values of the site.
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
