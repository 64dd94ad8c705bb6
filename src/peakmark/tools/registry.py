"""The registry of all instruments, by name.

An instrument's module is imported when it is first looked up, because measuring a cell needs only one.
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
    """Mapping from sorted names to instruments. Each instrument is a module of ``programs``."""

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
    """Find the programs on this machine, and return them by name with their versions.

    Programs that are missing or do not print their version are left out.

    Args:
        kernels: folder of the compiled kernels.
    """
    tools = {}
    for name, instrument in REGISTRY.items():
        with suppress(PeakmarkError):
            tools[name] = instrument.find(instrument.locate(kernels))
    return tools
