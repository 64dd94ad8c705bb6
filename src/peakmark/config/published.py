"""Published results: numbers that others measured, as tidy CSV in ``reports/published`` or
elsewhere.
"""

from __future__ import annotations

import csv
import io
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Literal, TypedDict, TypeVar

from msgspec import Meta, Struct, field

from peakmark import files
from peakmark.catalogue import WORKLOADS
from peakmark.config.types import TableName
from peakmark.errors import ConfigError
from peakmark.formatting import parse_size
from peakmark.resources import ROOT
from peakmark.statistics import median
from peakmark.tools.tables import BY_NAME
from peakmark.validation import allowed, read

FOLDER = ROOT / "reports" / "published"
COLUMNS = (
    "source", "hardware", "table", "workload", "concurrency", "block", "instrument", "metric", "value", "unit", "run",
    "note",
)  # fmt: skip
DEFINITION = "definition"
"""A further column, which a file of one's own need not have."""
_MAY_BE_EMPTY = frozenset({"", "block", "run", "note", DEFINITION})
COPIES = ("RWS", "RWR")
THEORETICAL = "theoretical"
RUNS = ("run", "mean", "", "final")
"""Averages count only where the runs themselves are not printed; the first kind that there is."""
LARGEST = 16 << 20
"""Bytes of a file: a hundred thousand values."""
MOST_THREADS = 10**6
SMALLEST_NUMBER, LARGEST_NUMBER = 1e-99, 1e30
"""What is computed from values between them stays finite."""
SHORTEST_DESIGNATION = 6
"""Characters of a disk's designation, to tell it from a word such as ``disk``."""
T = TypeVar("T")
PublishedKey = tuple[str, str, int | None, int, str]
"""(table, workload, block in bytes, concurrency, instrument) of a published value."""

_PREFIXES = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
UNITS = {
    **{
        f"{prefix}{unit}": (factor, unit)
        for unit in ("B/s", "bit/s", "op/s")
        for prefix, factor in _PREFIXES.items()
    },
    **{"ms": (1e-3, "s"), "us": (1e-6, "s"), "\u00b5s": (1e-6, "s"), "ns": (1e-9, "s")},
}
"""Units in which values may be written -> (factor, SI unit); decimal prefixes."""

# Programs as reports call them -> the instrument whose part they have here. What is not named is an
# own kernel's.
_INSTRUMENTS = {"hpl": "hpl", "pmbw": "pmbw", "iozone": "iozone", "iperf": "iperf3", "ping": "ping"}
# Accesses of one byte have no workload of their own here: the areas that stand for them, as in the
# presets.
_STANDS_FOR = {("LAT", 16 << 10): ("RWS", 1), ("LAT", 256 << 20): ("RWR", 1)}


class Definition(TypedDict, total=False):
    """What a value may say of how it was made, in the words of a configuration's keys.

    Attributes:
        copied: how often a copied byte is counted
        direct: whether the page cache was passed by
        sync: when the device had what was written
        fill: whether files were there before
    """

    isa: Literal["scalar", "sse2", "avx2", "avx512", "neon"]
    store: Literal["temporal", "streaming", "libc"]
    copied: Literal["once", "twice"]
    direct: Literal["yes", "no"]
    sync: Literal["end", "each"]
    fill: Literal["overwrite", "new"]


class Entry(Struct, frozen=True, kw_only=True):
    """One line: a value in SI base units.

    Attributes:
        block: bytes; None where there is none
        program: as its report calls it
    """

    source: str
    hardware: str
    table: TableName
    workload: str
    concurrency: Annotated[
        int, allowed(f"a whole number from 1 to {MOST_THREADS}", ge=1, le=MOST_THREADS)
    ]
    block: Annotated[int | None, allowed("a size such as 4096 or 64KiB")]
    program: str = field(name="instrument")
    metric: str
    value: Annotated[float, Meta(ge=-LARGEST_NUMBER, le=LARGEST_NUMBER)]
    unit: str
    run: Annotated[
        str,
        allowed("the number of a run, mean, final, or nothing", pattern=r"^([0-9]+|mean|final)?\Z"),
    ]
    note: str
    definition: Definition

    @property
    def kind(self) -> str:
        """Whether it is of a single run, or which average."""
        return "run" if self.run.isdecimal() else self.run

    @property
    def like_here(self) -> float:
        """The value as it would be counted here: a copied byte is read and written."""
        once = self.definition.get("copied") == "once" and self.workload in COPIES
        return 2 * self.value if once and self.table == "memory_throughput" else self.value

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader must know of it: its note, and that it was converted."""
        doubled = "copied bytes are counted once there: doubled here"
        return tuple(filter(None, (self.note, doubled if self.like_here != self.value else "")))

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
    def by_key(self) -> dict[PublishedKey, list[Entry]]:
        """Measured values by what they are values of."""
        by_key: dict[PublishedKey, list[Entry]] = defaultdict(list)
        for entry in self.measured():
            by_key[entry.key].append(entry)
        return dict(by_key)

    @cached_property
    def runs(self) -> dict[PublishedKey, list[float]]:
        """Measured values by what they are values of: the single runs, else the average that is
        printed.
        """
        runs = {}
        for key, entries in self.by_key.items():
            kind = min((entry.kind for entry in entries), key=RUNS.index)
            runs[key] = [entry.like_here for entry in entries if entry.kind == kind]
        return runs

    def remarks(self, key: PublishedKey) -> list[str]:
        """What the set itself notes on these values, each once."""
        entries = self.by_key.get(key, ())
        return list(dict.fromkeys(text for entry in entries for text in entry.remarks))

    def definition(self, key: PublishedKey) -> dict[str, str]:
        """How the values were made."""
        pairs = (pair for entry in self.by_key.get(key, ()) for pair in entry.definition.items())
        return {name: str(word) for name, word in pairs}

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


def of_disk(model: str, metric: str, workload: str) -> list[Entry]:
    """What the sets here have of a disk model: without the page cache and without a note of doubt.

    Args:
        model: as the disk calls itself, such as ``SAMSUNG MZ7KM240HMHQ0D3``; its last word counts.
    """
    designation = model.lower().rpartition(" ")[2]
    if len(designation) < SHORTEST_DESIGNATION:
        return []
    row = (f"disk_{metric}", workload, "")
    return [
        entry
        for path in sorted(FOLDER.glob("*.csv"))
        for entry in load(path.stem).measured()
        if (entry.table, entry.workload, entry.note) == row
        and designation in entry.hardware.lower()
        and entry.definition.get("direct") != "no"
    ]


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
    """Byte order mark, ``;`` between fields (then ``,`` may be the decimal mark), columns in any
    order, and the empty rows and columns of spreadsheets are read.
    """
    try:
        text = files.read_bytes(path, LARGEST).decode("utf-8-sig")
        separator, text = _separated(text)
        with io.StringIO(text, newline="") as file:
            reader = csv.reader(file, delimiter=separator)
            lines = [(reader.line_num, fields) for fields in reader if "".join(fields).strip()]
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} cannot be read: byte {error.start + 1} is no UTF-8") from error
    except (OSError, csv.Error) as error:
        raise ConfigError(
            f"{path} cannot be read as CSV: {getattr(error, 'strerror', None) or error}"
        ) from error
    number, names = lines[0] if lines else (1, [])
    names = [name.strip() for name in names]
    if sorted(name for name in names if name not in ("", DEFINITION)) != sorted(COLUMNS):
        raise ConfigError(
            f"{path}, line {number}: the columns must be {', '.join(COLUMNS)}, each once"
        )
    entries = []
    for number, fields in lines[1:]:
        where = f"{path}, line {number}"
        entries.append(_entry(where, _by_name(where, names, fields), separator))
    return Published(path.stem, tuple(entries))


def _separated(text: str) -> tuple[str, str]:
    """Return what stands between the fields, and the text without Excel's own line ``sep=;``."""
    hint = re.match(r'"?sep=([,;\t])"?[ \t]*(?=[\r\n])', text)
    if hint:
        return hint[1], text[hint.end() :]
    first = next((line for line in text.splitlines() if line.strip(" ,;\t")), "")
    return max((",", ";", "\t"), key=first.count), text


def _by_name(where: str, names: list[str], fields: list[str]) -> dict[str, str]:
    """Return the fields of a line by the names of their columns.

    A column without a name must be empty. A spreadsheet may leave out empty fields at the end of a
    line.
    """
    missing = names[len(fields) :]
    unnamed = [text for place, text in enumerate(fields) if not "".join(names[place : place + 1])]
    if any(text.strip() for text in unnamed) or not _MAY_BE_EMPTY.issuperset(missing):
        raise ConfigError(f"{where} does not have {len(names) - names.count('')} fields")
    filled = fields + [""] * len(missing)
    return {name: text for name, text in zip(names, filled, strict=False) if name}


def _entry(where: str, line: dict[str, str], separator: str) -> Entry:
    text = line["value"].replace(",", ".") if separator == ";" else line["value"]
    number_read = _parsed(float, text)
    factor, unit = UNITS.get(line["unit"].strip(), (1.0, line["unit"].strip()))
    values = {
        **line,
        "concurrency": _parsed(int, line["concurrency"]),
        "block": _parsed(parse_size, line["block"]) if line["block"] else None,
        "value": number_read * factor if isinstance(number_read, float) else number_read,
        "unit": unit,
        DEFINITION: _definition(line.get(DEFINITION) or ""),
    }
    entry = read(values, Entry, f"{where}, column ")
    table = BY_NAME[entry.table]
    if entry.workload not in WORKLOADS[table.subsystem]:
        words = f"for {table.name}: {', '.join(WORKLOADS[table.subsystem])}"
        raise ConfigError(f"{where}, column workload is {entry.workload!r}: allowed are {words}")
    if entry.metric == table.metric and unit != table.unit:
        units = [table.unit, *(name for name, (_, of) in UNITS.items() if of == table.unit)]
        raise ConfigError(
            f"{where}, column unit is {line['unit']!r}: allowed are for {table.name}: "
            f"{', '.join(units)}"
        )
    if entry.metric == table.metric and entry.value < SMALLEST_NUMBER:
        raise ConfigError(
            f"{where}, column value is {line['value']!r}: allowed are numbers above 0"
        )
    return entry


def _parsed(kind: Callable[[str], T], text: str) -> T | str:
    """The number that a text is, else the text itself."""
    try:
        return kind(text.strip())
    except (ValueError, ConfigError):
        return text


def _definition(text: str) -> dict[str, str]:
    """``isa=scalar; sync=each`` as a mapping."""
    parts = (part.partition("=") for part in text.split(";") if part.strip())
    return {name.strip(): word.strip() for name, _, word in parts}
