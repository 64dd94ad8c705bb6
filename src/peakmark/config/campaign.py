"""Read, check and complete the configuration of a campaign, for Snakemake and ``peakmark plan``.

Files and ``--config`` words override ``config/config.yaml``. Every error is one sentence.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from peakmark import validation, yamlfile
from peakmark.catalogue import (
    AUTO,
    GPUS,
    SHAPES,
    SUBSYSTEMS,
    SWEEPS,
    WORKLOADS,
    gpu_variants,
)
from peakmark.config.types import Campaign
from peakmark.errors import ConfigError
from peakmark.formatting import listed, parse_duration, parse_size
from peakmark.resources import ROOT, of_checkout
from peakmark.tools import references

BASE = Path("config/config.yaml")
"""File that is read first, from the working directory or, if it is not there, from the checkout."""

_FILES = ("--configfile", "--configfiles")
"""Options of Snakemake whose values are configuration files."""
WORDS = ("--config", "-C")
"""Options of Snakemake whose values are ``KEY=VALUE`` words."""


def read(
    files: Sequence[Path], settings: Iterable[str] = (), values: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Read the configuration from ``config/config.yaml``, which later sources override by key.

    If the files have grids, these replace all grids of ``config/config.yaml``.

    Args:
        files: configuration files; later files override earlier files.
        settings: ``KEY=VALUE`` words, which override the files.
        values: values that the files override.

    Raises:
        ConfigError: a file or a word is not valid.
    """
    own = merged([values or {}, *map(yamlfile.read, files)])
    base_file = BASE if BASE.exists() else ROOT / BASE
    base: dict[str, Any] = {}
    if base_file.exists() or not files:
        base = yamlfile.read(base_file)
    if any(own.get(subsystem) for subsystem in WORKLOADS):
        base = {key: value for key, value in base.items() if key not in WORKLOADS}
    return merged([base, own, pairs(settings)])


def shipped(name: str, folder: str) -> str:
    """Return the path of the user's file ``name``, or of the file ``name`` that comes with peakmark.

    Args:
        name: path, or name without extension.
        folder: folder of the files that come with peakmark.

    Raises:
        ConfigError: there is no such file.
    """
    files = {path.stem: path for path in sorted(of_checkout(folder).glob("*.yaml"))}
    path = files.get(name)
    if Path(name).is_file():
        path = Path(name)
    if path is None:
        raise ConfigError(
            f"there is no file {name!r}: give the path of a file, or {', '.join(files)}"
        )
    return str(path)


def site(name: str | None) -> list[str]:
    """Return the ``KEY=VALUE`` word for a site file; an empty list for None. Errors: ConfigError."""
    if not name:
        return []
    return [f"site={shipped(name, 'config/sites')}"]


def merged(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Merge mappings key by key, at all depths. Later values override earlier ones."""
    result: dict[str, Any] = {}
    for part in parts:
        _merge(result, part)
    return result


def _merge(base: dict[str, Any], extra: Mapping[str, Any]) -> None:
    """Merge ``extra`` into ``base``, mappings key by key."""
    for key, value in extra.items():
        if isinstance(value, dict):
            inner = base.get(key)
            base[key] = {}
            if isinstance(inner, dict):
                base[key] = dict(inner)  # a copy: the parts stay as they are
            _merge(base[key], value)
        else:
            base[key] = value


def pairs(settings: Iterable[str]) -> dict[str, Any]:
    """Parse words such as ``["scale=0.1", "report={title: Mine}"]`` into a mapping.

    Raises:
        ConfigError: a word is not ``KEY=VALUE``.
    """
    mappings = []
    for word in settings:
        key, equals, text = word.partition("=")
        if not equals or not re.fullmatch(r"[a-zA-Z_][\w-]*\w", key):
            raise ConfigError(
                f"--config has {word!r}: allowed is KEY=VALUE, such as scale=0.1 or disk=[]"
            )
        mappings.append({key: _value(text.strip("'\""), f"--config {key}")})
    return merged(mappings)


def _value(text: str, where: str) -> Any:
    """Return the value of a word.

    - A number, or true or false.
    - None for ``null`` or an empty word.
    - A list or mapping in YAML, if it begins with a bracket.
    - Otherwise the text.
    """
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    if text.lstrip().startswith(("[", "{")):
        return yamlfile.parse(text, where)
    words = {"": None, "null": None, "True": True, "true": True, "False": False, "false": False}
    return words.get(text, text)


def check_command_line(argv: Sequence[str]) -> None:
    """Check configuration files and words on Snakemake's command line.

    Snakemake, which reads them later, is less strict. Errors: ConfigError.
    """
    for path in named(argv, _FILES):
        yamlfile.read(Path(path))
    pairs(named(argv, WORDS))


def named(argv: Sequence[str], options: tuple[str, ...]) -> list[str]:
    """Return the values of an option on Snakemake's command line. Its last occurrence counts.

    Args:
        argv: words of the command line.
        options: spellings of the option.
    """
    values: list[str] = []
    taking = False
    for word in argv:
        name, equals, value = word.partition("=")
        if word.startswith("-"):
            # The value follows after =, or in the next words.
            taking = name in options and not equals
            if name in options:
                values = []
                if equals:
                    values.append(value)
        elif taking:
            values.append(word)
    return values


NO_TOOL = ("false", "none", "no", "off")
"""Words that leave a tool out.

``false`` comes as text from a command line, where it must not mean the program ``/bin/false``.
"""


def complete(config: Mapping[str, Any]) -> dict[str, Any]:
    """Check the configuration, and return it with all defaults filled in.

    Raises:
        ConfigError: a value is not allowed. The message names its key and the allowed values.
    """
    plain = _plain(config)
    validation.read(plain, Campaign)
    completed = merged([msgspec.to_builtins(Campaign()), plain])
    tools = completed["tools"]
    for name, path in tools.items():
        if path in NO_TOOL:
            tools[name] = False
    # Check values that the types cannot check.
    parse_duration(completed["give_up_after"])
    for subsystem in WORKLOADS:
        for index, grid in enumerate(completed[subsystem]):
            _check_grid(subsystem, f"{subsystem}[{index}]", grid)
    if not any(completed[subsystem] for subsystem in WORKLOADS):
        raise ConfigError(
            "the configuration measures nothing: cpu, memory, disk, network and gpu are all empty; "
            "start with peakmark run quick"
        )
    return completed


def _plain(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration as plain JSON values. Snakemake uses subclasses of dict and Path."""
    try:
        plain: dict[str, Any] = json.loads(json.dumps(config, default=str))
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(
            f"the configuration holds a value that is neither text, number, list nor mapping: {error}"
        ) from error
    return plain


def _check_grid(subsystem: str, where: str, grid: Mapping[str, Any]) -> None:
    """Check that workloads, variants, sizes and keys of a grid fit its subsystem."""
    _check_part(subsystem, where, grid, grid)
    for name, narrow in grid.get("references", {}).items():
        _check_part(subsystem, f"{where}.references.{name}", grid, narrow)
    _check_keys(subsystem, where, grid)
    workloads = set(grid["workloads"])
    sized = subsystem != "cpu" and not SHAPES.keys() >= workloads
    if subsystem == "gpu":
        _check_gpu_variants(where, grid)
        sized = False
    if sized and "blocks" not in grid:
        raise ConfigError(f"{where} lacks blocks: {subsystem} needs sizes such as [4KiB, 1MiB]")
    has_none = subsystem == "cpu" or (subsystem == "gpu" and workloads.isdisjoint(SWEEPS))
    if has_none and "blocks" in grid:
        raise ConfigError(
            f"{where} has blocks: the {subsystem} workloads have no block size, remove the key"
        )
    if "total" in grid:
        parse_total(f"{where}.total", grid["total"])


def _check_part(
    subsystem: str, place: str, grid: Mapping[str, Any], part: Mapping[str, Any]
) -> None:
    """Check workloads, variants, sizes and concurrency.

    Args:
        subsystem: subsystem of the grid.
        place: place in the configuration, for messages.
        grid: the grid.
        part: the grid itself, or the keys of one of its references.
    """
    for workload in part.get("workloads", []):
        if workload not in WORKLOADS[subsystem]:
            allowed = ", ".join(WORKLOADS[subsystem])
            raise ConfigError(
                f"{place}.workloads has {workload!r}: allowed for {subsystem} are {allowed}"
            )
    pattern, allowed = SUBSYSTEMS[subsystem].allowed
    for variant in part.get("variants", []):
        if not re.fullmatch(pattern, variant):
            raise ConfigError(
                f"{place}.variants has {variant!r}: allowed for {subsystem} are {allowed}"
            )
    for key in ("blocks", "pool", "size"):
        values = part.get(key, [])
        if not isinstance(values, list):
            values = [values]
        for value in values:
            if value == AUTO and key == "pool":
                continue
            if value == AUTO and key == "blocks":
                _check_auto(subsystem, place, grid, part)
                continue
            try:
                parse_size(value)
            except ConfigError as error:
                raise ConfigError(f"{place}.{key}: {error}") from error
    for asked in part.get("concurrency", []):
        if not isinstance(asked, str):
            continue
        if (asked == GPUS) != (subsystem == "gpu"):
            raise ConfigError(
                f"{place}.concurrency has {asked!r}: the word {GPUS} is for gpu, which has no other"
            )
        if asked != GPUS and not SUBSYSTEMS[subsystem].pinned:
            raise ConfigError(
                f"{place}.concurrency has {asked!r}: words are for cpu and memory, give a number here"
            )


def _check_gpu_variants(where: str, grid: Mapping[str, Any]) -> None:
    """Check that each variant of the grid fits one of its workloads. Errors: ConfigError."""
    known: list[str] = []
    for workload in grid["workloads"]:
        known += gpu_variants(workload)
    for variant in grid.get("variants", []):
        if variant not in known:
            raise ConfigError(
                f"{where}.variants has {variant!r}, which none of its workloads has: remove it"
            )


def _check_auto(
    subsystem: str, place: str, grid: Mapping[str, Any], part: Mapping[str, Any]
) -> None:
    """Check that a block may be ``auto``, which is allowed only for the area of LAT in memory."""
    workloads = part.get("workloads", grid.get("workloads"))
    if subsystem != "memory" or workloads != ["LAT"]:
        raise ConfigError(
            f"{place}.blocks has {AUTO!r}: only LAT of memory allows it; give sizes, or put LAT into a "
            "separate grid"
        )


ONLY_OF = {
    "pool": ("memory",),
    "store": ("memory",),
    "pairs": ("memory", "network"),
    "together": ("disk", "network"),
    "one_file": ("disk",),
    "steps": ("memory",),
    "isa": ("cpu", "memory"),
    "size": ("disk",),
    "sync": ("disk",),
    "fill": ("disk",),
    "variants": ("memory", "disk", "network", "gpu"),
    "total": ("cpu", "memory", "disk", "network"),
}
"""Key of a grid -> the subsystems that use it. Keys that all subsystems use are not listed."""


def _check_keys(subsystem: str, where: str, grid: Mapping[str, Any]) -> None:
    """Check that every key and every reference of a grid has an effect. Errors: ConfigError."""
    for key, subsystems in ONLY_OF.items():
        if key in grid and subsystem not in subsystems:
            raise ConfigError(
                f"{where}.{key} is of no use: {key} belongs to {listed(subsystems)}, remove it"
            )
    if subsystem == "memory" and grid.get("pairs", "all") != "all":
        raise ConfigError(f"{where}.pairs names nodes: allowed for memory is all")
    if subsystem == "disk":
        _check_nodes_together(where, grid)
    elif grid.get("together"):
        is_plain = set(grid["workloads"]) <= {"TCP", "UDP"} and "variants" not in grid
        if "pairs" not in grid or not is_plain or grid["together"] is not True:
            raise ConfigError(
                f"{where}.together needs pairs in rounds, such as pairs: {{rounds: 3}}, TCP or UDP "
                "without variants, and the value true: put other workloads in a separate grid"
            )
    # Find the tools of the subsystem, and the tools that use each key.
    fitting = []
    users: dict[str, list[str]] = {}
    for name, tool in references().items():
        if subsystem in [coverage.subsystem for coverage in tool.rows]:
            fitting.append(name)
        for key in tool.options:
            users.setdefault(key, []).append(name)
    for name, narrow in grid.get("references", {}).items():
        if name not in fitting:
            raise ConfigError(
                f"{where}.references has {name}: allowed for {subsystem} are {', '.join(fitting)}"
            )
        for key, tools in users.items():
            if key in narrow and name not in tools:
                raise ConfigError(
                    f"{where}.references.{name}.{key} is of no use: {key} belongs to {listed(tools)}, remove it"
                )


def _check_nodes_together(where: str, grid: Mapping[str, Any]) -> None:
    """Check ``together`` and ``one_file`` of a disk grid. Errors: ConfigError."""
    if isinstance(grid.get("together", []), bool):
        raise ConfigError(
            f"{where}.together is {json.dumps(grid['together'])}: allowed for disk are numbers of "
            "nodes, such as [1, 2, 4, all]"
        )
    if grid.get("one_file"):
        if "together" not in grid:
            raise ConfigError(f"{where}.one_file needs together, such as together: [1, 2, 4, all]")
        if "META" in grid["workloads"] or grid.get("fill") == "new":
            raise ConfigError(
                f"{where}.one_file excludes META and fill: new: put them in a separate grid"
            )
    others = [name for name in grid.get("references", {}) if name != "fio"]
    if "together" in grid and others:
        raise ConfigError(
            f"{where}.references has {others[0]}: only fio can start on several nodes at one moment"
        )
    if grid.get("one_file") and "references" in grid:
        raise ConfigError(f"{where}.references: no reference tool measures one_file, remove them")


def parse_total(where: str, total: str | float) -> int:
    """Parse a fixed amount of work, such as ``1e12`` or ``100GiB``. Errors: ConfigError."""
    try:
        value = float(total)
    except OverflowError:
        value = math.inf
    except ValueError:
        try:
            value = parse_size(str(total))
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}") from error
    if not 1 <= value <= 1e18:
        raise ConfigError(f"{where} is {total!r}: allowed is 1 to 1e18")
    return int(value)
