"""Estimate how long cells take.

The time of a cell comes from the first of these sources that exists:

- records of its row;
- records of its kind, that is of other cells of the same program and workload;
- the estimate of its program.

An estimate has a fixed part that no machine shortens: start, warm-up, a requested time, a tool's
sleeps. Records of a kind scale only the varying part. The speed of the network comes from the site
file; without one, an ordinary network is assumed.
"""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import add
from statistics import median
from typing import Any, NamedTuple

from peakmark.cell import Cell
from peakmark.config import site
from peakmark.plan import grids
from peakmark.plan.cluster import ANY, Cluster, Settings, settings_of
from peakmark.storage.planfile import WAIT_S
from peakmark.storage.records import GOOD, Finding
from peakmark.tools import REGISTRY
from peakmark.tools.base import SLOWEST_LINK, Cost
from peakmark.tools.common import MEMORY_SHARE

ORDINARY_LINK = 1e9
"""Speed in bit/s that is assumed for a network whose speed is unknown."""
LOOPBACK_LINK = 20e9
"""Speed in bit/s between two programs on one machine, whose CPUs copy the data."""
CONCURRENT_WRITES = 8
"""Largest number of writes that a disk is assumed to process at the same time."""
UNCERTAINTY = 10.0
"""Number of times that the varying part of an estimate is less certain than its fixed part."""
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


def megabytes(cells: Iterable[Cell], config: Settings) -> int:
    """Return the memory of a job in MB (10^6 B): its cells' needs, Python, and a share that stays free."""
    factor = float(settings_of(config).get("memory_factor", 1.0))
    _, memory = largest(cells)
    return math.ceil((memory / MEMORY_SHARE / 1e6 + PROGRAMS_MB) * factor)


def needs(cells: Iterable[Cell], config: Settings) -> tuple[int, int]:
    """Return the CPUs and the memory in MiB that a node needs for the cells.

    Words of ``concurrency`` fit any node.
    """
    numbers = [replace(cell, word="") for cell in cells]
    if not numbers:
        return 0, 0
    memory = math.ceil(megabytes(numbers, config) * 1e6 / (1 << 20))
    return max(cell.concurrency for cell in numbers), memory


class _MeasuredRow(NamedTuple):
    """A measured cell, whether it was possible, and the seconds of each of its repetitions."""

    cell: Cell
    ok: bool
    seconds: list[float]


@dataclass(frozen=True)
class Durations:
    """Expected and longest times of cells.

    Attributes:
        findings: cell id -> state of its record, even if the record's cell has other options.
        link_bps: speed of the network between the nodes in bit/s, if known.
        cpus: number of CPUs of a node. More threads do not compute faster.
        between_s: seconds between two cells.
        repeats: largest number of times that a disturbed cell is repeated.
    """

    findings: Mapping[str, Finding] = field(default_factory=dict, repr=False)
    link_bps: float | None = None
    cpus: int = 1 << 20
    between_s: float = BETWEEN_S
    repeats: int = 0

    def expected(self, cell: Cell) -> float:
        """Return the seconds that a cell will probably take, including the time to the next cell."""
        row = self._rows.get(_settings(cell))
        if row is None:
            return self._by_kind(cell, CONCURRENT_WRITES) + self.between_s
        return median(row.seconds) + self.between_s

    def total(self, cells: Iterable[Cell]) -> float:
        """Return the expected seconds of cells that run one after the other."""
        return math.fsum(self.expected(cell) for cell in cells)

    def repeated(self, cells: Collection[Cell]) -> float:
        """Return the most seconds that repetitions of disturbed cells add.

        In the worst case every cell is disturbed each time and waits for other programs.
        """
        if not self.repeats:
            return 0.0
        return self.repeats * self.total(cells) + WAIT_S * len(cells)

    def longest(self, cell: Cell) -> float:
        """Return the seconds after which a cell has almost certainly ended, for jobs' time limits."""
        row = self._rows.get(_settings(cell))
        if row is not None:
            return max(row.seconds) + self.between_s
        seconds = self._by_kind(cell, concurrent_writes=1)
        if self.is_estimate(cell):  # estimates are already for a slow machine
            return seconds
        return 2 * seconds

    def _by_kind(self, cell: Cell, concurrent_writes: int) -> float:
        of_instrument = self._kinds.get((cell.instrument, ""), 1.0)
        factor = self._kinds.get((cell.instrument, cell.workload), of_instrument)
        fixed, varying = self._estimate(cell, concurrent_writes)
        return fixed + varying * factor

    def is_estimate(self, cell: Cell) -> bool:
        """Return whether the time is only an estimate, which no record of the cell's row or kind corrects."""
        kind = cell.instrument, cell.workload
        return _settings(cell) not in self._rows and kind not in self._kinds

    def is_measured(self, cell: Cell) -> bool:
        """Return whether the cell has a record that counts."""
        return cell.id in self.findings and self.findings[cell.id].state == GOOD

    def _estimate(self, cell: Cell, concurrent_writes: int) -> tuple[float, float]:
        """Return the fixed and the varying part of the estimate, in seconds.

        Args:
            cell: the cell.
            concurrent_writes: number of writes that the disk processes at once.
        """
        # Only computing threads are limited by CPUs: a disk and a network can overlap more requests.
        computes = cell.subsystem in ("cpu", "memory") and not cell.word
        used = cell
        if computes and self.cpus < cell.concurrency:
            used = replace(cell, concurrency=self.cpus)
        slow = cost(used)
        varying = slow.seconds - slow.fixed_s
        link = self.link_bps or ORDINARY_LINK
        varying += slow.wire_bits / link - slow.wire_bits / SLOWEST_LINK
        varying += slow.waits_s / min(cell.concurrency, concurrent_writes) - slow.waits_s
        return slow.fixed_s, max(varying, 0.0)

    @cached_property
    def _rows(self) -> dict[tuple[Any, ...], _MeasuredRow]:
        rows: dict[tuple[Any, ...], _MeasuredRow] = {}
        for finding in self.findings.values():
            if finding.data is not None:
                cell = Cell.from_json(finding.data["cell"])
                new = _MeasuredRow(cell, finding.data["status"] == "ok", [])
                row = rows.setdefault(_settings(cell), new)
                row.seconds.append(float(finding.data["context"]["seconds"]))
        return rows

    @cached_property
    def _kinds(self) -> dict[tuple[str, str], float]:
        """Return the factor that corrects the varying part of estimates, for each kind of cell.

        A kind is (instrument, workload), or (instrument, "") for all workloads of the instrument.
        """
        sums: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
        for cell, ok, seconds in self._rows.values():
            if ok:
                terms = median(seconds), *self._estimate(cell, CONCURRENT_WRITES)
                for workload in (cell.workload, ""):
                    kind = cell.instrument, workload
                    sums[kind] = list(map(add, sums[kind], terms))
        return {kind: _factor(*terms) for kind, terms in sums.items()}


def _factor(seconds: float, fixed: float, varying: float) -> float:
    """Return the factor that corrects the varying part of an estimate.

    The error ``seconds - fixed - varying`` is divided between both parts in proportion to the squares
    of their sizes. Without this, a small delay of a cell with a tiny varying part would give a huge
    factor, and longer cells of its kind would be expected to take days.

    Args:
        seconds: measured time.
        fixed: estimated fixed part.
        varying: estimated varying part.
    """
    if not varying:
        return 1.0
    share = 1 / (1 + (fixed / varying / UNCERTAINTY) ** 2)
    return max(1 + (seconds - fixed - varying) * share / varying, 0.0)


def _settings(cell: Cell) -> tuple[Any, ...]:
    """Return a key that is equal for all repetitions of a row on all nodes. It ignores the seed."""
    options = sorted((key, value) for key, value in cell.options.items() if key != "seed")
    return cell.instrument, cell.point, tuple(options)


def of(config: Settings, cluster: Cluster | None, findings: Mapping[str, Finding]) -> Durations:
    """Return the durations of a campaign's cells, corrected by its records."""
    repeats = int(config.get("repeat_disturbed", 0))
    if cluster is None:
        cpus = len(os.sched_getaffinity(0))
        return Durations(findings, LOOPBACK_LINK, cpus, repeats=repeats)
    cpus, _ = cluster.size_of(ANY)
    # On a cluster, ``plan_text`` adds the overhead of each job and each cell.
    return Durations(findings, _link(config, cluster), cpus, between_s=0.0, repeats=repeats)


def _link(config: Settings, cluster: Cluster) -> float | None:
    """Return the speed of the slowest network from the site file; None if it lacks a node's speed."""
    names: Sequence[str | None] = cluster.nodes
    if cluster.nodes == (ANY,):
        names = (None,)
    speeds = []
    for name in names:
        host = site.for_host(config.get("site_facts") or {}, name)
        speed = (host.get("network") or {}).get("speed_bps")
        if not speed:
            return None
        speeds.append(float(speed))
    return min(speeds)
