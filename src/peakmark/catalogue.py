"""The four parts of a node that are measured, and their workloads: rows of data that know no other
part of the package, in the order of a report.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


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
    units: Mapping[str, str]
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
LADDERS = {"LADDER-RS": "RS", "LADDER-LAT": "LAT"}
"""Ladders -> the workload that each runs in working sets of all sizes."""
PAGES = ("small", "huge")
"""Variants of the cells of ladders: the pages that their memory lies on."""
LEVELS = tuple(f"{level}-{pages}" for pages in PAGES for level in ("l1", "l2", "l3", "l4", "dram"))
"""Variants of the rows of ladders."""
NUMA = ("NUMA-RS", "NUMA-WS", "NUMA-LAT")
"""Matrices from NUMA node to NUMA node, which a node with one of them does not have."""
PLACES = ("local", "same-socket", "other-socket")
"""Variants of their rows: where the memory lies as seen from the cores."""
MIXES = ("r100", "r75", "r50")
"""Variants of the rows of latency under load: percent of the traffic that are reads."""

SUBSYSTEMS = {
    entry.name: entry
    for entry in (
        Subsystem(
            name="cpu",
            title="CPU",
            resource="processor",
            kernel="cpubench",
            heading="MyCPUBench",
            workloads=("QP", "HP", "SP", "DP", "FP32", "QPDOT", *UNITS),
            units={"rate": "op/s"},
            variants=("",),
            default="",
            allowed=("", "none"),
            differs="instruction sets, thread placement",
            pinned=True,
            total="operations",
        ),
        Subsystem(
            name="memory",
            title="Memory",
            resource="memory",
            kernel="rambench",
            heading="MyRAMBench",
            workloads=("RS", "WS", "RWS", "RR", "WR", "RWR", "LAT", *SHAPES),
            units={
                "throughput": "B/s",
                "latency": "s",
                "core_to_core": "s",
                "numa_throughput": "B/s",
                "numa_latency": "s",
                "ladder_throughput": "B/s",
                "ladder_latency": "s",
                "loaded_latency": "s",
            },
            variants=("pool", "pool-temporal", "block", "", *LEVELS, *MIXES, *PLACES),
            default="block",
            allowed=(
                "block|pool|pool-temporal|small|huge",
                "block, pool and pool-temporal, of ladders small and huge",
            ),
            differs="instruction sets, page sizes, thread placement",
            pinned=True,
        ),
        Subsystem(
            name="disk",
            title="Disk",
            resource="disk",
            kernel="diskbench",
            heading="MyDiskBench",
            workloads=("RS", "RR", "WS", "WR"),
            units={"throughput": "B/s", "iops": "1/s", "latency": "s"},
            variants=("psync", ""),
            default="psync",
            allowed=(
                "psync|io_uring-qd[1-9][0-9]{0,3}",
                "psync and io_uring-qdN with N from 1 to 9999",
            ),
            differs="buffers, files",
        ),
        Subsystem(
            name="network",
            title="Network",
            resource="network",
            kernel="netbench",
            heading="MyNETBench",
            workloads=("TCP", "UDP", "LAT-TCP", "LAT-UDP"),
            units={"throughput": "bit/s", "latency": "s"},
            variants=("",),
            default="",
            allowed=("gso|busy-poll|", "gso, busy-poll and the empty one"),
            differs="socket options, the CPUs of both ends",
            counted="stream",
        ),
    )
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
