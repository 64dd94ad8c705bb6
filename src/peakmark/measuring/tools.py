"""The measuring programs that are here, with version: facts of a machine, asked of each program itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from peakmark.errors import PeakmarkError
from peakmark.instruments import REGISTRY
from peakmark.instruments.base import Tool
from peakmark.instruments.common import on_path
from peakmark.measuring import kernels


def present(folder: Path, choices: Mapping[str, str] | None = None) -> dict[str, Tool]:
    """Name -> program. What is not here, or does not answer, is left out.

    folder   of the compiled kernels
    choices  configured path of a reference tool by its name; default: the one on PATH
    """
    found = {}
    for name, instrument in REGISTRY.items():
        try:
            if instrument.reference:
                path = on_path([choices[name]] if choices and name in choices else instrument.executables)
            else:
                path = str(kernels.program(folder, instrument.executables[0]))
            if path:
                found[name] = instrument.find(path)
        except PeakmarkError:
            continue
    return found
