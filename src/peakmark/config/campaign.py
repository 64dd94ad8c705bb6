"""Read, check and complete the configuration of a campaign, for Snakemake and ``peakmark plan``.

Files and ``--config`` words override ``config/config.yaml``. Every error is one sentence.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec

from peakmark import validation, yamlfile
from peakmark.catalogue import AUTO, CHAPTERS, SHAPES, SWEEPS, WORKLOADS, gpu_variants
from peakmark.config import layouts
from peakmark.config.types import (
    AnyGrid,
    Campaign,
    DiskGrid,
    GpuGrid,
    MemoryGrid,
    MpiGrid,
    NetworkGrid,
    ReferenceGrid,
    Report,
)
from peakmark.errors import ConfigError
from peakmark.formatting import listed, parse_duration, parse_size
from peakmark.resources import ROOT, of_checkout, of_user
from peakmark.tools import references
from peakmark.validation import did_you_mean

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
        values: values that the files override, such as those that Snakemake has read.

    Raises:
        ConfigError: a file or a word is not valid.
    """
    own = merged([values or {}, *map(yamlfile.read, files)])
    # Read the base file, unless it is missing and not needed.
    base_file = BASE if BASE.exists() else ROOT / BASE
    base: dict[str, Any] = {}
    if base_file.exists() or not files:  # without any file, reading fails and names the missing one
        base = yamlfile.read(base_file)
    # Grids of the user's files replace those of the base file, so that nothing else is measured.
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
    """Return the arguments of ``--config`` for a site file: ``["site=PATH"]``, or ``[]`` without a name. Errors: ConfigError."""
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
        # Snakemake allows only such keys.
        if not equals or not re.fullmatch(r"[a-zA-Z_][\w-]*\w", key):
            raise ConfigError(
                f"--config has {word!r}: allowed is KEY=VALUE, such as scale=0.1 or disk=[]"
            )
        # Snakemake reads a word as YAML, where quotes around a text do not belong to it.
        value = _value(text.strip("'\""), f"--config {key}")
        mappings.append({key: value})
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
    """Return the values of an option on Snakemake's command line. Only the last occurrence of the option counts.

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


def complete(config: Mapping[str, Any]) -> Campaign:
    """Check the configuration, and return it with all defaults filled in.

    Raises:
        ConfigError: a value is not allowed. The message names its key and the allowed values.
    """
    campaign = validation.read(_plain(config), Campaign)
    # Check values that the types cannot check.
    parse_duration(campaign.give_up_after)
    grids = campaign.grids()
    for subsystem, several in grids.items():
        for index, grid in enumerate(several):
            _check_grid(f"{subsystem}[{index}]", grid)
    if not any(grids.values()):
        raise ConfigError(
            "the configuration measures nothing: cpu, memory, disk, network, mpi and gpu are all empty; "
            "start with peakmark run quick"
        )
    # A tool that is left out has False instead of a path.
    tools = dict(campaign.tools)
    for name, path in tools.items():
        if path in NO_TOOL:
            tools[name] = False
    return msgspec.structs.replace(campaign, tools=tools)


def _plain(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration as plain JSON values. Snakemake uses subclasses of dict and Path."""
    plain: dict[str, Any] = json.loads(json.dumps(config, default=str))
    return plain


def _check_grid(where: str, grid: AnyGrid) -> None:
    """Check the rules of a grid that types cannot express: sizes, and keys that only some workloads have."""
    _check_sizes(where, grid)
    for name, changes in grid.references.items():
        _check_sizes(f"{where}.references.{name}", changes)
    _check_references(where, grid)
    if grid.total is not None:
        parse_total(f"{where}.total", grid.total)
    # No blocks are needed if all workloads are of ``SHAPES``, which measure at all sizes or have no size, or if the
    # only one is BARRIER, which sends no data.
    needs_blocks = isinstance(grid, MemoryGrid | DiskGrid) and not SHAPES.keys() >= set(
        grid.workloads
    )
    if isinstance(grid, MpiGrid):
        needs_blocks = grid.workloads != ["BARRIER"]
        _check_ranks(where, grid)
    if needs_blocks and not grid.blocks:
        raise ConfigError(f"{where} lacks blocks: give sizes such as [4KiB, 1MiB]")
    if isinstance(grid, MemoryGrid):
        _check_auto(where, grid)
    elif isinstance(grid, GpuGrid):
        _check_gpu(where, grid)
    elif isinstance(grid, NetworkGrid):
        _check_pairs(where, grid)
    elif isinstance(grid, DiskGrid):
        _check_nodes_together(where, grid)


def _check_sizes(place: str, part: AnyGrid | ReferenceGrid) -> None:
    """Check the sizes of a grid, or of the changes for one of its references. Errors: ConfigError.

    ``auto`` is a size only in a memory grid, not in the changes for a reference.
    """
    # Size -> the key that has it.
    sizes = dict.fromkeys(part.blocks or [], "blocks")
    for key in ("pool", "size"):
        size = getattr(part, key, None)
        if size is not None:
            sizes[size] = key
    for size, key in sizes.items():
        if size == AUTO and isinstance(part, MemoryGrid):
            continue
        try:
            parse_size(size)
        except ConfigError as error:
            raise ConfigError(f"{place}.{key}: {error}") from error


def _check_references(where: str, grid: AnyGrid) -> None:
    """Check that each reference of a grid measures the grid's subsystem and uses its own keys.

    Args:
        where: subsystem and number of the grid, such as ``cpu[0]``.
        grid: the grid.

    Raises:
        ConfigError: a reference measures another subsystem, does not use a key, or lacks ``nodes``.
    """
    subsystem = where.partition("[")[0]
    # The tools that measure this subsystem, and key -> the tools that use it.
    fitting = []
    users: dict[str, list[str]] = {}
    for name, tool in references().items():
        if subsystem in map(attrgetter("subsystem"), tool.rows):
            fitting.append(name)
        for key in tool.options:
            users.setdefault(key, []).append(name)
    for name, changes in grid.references.items():
        if name not in fitting:
            raise ConfigError(
                f"{where}.references has {name}: allowed for {subsystem} are {', '.join(fitting)}"
            )
        # Both keys are of HPL on several nodes, see ``ReferenceGrid``.
        if changes.nodes is None and (changes.memory or changes.ranks):
            raise ConfigError(
                f"{where}.references.{name} has memory or ranks without nodes: add nodes, such as "
                "nodes: [1, all]"
            )
        for key, others in users.items():
            if getattr(changes, key) is not None and name not in others:
                raise ConfigError(
                    f"{where}.references.{name}.{key} is of no use: {key} belongs to {listed(others)}, "
                    "remove it"
                )


def _check_auto(where: str, grid: MemoryGrid) -> None:
    """Check that only LAT has the block ``auto``: nodes choose its area. Errors: ConfigError."""
    if AUTO in grid.blocks and grid.workloads != ["LAT"]:
        raise ConfigError(
            f"{where}.blocks has {AUTO!r}: only LAT of memory allows it; give sizes, or put LAT into a "
            "separate grid"
        )


def _check_gpu(where: str, grid: GpuGrid) -> None:
    """Check that blocks and variants of the grid fit one of its workloads. Errors: ConfigError."""
    if grid.blocks and not set(grid.workloads) & set(SWEEPS):
        raise ConfigError(
            f"{where} has blocks: none of its workloads has a block size, remove the key"
        )
    known: list[str] = []
    for workload in grid.workloads:
        known += gpu_variants(workload)
    for variant in grid.variants:
        if variant not in known:
            raise ConfigError(
                f"{where}.variants has {variant!r}, which none of its workloads has: remove it"
            )


def _check_ranks(where: str, grid: MpiGrid) -> None:
    """Check that the ranks of an MPI grid are on one node or on several. Errors: ConfigError."""
    keys = [key for key in ("nodes", "pairs", "variants") if getattr(grid, key)]
    if len(keys) > 1:
        raise ConfigError(
            f"{where} has {listed(keys)}: each says where the ranks are, keep one of these keys"
        )


def _check_pairs(where: str, grid: NetworkGrid) -> None:
    """Check ``together`` of a network grid: it needs ``pairs``, and workloads of throughput without variants.

    Raises:
        ConfigError: ``together`` is set for another grid.
    """
    # The rates of a round are added up. Their rows have the variant ``together``, so they can have no other.
    is_plain = set(grid.workloads) <= {"TCP", "UDP"} and not grid.variants
    if grid.together and (grid.pairs is None or not is_plain):
        raise ConfigError(
            f"{where}.together needs pairs in rounds, such as pairs: {{rounds: 3}}, and TCP or UDP "
            "without variants: put other workloads in a separate grid"
        )


def _check_nodes_together(where: str, grid: DiskGrid) -> None:
    """Check ``together`` and ``one_file`` of a disk grid. Errors: ConfigError."""
    if grid.one_file and grid.together is None:
        raise ConfigError(f"{where}.one_file needs together, such as together: [1, 2, 4, all]")
    # META creates many files. With fill: new, a node would empty the file that other nodes use.
    if grid.one_file and ("META" in grid.workloads or grid.fill == "new"):
        raise ConfigError(
            f"{where}.one_file excludes META and fill: new: put them in a separate grid"
        )
    if grid.one_file and grid.references:
        raise ConfigError(f"{where}.references: no reference tool measures one_file, remove them")
    if grid.together and "iozone" in grid.references:
        raise ConfigError(
            f"{where}.references has iozone: only fio can start on several nodes at one moment"
        )


def parse_total(where: str, total: str | float) -> int:
    """Parse a fixed amount of work: a number such as ``1e12``, or a size such as ``100GiB`` in bytes.

    Raises:
        ConfigError: the amount is not understood, or not between 1 and 1e18.
    """
    try:
        value = float(total)
    except ValueError:
        try:
            value = parse_size(str(total))
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}") from error
    if not 1 <= value <= 1e18:
        raise ConfigError(f"{where} is {total!r}: allowed is 1 to 1e18")
    return int(value)


ENDINGS = (".md", ".typ")
"""Extensions of files that are meant as chapters, so that a misspelt name of a chapter is reported."""


def check_chapters(name: str | None) -> None:
    """Check the folder of the author's chapters.

    Raises:
        ConfigError: there is no such folder, or a text in it does not have the name of a chapter.
    """
    if name is None:
        return
    folder = of_user(name)
    if not folder.is_dir():
        raise ConfigError(
            f"report.text: there is no folder {name!r}: give the folder that holds the chapters, "
            f"such as {CHAPTERS[0]}.md"
        )
    names = [f"{key}.md" for key in CHAPTERS]
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() in ENDINGS and path.name not in names:
            raise ConfigError(
                f"report.text: {path} is no chapter{did_you_mean(path.stem, CHAPTERS)}: allowed are "
                f"{', '.join(names)}"
            )
        if path.suffix == ".md":
            _check_readable(path)


def _check_readable(path: Path) -> None:
    """Check that a file is readable UTF-8 text. Errors: ConfigError."""
    try:
        path.read_bytes().decode()
    except (OSError, ValueError) as error:
        raise ConfigError(f"report.text: {path} is not readable as UTF-8 text ({error})") from error


def digest(report: Report) -> str:
    """Return a digest of the user's files that ``report`` names: the layout and the chapters.

    Snakemake makes tables and report again if the digest changes.
    """
    paths: list[Path] = []
    if report.tables:
        paths.append(layouts.path_of(report.tables))
    if report.text:
        paths += sorted(of_user(report.text).glob("*.md"))
    content = hashlib.sha256()
    for path in paths:
        if path.is_file():
            content.update(f"{path.name}\0".encode())
            content.update(path.read_bytes())
    return content.hexdigest()
