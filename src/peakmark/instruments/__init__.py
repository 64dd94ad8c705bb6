"""All instruments by name. Importing this loads no third-party module: the CLI does it for every command."""

from __future__ import annotations

from peakmark.instruments.base import Instrument
from peakmark.instruments.cpubench import CpuBench
from peakmark.instruments.diskbench import DiskBench
from peakmark.instruments.fio import Fio
from peakmark.instruments.hpl import Hpl
from peakmark.instruments.iozone import Iozone
from peakmark.instruments.iperf3 import Iperf3
from peakmark.instruments.likwid_bench import LikwidBench
from peakmark.instruments.netbench import NetBench
from peakmark.instruments.ping import Ping
from peakmark.instruments.pmbw import Pmbw
from peakmark.instruments.qperf import Qperf
from peakmark.instruments.rambench import RamBench

__all__ = ["REGISTRY", "Instrument"]

_ALL: tuple[Instrument, ...] = (
    CpuBench(),
    RamBench(),
    DiskBench(),
    NetBench(),
    Hpl(),
    Pmbw(),
    LikwidBench(),
    Iozone(),
    Fio(),
    Iperf3(),
    Qperf(),
    Ping(),
)

REGISTRY: dict[str, Instrument] = {instrument.name: instrument for instrument in _ALL}
