"""How long cells will take: as their row did before, else as cells of their kind did, else as on a
slow machine.

What was measured of a kind corrects the estimate of the rest: the seconds that no machine shortens
(start, warm-up, an asked time, a tool's own sleeps) stay, the others are scaled as those of the
nearest measured cell came out. What a network will do nobody knows before; its speed is that of the
site file, of the nodes' facts, or of an ordinary one.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from peakmark.cell import Cell
from peakmark.config import site
from peakmark.errors import PeakmarkError
from peakmark.plan import grids
from peakmark.plan.cluster import ANY, Cluster, settings_of
from peakmark.storage import facts
from peakmark.storage.integrity import GOOD, Finding
from peakmark.tools import REGISTRY
from peakmark.tools.base import SLOWEST_LINK, Cost
from peakmark.tools.common import MEMORY_SHARE

ORDINARY_LINK = 1e9  # bit/s of a network of which nothing is known
LOOPBACK_LINK = 20e9  # bit/s from one end to the other on one machine: two CPUs copy
AT_ONCE = 8  # writes that wait for a disk together, where more are in flight
SHARE = 0.25
"""Of its link's speed, what a cell is granted at least where it must not be ended too soon."""

LOOSE = 10.0
"""So many times less is known of the seconds that the machine decides than of the others."""

PROGRAMS_MB = 512
"""Memory of Python and the tool itself."""
OWN, KIND, GUESS = "own", "kind", "guess"
"""Where a time is from: what the cell's row took, what cells of its kind took, or nowhere."""
BETWEEN_S = 0.1
"""From the end of a cell to the start of the next one here: Snakemake, Python and the record on
disk.
"""
LONGEST_BETWEEN_S = 10.0  # beyond, somebody had stopped the campaign
FEWEST_BETWEEN = 3


def cost(cell: Cell) -> Cost:
    """Estimated cost of one cell; where a word says how many threads, as many as it means on this
    machine.
    """
    if cell.word:
        cell = replace(cell, concurrency=grids.here(cell.word))
    return REGISTRY[cell.instrument].estimate(cell)


def largest(cells: Iterable[Cell]) -> tuple[int, int]:
    """Bytes on scratch and of memory of the hungriest cells, as only one runs at a time on a node."""
    costs = [cost(cell) for cell in cells]
    return max((each.disk_bytes for each in costs), default=0), max(
        (each.memory_bytes for each in costs), default=0
    )


def megabytes(cells: Iterable[Cell], config: Mapping[str, Any]) -> int:
    """Memory of a job in MB (10^6 B): the estimate with what programs leave free, and room for
    Python and the tool itself.
    """
    factor = float(settings_of(config).get("memory_factor", 1.0))
    return math.ceil((largest(cells)[1] / MEMORY_SHARE / 1e6 + PROGRAMS_MB) * factor)


def needs(cells: Iterable[Cell], config: Mapping[str, Any]) -> tuple[int, int]:
    """CPUs and memory (MiB) that a node must have for the cells. What a word means is the node's."""
    plain = [replace(cell, word="") for cell in cells]
    if not plain:
        return 0, 0
    return max(cell.concurrency for cell in plain), math.ceil(
        megabytes(plain, config) * 1e6 / (1 << 20)
    )


class _Correction(NamedTuple):
    """How a measured cell came out: ``factor`` on the seconds that the machine decides, ``fixed``
    on the others.
    """

    factor: float = 1.0
    fixed: float = 1.0


class _MeasuredRow(NamedTuple):
    """A measured cell, whether it was possible, and the seconds of each of its repetitions."""

    cell: Cell
    ok: bool
    seconds: list[float]


@dataclass(frozen=True)
class Durations:
    """Expected and longest times of cells.

    findings   cell id -> what is known of its record, of cells with other options too
    link_bps   speed of the network between the nodes, None where it is not known
    cpus       CPUs of a node: more threads do not compute faster
    between_s  seconds that each cell costs beside its own time
    """

    findings: Mapping[str, Finding] = field(default_factory=dict, repr=False)
    link_bps: float | None = None
    cpus: int = 1 << 20
    between_s: float = BETWEEN_S

    def expected(self, cell: Cell) -> float:
        """Seconds that a cell will probably take, what lies between two cells included."""
        own = self._rows.get(_spec(cell))
        if own is not None:
            return median(own.seconds) + self.between_s
        return self._like_its_kind(cell, AT_ONCE) + self.between_s

    def total(self, cells: Iterable[Cell]) -> float:
        """Expected seconds of cells that run one after the other."""
        return math.fsum(self.expected(cell) for cell in cells)

    def longest(self, cell: Cell) -> float:
        """Seconds after which a cell is not expected to run any more: what a job asks for, with a
        margin, goes by it.
        """
        own = self._rows.get(_spec(cell))
        if own is not None:
            return max(own.seconds) + self.between_s
        if self.source(cell) == KIND:
            return 2 * self._like_its_kind(cell, at_once=1)
        return (
            sum(self._parts(cell, self.link_bps * SHARE if self.link_bps else ORDINARY_LINK, 1))
            + self.between_s
        )

    def _like_its_kind(self, cell: Cell, at_once: int) -> float:
        taken = self._nearest(cell)
        fixed, varying = self._parts(cell, self.link_bps or ORDINARY_LINK, at_once)
        return fixed * taken.fixed + varying * taken.factor

    def source(self, cell: Cell) -> str:
        """Where the expected time is from."""
        if _spec(cell) in self._rows:
            return OWN
        return KIND if (cell.instrument, cell.workload) in self._kinds else GUESS

    def sources(self, cells: Iterable[Cell]) -> dict[str, int]:
        """Source -> number of cells that have not been measured yet and whose time is from there."""
        return Counter(self.source(cell) for cell in cells if not self.is_measured(cell))

    def is_measured(self, cell: Cell) -> bool:
        """Whether the cell has a record that counts."""
        return cell.id in self.findings and self.findings[cell.id].state == GOOD

    def _parts(self, cell: Cell, link: float, at_once: int = AT_ONCE) -> tuple[float, float]:
        """Estimated seconds that stay and those that the machine decides, over a network of
        ``link`` bit/s and with a disk that takes so many writes ``at_once``.
        """
        threads = min(grids.here(cell.word) if cell.word else cell.concurrency, self.cpus)
        # Of a disk and of messages, more in flight may still be faster.
        shared = (
            cell.subsystem in ("cpu", "memory") and not cell.word and threads < cell.concurrency
        )
        slow = cost(replace(cell, concurrency=threads) if shared else cell)
        varying = (
            slow.seconds - slow.fixed_s - slow.wire_bits / SLOWEST_LINK + slow.wire_bits / link
        )
        varying += slow.waits_s / min(cell.concurrency, at_once) - slow.waits_s
        return slow.fixed_s, max(varying, 0.0)

    @cached_property
    def _rows(self) -> dict[tuple[Any, ...], _MeasuredRow]:
        rows: dict[tuple[Any, ...], _MeasuredRow] = {}
        for finding in self.findings.values():
            if finding.data is not None:
                cell = Cell.from_json(finding.data["cell"])
                row = rows.setdefault(
                    _spec(cell), _MeasuredRow(cell, finding.data["status"] == "ok", [])
                )
                row.seconds.append(float(finding.data["context"]["seconds"]))
        return rows

    @cached_property
    def _kinds(self) -> dict[tuple[str, str], list[tuple[Cell, _Correction]]]:
        """(instrument, workload) -> one cell of each measured row, with how it came out."""
        kinds: dict[tuple[str, str], list[tuple[Cell, _Correction]]] = {}
        for row in self._rows.values():
            if row.ok:
                fixed, varying = self._parts(row.cell, self.link_bps or ORDINARY_LINK)
                taken = _taken(median(row.seconds), fixed, varying)
                kinds.setdefault((row.cell.instrument, row.cell.workload), []).append(
                    (row.cell, taken)
                )
        return kinds

    def _nearest(self, cell: Cell) -> _Correction:
        """How the measured cell came out that is most like this one; of its instrument at least."""
        like = self._kinds.get((cell.instrument, cell.workload)) or [
            row
            for (instrument, _), rows in self._kinds.items()
            if instrument == cell.instrument
            for row in rows
        ]
        if not like:
            return _Correction()
        least = min(_distance(cell, other) for other, _ in like)
        ranked = sorted(
            (row for row in like if _distance(cell, row[0]) == least),
            key=lambda row: row[0].concurrency,
        )
        below = [row for row in ranked if row[0].concurrency <= cell.concurrency]
        above = [row for row in ranked if row[0].concurrency >= cell.concurrency]
        return _between_two(cell.concurrency, (below or above[:1])[-1], (above or below[-1:])[0])


def _taken(seconds: float, fixed: float, varying: float) -> _Correction:
    """How a cell came out that was expected to take ``fixed + varying`` seconds.

    What it took more or less is divided as two independent errors are, by the squares of their
    sizes: else a cell that the machine hardly decides, a moment late, would make all larger ones of
    its kind take days.
    """
    error = seconds - fixed - varying
    squares = (LOOSE * varying) ** 2, fixed**2
    share = squares[0] / sum(squares) if any(squares) else 0.0
    decided = max(varying + error * share, 0.0)
    return _Correction(
        decided / varying if varying else 1.0, (seconds - decided) / fixed if fixed else 1.0
    )


def _between_two(
    threads: int, below: tuple[Cell, _Correction], above: tuple[Cell, _Correction]
) -> _Correction:
    """What lies between two numbers of threads that were measured, on a line of logarithms that
    ends where the estimate's does.
    """
    counts = below[0].concurrency, threads, above[0].concurrency
    if min(counts[0], AT_ONCE) < min(counts[2], AT_ONCE) and below[0].subsystem == "disk":
        counts = min(counts[0], AT_ONCE), min(counts[1], AT_ONCE), min(counts[2], AT_ONCE)
    low, here, high = map(math.log, counts)
    share = (here - low) / (high - low) if high > low else 0.0

    return _Correction(
        *(
            lower ** (1 - share) * upper**share
            for lower, upper in zip(below[1], above[1], strict=True)
        )
    )


def _spec(cell: Cell) -> tuple[Any, ...]:
    """What the repetitions of a row share on all nodes: the seed of each is another one."""
    options = tuple(sorted((key, value) for key, value in cell.options.items() if key != "seed"))
    return cell.instrument, cell.point, options


def _distance(cell: Cell, other: Cell) -> tuple[bool, float]:
    """Another variant is further than another block."""
    return cell.variant != other.variant, abs(math.log((cell.block or 1) / (other.block or 1)))


def of(
    config: Mapping[str, Any],
    cluster: Cluster | None,
    directory: Path,
    findings: Mapping[str, Finding],
) -> Durations:
    """What is known of a campaign in ``directory``, with what is known of its records."""
    if cluster is None:
        cpus = len(os.sched_getaffinity(0))
        return Durations(findings, LOOPBACK_LINK, cpus, _between(findings))
    return Durations(findings, _link(config, cluster, directory), cluster.size_of(ANY)[0], 0.0)


def _link(config: Mapping[str, Any], cluster: Cluster, directory: Path) -> float | None:
    """Speed of the slowest network among those of the nodes, from the site file, else from facts of
    this campaign or of others beside it.
    """
    names = [None] if cluster.nodes == (ANY,) else list(cluster.nodes)
    networks = [
        site.for_host(config.get("site_facts") or {}, name).get("network") or {} for name in names
    ]
    said = [network.get("speed_bps") for network in networks]
    if all(said):
        return float(min(filter(None, said)))
    folders = [directory, *sorted(path for path in directory.parent.glob("*") if path != directory)]
    for folder in folders if config["interface"] is None else ():
        try:
            known = facts.whole(folder)
        except (OSError, PeakmarkError):
            continue
        speeds = [
            node["network"].get("speed_bps")
            for host, node in known.items()
            if (names == [None] or host in names) and isinstance(node.get("network"), Mapping)
        ]
        if speeds and all(speeds):
            return float(min(speeds))
    return None


def _between(findings: Mapping[str, Finding]) -> float:
    """Seconds from the end of a record to the start of the next one, as they were on this machine."""
    times = sorted(
        (
            datetime.fromisoformat(str(finding.data["context"]["started"])).timestamp(),
            float(finding.data["context"]["seconds"]),
        )
        for finding in findings.values()
        if finding.data is not None
    )
    gaps = [later - start - seconds for (start, seconds), (later, _) in pairwise(times)]
    usual = [gap for gap in gaps if 0 <= gap < LONGEST_BETWEEN_S]
    return median(usual) if len(usual) >= FEWEST_BETWEEN else BETWEEN_S
