"""Read YAML and JSON files that users write, and report errors with their line.

Duplicate keys are refused, because one of the values would be lost.
"""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from peakmark.errors import ConfigError


class _Loader(yaml.SafeLoader):
    """A loader that refuses duplicate keys."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Return a mapping, after a check that no key is in it twice. PyYAML calls this for each mapping.

        Raises:
            ConstructorError: a key is in it twice.
        """
        # Key -> its line, from 1.
        lines: dict[str, int] = {}
        for key, _ in node.value:
            name = str(key.value)
            if name in lines:
                raise yaml.constructor.ConstructorError(
                    problem=f"the key {name!r} is already in line {lines[name]}, and one of the two would be lost: "
                    "remove one, or put the entries of both into one list",
                    problem_mark=key.start_mark,
                )
            lines[name] = key.start_mark.line + 1
        return super().construct_mapping(node, deep)


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
        text = Path(path).read_bytes().decode()
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{where} is not valid YAML: byte {error.start + 1} is no UTF-8, save the file in that encoding"
        ) from error
    except OSError as error:
        raise ConfigError(f"{where} cannot be read: {error.strerror}") from error
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
        where: file or option that the text comes from, for messages.
    """
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - a safe loader
    except yaml.MarkedYAMLError as error:
        line = ""
        if error.problem_mark is not None:
            line = f", line {error.problem_mark.line + 1}"
        raise ConfigError(f"{where}{line} is not valid YAML: {error.problem}") from error
    except (yaml.YAMLError, ValueError) as error:  # ValueError: an invalid date or number
        raise ConfigError(f"{where} is not valid YAML: {' '.join(str(error).split())}") from error
