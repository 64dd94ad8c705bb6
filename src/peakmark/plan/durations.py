"""Expected times of cells: by records of their row, else of their kind, else by estimate.

Records of a kind correct the estimates of other cells. The seconds that no machine shortens (start,
warm-up, a requested time, a tool's own sleeps) stay; the others are scaled by the nearest measured
cell. The speed of the network is that of the site file, or an ordinary one.
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
"""bit/s of a network whose speed is unknown."""
LOOPBACK_LINK = 20e9
"""bit/s between two programs on one machine: two CPUs copy."""
CONCURRENT_WRITES = 8
"""Most writes that a disk works on at once."""
UNCERTAINTY = 10.0
"""Uncertainty of the estimated seconds that the machine decides, as a multiple of that of the others."""
PROGRAMS_MB = 512
"""Memory of Python and the tool itself, in MB."""
BETWEEN_S = 0.4
"""Seconds from the end of a cell to the start of the next one on this machine: Snakemake, Python, the
record.
"""


def cost(cell: Cell) -> Cost:
    """Return the estimated cost of one cell; this machine decides what a word of ``concurrency`` means."""
    if cell.word:
        cell = replace(cell, concurrency=grids.threads_of(cell.word))
    return REGISTRY[cell.instrument].estimate(cell)


def largest(cells: Iterable[Cell]) -> tuple[int, int]:
    """Return the bytes on scratch and of memory that the most demanding cells need.

    A node runs one cell at a time.
    """
    disk = memory = 0
    for needed in map(cost, cells):
        disk = max(disk, needed.disk_bytes)
        memory = max(memory, needed.memory_bytes)
    return disk, memory


def megabytes(cells: Iterable[Cell], config: Settings) -> int:
    """Return the memory of a job in MB (10^6 B), with room for Python and what programs leave free."""
    factor = float(settings_of(config).get("memory_factor", 1.0))
    _, memory = largest(cells)
    return math.ceil((memory / MEMORY_SHARE / 1e6 + PROGRAMS_MB) * factor)


def needs(cells: Iterable[Cell], config: Settings) -> tuple[int, int]:
    """Return the CPUs and memory (MiB) that a node must have for the cells; words fit any node."""
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
        findings: cell id -> its record, also of cells with other options.
        link_bps: speed of the network between the nodes; None where it is unknown.
        cpus: CPUs of a node: more threads do not compute faster.
        between_s: seconds that each cell costs besides its own time.
        repeats: how often a disturbed cell is measured again at most.
    """

    findings: Mapping[str, Finding] = field(default_factory=dict, repr=False)
    link_bps: float | None = None
    cpus: int = 1 << 20
    between_s: float = BETWEEN_S
    repeats: int = 0

    def expected(self, cell: Cell) -> float:
        """Return the seconds that a cell will probably take, with the time to the next cell."""
        row = self._rows.get(_settings(cell))
        if row is None:
            return self._by_kind(cell, CONCURRENT_WRITES) + self.between_s
        return median(row.seconds) + self.between_s

    def total(self, cells: Iterable[Cell]) -> float:
        """Return the expected seconds of cells that run one after the other."""
        return math.fsum(self.expected(cell) for cell in cells)

    def repeated(self, cells: Collection[Cell]) -> float:
        """Return the most seconds that measuring again adds.

        Each of the cells is then disturbed every time, and waits for other programs.
        """
        if not self.repeats:
            return 0.0
        return self.repeats * self.total(cells) + WAIT_S * len(cells)

    def longest(self, cell: Cell) -> float:
        """Return the seconds after which a cell has probably ended; jobs' time limits follow from them."""
        row = self._rows.get(_settings(cell))
        if row is not None:
            return max(row.seconds) + self.between_s
        seconds = self._by_kind(cell, concurrent_writes=1)
        if self.is_estimate(cell):  # Estimates are for a slow machine.
            return seconds
        return 2 * seconds

    def _by_kind(self, cell: Cell, concurrent_writes: int) -> float:
        of_instrument = self._kinds.get((cell.instrument, ""), 1.0)
        factor = self._kinds.get((cell.instrument, cell.workload), of_instrument)
        fixed, varying = self._estimate(cell, concurrent_writes)
        return fixed + varying * factor

    def is_estimate(self, cell: Cell) -> bool:
        """Return whether no record of the cell's row or kind corrects its time."""
        kind = cell.instrument, cell.workload
        return _settings(cell) not in self._rows and kind not in self._kinds

    def is_measured(self, cell: Cell) -> bool:
        """Return whether the cell has a record that counts."""
        return cell.id in self.findings and self.findings[cell.id].state == GOOD

    def _estimate(self, cell: Cell, concurrent_writes: int) -> tuple[float, float]:
        """Return the estimated seconds: those that no machine shortens, and the others.

        Args:
            cell: the cell.
            concurrent_writes: writes that the disk works on at once.
        """
        # More requests of a disk or messages in flight than CPUs may still be faster.
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
        """Return measured by estimated seconds, of those that the machine decides, for each kind.

        A kind is (instrument, workload), or (instrument, "") for all its workloads.
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
    """Return the factor of the estimate ``varying`` where ``fixed + varying`` took ``seconds``.

    Both estimates have an error, and the squares of their sizes divide the whole error among them.
    Else a cell that the machine hardly decides, a moment late, would make all larger ones of its
    kind take days.
    """
    if not varying:
        return 1.0
    share = 1 / (1 + (fixed / varying / UNCERTAINTY) ** 2)
    return max(1 + (seconds - fixed - varying) * share / varying, 0.0)


def _settings(cell: Cell) -> tuple[Any, ...]:
    """Return a key that is equal for a row's repetitions on all nodes; their seeds differ."""
    options = sorted((key, value) for key, value in cell.options.items() if key != "seed")
    return cell.instrument, cell.point, tuple(options)


def of(config: Settings, cluster: Cluster | None, findings: Mapping[str, Finding]) -> Durations:
    """Return the times of a campaign with these records."""
    repeats = int(config.get("repeat_disturbed", 0))
    if cluster is None:
        cpus = len(os.sched_getaffinity(0))
        return Durations(findings, LOOPBACK_LINK, cpus, repeats=repeats)
    cpus, _ = cluster.size_of(ANY)
    return Durations(findings, _link(config, cluster), cpus, between_s=0.0, repeats=repeats)


def _link(config: Settings, cluster: Cluster) -> float | None:
    """Return the speed of the slowest network of the nodes by the site file; None without one."""
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
