"""Read, check and complete a configuration; say in one sentence what is wrong with it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from peakmark.catalogue import AUTO, SHAPES, SUBSYSTEMS, WORKLOADS
from peakmark.config.overrides import merged
from peakmark.config.types import Campaign
from peakmark.errors import ConfigError
from peakmark.formatting import listed
from peakmark.tools import references
from peakmark.units import parse_duration, parse_size
from peakmark.validation import read

NO_TOOL = ("false", "none", "no", "off")
"""Words that leave a tool out: on the command line ``false`` is a text, and ``/bin/false`` a
program.
"""


def complete(config: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration with all defaults filled in.

    Raises:
        ConfigError: names the key, the value and what is allowed.
    """
    plain = _plain(config)
    read(plain, Campaign)
    completed = merged([msgspec.to_builtins(Campaign()), plain])
    completed["tools"] = {
        name: False if path in NO_TOOL else path for name, path in completed["tools"].items()
    }
    parse_duration("give_up_after", completed["give_up_after"])
    for subsystem in WORKLOADS:
        for index, grid in enumerate(completed[subsystem]):
            _check_grid(subsystem, f"{subsystem}[{index}]", grid)
    if not any(completed[subsystem] for subsystem in WORKLOADS):
        raise ConfigError(
            "the configuration measures nothing: cpu, memory, disk and network are all empty; "
            "start with peakmark run quick"
        )
    return completed


def _plain(config: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration as JSON values: Snakemake hands over dicts and paths of its own types."""
    try:
        plain: dict[str, Any] = json.loads(json.dumps(config, default=str))
    except (TypeError, ValueError, RecursionError) as error:
        raise ConfigError(
            f"the configuration holds a value that is neither text, number, list nor mapping: {error}"
        ) from error
    return plain


def _check_grid(subsystem: str, where: str, grid: Mapping[str, Any]) -> None:
    """What the schema cannot say: workloads, variants and sizes that fit the subsystem."""
    _check_part(subsystem, where, grid, grid)
    for name, narrow in grid.get("references", {}).items():
        _check_part(subsystem, f"{where}.references.{name}", grid, narrow)
    _check_keys(subsystem, where, grid)
    sized = subsystem != "cpu" and not SHAPES.keys() >= set(grid["workloads"])
    if sized and "blocks" not in grid:
        raise ConfigError(f"{where} lacks blocks: {subsystem} needs sizes such as [4KiB, 1MiB]")
    if subsystem == "cpu" and "blocks" in grid:
        raise ConfigError(
            f"{where} has blocks: the cpu workloads have no block size, remove the key"
        )
    if "total" in grid:
        parse_total(f"{where}.total", grid["total"])


def _check_part(
    subsystem: str, place: str, grid: Mapping[str, Any], part: Mapping[str, Any]
) -> None:
    """The same of a grid, or of a reference beside it, which stands in ``part``."""
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
        for value in values if isinstance(values, list) else [values]:
            if value == AUTO and (
                key == "pool" or (key == "blocks" and _may_choose(subsystem, grid, part))
            ):
                continue
            if value == AUTO and key == "blocks":
                raise ConfigError(
                    f"{place}.blocks has {AUTO!r}: only the area of LAT in memory is chosen by the node; give sizes, or LAT "
                    "a grid of its own"
                )
            try:
                parse_size(value)
            except ConfigError as error:
                raise ConfigError(f"{place}.{key}: {error}") from error
    word = next((asked for asked in part.get("concurrency", []) if isinstance(asked, str)), None)
    if word and not SUBSYSTEMS[subsystem].pinned:
        raise ConfigError(
            f"{place}.concurrency has {word!r}: words are for cpu and memory, give a number here"
        )


def _may_choose(subsystem: str, grid: Mapping[str, Any], part: Mapping[str, Any]) -> bool:
    """Whether the node may choose a block: the area of LAT in memory alone is any size beyond the
    caches.
    """
    return subsystem == "memory" and part.get("workloads", grid.get("workloads")) == ["LAT"]


ONLY_OF = {
    "pool": ("memory",),
    "store": ("memory",),
    "pairs": ("memory", "network"),
    "steps": ("memory",),
    "reads": ("memory",),
    "rates": ("memory",),
    "isa": ("cpu", "memory"),
    "size": ("disk",),
    "sync": ("disk",),
    "fill": ("disk",),
    "variants": ("memory", "disk", "network"),
}
"""Keys of a grid that have a meaning for some subsystems only."""


def _check_keys(subsystem: str, where: str, grid: Mapping[str, Any]) -> None:
    """Errors: ConfigError for a key or a tool that would be without effect."""
    for key, subsystems in ONLY_OF.items():
        if key in grid and subsystem not in subsystems:
            raise ConfigError(
                f"{where}.{key} is of no use: {key} belongs to {listed(subsystems)}, remove it"
            )
    if subsystem == "memory" and grid.get("pairs", "all") != "all":
        raise ConfigError(f"{where}.pairs names nodes: allowed for memory is all")
    tools_of = references()
    fitting = [
        name
        for name, tool in tools_of.items()
        if any(coverage.subsystem == subsystem for coverage in tool.rows)
    ]
    heeded = dict.fromkeys(key for tool in tools_of.values() for key in tool.options)
    for name, narrow in grid.get("references", {}).items():
        if name not in fitting:
            raise ConfigError(
                f"{where}.references has {name}: allowed for {subsystem} are {', '.join(fitting)}"
            )
        for key in heeded:
            if key in narrow and key not in tools_of[name].options:
                tools = [other for other, tool in tools_of.items() if key in tool.options]
                raise ConfigError(
                    f"{where}.references.{name}.{key} is of no use: {key} belongs to {listed(tools)}, remove it"
                )


def parse_total(where: str, total: str | float) -> int:
    """A fixed amount of work: ``1e12``, ``100GiB`` or a plain number. Errors: ConfigError."""
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
