"""Estimate how long cells take, and the memory and scratch space that they need.

Each instrument estimates its cells for a slow machine. The speed of the network is unknown before
the first measurement, so the estimates assume an ordinary network.
"""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from peakmark.catalogue import HPL
from peakmark.cell import Cell
from peakmark.config.types import Planned
from peakmark.plan import grids
from peakmark.plan.cluster import ANY, Cluster
from peakmark.storage.planfile import WAIT_S
from peakmark.tools import REGISTRY
from peakmark.tools.base import SLOWEST_LINK, Cost
from peakmark.tools.common import MEMORY_SHARE

ORDINARY_LINK = 1e9
"""Speed in bit/s that is assumed for a network whose speed is unknown."""
LOOPBACK_LINK = 20e9
"""Speed in bit/s between two programs on one machine, whose CPUs copy the data."""
CONCURRENT_WRITES = 8
"""Largest number of writes that a disk is assumed to process at the same time."""
PROGRAMS_MB = 512
"""Memory of Python and of the tool's program, in MB, besides the buffers of a cell."""
BETWEEN_S = 0.4
"""Seconds between two cells on this machine, for Snakemake, Python and the record."""


def cost(cell: Cell) -> Cost:
    """Return the estimated cost of a cell. Words of ``concurrency`` are resolved on this machine."""
    if cell.word:
        cell = replace(cell, concurrency=grids.threads_of(cell.word))
    return REGISTRY[cell.instrument].estimate(cell)


def largest(cells: Iterable[Cell]) -> tuple[int, int]:
    """Return the largest scratch space and the largest memory, in bytes, that a cell needs.

    The needs are not added up, because a node runs one cell at a time.
    """
    disk = memory = 0
    for needed in map(cost, cells):
        disk = max(disk, needed.disk_bytes)
        memory = max(memory, needed.memory_bytes)
    return disk, memory


def megabytes(cells: Iterable[Cell], config: Planned) -> int:
    """Return the memory that a job asks for in MB (10^6 B), times the site's ``memory_factor``.

    It holds the buffers of the largest cell, with a share kept free, and ``PROGRAMS_MB``.
    """
    factor = config.site_facts.slurm.memory_factor
    _, memory = largest(cells)
    return math.ceil((memory / MEMORY_SHARE / 1e6 + PROGRAMS_MB) * factor)


def needs(cells: Iterable[Cell], config: Planned) -> tuple[int, int]:
    """Return the CPUs and the memory in MiB that a node needs for the cells.

    A cell whose concurrency is a word, such as ``cores``, runs on any number of CPUs, and counts as
    one CPU here.
    """
    numbers = [replace(cell, word="") for cell in cells]  # the concurrency is 1 where it was a word
    if not numbers:
        return 0, 0
    memory = math.ceil(megabytes(numbers, config) * 1e6 / (1 << 20))  # from MB to MiB
    return max(cell.concurrency for cell in numbers), memory


@dataclass(frozen=True)
class Durations:
    """Expected and longest times of cells.

    Attributes:
        link_bps: assumed speed of the network in bit/s.
        cpus: number of CPUs of a node. More threads than CPUs do not compute faster. By default more than any
            node has.
        between_s: seconds between two cells.
        repeats: how often a disturbed cell is repeated at most.
    """

    link_bps: float = ORDINARY_LINK
    cpus: int = 1 << 20
    between_s: float = BETWEEN_S
    repeats: int = 0

    def expected(self, cell: Cell) -> float:
        """Return the seconds that a cell will probably take, including the time to the next cell.

        Unlike in ``longest``, the disk is assumed to process several writes at once.
        """
        return self.longest(cell, CONCURRENT_WRITES) + self.between_s

    def total(self, cells: Iterable[Cell]) -> float:
        """Return the expected seconds of cells that run one after the other.

        Cells that are measured at one moment count once, with the longest of them.
        """
        seconds: dict[tuple[object, ...], float] = {}
        for number, cell in enumerate(cells):
            # Cells with the same key are measured at one moment. A cell of its own has its number as key.
            moment: tuple[object, ...] = (number,)
            if cell.is_together:
                # A group of nodes has its first node, a set of disjoint pairs has its round.
                groups = (cell.options.get("first"), cell.options.get("round"))
                moment = (cell.instrument, cell.point, cell.repetition, *groups)
            seconds[moment] = max(seconds.get(moment, 0.0), self.expected(cell))
        return math.fsum(seconds.values())

    def repeated(self, cells: Collection[Cell]) -> float:
        """Return the most seconds that repetitions of disturbed cells add.

        In the worst case every repetition is disturbed too. All repetitions of one cell together
        wait for other programs for at most ``WAIT_S``.
        """
        if not self.repeats:
            return 0.0
        return self.repeats * self.total(cells) + WAIT_S * len(cells)

    def longest(self, cell: Cell, concurrent_writes: int = 1) -> float:
        """Return the seconds after which a cell has almost certainly ended, for jobs' time limits.

        Args:
            cell: the cell.
            concurrent_writes: number of writes that the disk processes at once.
        """
        # Only computing threads are limited by CPUs: a disk and a network can overlap more requests.
        computes = cell.subsystem in ("cpu", "memory") and not cell.word
        used = cell
        if computes and self.cpus < cell.concurrency:
            used = replace(cell, concurrency=self.cpus)
        # HPL over nodes takes all cores, which this machine, perhaps a login node, does not know.
        if cell.workload == HPL:
            used = replace(cell, concurrency=self.cpus, word="")
        slow = cost(used)  # see ``Cost``: seconds, and bits that cross the network
        # The cost is that of the slowest network, and of a disk that processes one write at a time. Subtract the seconds
        # that this network and this disk save.
        saved_s = slow.wire_bits / SLOWEST_LINK - slow.wire_bits / self.link_bps
        saved_s += slow.waits_s - slow.waits_s / min(cell.concurrency, concurrent_writes)
        return max(slow.seconds - saved_s, slow.fixed_s)  # no machine saves the fixed part


def of(config: Planned, cluster: Cluster | None) -> Durations:
    """Return the durations of a campaign's cells: on this machine without a cluster, else on nodes of the cluster."""
    if cluster is None:
        return Durations(
            link_bps=LOOPBACK_LINK,
            cpus=len(os.sched_getaffinity(0)),
            repeats=config.repeat_disturbed,
        )
    cpus, _ = cluster.size_of(ANY)
    # On a cluster, ``plan.describe`` adds the time between cells, as a part of the overhead of each job and cell.
    return Durations(cpus=cpus, between_s=0.0, repeats=config.repeat_disturbed)
