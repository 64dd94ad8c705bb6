"""Which workloads there are, which kernel measures them, and in what. Names only: no programs, no
files.
"""

from __future__ import annotations

from peakmark.catalogue.subsystems import SUBSYSTEMS

KERNELS = {subsystem.name: subsystem.kernel for subsystem in SUBSYSTEMS.values()}
WORKLOADS = {subsystem.name: subsystem.workloads for subsystem in SUBSYSTEMS.values()}

POOLS = ("pool", "pool-temporal")
"""Variants of memory rows that walk a pool: with streaming stores, or those that the grid asks for
(``store:``); and with ordinary ones, which go through the caches, beside it.
"""

AUTO = "auto"
"""A pool, or the area of LAT, that the node decides when the cell is measured; what is planned
before assumes one of a fixed size.
"""


def metrics(subsystem: str, workload: str) -> dict[str, str]:
    """What a row of a workload can be measured in: metric -> unit. A latency is not a throughput."""
    units = SUBSYSTEMS[subsystem].units
    if subsystem in ("cpu", "disk"):
        return dict(units)
    wanted = "latency" if workload.startswith("LAT") else "throughput"
    return {wanted: units[wanted]}
