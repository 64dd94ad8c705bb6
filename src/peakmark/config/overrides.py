"""What a user asks for: files and ``--config`` words over ``config/config.yaml``, the same for
Snakemake and ``plan``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from peakmark import yamlfile
from peakmark.catalogue import WORKLOADS
from peakmark.errors import ConfigError
from peakmark.resources import ROOT, of_checkout

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
