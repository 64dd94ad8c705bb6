"""Read site files, which state facts that no tool can read on a node.

``config/sites/example.yaml`` shows every key.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

import msgspec
from msgspec.structs import replace

from peakmark import promises, yamlfile
from peakmark.catalogue import HPL, WORKLOADS, metrics
from peakmark.config.types import Site, SiteValues
from peakmark.errors import ConfigError
from peakmark.formatting import short_name
from peakmark.validation import did_you_mean, read

# Options for which the site file has no key.
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

_ROWS = {**WORKLOADS, "mpi": (*WORKLOADS["mpi"], HPL)}
"""Subsystem -> workloads that its rows can have."""


def load(path: Path | str) -> Site:
    """Read a site file, and check it.

    Raises:
        ConfigError: a value is not allowed. The message names file, key and allowed values.
    """
    site = read(yamlfile.read(path, "site file"), Site, f"site file {path}: ")
    _check_extra(path, site.slurm.extra)
    for key, text in site.promise.items():
        _check_promise(f"site file {path}: promise.{key}", key, text)
    return site


def _check_promise(where: str, key: str, text: str) -> None:
    """Check that rows can have the subsystem, the workload and the unit of a promise.

    Args:
        where: start of the message: file and key.
        key: subsystem, workload, and words that the row must have.
        text: promised value, which matches ``promises.AMOUNT``.

    Raises:
        ConfigError: no row can match the promise. The message says what is allowed.
    """
    subsystem, workload = [*key.split("/"), ""][:2]
    for word, known in ((subsystem, _ROWS), (workload, _ROWS.get(subsystem, ()))):
        if word not in known:
            hint = did_you_mean(word, known)
            raise ConfigError(f"{where} has {word!r}: allowed are {', '.join(known)}{hint}")
    allowed: list[str] = []
    for unit in metrics(subsystem, workload).values():
        allowed += promises.UNITS[unit]
    if not text.endswith(tuple(allowed)):
        raise ConfigError(f"{where} is {text!r}: allowed are values in {', '.join(allowed)}")


def _check_extra(path: str | Path, extra: str) -> None:
    """Check that ``extra`` has no option that is managed or forbidden.

    Abbreviated options are refused too, because sbatch accepts abbreviations.

    Raises:
        ConfigError: ``extra`` has such an option. The message names the key to use instead, if there is one.
    """
    for word in extra.split():
        # The name between -- and =. The type of ``extra`` allows no short options such as -p.
        short = word[2:].partition("=")[0]
        for name in (*MANAGED, *_FORBIDDEN):
            if name.startswith(short):
                how = "peakmark chooses it for each job"
                if MANAGED.get(name):
                    how = f"set slurm.{MANAGED[name]} instead"
                raise ConfigError(
                    f"site file {path}: slurm.extra has {word}, which is not allowed there: {how}"
                )


def for_host(site: SiteValues, host: str | None) -> SiteValues:
    """Return the site's values for one host.

    The first entry of ``nodes`` whose pattern matches the host, with or without its domain, overrides the
    values of the site.
    """
    for entry in site.nodes:
        names = {host, short_name(host)} if host else set()
        if any(fnmatchcase(name, entry.match) for name in names):
            # The keys that the entry sets. Types with ``omit_defaults`` leave all others out.
            stated = msgspec.to_builtins(entry)
            del stated["match"]
            parts = {}
            for name, values in stated.items():
                parts[name] = replace(getattr(site, name), **values)
            return replace(site, **parts)
    return site
