"""Read YAML and JSON files that users write, and report errors with their line.

Duplicate keys are refused, because one of the values would be lost. So are tags, more than ``MOST``
values, and files that are not regular files. ``validation.read`` checks the values afterwards.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from peakmark import files
from peakmark.errors import ConfigError

LARGEST = 512 << 10
"""Largest file in bytes: five times the size of a file that lists ten thousand nodes."""
MOST = 200_000
"""Largest number of values in a file. A value that aliases repeat counts each time."""

_RESOLVER = yaml.SafeLoader("")
_TEXT = "tag:yaml.org,2002:str"


def read(path: Path | str, what: str = "") -> dict[str, Any]:
    """Read the keys and values of a file; an empty file gives an empty dict.

    Args:
        path: the file.
        what: kind of file, for messages.

    Raises:
        ConfigError: the file is not valid. The message names the file and, if known, the line.
    """
    where = f"{what} {path}".strip()
    try:
        text = files.read_bytes(Path(path), LARGEST).decode()
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{where} is not valid YAML: byte {error.start + 1} is no UTF-8, save the file in that encoding"
        ) from error
    except (OSError, ValueError) as error:  # ValueError: a name with a null byte
        raise ConfigError(
            f"{where} cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from error
    data = parse(text, where)
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise ConfigError(f"{where} must hold keys and values, such as `name: value`")
    return data


def parse(text: str, where: str) -> Any:
    """Parse a text in YAML or JSON. Errors: ConfigError.

    Args:
        text: the text.
        where: name of the text's source, for messages.
    """
    text = text.removeprefix("\ufeff")
    if text.lstrip().startswith("{"):  # JSON allows tabs, and numbers that YAML does not
        try:
            return json.loads(text, object_pairs_hook=partial(_mapping, where))
        except (ValueError, RecursionError):
            pass
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        _check(node, where, itertools.count(1))
        return loader.construct_document(node)
    except RecursionError as error:
        raise ConfigError(f"{where} is not valid YAML: it is nested too deeply") from error
    except (
        yaml.YAMLError,
        ValueError,
        OverflowError,
    ) as error:  # ValueError: an invalid date or number
        line = ""
        mark = getattr(error, "problem_mark", None)
        if mark is not None:
            line = f", line {mark.line + 1}"
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
        raise ConfigError(
            f"{where}{line} is not valid YAML: {' '.join(str(problem).split())}"
        ) from error


def _mapping(where: str, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the pairs of a JSON object as a dict. Errors: ConfigError for a duplicate key."""
    mapping: dict[str, Any] = {}
    for key, value in pairs:
        if key in mapping:
            raise ConfigError(
                f"{where} has the key {key!r} twice, and one of the two would be lost: remove one"
            )
        mapping[key] = value
    return mapping


def _check(node: yaml.Node, where: str, count: Iterator[int]) -> None:
    """Check tags, duplicate keys and the number of values of a node and its parts.

    Errors: ConfigError.

    Args:
        node: the node.
        where: name of the source, for messages.
        count: counter of all values.
    """
    line = node.start_mark.line + 1
    if next(count) > MOST:
        raise ConfigError(f"{where} has more than {MOST} values, including repetitions by aliases")
    plain = _RESOLVER.resolve(type(node), node.value, (True, False))  # type: ignore[no-untyped-call]
    if node.tag not in (plain, _TEXT):
        raise ConfigError(
            f"{where}, line {line} is not valid YAML: the tag {node.tag} is not allowed, write the value without it"
        )
    if isinstance(node, yaml.MappingNode):
        lines: dict[str, int] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            name = str(key.value)
            if name in lines:
                raise ConfigError(
                    f"{where}, line {line}: the key {name!r} is already in line {lines[name]}, and one of the "
                    "two would be lost: remove one, or put the entries of both into one list"
                )
            lines[name] = line
            _check(key, where, count)
            _check(value, where, count)
    elif isinstance(node, yaml.SequenceNode):
        for part in node.value:
            _check(part, where, count)
