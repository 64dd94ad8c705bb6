"""Which state of the code measures, for every record: git is asked once for a campaign, and again
where the code has changed.

Git looks at every file of the checkout, which takes longer than a small cell. Who asks keeps with
the answer when each file was changed that Python or the kernels are made of; whoever measures
compares those that matter to it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from peakmark import files
from peakmark.resources import ROOT, of_checkout, version

FILE = "code.json"
PACKAGE = Path(__file__).resolve().parents[1]
SOURCES = of_checkout("src/kernels")


def keep(campaign: Path) -> None:
    """Ask git, and write down the answer for the cells of a campaign. Errors: OSError."""
    times = _changed(str(path) for path in PACKAGE.rglob("*.py"))
    kernels = _changed(str(path) for path in SOURCES.rglob("*") if path.is_file())
    known = {"root": str(ROOT), "version": version(), "python": times, "kernels": kernels}
    text = json.dumps(known, indent=1, sort_keys=True) + "\n"
    path = campaign / FILE
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        files.write_text(path, text)


@cache
def running(campaign: Path) -> str:
    """The version that this process runs, as ``resources.version`` tells it."""
    try:
        known: dict[str, Any] = json.loads((campaign / FILE).read_bytes())
        same = known["root"] == str(ROOT) and _is_as_it_was(known)
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        same = False
    return str(known["version"]) if same else version()


def _is_as_it_was(known: dict[str, Any]) -> bool:
    loaded = (
        getattr(module, "__file__", None)
        for name, module in list(sys.modules.items())
        if _is_ours(name)
    )
    python, kernels = _changed(filter(None, loaded)), _changed(known["kernels"])
    return bool(python.items() <= known["python"].items() and kernels == known["kernels"])


def _is_ours(name: str) -> bool:
    return name.partition(".")[0] == "peakmark"


def _changed(paths: Iterable[str]) -> dict[str, int]:
    """File -> when it was changed (ns); nothing for one that is not there."""
    times = {}
    for path in paths:
        try:
            times[path] = os.stat(path).st_mtime_ns  # noqa: PTH116 - a Path for each takes longer than to ask
        except OSError:
            continue
    return times
