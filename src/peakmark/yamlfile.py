"""Files that users write in YAML or JSON, read strictly: what a reader would pass over in silence
is said, with its line.

Refused are keys that stand twice (the first would be lost), numbers that are none (``.nan``,
``.inf``), more values than anybody writes, and what is no regular file.
"""

from __future__ import annotations

import itertools
import json
import math
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from peakmark.errors import ConfigError

LARGEST = 512 << 10
"""Bytes of a file: a list of ten thousand nodes has a fifth of it."""
MOST = 200_000
"""Values of a file, each as often as aliases repeat it."""

_FLOAT, _TEXT = "tag:yaml.org,2002:float", "tag:yaml.org,2002:str"
_LOOKS = yaml.SafeLoader("")
"""Knows which values look like numbers, dates or truth values."""


def read(path: Path | str, what: str = "") -> dict[str, Any]:
    """The keys and values of a file, none of an empty one; ``what`` it is stands before its name in
    messages.

    Errors: ConfigError in one sentence with the file and, where there is one, the line.
    """
    where = f"{what} {path}".strip()
    data = parse(_text(Path(path), where), where)
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise ConfigError(f"{where} must hold keys and values, such as `name: value`")
    return data


def parse(text: str, where: str) -> Any:
    """The value of a text. Errors: ConfigError."""
    if text.lstrip("\ufeff \n\r\t").startswith(
        "{"
    ):  # JSON, which knows more numbers than YAML and takes tabs
        try:
            return _json(text.lstrip("\ufeff"), where)
        except (ValueError, RecursionError):
            pass
    loader = yaml.SafeLoader("")
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        _check_values(node, where, itertools.count(1))
        return loader.construct_document(node)
    except RecursionError as error:
        raise ConfigError(f"{where} is not valid YAML: it is nested too deeply") from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # ValueError: no date, no number
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
        raise ConfigError(
            f"{where}{line} is not valid YAML: {' '.join(str(problem).split())}"
        ) from error
    finally:
        loader.dispose()


def _text(path: Path, where: str) -> str:
    try:
        kind = path.stat().st_mode
        if not stat.S_ISREG(kind):
            raise ConfigError(f"{where} cannot be read: it is {_kind(kind)}, not a file")
        if path.stat().st_size > LARGEST:
            raise ConfigError(
                f"{where} cannot be read: it has more than {LARGEST >> 10} KiB, which nobody writes by hand"
            )
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{where} is not valid YAML: byte {error.start + 1} is no UTF-8, save the file in that encoding"
        ) from error
    except (OSError, ValueError) as error:  # ValueError: a name with a null byte
        raise ConfigError(
            f"{where} cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from error


def _kind(mode: int) -> str:
    return (
        "a folder"
        if stat.S_ISDIR(mode)
        else "a pipe"
        if stat.S_ISFIFO(mode)
        else "a device or a socket"
    )


def _json(text: str, where: str) -> Any:
    """Errors: ValueError when it is no JSON, ConfigError when it is but cannot be used."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, value in pairs:
            if key in result:
                raise ConfigError(
                    f"{where} has the key {key!r} twice, and one of the two would be lost: remove one"
                )
            result[key] = value
        return result

    def finite(word: str) -> float:
        value = float(word)
        if not math.isfinite(value):
            raise ConfigError(f"{where} has {word} for a number: allowed are finite numbers")
        return value

    value = json.loads(text, object_pairs_hook=once, parse_float=finite, parse_constant=finite)
    _check_text(json.dumps(value, ensure_ascii=False), where)
    return value


def _check_values(node: yaml.Node, where: str, count: Iterator[int]) -> None:
    """Look at each value, as often as aliases stand for it. Errors: ConfigError."""
    if next(count) > MOST:
        raise ConfigError(
            f"{where} holds more than {MOST} values, counted where aliases repeat them"
        )
    _check_tag(node, where)
    if isinstance(node, yaml.ScalarNode):
        _check_text(node.value, _at(node, where))
        if node.tag == _FLOAT and not _finite(node.value):
            raise ConfigError(
                f"{_at(node, where)} has {node.value} for a number: allowed are finite numbers"
            )
        return
    if isinstance(node, yaml.MappingNode):
        _keys_once(node, where)
        parts = [part for pair in node.value for part in pair]
    else:
        parts = node.value
    for part in parts:
        _check_values(part, where, count)


def _check_text(text: str, where: str) -> None:
    """Errors: ConfigError for a surrogate without its pair, which no file can hold."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        half = ascii(text[error.start])
        raise ConfigError(
            f"{where} holds half a character, {half}: write it as it is, in UTF-8"
        ) from error


def _check_tag(node: yaml.Node, where: str) -> None:
    """Errors: ConfigError for a tag (``!!int x``) that makes of a value what it does not look like."""
    meant = _LOOKS.resolve(type(node), node.value, (True, False))  # type: ignore[no-untyped-call]
    if node.tag not in (meant, _TEXT):
        shown = node.tag.replace("tag:yaml.org,2002:", "!!")
        raise ConfigError(
            f"{_at(node, where)} is not valid YAML: the tag {shown} is not allowed, write the value without it"
        )


def _finite(text: str) -> bool:
    try:
        return math.isfinite(
            float(text.replace("_", "").lower().replace(".inf", "inf").replace(".nan", "nan"))
        )
    except ValueError:  # 190:20:30.15 is a float too
        return True


def _keys_once(node: yaml.MappingNode, where: str) -> None:
    lines: dict[str, int] = {}
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            continue
        line = key.start_mark.line + 1
        if key.value in lines:
            raise ConfigError(
                f"{where}, line {line}: the key {key.value!r} stands in line {lines[key.value]} already, and one of the "
                "two would be lost: remove one, or put the entries of both into one list"
            )
        lines[key.value] = line


def _at(node: yaml.Node, where: str) -> str:
    return f"{where}, line {node.start_mark.line + 1}"
