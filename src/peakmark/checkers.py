"""What checks a program's own files against a schema: Python that was made of the schema once, and
is kept.

Making it takes longer than starting Python, which each cell's process would pay twice. It is kept
below ``build/`` of the checkout under a name that changes with the schema; where nobody may write
there, every process makes its own.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import re
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from peakmark import files
from peakmark.resources import ROOT, schema_path, types_alone

FOLDER = ROOT / "build" / "checkers"
OURS = """from peakmark.checkers import Unfit as JsonSchemaValueException
JsonSchemaValuesException = JsonSchemaValueException"""
"""In its place, as loading fastjsonschema takes as long as all checks of a cell."""
NUMBERS = "Decimal = float\n"
"""JSON has no other numbers, and loading decimal takes longer than all checks too."""
LAST = "\nWHOLE = True  # and what was checked stays as it was\n"
"""The last line: a file that was cut would lack checks, and still be Python."""


class Unfit(ValueError):
    """What was checked does not fit the schema. Where and why is said by ``schemas.validate``."""

    def __init__(self, message: str = "", **_: object) -> None:
        """Takes what fastjsonschema's own exception takes."""
        super().__init__(message)


@cache
def checker(name: str, folder: Path = FOLDER, partial: bool = False) -> Callable[[Any], Any]:
    """A function that takes what ``config/schema/<name>.schema.json`` describes, see
    ``types_alone``.

    It raises ``Unfit`` for what does not fit.
    """
    definition = schema_path(name).read_bytes()
    if partial:
        definition = json.dumps(types_alone(json.loads(definition))).encode()
    key = hashlib.sha256(definition + (OURS + NUMBERS + LAST).encode()).hexdigest()[:16]
    path = folder / f"{name}_{key}.py"
    return _kept(path) or _compiled(path, json.loads(definition))


def _kept(path: Path) -> Callable[[Any], Any] | None:
    """The function of a module made earlier; None where there is none that can be loaded."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        return None
    module: ModuleType = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        validate: Callable[[Any], Any] = module.validate
        return validate if module.WHOLE else None
    except (OSError, EOFError, ValueError, SyntaxError, ImportError, NameError, AttributeError):
        return None


def _compiled(path: Path, definition: dict[str, Any]) -> Callable[[Any], Any]:
    text = _text(definition)
    with suppress(OSError):
        files.write_text(path, text)
    names: dict[str, Any] = {}
    exec(text, names)  # noqa: S102 - what would be loaded from the file, which may not be there
    validate: Callable[[Any], Any] = names["validate"]
    return validate


def _text(definition: dict[str, Any]) -> str:
    import fastjsonschema

    code = fastjsonschema.compile_to_code(definition, use_default=False)
    code = re.sub(r"^from fastjsonschema import .*$", OURS, code, flags=re.MULTILINE)
    return code.replace("from decimal import Decimal\n", NUMBERS) + LAST
