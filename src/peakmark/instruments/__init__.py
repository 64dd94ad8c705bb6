"""All instruments by name, each loaded when it is first asked for: a cell's process needs one of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path

from peakmark.errors import PeakmarkError
from peakmark.instruments.base import Tool
from peakmark.instruments.common import Instrument

__all__ = ["REGISTRY", "Instrument", "present"]

_CLASSES = {
    "cpubench": "CpuBench",
    "rambench": "RamBench",
    "diskbench": "DiskBench",
    "netbench": "NetBench",
    "hpl": "Hpl",
    "pmbw": "Pmbw",
    "likwid-bench": "LikwidBench",
    "iozone": "Iozone",
    "fio": "Fio",
    "iperf3": "Iperf3",
    "qperf": "Qperf",
    "ping": "Ping",
}
"""Name -> class, in the module of that name."""


@cache
def _load(name: str) -> Instrument:
    kind = _CLASSES[name]
    instrument: Instrument = getattr(import_module(f"{__name__}.{name.replace('-', '_')}"), kind)()
    return instrument


class _Registry(Mapping[str, Instrument]):
    """Name -> instrument."""

    def __getitem__(self, name: str) -> Instrument:
        return _load(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_CLASSES)

    def __len__(self) -> int:
        return len(_CLASSES)


REGISTRY: Mapping[str, Instrument] = _Registry()


def present(kernels: Path) -> dict[str, Tool]:
    """The programs that are here by name, with version as each tells it; what is not here or does not answer is left out.

    kernels  folder of the compiled kernels
    """
    tools = {}
    for name, instrument in REGISTRY.items():
        with suppress(PeakmarkError):
            tools[name] = instrument.find(instrument.locate(kernels))
    return tools
