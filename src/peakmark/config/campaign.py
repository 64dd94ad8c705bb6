"""What a user asks for: files and ``--config`` words over ``config/config.yaml``, the same for
Snakemake and ``plan``; read, checked and completed, with one sentence for what is wrong.
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
from peakmark.catalogue import AUTO, SHAPES, SUBSYSTEMS, WORKLOADS
from peakmark.config.types import Campaign
from peakmark.errors import ConfigError
from peakmark.formatting import listed, parse_duration, parse_size
from peakmark.resources import ROOT, of_checkout
from peakmark.tools import references

BASE = Path("config/config.yaml")
"""Read first: in the working directory, else in the checkout."""

_FILES = ("--configfile", "--configfiles")
WORDS = ("--config", "-C")
"""Options of Snakemake that are followed by ``KEY=VALUE`` words."""


def read(
    files: Sequence[Path], settings: Iterable[str] = (), values: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The configuration of ``values``, ``files`` and ``KEY=VALUE`` words, later ones winning by key;
    mappings are merged.

    Without a file that names a grid, those of ``config/config.yaml`` are measured. A file that has
    some is the whole campaign: of the base only the other keys stay. Errors: ConfigError.
    """
    own = merged([values or {}, *map(yamlfile.read, files)])
    base_file = BASE if BASE.exists() else ROOT / BASE
    base = yamlfile.read(base_file) if base_file.exists() or not files else {}
    if any(own.get(subsystem) for subsystem in WORKLOADS):
        base = {key: value for key, value in base.items() if key not in WORKLOADS}
    return merged([base, own, pairs(settings)])


def shipped(name: str, folder: str) -> str:
    """Path of the user's file, or of the one that peakmark ships by this name.

    Raises:
        ConfigError: there is neither.
    """
    files = {path.stem: path for path in sorted(of_checkout(folder).glob("*.yaml"))}
    path = Path(name) if Path(name).is_file() else files.get(name)
    if path is None:
        raise ConfigError(f"{name!r} is no file here: give the path of one, or {', '.join(files)}")
    return str(path)


def site(name: str | None) -> list[str]:
    """The ``KEY=VALUE`` word for a site file that an option names. Errors: ConfigError."""
    return [f"site={shipped(name, 'config/sites')}"] if name else []


def merged(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Later parts over earlier ones, mappings within mappings key by key."""
    result: dict[str, Any] = {}
    for part in parts:
        _merge(result, part)
    return result


def _merge(base: dict[str, Any], extra: Mapping[str, Any]) -> None:
    for key, value in extra.items():
        if isinstance(value, dict):
            inner = base.get(key)
            base[key] = dict(inner) if isinstance(inner, dict) else {}
            _merge(base[key], value)
        else:
            base[key] = value


def pairs(settings: Iterable[str]) -> dict[str, Any]:
    """``["scale=0.1", "report={title: Mine}"]`` as a mapping. Errors: ConfigError for a word that
    is no pair.
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
    """A number, ``True`` or ``False``, YAML for what has parts, else the text itself; nothing is
    null.
    """
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    value = yamlfile.parse(text, where) if text.lstrip().startswith(("[", "{")) else text
    return {"": None, "null": None, "True": True, "true": True, "False": False, "false": False}.get(
        text, value
    )


def check_command_line(argv: Sequence[str]) -> None:
    """Read what Snakemake's command line names, so that what is wrong is said before Snakemake
    reads it in its own way.

    Errors: ConfigError.
    """
    for path in named(argv, _FILES):
        yamlfile.read(Path(path))
    pairs(named(argv, WORDS))


def named(argv: Sequence[str], options: tuple[str, ...]) -> list[str]:
    """The values of the last of ``options`` on a command line of Snakemake, as argparse takes them."""
    values: list[str] = []
    taking = False
    for word in argv:
        name, equals, value = word.partition("=")
        if word.startswith("-"):
            taking = name in options
            values = ([value] if equals else []) if taking else values
            taking = taking and not equals
        elif taking:
            values.append(word)
    return values


REMOVED = {
    "repeat_suspects": "peakmark fleet results/NAME --suspects FILE writes the campaign that measures "
    "slow nodes again",
    "formula_set": "limits are computed from the facts of the machine and of the site file",
    "certify": "docs/method.md tells how often the verdict on nodes is wrong",
    "report.summary": "tables show the median, the mean is beside it in rows/rows.csv",
    "report.publisher": "state the publisher where you publish the bundle",
    "report.authors.orcid": "a bundle has no description of its authors",
    "report.published": "the numbers are in reports/published, to be read beside the tables",
}
"""Key that earlier versions had -> what is there in its place."""

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
    _check_removed(plain)
    validation.read(plain, Campaign)
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


def _check_removed(plain: Mapping[str, Any]) -> None:
    """Raise a ConfigError that names what is there in the place of a removed key."""
    for key, instead in REMOVED.items():
        *sections, name = key.split(".")
        within: list[Mapping[str, Any]] = [plain]
        for section in sections:
            within = parts_of(within, section)
        if any(name in part for part in within):
            raise ConfigError(f"the key {key} was removed: delete it; {instead}")


def parts_of(mappings: Sequence[Mapping[str, Any]], key: str) -> list[Mapping[str, Any]]:
    """Return the mappings that stand under a key, in a list of them too."""
    values: list[Any] = []
    for mapping in mappings:
        value = mapping.get(key)
        values += value if isinstance(value, list) else [value]
    return [value for value in values if isinstance(value, dict)]


def without_removed(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration without removed keys, which plans of earlier versions have."""
    kept = dict(config)
    for key in REMOVED:
        section, _, name = key.rpartition(".")
        if not section:
            kept.pop(name, None)
        elif isinstance(kept.get(section), dict):
            kept[section] = {each: kept[section][each] for each in kept[section] if each != name}
    return kept


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
