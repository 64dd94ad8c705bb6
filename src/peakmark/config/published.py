"""Published results: numbers that others measured, as tidy CSV in ``reports/published`` or
elsewhere.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import TypeVar

from peakmark import files
from peakmark.catalogue import WORKLOADS
from peakmark.errors import ConfigError
from peakmark.resources import ROOT
from peakmark.statistics import median
from peakmark.tools.tables import BY_NAME
from peakmark.units import parse_size

FOLDER = ROOT / "reports" / "published"
COLUMNS = (
    "source", "hardware", "table", "workload", "concurrency", "block", "instrument", "metric", "value", "unit", "run",
    "note",
)  # fmt: skip
DEFINITION = "definition"
"""A further column, which a file of one's own need not have."""
DEFINITIONS = {
    "isa": ("scalar", "sse2", "avx2", "avx512", "neon"),
    "store": ("temporal", "streaming", "libc"),
    "copied": ("once", "twice"),
    "direct": ("yes", "no"),
    "sync": ("end", "each"),
    "fill": ("overwrite", "new"),
}
"""What a value may say of how it was made, in the words of a configuration's keys: the instruction
set, how is stored, how often a copied byte is counted, whether the page cache was passed by,
when the device had what was written, and whether files were there before.
"""
COPIES = ("RWS", "RWR")
THEORETICAL = "theoretical"
LARGEST = 16 << 20
"""Bytes of a file: a hundred thousand values."""
MOST_THREADS = 10**6
PublishedKey = tuple[str, str, int | None, int, str]
"""(table, workload, block in bytes, concurrency, instrument) of a published value."""

UNITS = {
    **{
        f"{prefix}B/s": (factor, "B/s")
        for prefix, factor in (("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12))
    },
    **{
        f"{prefix}bit/s": (factor, "bit/s")
        for prefix, factor in (("k", 1e3), ("M", 1e6), ("G", 1e9))
    },
    **{
        f"{prefix}op/s": (factor, "op/s")
        for prefix, factor in (("M", 1e6), ("G", 1e9), ("T", 1e12))
    },
    **{
        name: (factor, "s")
        for name, factor in (("ms", 1e-3), ("us", 1e-6), ("\u00b5s", 1e-6), ("ns", 1e-9))
    },
}
"""Units in which values may be written -> (factor, SI unit); decimal prefixes."""

# Programs as reports call them -> the instrument whose part they have here. What is not named is an
# own kernel's.
_INSTRUMENTS = {"hpl": "hpl", "pmbw": "pmbw", "iozone": "iozone", "iperf": "iperf3", "ping": "ping"}
# Averages are no runs: they count only where the runs themselves are not printed; the first kind
# there is.
_SUMMARIES = ("mean", "", "final")
# Accesses of one byte have no workload of their own here: the areas that stand for them, as in the
# presets.
_STANDS_FOR = {("LAT", 16 << 10): ("RWS", 1), ("LAT", 256 << 20): ("RWR", 1)}


@dataclass(frozen=True)
class Entry:
    """One line: a value in SI base units. ``block`` in bytes, None where there is none;
    ``instrument`` by its name here.
    """

    source: str
    hardware: str
    table: str
    workload: str
    concurrency: int
    block: int | None
    program: str
    metric: str
    value: float
    unit: str
    run: str
    note: str
    definition: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def like_here(self) -> float:
        """The value as it would be counted here: a copied byte is read and written."""
        once = self.definition.get("copied") == "once" and self.workload in COPIES
        return 2 * self.value if once and self.table == "memory_throughput" else self.value

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader must know of it: its note, and that it was converted."""
        doubled = (
            "copied bytes are counted once there: doubled here"
            if self.like_here != self.value
            else ""
        )
        return tuple(filter(None, (self.note, doubled)))

    @property
    def instrument(self) -> str:
        """The instrument whose part the program has: the own kernel's, if it is none of the known
        tools.
        """
        return _INSTRUMENTS.get(self.program.lower(), BY_NAME[self.table].own.instrument)

    @property
    def key(self) -> PublishedKey:
        """What it is a value of."""
        return self.table, self.workload, rounded(self.block), self.concurrency, self.instrument


@dataclass(frozen=True)
class Published:
    """A published set: its name and its values."""

    name: str
    entries: tuple[Entry, ...]

    def measured(self) -> Iterator[Entry]:
        """Measured values only: no limits, efficiencies and deviations."""
        for entry in self.entries:
            if entry.program != THEORETICAL and entry.metric == BY_NAME[entry.table].metric:
                yield entry

    @cached_property
    def runs(self) -> dict[PublishedKey, list[float]]:
        """Values by (table, workload, block, concurrency, instrument): the single runs, else the
        one that is printed.
        """
        by_key: dict[PublishedKey, dict[str, list[float]]] = {}
        for entry in self.measured():
            kind = "run" if entry.run.isdecimal() else entry.run
            by_key.setdefault(entry.key, {}).setdefault(kind, []).append(entry.like_here)
        return {
            key: next(kinds[kind] for kind in ("run", *_SUMMARIES) if kind in kinds)
            for key, kinds in by_key.items()
        }

    @cached_property
    def remarks(self) -> dict[PublishedKey, tuple[str, ...]]:
        """What the set itself notes on its measured values, each once, by the same keys as
        ``runs``.
        """
        by_key: dict[PublishedKey, dict[str, None]] = {}
        for entry in self.measured():
            if entry.remarks:
                by_key.setdefault(entry.key, {}).update(dict.fromkeys(entry.remarks))
        return {key: tuple(notes) for key, notes in by_key.items()}

    @cached_property
    def definitions(self) -> dict[PublishedKey, Mapping[str, str]]:
        """How the measured values were made, by the same keys."""
        return {entry.key: entry.definition for entry in self.measured() if entry.definition}

    def value(self, key: PublishedKey) -> float | None:
        """Median of the runs, else the average that is printed; None when there is none."""
        return median(self.runs[key]) if key in self.runs else None


def beside(
    table: str, workload: str, block: int | None, concurrency: int, instrument: str
) -> PublishedKey:
    """The key of the values that stand beside a row."""
    workload, block = stands_for(workload.removeprefix("LAT-"), block)
    return table, workload, rounded(block), concurrency, instrument


def stands_for(workload: str, block: int | None) -> tuple[str, int | None]:
    """The workload and block of published results that a row here stands for: mostly its own."""
    return _STANDS_FOR.get((workload, block or 0), (workload, block))


def rounded(block: int | None) -> int | None:
    """A block by which sets are matched: 1000, 1000000 ... bytes stand beside 1024, 1048576 ...;
    others as they are.
    """
    for decimal, binary in ((10**9, 1 << 30), (10**6, 1 << 20), (10**3, 1 << 10)):
        if block and block >= decimal and block % decimal == 0:
            return block // decimal * binary
    return block


def path_of(name: str) -> Path:
    """The file of a set, by its name in ``reports/published`` or its own path."""
    return Path(name) if name.endswith(".csv") else FOLDER / f"{name}.csv"


def load(name: str) -> Published:
    """A set by its name in ``reports/published`` or by the path of a CSV file.

    Errors: ConfigError in one sentence that names the file, the line, and what is allowed.
    """
    path = path_of(name)
    if not path.is_file():
        known = ", ".join(sorted(file.stem for file in FOLDER.glob("*.csv")))
        raise ConfigError(
            f"there are no published results {name!r}: allowed are {known}, or the path of a CSV file"
        )
    return _load(path)


@cache
def _load(path: Path) -> Published:
    """Byte order mark, ``;`` between fields (then ``,`` may be the decimal mark), and columns in
    any order are read.
    """
    try:
        with io.StringIO(files.read_bytes(path, LARGEST).decode("utf-8-sig"), newline="") as file:
            first = file.readline()
            file.seek(0)
            separator = max((",", ";", "\t"), key=first.count)
            reader = csv.DictReader(file, delimiter=separator)
            reader.fieldnames = [name.strip() for name in reader.fieldnames or ()]
            if sorted(name for name in reader.fieldnames if name != DEFINITION) != sorted(COLUMNS):
                raise ConfigError(
                    f"{path}, line 1: the columns must be {', '.join(COLUMNS)}{_differ(reader.fieldnames)}"
                )
            entries = tuple(_entry(path, reader.line_num, line, separator) for line in reader)
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} cannot be read: byte {error.start + 1} is no UTF-8") from error
    except (OSError, csv.Error) as error:
        raise ConfigError(
            f"{path} cannot be read as CSV: {getattr(error, 'strerror', None) or error}"
        ) from error
    return Published(path.stem, entries)


def _differ(names: Sequence[str]) -> str:
    missing = [name for name in COLUMNS if name not in names]
    twice = [name for name in COLUMNS if list(names).count(name) > 1]
    kinds = [(missing, "missing are"), (twice, "there twice are")]
    return "".join(f"; {what} {', '.join(columns)}" for columns, what in kinds if columns)


def _entry(path: Path, number: int, line: dict[str, str], separator: str) -> Entry:
    where = f"{path}, line {number}"
    if None in line.values() or None in line:
        raise ConfigError(f"{where} does not have {len(line.keys() - {None})} fields")
    if line["table"] not in BY_NAME:
        raise ConfigError(
            f"{where}, column table is {line['table']!r}: allowed are {', '.join(BY_NAME)}"
        )
    table = BY_NAME[line["table"]]
    workloads = WORKLOADS[table.subsystem]
    if line["workload"] not in workloads:
        raise ConfigError(
            f"{where}, column workload is {line['workload']!r}: allowed for {table.name} are {', '.join(workloads)}"
        )
    text = line["value"].replace(",", ".") if separator == ";" else line["value"]
    factor, unit = UNITS.get(line["unit"].strip(), (1.0, line["unit"].strip()))
    value = _number(where, "value", text, float) * factor
    too_far = value != 0 and not files.SMALLEST_NUMBER <= abs(value) <= files.LARGEST_NUMBER
    if too_far or math.isnan(value) or (line["metric"] == table.metric and value <= 0):
        raise ConfigError(
            f"{where}, column value is {line['value']!r}: allowed are numbers above 0"
        )
    if line["metric"] == table.metric and unit != table.unit:
        others = ", ".join(name for name, (_, unit) in UNITS.items() if unit == table.unit)
        raise ConfigError(
            f"{where}, column unit is {line['unit']!r}: allowed for {table.name} is {table.unit}"
            + (f", or {others}" if others else "")
        )
    if (
        line["metric"] == table.metric
        and line["run"] not in _SUMMARIES
        and not line["run"].isdecimal()
    ):
        raise ConfigError(
            f"{where}, column run is {line['run']!r}: allowed is the number of a run, mean, final, or nothing"
        )
    plain = {
        key: line[key]
        for key in ("source", "hardware", "table", "workload", "metric", "run", "note")
    }
    return Entry(
        **plain,
        concurrency=_number(where, "concurrency", line["concurrency"], _count),
        block=_number(where, "block", line["block"], parse_size) if line["block"] else None,
        program=line["instrument"],
        value=value,
        unit=unit,
        definition=_definition(where, line.get(DEFINITION) or ""),
    )


def _definition(where: str, text: str) -> dict[str, str]:
    """``isa=scalar; sync=each`` as a mapping. Errors: ConfigError."""
    definition = {}
    for part in filter(None, (part.strip() for part in text.split(";"))):
        name, _, word = (piece.strip() for piece in part.partition("="))
        if word not in DEFINITIONS.get(name, ()):
            allowed = ", ".join(
                f"{name}={'|'.join(values)}" for name, values in DEFINITIONS.items()
            )
            raise ConfigError(f"{where}, column {DEFINITION} has {part!r}: allowed are {allowed}")
        definition[name] = word
    return definition


def _count(text: str) -> int:
    value = int(text)
    if not 1 <= value <= MOST_THREADS:
        raise ValueError(f"{value} is no number of threads")
    return value


T = TypeVar("T")


def _number(where: str, column: str, text: str, kind: Callable[[str], T]) -> T:
    """Errors: ConfigError that names the column."""
    try:
        return kind(text.strip())
    except (ValueError, ConfigError) as error:
        wanted = "a number"
        if kind is parse_size:
            wanted = "a size such as 4096 or 64KiB"
        elif kind is _count:
            wanted = f"a whole number from 1 to {MOST_THREADS}"
        raise ConfigError(f"{where}, column {column} is {text!r}: allowed is {wanted}") from error
