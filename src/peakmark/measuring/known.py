"""Versions of programs that were asked before on this host: each is asked once for a campaign, as long as its file is the same.

A script is asked every time: what it starts may change while it stays as it is.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from peakmark import files
from peakmark.instruments.base import Tool
from peakmark.lean import Any, host_name

FOLDER = "tools"
_ELF = b"\x7fELF"


def tool(campaign: Path, name: str, path: str, ask: Callable[[str], Tool]) -> Tool:
    """The program at ``path`` with its version, as ``ask`` finds it. Errors: those of ``ask``."""
    file = campaign / FOLDER / host_name() / f"{name}.json"
    state = _state(path)
    if state is None:
        return ask(path)
    try:
        kept: dict[str, Any] = json.loads(file.read_bytes())
        if kept["file"] == state:
            return Tool(str(kept["name"]), path, str(kept["version"]))
    except (OSError, ValueError, LookupError, TypeError):
        pass
    answered = ask(path)
    with suppress(OSError):  # then it is asked again
        files.write_text(file, json.dumps({"file": state, "name": answered.name, "version": answered.version}) + "\n")
    return answered


def _state(path: str) -> list[str | int] | None:
    """What is another when the program is; None for a script and what cannot be read."""
    try:
        with Path(path).open("rb", buffering=0) as stream:
            facts = os.fstat(stream.fileno())
            return [path, facts.st_ino, facts.st_size, facts.st_mtime_ns] if stream.read(4) == _ELF else None
    except OSError:
        return None
