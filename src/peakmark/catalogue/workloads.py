"""Which workloads exist, and which instrument can answer for which of them. Names only: no programs, no files."""

from __future__ import annotations

from dataclasses import dataclass

from peakmark.catalogue.subsystems import SUBSYSTEMS


@dataclass(frozen=True)
class Coverage:
    """Rows a reference tool can stand beside.

    subsystem        the subsystem of the rows
    workloads        their workloads
    variants         their variants; empty: any
    cell             None: one cell per workload. Otherwise the workload name of a cell that fills all of them at once
    per_block        False: one execution serves every block size
    per_concurrency  False: one execution, at concurrency 1, serves every concurrency
    max_block        largest block the tool accepts, in bytes
    """

    subsystem: str
    workloads: tuple[str, ...]
    variants: tuple[str, ...] = ()
    cell: str | None = None
    per_block: bool = True
    per_concurrency: bool = True
    max_block: int | None = None


KERNELS = {one.name: one.kernel for one in SUBSYSTEMS.values()}
WORKLOADS = {one.name: one.workloads for one in SUBSYSTEMS.values()}

AUTO = "auto"
"""A pool, or the area of LAT, that the node decides when the cell is measured; what is planned before assumes one of a
fixed size."""


def metrics(subsystem: str, workload: str) -> dict[str, str]:
    """What a row of a workload can be measured in: metric -> unit. A latency is not a throughput."""
    units = SUBSYSTEMS[subsystem].units
    if subsystem in ("cpu", "disk"):
        return dict(units)
    wanted = "latency" if workload.startswith("LAT") else "throughput"
    return {wanted: units[wanted]}


REFERENCES: dict[str, tuple[Coverage, ...]] = {
    "hpl": (Coverage("cpu", ("DP",)),),
    "likwid-bench": (
        Coverage("cpu", ("DP", "FP32")),
        Coverage("memory", ("RS", "WS", "RWS"), variants=("block", "pool")),
    ),
    "pmbw": (
        Coverage("memory", ("RS", "WS", "RWS"), variants=("block", "pool")),
        Coverage("memory", ("LAT",)),
    ),
    "iozone": (Coverage("disk", ("WS", "RS", "WR", "RR"), variants=("psync",), cell="ALL", max_block=16 << 20),),
    "fio": (Coverage("disk", ("WS", "RS", "WR", "RR")),),
    "iperf3": (Coverage("network", ("TCP", "UDP"), variants=("",)),),
    "qperf": (Coverage("network", ("LAT-TCP", "LAT-UDP"), variants=("",), cell="ALL", per_concurrency=False),),
    "ping": (
        Coverage(
            "network", ("LAT-TCP", "LAT-UDP"), variants=("",), cell="LAT-ICMP", per_block=False, per_concurrency=False
        ),
    ),
}

# Options of every cell that a tool has no use for: whether its records still count does not depend on them.
UNUSED = {"ping": frozenset(["seconds", "warmup", "seed"]), "qperf": frozenset(["warmup", "seed"])}
