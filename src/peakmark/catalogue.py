"""The four parts of a node that are measured, and their workloads, in the order of a report. Their rows
are in ``data/subsystems.toml``.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass

import msgspec

from peakmark import data


@dataclass(frozen=True)
class Subsystem:
    """One part of a node.

    title, resource  what headings and sentences call it
    kernel, heading  the own program that measures it, and what its columns are called
    workloads        in the order of the tables' rows
    units            what a value can be: metric -> its unit in records
    counted          what the concurrency counts
    pinned           whether threads have CPUs of their own, so that concurrency may be a word for a
                     part of the node
    total            option of a cell that holds a fixed amount of work
    variants         in the order of the tables' rows; ``default`` is taken where a grid names none.
                     LAT of memory has none: its block is the area that is walked
    allowed          pattern of all variants that may be asked for, and the same in words
    differs          what instruments that disagree may differ in, beside what each counts
    """

    name: str
    title: str
    resource: str
    kernel: str
    heading: str
    workloads: tuple[str, ...]
    units: dict[str, str]
    variants: tuple[str, ...]
    default: str
    allowed: tuple[str, str]
    differs: str
    counted: str = "thread"
    pinned: bool = False
    total: str = "total"

    @property
    def named(self) -> str:
        """The title as it stands within a sentence."""
        return self.title if self.title.isupper() else self.title.lower()


UNITS = ("FP16", "BF16DOT", "QPMM", "BF16MM")
"""Workloads of the CPU that need instructions which not every processor has."""
FUSED = {"DP": "DPMIX", "FP32": "FP32MIX"}
"""Workload of fused multiply-adds alone -> the one that mixes them with additions."""

SHAPES = {
    "C2C": "core_to_core",
    "LADDER-RS": "ladder_throughput",
    "LADDER-LAT": "ladder_latency",
    "LOADED": "loaded_latency",
    "NUMA-RS": "numa_throughput",
    "NUMA-WS": "numa_throughput",
    "NUMA-LAT": "numa_latency",
}
"""Workloads of the memory of which one cell measures a whole matrix or curve -> the metric of its
rows. What a row was measured at is its variant; the details of its value hold all points.
"""
POINTS = {
    "C2C": (3, 2),
    "LADDER-RS": (2, 1),
    "LADDER-LAT": (2, 1),
    "LOADED": (4, 1),
    "NUMA-RS": (3, 2),
    "NUMA-WS": (3, 2),
    "NUMA-LAT": (3, 2),
}
"""Those workloads -> how many numbers each of their points has, and the place of the measured one."""
LADDERS = {"LADDER-RS": "RS", "LADDER-LAT": "LAT"}
"""Ladders -> the workload that each runs in working sets of all sizes."""
PAGES = ("small", "huge")
"""Variants of the cells of ladders: the pages that their memory lies on."""
NUMA = ("NUMA-RS", "NUMA-WS", "NUMA-LAT")
"""Matrices from NUMA node to NUMA node, which a node with one of them does not have."""

SUBSYSTEMS = {
    name: msgspec.convert({"name": name, **entry}, Subsystem)
    for name, entry in tomllib.loads(data.text("subsystems.toml")).items()
}

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
    usual = "latency" if workload.startswith("LAT") else "throughput"
    wanted = SHAPES.get(workload, usual)
    return {wanted: units[wanted]}
