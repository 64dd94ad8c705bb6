"""All instruments by name.

Each is loaded when it is first looked up: a cell's process needs only one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from importlib import import_module
from pathlib import Path

from peakmark.catalogue import KERNELS
from peakmark.errors import PeakmarkError
from peakmark.tools.base import Instrument, Tool


class _Registry(Mapping[str, Instrument]):
    """All instruments by name. Each is a module of ``programs``; they are sorted by name."""

    @cached_property
    def _names(self) -> tuple[str, ...]:
        modules = Path(__file__).with_name("programs").glob("[!_]*.py")
        return tuple(sorted(module.stem.replace("_", "-") for module in modules))

    def __getitem__(self, name: str) -> Instrument:
        if name not in self._names:
            raise KeyError(name)
        module = import_module(f"peakmark.tools.programs.{name.replace('-', '_')}")
        instrument: Instrument = module.INSTRUMENT
        return instrument

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


REGISTRY: Mapping[str, Instrument] = _Registry()
REFERENCES = tuple(name for name in REGISTRY if name not in KERNELS.values())
"""Names of the reference tools."""


def references() -> dict[str, Instrument]:
    """Return the reference tools by name."""
    return {name: REGISTRY[name] for name in REFERENCES}


def present(kernels: Path) -> dict[str, Tool]:
    """Return the programs on this machine by name, with the version that each prints.

    A program that is missing or does not answer is left out.

    Args:
        kernels: folder of the compiled kernels.
    """
    tools = {}
    for name, instrument in REGISTRY.items():
        with suppress(PeakmarkError):
            tools[name] = instrument.find(instrument.locate(kernels))
    return tools
