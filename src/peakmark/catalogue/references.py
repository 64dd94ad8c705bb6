"""The reference tools, a row each: beside which rows each may stand, and which options it heeds."""

from __future__ import annotations

from peakmark.catalogue.workloads import POOLS
from peakmark.lean import dataclass


@dataclass(frozen=True)
class Coverage:
    """Rows a reference tool can stand beside.

    subsystem        the subsystem of the rows
    workloads        their workloads
    variants         their variants; empty: any
    cell             None: one cell per workload. Otherwise the workload name of a cell that fills all of them at once
    per_block        False: one execution serves every block size
    per_concurrency  False: one execution, at concurrency 1, serves every concurrency
    """

    subsystem: str
    workloads: tuple[str, ...]
    variants: tuple[str, ...] = ()
    cell: str | None = None
    per_block: bool = True
    per_concurrency: bool = True


@dataclass(frozen=True)
class Reference:
    """A tool of the field.

    heading  what its columns are called
    rows     those it can stand beside; like for like only
    options  keys of a configuration that it heeds beside those of every reference; another one would be passed over
    unused   options of every cell that it has no use for: whether its records still count does not depend on them
    instead  the tool that fills rows whose block is larger than its build takes
    """

    heading: str
    rows: tuple[Coverage, ...]
    options: tuple[str, ...] = ()
    unused: frozenset[str] = frozenset()
    instead: str | None = None


REFERENCES = {
    "hpl": Reference("HPL", (Coverage("cpu", ("DP",)),), options=("budget_s", "nb")),
    "likwid-bench": Reference(
        "likwid-bench",
        (Coverage("cpu", ("DP", "FP32")), Coverage("memory", ("RS", "WS", "RWS"), variants=("block", *POOLS))),
        options=("seconds",),
    ),
    "pmbw": Reference(
        "pmbw", (Coverage("memory", ("RS", "WS", "RWS"), variants=("block", *POOLS)), Coverage("memory", ("LAT",)))
    ),
    "iozone": Reference(
        "IOZone",
        (Coverage("disk", ("WS", "RS", "WR", "RR"), variants=("psync",), cell="ALL"),),
        options=("ops", "size"),
        instead="fio",
    ),
    "fio": Reference("fio", (Coverage("disk", ("WS", "RS", "WR", "RR")),), options=("size", "seconds")),
    "iperf3": Reference("iperf3", (Coverage("network", ("TCP", "UDP"), variants=("",)),), options=("seconds",)),
    "qperf": Reference(
        "qperf",
        (Coverage("network", ("LAT-TCP", "LAT-UDP"), variants=("",), cell="ALL", per_concurrency=False),),
        options=("seconds",),
        unused=frozenset(["warmup", "seed"]),
    ),
    "ping": Reference(
        "ping",
        (
            Coverage(
                "network",
                ("LAT-TCP", "LAT-UDP"),
                variants=("",),
                cell="LAT-ICMP",
                per_block=False,
                per_concurrency=False,
            ),
        ),
        options=("count",),
        unused=frozenset(["seconds", "warmup", "seed"]),
    ),
}
