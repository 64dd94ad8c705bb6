"""Files that come with the checkout: schemas, presets, the report's template."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


@functools.cache
def schema(name: str) -> dict[str, Any]:
    """The JSON schema ``config/schema/<name>.schema.json``."""
    data: dict[str, Any] = json.loads((ROOT / "config" / "schema" / f"{name}.schema.json").read_text(encoding="utf-8"))
    return data
