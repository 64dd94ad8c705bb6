"""All instruments by name, each loaded when it is first asked for: a cell's process needs one of
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path

from peakmark.errors import PeakmarkError
from peakmark.tools.base import Tool
from peakmark.tools.common import Instrument

__all__ = ["REGISTRY", "Instrument", "present", "references"]

_PROGRAMS = Path(__file__).parent / "programs"


class _Registry(Mapping[str, Instrument]):
    """Name -> instrument: a module of ``programs`` each, in the order of their names."""

    def __getitem__(self, name: str) -> Instrument:
        if name not in set(self):
            raise KeyError(name)
        module = import_module(f"{__name__}.programs.{name.replace('-', '_')}")
        instrument: Instrument = module.INSTRUMENT
        return instrument

    def __iter__(self) -> Iterator[str]:
        return iter(_names())

    def __len__(self) -> int:
        return len(_names())


@cache
def _names() -> tuple[str, ...]:
    return tuple(sorted(path.stem.replace("_", "-") for path in _PROGRAMS.glob("[!_]*.py")))


REGISTRY: Mapping[str, Instrument] = _Registry()


def references() -> dict[str, Instrument]:
    """The reference tools by name."""
    return {name: instrument for name, instrument in REGISTRY.items() if instrument.reference}


def present(kernels: Path) -> dict[str, Tool]:
    """The programs that are here by name, with version as each tells it; what is not here or does
    not answer is left out.

    kernels  folder of the compiled kernels
    """
    tools = {}
    for name, instrument in REGISTRY.items():
        with suppress(PeakmarkError):
            tools[name] = instrument.find(instrument.locate(kernels))
    return tools
