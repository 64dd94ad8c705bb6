"""The parts of a node that peakmark measures (subsystems), and their workloads.

Both are in the order of a report. ``data/subsystems.toml`` holds their properties.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from peakmark import data

NOT_POSSIBLE = 77
"""Exit code with which a kernel reports that this machine cannot measure the cell."""
SHORTEST_S = 0.01
"""Shortest measuring time, in seconds, to which ``scale`` reduces a cell."""


@dataclass(frozen=True)
class Subsystem:
    """One part of a node.

    Attributes:
        name: name in code and configuration: cpu, memory, disk, network, mpi or gpu.
        title: name in headings.
        resource: name in sentences.
        kernel: peakmark's kernel that measures it.
        heading: heading of the kernel's columns.
        workloads: workloads, in the order of the tables' rows.
        units: metric -> its unit in records.
        variants: variants, in the order of the tables' rows. LAT of memory has no variant.
        default: variant of a grid that sets none.
        allowed: pattern of all variants that a grid may set, and a text that describes them.
        differs: reasons why the values of two instruments may disagree, as text.
        counted: noun for the units of concurrency: thread, process, stream, rank or GPU.
        pinned: whether threads are pinned to CPUs, so that concurrency may be a word such as cores.
        total: option of a cell that sets a fixed amount of work.
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
        """Return the title as written inside a sentence: ``CPU`` and ``GPU``, but ``memory``."""
        if self.title.isupper():
            return self.title
        return self.title.lower()


UNITS = ("FP16", "BF16DOT", "QPMM", "BF16MM")
"""CPU workloads whose execution units (FP16, bfloat16, matrices) only some processors have."""
FUSED = {"DP": "DPMIX", "FP32": "FP32MIX"}
"""CPU workload of fused multiply-adds -> the workload that mixes them with additions."""

SHAPES = {
    "META": "metadata",
    "C2C": "core_to_core",
    "LADDER-RS": "ladder_throughput",
    "LADDER-LAT": "ladder_latency",
    "LOADED": "loaded_latency",
    "NUMA-RS": "numa_throughput",
    "NUMA-WS": "numa_throughput",
    "NUMA-LAT": "numa_latency",
}
"""Workload whose cell measures several rows, such as a whole matrix or curve -> metric of its rows.

The variant of such a row says where in the matrix or curve its value is; for META, it is the operation.
The details of a recorded value of a matrix or curve hold all points.
"""
DISK_METRICS = ("throughput", "iops", "latency")
"""Metrics of the disk workloads that read or write records."""
LADDERS = {"LADDER-RS": "RS", "LADDER-LAT": "LAT"}
"""Ladder -> workload that it measures in working sets of all sizes."""
PAGES = ("small", "huge")
"""Variants of ladders, which are kinds of memory pages."""
NUMA = ("NUMA-RS", "NUMA-WS", "NUMA-LAT")
"""Workloads that measure matrices between NUMA nodes, on machines with several NUMA nodes."""
ARRAYS = {"RWS": 2, "RWR": 2, "TRIAD": 3}
"""Memory workload -> number of arrays that it walks at the same time. All other workloads walk one array."""
TOGETHER = "together"
"""Variant of network rows for which all pairs of nodes of a round were measured at one moment."""
SEVERAL_NODES = re.compile(r"-?nodes([1-9][0-9]*)(-onefile)?\Z")
"""End of the variant of disk rows for which several nodes were measured at one moment.

META has no other variant, so that its variant ``nodes4`` begins without a dash.
"""
MATRIX = ("TC-FP64", "TC-TF32", "TC-FP16", "TC-BF16", "TC-INT8", "TC-FP8")
"""Workloads of a GPU's matrix units (Tensor Cores), one for each number type. Not every GPU has all types."""
SWEEPS = ("RS", "WS", "RWS", "RWR")
"""GPU workloads that read or write the GPU's memory in blocks."""
GPU_RATES = ("sustained", "burst")
"""Variants of a GPU's rates: steady power, or the first 20 ms before the power cap acts."""
GPU_LINKS = ("to", "from", "both", "peer")
"""Variants of LINK: to the GPUs, from the GPUs, in both directions at once, from each GPU to the next."""
ON_ONE_NODE = ("same-socket", "other-socket")
"""Variants of MPI rows whose two ranks run on one node: in one socket, or in two."""
COLLECTIVES = ("ALLREDUCE", "ALLTOALL", "BARRIER", "BCAST")
"""MPI workloads in which all ranks take part."""
RANKS_ON_NODES = re.compile(r"([1-9][0-9]*)-nodes")
"""Variant of MPI rows whose ranks run on several nodes."""
HPL = "HPL"
"""Workload of the rows on several nodes that solve one system with HPL. No kernel of peakmark measures it."""
GPUS = "gpus"
"""Word of ``concurrency`` for all GPUs of the node."""


def _subsystem(name: str, entry: Mapping[str, Any]) -> Subsystem:
    """Return a subsystem from its table in ``subsystems.toml``, with tuples for lists."""
    properties = dict(entry)
    for key, value in entry.items():
        if isinstance(value, list):
            properties[key] = tuple(value)
    return Subsystem(name=name, **properties)


SUBSYSTEMS = {
    name: _subsystem(name, entry)
    for name, entry in tomllib.loads(data.text("subsystems.toml")).items()
}

KERNELS = {subsystem.name: subsystem.kernel for subsystem in SUBSYSTEMS.values()}
"""Subsystem -> peakmark's kernel that measures it."""
WORKLOADS = {subsystem.name: subsystem.workloads for subsystem in SUBSYSTEMS.values()}
"""Subsystem -> its workloads."""

POOLS = ("pool", "pool-temporal")
"""Variants of memory rows that walk a pool.

``pool`` uses streaming stores, or the stores that the grid's ``store`` selects. ``pool-temporal`` uses
ordinary stores through the caches.
"""

AUTO = "auto"
"""Word in place of the size of a pool or of LAT's area. The node chooses the size when it measures.

Until then, the plan estimates with a fixed size.
"""


class DiskVariant(NamedTuple):
    """The variant of a disk row, split into its parts.

    Attributes:
        base: variant without the nodes, such as ``psync`` or ``create``.
        nodes: number of nodes that are measured at one moment; 0 if the node is measured alone.
        one_file: whether these nodes use one file.
    """

    base: str
    nodes: int = 0
    one_file: bool = False

    @property
    def text(self) -> str:
        """Return the variant as rows and cells have it, such as ``psync-nodes4``."""
        parts = [self.base]
        if self.nodes:
            parts.append(f"nodes{self.nodes}")
        if self.one_file:
            parts.append("onefile")
        return "-".join(filter(None, parts))


def disk_variant(variant: str) -> DiskVariant:
    """Return the parts of a disk variant. Variants of other subsystems are allowed; their ``nodes`` is 0."""
    found = SEVERAL_NODES.search(variant)
    if found is None:
        return DiskVariant(variant)
    return DiskVariant(variant[: found.start()], nodes=int(found[1]), one_file=bool(found[2]))


def count_of_nodes(variant: str) -> int:
    """Return the number of nodes in a disk variant such as ``psync-nodes4``; 0 for every other variant."""
    return disk_variant(variant).nodes


def nodes_of_ranks(variant: str) -> int:
    """Return the number of nodes on which the ranks of an MPI row run, such as 2 for ``2-nodes``."""
    found = RANKS_ON_NODES.fullmatch(variant)
    return int(found[1]) if found else 1


def is_together(variant: str) -> bool:
    """Return whether a disk row's nodes, or a network row's pairs of nodes, were measured at one moment."""
    return variant == TOGETHER or SEVERAL_NODES.search(variant) is not None


_METRICS = {
    **SHAPES,
    **dict.fromkeys(SWEEPS, "throughput"),
    "LINK": "link_throughput",
    "LAUNCH": "latency",
    **dict.fromkeys(("PINGPONG", *COLLECTIVES), "latency"),
    "MSGRATE": "message_rate",
    HPL: "rate",
}
"""Workload -> metric of its rows, if that is not the usual one of its subsystem."""


def metrics(subsystem: str, workload: str) -> dict[str, str]:
    """Return metric -> unit for the metrics of a workload: several for disk records, one for all others."""
    units = SUBSYSTEMS[subsystem].units
    if subsystem == "disk" and workload not in SHAPES:
        return {metric: units[metric] for metric in DISK_METRICS}
    # The metric of the subsystem's most workloads. ``_METRICS`` has the exceptions.
    usual = "latency" if workload.startswith("LAT") else "throughput"
    if subsystem in ("cpu", "gpu"):
        usual = "rate"
    metric = _METRICS.get(workload, usual)
    return {metric: units[metric]}


def gpu_variants(workload: str) -> tuple[str, ...]:
    """Return the variants of a GPU workload that a grid may ask for."""
    if workload == "LINK":
        return GPU_LINKS
    # Only rates have variants: the workloads of ``_METRICS`` measure something else.
    return ("",) if workload in _METRICS else GPU_RATES


CHAPTERS = (
    "introduction",
    "design",
    *SUBSYSTEMS,
    "discussion",
    "improvements",
    "conclusion",
    "contributions",
    "acknowledgements",
)
"""Chapters that an author may write, in the order of the report: files such as ``design.md``."""


@dataclass(frozen=True)
class Headline:
    """A row that stands for a resource: a line of the score card.

    Attributes:
        title: text of the line, in which ``{block}`` stands for the row's block size.
        table: table of the row.
        workload: workload of the row.
        unit: unit in which ``formatting.quantity`` prints the values, with a fitting prefix.
        level: cache level of the row; empty for any level.
        instrument: program that measures the row; empty for peakmark's kernel.
        smallest: whether the row has the smallest block that was measured, instead of the largest.

    In ``title``, ``{nodes}`` stands for the number of nodes that measured the row together.
    """

    title: str
    table: str
    workload: str
    unit: str
    level: str = ""
    instrument: str = ""
    smallest: bool = False


HEADLINES = (
    Headline("FP64 multiply-add", "cpu", "DP", "FLOP/s"),
    Headline("FP64 on all pipes", "cpu", "DPMIX", "FLOP/s"),
    Headline("INT8 dot product", "cpu", "QPDOT", "OP/s"),
    Headline("L1 copy", "memory_throughput", "RWS", "B/s", level="L1"),
    Headline("L3 copy", "memory_throughput", "RWS", "B/s", level="L3"),
    Headline("DRAM copy", "memory_throughput", "RWS", "B/s", level="DRAM"),
    Headline("DRAM triad", "memory_throughput", "TRIAD", "B/s", level="DRAM"),
    Headline("DRAM latency", "memory_latency", "LAT", "s", level="DRAM"),
    Headline("Disk, {block} random reads", "disk_iops", "RR", "IOPS"),
    Headline("Disk, {block} reads", "disk_throughput", "RS", "B/s"),
    Headline("Disk, {block} writes", "disk_throughput", "WS", "B/s"),
    Headline("TCP", "network_throughput", "TCP", "bit/s"),
    Headline("TCP round trip", "network_latency", "LAT-TCP", "s"),
    Headline("MPI latency, {block}", "mpi_latency", "PINGPONG", "s", smallest=True),
    Headline("MPI rate, {block}", "mpi_throughput", "RATE", "B/s"),
    Headline("MPI all-reduce, {block}", "mpi_latency", "ALLREDUCE", "s", smallest=True),
    Headline("HPL", "cpu", "DP", "FLOP/s", instrument="hpl"),
    Headline("HPL, {nodes}", "mpi_rate", HPL, "FLOP/s", instrument="hpl"),
    Headline("GPU FP64 multiply-add", "gpu", "FP64", "FLOP/s"),
    Headline("GPU FP64 matrix units", "gpu", "TC-FP64", "FLOP/s"),
    Headline("GPU FP16 matrix units", "gpu", "TC-FP16", "FLOP/s"),
    Headline("GPU FP8 matrix units", "gpu", "TC-FP8", "FLOP/s"),
    Headline("GPU memory read", "gpu_throughput", "RS", "B/s"),
    Headline("GPU memory copy", "gpu_throughput", "RWS", "B/s"),
    Headline("Link, host to GPU", "gpu_link_throughput", "LINK", "B/s"),
)
"""Lines of the score card in its order. `peakmark check` measures the lines of CPU and memory again."""
