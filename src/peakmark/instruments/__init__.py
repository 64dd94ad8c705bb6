"""All instruments by name, each loaded when it is first asked for: a cell's process needs one of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from peakmark.instruments.base import Instrument

__all__ = ["REGISTRY", "Instrument"]

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


class _Registry(Mapping[str, Instrument]):
    """Name -> instrument."""

    def __init__(self) -> None:
        self._loaded: dict[str, Instrument] = {}

    def __getitem__(self, name: str) -> Instrument:
        if name not in self._loaded:
            kind = _CLASSES[name]
            self._loaded[name] = getattr(import_module(f"{__name__}.{name.replace('-', '_')}"), kind)()
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_CLASSES)

    def __len__(self) -> int:
        return len(_CLASSES)


REGISTRY: Mapping[str, Instrument] = _Registry()
