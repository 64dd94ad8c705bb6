"""Read from a judged campaign what a class of equal nodes reached, and how it was measured.

pandas and ``rows.schema`` are not used: a prolog has the standard library alone.
"""

from __future__ import annotations

import csv
import json
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from peakmark.catalogue import KERNELS, SHAPES, is_together
from peakmark.equipment import Equipment, equipment_of
from peakmark.errors import ConfigError, RecordError, Unavailable
from peakmark.formatting import format_size
from peakmark.machine import hardware
from peakmark.machine.host import Host, parse_cpu_list
from peakmark.rows.names import FOLDER

LEAST_MARGIN = 1.1
"""Least factor between the class's interval and the value of a slow node.

Other programs may take 5 % of the CPUs unnoticed (``noise.MATTERS``), and good nodes vary by up to 5 %
from day to day.
"""
LEAST_VALUES = 3
"""Fewest values of a class in a row. If nothing has changed, the best of three new values is worse than
all three of the class with a probability of 1/20; six values make it 1/84.
"""
INSTRUMENTS = (KERNELS["cpu"], KERNELS["memory"])
"""Programs whose rows are checked. They write no files and use no network."""
WORK = ("--seconds", "--operations", "--total", "--accesses")
"""Options of these programs that set the amount of work."""
LEAST_OVERHEAD_S, MOST_OVERHEAD_S = 0.1, 5.0
"""Plausible seconds that a program takes besides measuring: start, warm-up, and filling its memory."""


class NodeFacts(NamedTuple):
    """Facts of the node that is checked.

    Attributes:
        name: name of the host without its domain.
        equipment: equipment in words.
        is_virtual: whether a hypervisor runs the node, so that unseen guests may share its memory.
    """

    name: str
    equipment: Equipment
    is_virtual: bool


class Recipe(NamedTuple):
    """Command that measured a row.

    Attributes:
        argv: name of the kernel, and its options without the amount of work.
        cpus: CPUs that the threads are pinned to.
        overhead_s: seconds of the command besides measuring.
        clock_limit_hz: lowest limit of these CPUs' clocks (``scaling_max_freq``), if known.
    """

    argv: tuple[str, ...]
    cpus: tuple[int, ...]
    overhead_s: float
    clock_limit_hz: float | None = None


@dataclass(frozen=True)
class ClassRow:
    """A row of the campaign, measured on the nodes of one class.

    Attributes:
        name: name in messages and for ``--rows``, such as ``cpu DP xcores``.
        subsystem: cpu or memory.
        instrument: kernel that measures the row.
        workload: workload.
        variant: variant; empty without variants.
        block: block size in bytes, or None.
        concurrency: number of threads.
        asked: concurrency as planned: a word or a number.
        cache_level: level that a memory row measures, L1 to DRAM; empty if it is unknown.
        unit: SI unit of the values.
        lowest: lowest end of the intervals of the nodes' medians.
        highest: highest end of these intervals.
        values: number of values of all nodes.
        node: node, as planned, that has a record of the row.
    """

    name: str
    subsystem: str
    instrument: str
    workload: str
    variant: str
    block: int | None
    concurrency: int
    asked: str
    cache_level: str
    unit: str
    lowest: float
    highest: float
    values: int
    node: str

    @property
    def is_time(self) -> bool:
        """Return whether lower values are better."""
        return self.unit == "s"

    @property
    def bound(self) -> float:
        """Return the value that every good node reaches.

        It is as far beyond the worst end of the class's interval as the interval is wide, and at least
        ``LEAST_MARGIN``.
        """
        factor = max(LEAST_MARGIN, self.highest / self.lowest)
        if self.is_time:
            return self.highest * factor
        return self.lowest / factor

    @property
    def is_private(self) -> bool:
        """Return whether the row uses only the cores of its threads, and no memory of the whole node."""
        return self.subsystem == "cpu" or self.cache_level in ("L1", "L2")

    def is_reached_by(self, value: float) -> bool:
        """Return whether a value is at least as good as ``bound``."""
        if self.is_time:
            return value <= self.bound
        return value >= self.bound


# -- the class of the node


def read_node(host: Host) -> NodeFacts:
    """Read the facts of this node by which nodes count as equal."""
    system = os.uname()
    cpu = hardware.collect_cpu(host)
    facts = {
        "cpu": cpu,
        "memory": {"total": host.meminfo().get("MemTotal")},
        "os": {"kernel": system.release},
    }
    name = system.nodename.partition(".")[0]
    return NodeFacts(name, equipment_of(facts), is_virtual=cpu["virtualised"] is not None)


def find_class(campaign: Path, node: NodeFacts) -> tuple[Equipment, set[str]]:
    """Return the equipment of this node's class in a campaign, and the names of its nodes.

    A class has the CPU of this node. Of several classes it is the one that has most in common with the
    node: other memory or another kernel may be the fault.

    Raises:
        Unavailable: no node of the campaign has this CPU.
    """
    members: dict[str, set[str]] = defaultdict(set)
    equipment: dict[str, Equipment] = {}
    processors = set()
    for line in _lines(campaign, "nodes", ("node", "class", *Equipment._fields)):
        processors.add(line["cpu"])
        if line["cpu"] == node.equipment.cpu:
            members[line["class"]].add(line["node"])
            known = Equipment(**{name: line[name] for name in Equipment._fields})
            equipment.setdefault(line["class"], known)
    if not members:
        others = " or ".join(sorted(filter(None, processors))) or "unknown"
        raise Unavailable(
            f"{node.name} belongs to no class of {campaign}: its CPU is {node.equipment.cpu or 'unknown'},"
            f" and theirs is {others}"
        )
    best = max(equipment, key=lambda name: _in_common(equipment[name], node.equipment))
    return equipment[best], members[best]


def _in_common(one: Equipment, other: Equipment) -> int:
    """Return the number of equal properties."""
    return sum(own == its for own, its in zip(one, other, strict=True))


# -- its rows


def read_rows(campaign: Path, nodes: set[str]) -> list[ClassRow]:
    """Return the rows that the nodes of a class measured with kernels of ``INSTRUMENTS``.

    Slow nodes, wrong rows, matrices, curves, and rows with fewer than ``LEAST_VALUES`` values are left out.

    Raises:
        RecordError: the campaign has no rows, or they are damaged.
    """
    columns = (
        *("node", "place", "subsystem", "instrument", "workload", "variant", "block_bytes"),
        *("concurrency", "concurrency_word", "cache_level", "unit", "n", "low", "high"),
        *("is_own", "is_slow", "severity"),
    )
    by_place: dict[str, list[dict[str, str]]] = defaultdict(list)
    for line in _lines(campaign, "rows", columns):
        is_right = line["severity"] != "wrong" and line["is_slow"] != "True"
        is_usable = line["is_own"] == "True" and line["n"] not in ("", "0") and is_right
        is_alone = line["workload"] not in SHAPES and not is_together(line["variant"])
        is_checked = line["instrument"] in INSTRUMENTS and is_alone
        if is_usable and is_checked and line["node"] in nodes:
            by_place[line["place"]].append(line)
    rows = []
    for lines in by_place.values():
        try:
            row = _class_row(lines)
        except ValueError as error:
            raise RecordError(f"{campaign}/{FOLDER}/rows.csv is damaged: {error}") from error
        if row.values >= LEAST_VALUES and row.lowest > 0:
            rows.append(row)
    return rows


def _class_row(lines: Sequence[Mapping[str, str]]) -> ClassRow:
    """Return the row of a class from the lines of its nodes. Errors: ValueError."""
    first = lines[0]
    asked = first["concurrency_word"] or first["concurrency"]
    block = None
    size = ""
    if first["block_bytes"]:
        block = int(first["block_bytes"])
        size = format_size(block)
    table = first["place"].partition("/")[0]
    words = [table, first["workload"], first["variant"], size, f"x{asked}"]
    return ClassRow(
        name=" ".join(filter(None, words)),
        subsystem=first["subsystem"],
        instrument=first["instrument"],
        workload=first["workload"],
        variant=first["variant"],
        block=block,
        concurrency=int(first["concurrency"]),
        asked=asked,
        cache_level=first["cache_level"],
        unit=first["unit"],
        lowest=min(float(line["low"]) for line in lines),
        highest=max(float(line["high"]) for line in lines),
        values=sum(int(line["n"]) for line in lines),
        node=first["node"],
    )


def _lines(campaign: Path, name: str, columns: Sequence[str]) -> Iterator[dict[str, str]]:
    """Yield the lines of a file in ``rows/``, with these columns alone.

    Raises:
        RecordError: the file cannot be read, or lacks a column.
    """
    path = campaign / FOLDER / f"{name}.csv"
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            reader = csv.reader(stream)
            heading = next(reader, [])
            places = {column: heading.index(column) for column in columns}
            for fields in reader:
                yield {column: fields[place] for column, place in places.items()}
    except OSError as error:
        raise RecordError(
            f"{path} cannot be read ({error.strerror}): `peakmark tables {campaign}` writes it where the"
            " campaign was measured"
        ) from error
    except (ValueError, IndexError, csv.Error) as error:
        raise RecordError(f"{path} is damaged: {error}", f"peakmark tables {campaign}") from error


# -- the rows to check


class HeadlineKind(NamedTuple):
    """A kind of row that is checked by default.

    Attributes:
        workloads: workloads, the preferred one first.
        cache_level: level that the row measures; empty for the CPU.
        is_full: whether the row with most threads is checked, else the one with fewest.
    """

    workloads: tuple[str, ...]
    cache_level: str
    is_full: bool


HEADLINES = (
    HeadlineKind(("DP", "FP32", "SP", "HP"), "", is_full=True),
    HeadlineKind(("DP", "FP32", "SP", "HP"), "", is_full=False),
    HeadlineKind(("QP", "QPDOT", "HP"), "", is_full=True),
    HeadlineKind(("RWS", "RS", "WS", "RR"), "L1", is_full=False),
    HeadlineKind(("RWS", "RS", "WS", "RR", "RWR"), "DRAM", is_full=True),
    HeadlineKind(("LAT",), "DRAM", is_full=False),
)
"""Rows that are checked by default, the quickest first."""


def headline_rows(rows: Sequence[ClassRow]) -> list[ClassRow]:
    """Return the row of each headline that the campaign has, without duplicates."""
    chosen: dict[str, ClassRow] = {}
    for headline in HEADLINES:
        row = _row_of(headline, rows)
        if row is not None:
            chosen.setdefault(row.name, row)
    return list(chosen.values())


def _row_of(headline: HeadlineKind, rows: Sequence[ClassRow]) -> ClassRow | None:
    """Return the row of a headline: of the first workload, with most or fewest threads.

    Of several block sizes, the largest is used in DRAM and the smallest in a cache.
    """
    for workload in headline.workloads:
        matching = [
            row
            for row in rows
            if row.workload == workload and row.cache_level == headline.cache_level
        ]
        if matching:
            threads_sign = 1 if headline.is_full else -1
            block_sign = 1 if headline.cache_level == "DRAM" else -1
            return max(
                matching,
                key=lambda row: (
                    threads_sign * row.concurrency,
                    block_sign * (row.block or 0),
                    row.name,
                ),
            )
    return None


def named_rows(rows: Sequence[ClassRow], names: Sequence[str]) -> list[ClassRow]:
    """Return the rows whose name has all words of one of ``names``.

    Raises:
        ConfigError: no row has the words of a name.
    """
    chosen: dict[str, ClassRow] = {}
    for name in names:
        words = set(name.split())
        matching = [row for row in rows if words <= set(row.name.split())]
        if not matching or not words:
            known = ", ".join(row.name for row in rows) or "none"
            raise ConfigError(f"--rows {name!r}: the campaign has no such row; it has {known}")
        for row in matching:
            chosen.setdefault(row.name, row)
    return list(chosen.values())


# -- their commands


def read_recipe(campaign: Path, row: ClassRow) -> Recipe:
    """Return the command that measured a row, from a record of the class.

    Raises:
        RecordError: the campaign has no such record.
    """
    workload = "-".join(filter(None, [row.workload, row.variant]))
    folder = campaign / "cells" / row.subsystem / row.instrument
    pattern = f"{workload}_*_x{row.asked}/{row.node}/*.json"
    for path in sorted(folder.glob(pattern)):
        try:
            record = json.loads(path.read_bytes())
            if record["status"] == "ok" and record["measurements"][0]["block"] == row.block:
                return _recipe(row, record)
        except (OSError, ValueError, LookupError, TypeError):
            continue  # another repetition may be whole
    raise RecordError(
        f"{folder} has no record of {row.name} on {row.node}: the check needs the folder cells/ of the"
        " campaign beside rows/"
    )


def _recipe(row: ClassRow, record: Mapping[str, Any]) -> Recipe:
    """Return the command in a record. Errors: LookupError, TypeError, ValueError."""
    command = record["context"]["commands"][0]
    words = [row.instrument]
    arguments = command["argv"][1:]
    for option, value in zip(arguments[::2], arguments[1::2], strict=True):  # each has a value
        if option not in WORK:
            words += [option, value]
    cpus = parse_cpu_list(words[words.index("--cpus") + 1])
    overhead_s = command["seconds"] - record["measurements"][0]["details"]["seconds"]
    overhead_s = min(MOST_OVERHEAD_S, max(LEAST_OVERHEAD_S, overhead_s))
    load = record["context"].get("noise") or {}
    clock_limit_hz = (load.get("before") or {}).get("clock_limit_hz")
    return Recipe(tuple(words), tuple(cpus), overhead_s, clock_limit_hz)
