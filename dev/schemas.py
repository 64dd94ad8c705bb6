"""Generate JSON schemas from the types of peakmark's files, for editors and for the documentation."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any

import msgspec
import yaml

from peakmark.config import types

FOLDER = Path("config/schemas")
"""Folder where Snakemake's catalogue expects the schema of a workflow's configuration."""
DRAFT = "https://json-schema.org/draft/2020-12/schema"
_KEY = re.compile(r"^    (\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)
"""A key below ``Attributes`` in a docstring, and its description."""


def schema(name: str, kind: type) -> dict[str, Any]:
    """Return the JSON schema of a type, as a mapping.

    The text below ``Attributes`` in the docstring of a type becomes the description of its keys.

    Args:
        name: name of such files for the schema's title, such as config.
        kind: type that msgspec can convert.
    """
    _, known = msgspec.json.schema_components([kind])
    for title, part in known.items():
        summary, _, keys = inspect.cleandoc(part.get("description", "")).partition("\n\n")
        part["description"] = " ".join(summary.split())
        # The docstrings of base classes describe the keys that they define. They precede the type's own text,
        # whose descriptions replace theirs. Types of other modules, such as layouts, describe all their keys.
        described = getattr(types, title, object)
        for base in described.__mro__[1:]:
            keys = f"{inspect.cleandoc(base.__doc__ or '')}\n{keys}"
        for key, text in _KEY.findall(keys):
            if key in part["properties"]:
                part["properties"][key]["description"] = " ".join(text.split())
    whole = known.pop(kind.__name__)
    text = json.dumps({"$schema": DRAFT, **whole, "title": f"peakmark {name}", "$defs": known})
    made: dict[str, Any] = json.loads(text.replace(r"\\Z", "$"))  # \\Z is Python's spelling of $
    return made


def as_yaml(name: str, kind: type) -> str:
    """Return the schema of a type as the text of a YAML file."""
    text: str = yaml.safe_dump(
        schema(name, kind), sort_keys=False, allow_unicode=True, width=120, default_flow_style=False
    )
    return (
        f"# Made from the types in peakmark.config.types; editors check {name} files by it.\n{text}"
    )


def path(name: str) -> Path:
    """Return the path of the schema for files of this name."""
    return FOLDER / f"{name}.schema.yaml"
