"""Define, write and read the files in ``results/C/rows/``. No other code writes or reads them.

All output about a campaign (tables, figures, reports) is made from these files alone. Values are in SI
base units. A missing number is an empty field; a missing text is an empty text.
"""

from __future__ import annotations

import json
from collections import defaultdict, namedtuple
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from itertools import chain
from pathlib import Path
from statistics import median
from typing import Any, Literal, NamedTuple, NotRequired, TypedDict

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from peakmark import files
from peakmark.catalogue import SUBSYSTEMS, TOGETHER
from peakmark.config.types import Planned
from peakmark.errors import RecordError
from peakmark.messages import Trust, catalogue
from peakmark.rows import CAMPAIGN, FOLDER, FRAMES
from peakmark.tools.tables import BY_NAME, TABLES

Kind = Literal["text", "int", "float", "flag", "json"]
DTYPES: Mapping[Kind, Any] = {
    "text": "str",
    "int": "Int64",
    "float": "float64",
    "flag": "bool",
    "json": "str",
}
"""Kind of a column -> type of its values in pandas."""
EMPTY: Mapping[Kind, Any] = {"text": "", "int": None, "float": None, "flag": False, "json": ""}
"""Kind of a column -> value that fills the column if a frame lacks it."""
NOT_PLANNED = "the plan holds no cell of it"
"""Reason in ``campaign.json`` for a program without values that the campaign does not measure."""
DISTURBANCES = ("waited", "steal", "other-load", "neighbours", "clock-moved")
"""Codes of the warnings that runs were disturbed, the one that tells most first."""
Line = Any
"""A line of ``rows`` or ``runs``, as ``lines`` yields it."""
Matrix = dict[tuple[int, int], float]
"""(CPU or NUMA node, CPU or NUMA node) -> latency or rate between them, in SI units."""
GAP = 1.3
"""Ratio of two neighbouring times, sorted, from which on a new band begins.

Neighbours within one band differ by less: on one host, many times from 23.5 to 31.4 ns were one band
(docs/method.md).
"""
PART = 10_000
"""Number of lines that are in memory as Python objects at one time, about 50 MiB."""


class SchemaColumn(NamedTuple):
    """One column of a file.

    Attributes:
        name: heading of the column.
        kind: ``text``, ``int``, ``float``, ``flag`` (True or False) or ``json`` (a text that holds
            a JSON value, empty if there is none).
        meaning: one line for the documentation, with the unit if there is one.
    """

    name: str
    kind: Kind
    meaning: str


def _columns(text: str) -> tuple[SchemaColumn, ...]:
    """Return the columns of a file from lines of ``name kind meaning``."""
    columns = []
    for line in text.strip().splitlines():
        name, kind, meaning = line.split(maxsplit=2)
        columns.append(SchemaColumn(name, kind, meaning))  # type: ignore[arg-type]  # checked by a test
    return tuple(columns)


POINT = ("table", "node", "workload", "variant", "block_bytes", "concurrency", "concurrency_word")
"""Columns that identify a point. The name of the point consists of their values, joined by slashes."""

_POINT = """
point               text   name of the point: table, node, workload, variant, block, concurrency and word, joined by "/"
table               text   table that shows the value, such as memory_throughput; empty if no table does
subsystem           text   cpu, memory, disk or network
node                text   node as planned; "any" for any node of a class, "client+server" for a pair
workload            text   workload, such as RWS
variant             text   working set, engine, mode, distance or level; empty if the workload has no variants
block_bytes         int    size of the block, record, message or area, B
concurrency         int    number of threads, processes or streams; 0 if the number behind a word is not known
concurrency_word    text   word that the configuration gives instead of a number: numa, socket, cores or cpus
instrument          text   program that measured the value, by its name in the configuration
"""

RUNS = _columns(
    """
cell                text   path of the cell's record below cells/, without .json
record              text   path of the record, or of the failed attempt, below the campaign's folder
attempt             int    0 for the execution that counts, 1 and up for disturbed executions that were measured again
measurement         int    position of the value in its record, from 0
status              text   ok, missing (no record), unavailable (not possible here) or failed
reason              text   why the cell is unavailable or failed
wrong_core          int    core that computed a wrong result, by its first CPU; the cell failed
"""
    + _POINT.strip()
    + """
is_automatic        flag   the node chose the block itself, as for the area of LAT
measured_workload   text   workload in the record
measured_block_bytes int   block in the record, B
measured_concurrency int   concurrency in the record
host                text   host that measured or failed; for a pair, host of the client
server_host         text   host of the server
repetition          int    number of the repetition, from 0
first_node          text   first of the nodes that used a shared disk at this moment; empty for a node by itself
started             text   start of the cell, ISO 8601 with its offset from UTC
time                float  start of the cell, seconds since 1970
cell_seconds        float  duration of the cell, s
run_seconds         float  duration of the measurement by the program, s
job_id              text   ID of the job, from its scheduler
printed_in          text   report that printed the value; empty for a value that peakmark measured
printed_sd          float  standard deviation that the report prints beside the value, in SI units
tool_version        text   version of the program
metric              text   kind of the value: rate, throughput, latency, iops, ...
unit                text   SI unit of the value
value               float  measured value, in SI units
resolution          float  smallest difference that the program's output shows, in SI units; 0 if it prints all digits
estimated           flag   the program estimated the value from others
derived             flag   the value was computed from other values of the program
too_small           flag   the matrix of HPL was too small to reach its rate
disturbed           text   codes of the disturbances for which the execution was measured again
causes              text   codes of disturbances that changed the value, although it counts
above_limit         flag   the value is above its limit and does not count
kept                flag   the value counts: it is in the band of most runs of its row, and part of its row's summary
share               float  share of the limit, or of the bound, at the clock of the run
clock_hz            float  clock during the work; if it is unknown or misread, the higher of the clocks before and after, Hz
clock_work_hz       float  clock during the work, Hz
clock_before_hz     float  clock before the work, Hz
clock_after_hz      float  clock after the work, Hz
core_to_core_before float  time of a cache line from the first thread's core to the second's before the work, s
core_to_core_after  float  the same time after the work, s
band                float  placement of the run: median of the band of both times, s; empty if they differ or form one band
first_cpus          json   CPUs of the first two threads
placed_threads      int    number of threads that were placed on cores
placed_cores        int    number of cores that the threads were placed on
placed_sockets      int    number of sockets that the threads were placed on
placed_numa_nodes   json   NUMA nodes that the threads were placed on
placed_cache_bytes  int    total size of the last-level caches of these cores, B
allowed_cores       int    number of cores that the job was given
node_cores          int    number of cores of the whole node
job_cpus            int    number of CPUs that the cell used
cpu_quota           float  CPU time that the cgroup allows, in CPUs
cpu_share           float  share of the time in which the threads had their CPUs
held_up_cores       int    number of cores on which another program held up threads; 0 if they waited or share a core
noise_known         flag   the record states other activity on the node
noise_seconds       float  time for which other activity was observed, s
steal               float  share of the CPUs' time that the hypervisor took
others              float  CPU time that other programs used, in CPUs
busy                int    number of other programs that used more than a tenth of a CPU
users               int    number of other users who own these programs
throttled_seconds   float  time for which the CPU quota held the threads back, s
hot                 float  number of times that heat slowed down a core
counters            json   device and error counter of the kernel -> increase during the run
server_noise_known  flag   the record states other activity on the server's node
server_noise_seconds float time for which activity on the server's node was observed, s
server_steal        float  share of the CPUs' time that the hypervisor took on the server's node
server_others       float  CPU time that other programs used on the server's node, in CPUs
server_busy         int    number of other programs on the server's node that used more than a tenth of a CPU
server_users        int    number of other users who own these programs
server_throttled_seconds float time for which the CPU quota held the threads back on the server's node, s
server_hot          float  number of times that heat slowed down a core of the server's node
server_counters     json   device and error counter of the server's kernel -> increase during the run
probe_before        float  rate at which the threads read DRAM before the work, B/s
probe_after         float  rate at which the threads read DRAM after the work, B/s
memory_load         float  share by which DRAM was slower than its median on the host, with as many threads, in the same band; negative if faster
store               text   kind of store instructions of a memory row: temporal, streaming or libc
isa                 text   instruction set that the program used
working_set_bytes   float  size of the area that all threads walk together, B
huge_pages          float  huge pages of the area: their share of it, or their number
cache_bytes         float  size of the cache of a ladder's level, as the machine states it, B
flush_seconds       float  duration of the final flush, s
work                float  number of bytes that the program moved, or of operations
device_bytes        float  number of bytes that the device moved, B
direct              text   whether the files were opened with O_DIRECT: yes, no or empty
filesystem          text   file system of the scratch folder
io_limits           json   limits of the cgroup for the disk, B/s and 1/s
loopback            flag   client and server ran on one machine
interface           text   network interface
link                json   facts of the network interface that was measured
shaping             text   traffic shaping that was found on the path
loss                float  share of messages that were lost
lost                float  number of messages or round trips that were lost
overrun             int    number of packets that the receiver dropped because its buffers were full; joined datagrams are one
sent                float  number of messages that were sent
round_trips         float  number of completed round trips
residual            float  scaled residual of HPL
p50                 float  median time of an operation, s
p99                 float  99th percentile of the time of an operation, s
p999                float  99.9th percentile of the time of an operation, s
longest             float  longest time of an operation, s
histogram           text   number of operations by time in ns, 128 buckets for each power of two
joules              float  energy of processors and memory during the measurement, J
watts               float  mean power, W
chosen_isa          text   instruction set that the configuration asks for
points              json   points of a matrix or curve: [place, place, value], or [place, value, ...]
order               json   CPUs in the order of the topology
program_warnings    json   warnings that the program printed, or notes on a value that a report printed
"""
)

ROWS = _columns(
    _POINT.strip()
    + """
program             text   heading of the instrument in tables
is_own              flag   the instrument is peakmark's kernel
n                   int    number of values that count
planned             int    number of planned values of peakmark's kernel; 0 for other programs
missing             int    number of planned values of peakmark's kernel without a measurement; 0 for other programs
measured_again      int    number of repetitions that were disturbed and measured again
above_limit         int    number of values above the limit that do not count
reason              text   why the last missing value is missing
unit                text   SI unit of all values of the row
printed_in          text   report that printed the values; empty for values that peakmark measured
value               float  value that tables show: the median, or the mean if the layout asks for it
mean                float  mean
median              float  median
sd                  float  standard deviation of the sample (n - 1), or the one that a report prints beside its average
min                 float  lowest value
max                 float  highest value
low                 float  lower end of the median's confidence interval
high                float  upper end of the median's confidence interval
level               float  confidence level of that interval, as a share
resolution          float  smallest difference that the program's output shows
p50                 float  median time of all operations, s
p99                 float  99th percentile of the time of all operations, s
p999                float  99.9th percentile of the time of all operations, s
joules              float  median energy of a repetition, J
watts               float  median over repetitions of the mean power, W
cache_level         text   level that a memory row measures, L1 to DRAM; empty if it is unknown or between two levels
limit               float  physical limit of the value; empty if it is unknown
bound               float  value that the machine cannot exceed, if the limit itself is unknown
limit_kind          text   limit, at_most (bound) or none
limit_origin        text   origin of the limit: measured, read, site, datasheet or unknown
limit_formula       text   formula of the limit with its numbers
limit_detail        text   explanation that follows the formula in brackets
limit_sources       json   sources of the numbers in the formula
limit_clock         text   clock at which the limit holds: observed, nominal or maximum; empty if it does not depend on a clock
limit_clock_hz      float  median of the clocks that were observed while the row was measured, Hz
limit_bandwidth     float  for a latency under load: bandwidth of the memory, B/s
limit_reason        text   why there is no limit
limit_remarks       json   remarks on the limit
limit_finding       text   why the machine's limit is lower than its CPU would allow
limit_host          text   host from whose facts the limit was computed
efficiency          float  share of the limit that the value reaches
share               float  share of the limit that the value reaches; without a limit, share of the bound
is_comparable       flag   the row is a reference that may be compared with peakmark's kernel
ratio               float  value of peakmark's kernel divided by this row's value
unequal_nodes       text   facts in which the nodes of the row differ; empty if they are equal
clock_hz            float  clock of the limit, Hz
clock_share         float  share of the highest clock known for the same work
hosts               json   hosts that measured
band                float  placement of the runs that count, s, if it is one, see runs
clients             text   hosts of the clients, one for each pair, joined by "; "
servers             text   hosts of the servers, in the same order, joined by "; "
loopback            flag   a repetition was measured within one machine
isa                 text   instruction set of the first repetition
settings            json   settings that were asked for, and how the row accesses memory or disk, by title
recorded            json   facts in the first record that matter to a comparison, by title
trust               text   whether to use the value: ok, care (another run may differ) or no; empty without a value
wrong_codes         text   codes of the warnings that the value is wrong, joined by spaces
warnings            text   codes of the row's warnings and notes, joined by spaces
place               text   point without its node, and with the word of a concurrency instead of its number
node_class          text   name of the node's class of equal nodes; empty if there is only one class; "any" for any node
is_judged           flag   the node was compared with its class in this row
behind              float  share by which the node is worse than its class
behind_low          float  share by which it is worse at the better end of the median's interval
behind_high         float  share by which it is worse at the worse end of the median's interval
behind_p            float  probability that a healthy node is this far behind
is_slow             flag   the node is slower than its class in this row
"""
)

WARNINGS = _columns(
    """
point               text   point that the message is about
about               text   instrument that the message is about; empty for the whole point
code                text   name of the message
trust               text   whether to use the value: ok, care or no
amount              float  how much, for messages of one code; larger is worse, 0 if it has no amount
subject             text   what the report explains the message for once each, such as a program; empty for nothing
short               text   what happened, in at most six words; empty if no row shows it
text                text   what happened
remedy              text   what to do
"""
)

FINDINGS = _columns(
    """
table               text   table whose rows the sentence is about; empty for the whole campaign
topic               text   heading of the sentence
better              text   better choice or configuration
worse               text   worse choice or configuration
factor_low          float  lowest factor by which the better is faster
factor_high         float  highest factor by which the better is faster
certainty           text   in every repetition, from as few as 1 run, from as few as 2 runs, as printed or level
points              json   points that the sentence is about
text                text   sentence
"""
)

NODES = _columns(
    """
node                text   name of the node
class               text   name of the node's class of equal nodes; empty if there is only one class; "any" for any node
cpu                 text   name, family and model of the processor, and number of threads
memory              text   installed memory
network             text   driver and line rate of the network card
kernel              text   version of the kernel
clock               text   frequency governor, and whether turbo is on
sockets             int    number of sockets
cores               int    number of physical cores
threads             int    number of hardware threads
memory_bytes        int    size of the memory, B
rows                int    number of rows with a usable value of the node, rows of its pairs included
judged              int    number of these rows in which the node was compared with its class or other pairs
disturbed           int    number of rows that were compared with the class and disturbed by other activity
distance            float  smallest share behind its class at which it would have been called slow, median of these rows
limits              json   sentences on limits that other nodes of its class do not have, and on settings in which it differs
"""
)

FACTS = _columns(
    """
host                text   name of the host
part                text   part of the facts, such as cpu, memory or network
value               json   facts of this part by name
"""
)

FLEET = _columns(
    """
kind                text   node or pair of nodes that is slow
name                text   name of the node; "client+server" for a pair
subsystem           text   cpu, memory, disk or network
table               text   table whose pairs are slow; empty for a node that is slow within a subsystem
point               text   place of these pairs, as in rows.csv; empty if there is no table
behind              float  share by which it is worse than healthy nodes or pairs
behind_low          float  this share at the lower end of its interval
behind_high         float  this share at the upper end of its interval
rows                int    number of rows in which the node is slow
judged              int    number of rows in which the node was judged, within its subsystem
reasons             json   sentences on possible reasons
pairs               int    number of pairs from which a node or pair was judged
"""
)

FILES: Mapping[str, tuple[SchemaColumn, ...]] = dict(
    zip(FRAMES, (RUNS, ROWS, WARNINGS, FINDINGS, NODES, FACTS, FLEET), strict=True)
)
"""Name of a file without ``.csv`` -> columns of the file."""


MAXIMUM = 1 << 62
"""Largest number that a file may hold: sums, squares and ratios of such numbers stay finite."""
POSITIVE = ("value", "mean", "median", "min", "max", "low", "high", "limit", "bound", "work")
"""Columns whose numbers are above zero, unless they are missing."""
_UNITS = set().union(*(subsystem.units.values() for subsystem in SUBSYSTEMS.values()))
_CODES = {code.partition(" ")[0] for code in catalogue()}
_WORKLOADS = set().union(*(subsystem.workloads for subsystem in SUBSYSTEMS.values()))
_SERIES = chain.from_iterable(table.series for table in TABLES)
_PROGRAMS = {program.instrument for program in _SERIES}
VOCABULARY: Mapping[str, Collection[str]] = {
    "status": ("ok", "missing", "unavailable", "failed"),
    "subsystem": ("", *SUBSYSTEMS),
    "unit": {"", *_UNITS},
    "limit_kind": ("limit", "at_most", "none", ""),
    "limit_origin": ("measured", "read", "site", "datasheet", "unknown", ""),
    "trust": ("", *Trust),
    "kind": ("node", "pair"),
    "code": _CODES,
    "table": {"", *BY_NAME},
    "instrument": _PROGRAMS,
    "workload": _WORKLOADS,
}
"""Column -> texts that it may hold."""
_NAMES, _NUMBERS, _MAPPING = list[str], list[int], dict[str, Any]
JSON_TYPES: Mapping[str, Any] = {
    "first_cpus": _NUMBERS, "placed_numa_nodes": _NUMBERS, "order": _NUMBERS,
    "program_warnings": _NAMES, "limit_sources": _NAMES, "limit_remarks": _NAMES,
    "hosts": _NAMES, "reasons": _NAMES, "limits": _NAMES,
    "counters": _MAPPING, "server_counters": _MAPPING, "io_limits": _MAPPING, "link": _MAPPING,
    "settings": dict[str, str], "recorded": dict[str, str],
    "points": list[str | list[float]],
    "value": Any,
}  # fmt: skip
"""Column with JSON -> type of its value."""


class Times(TypedDict):
    """When a campaign was measured, see ``campaign_facts.times_of``. Without records, the last two are absent."""

    newest: datetime
    records: int
    first: NotRequired[datetime]
    elapsed: NotRequired[float]


class FailureContent(TypedDict):
    """A failure that several nodes may have in common, see ``campaign_facts.failures_of``."""

    cells: str
    what: str
    reason: str
    nodes: list[str]


class ProgramContent(TypedDict):
    """A program that measured."""

    instrument: str
    version: str
    path: str


class Checksums(TypedDict):
    """How many files have a checksum (plan, records, raw outputs), and the SHA-256 of the list."""

    files: int
    digest: str


class PromiseContent(TypedDict):
    """The verdict on a promised value.

    Attributes:
        promise: the promise, such as ``memory/TRIAD/pool, at least 380 GB/s``.
        node: node as planned; empty if the campaign has no such row.
        point: point of the best row; empty if it was not measured.
        amount: promised value, in the SI unit of the row.
        verdict: kept, ``missed by 3.1 % (2.2 to 4.0)`` or not measured.
    """

    promise: str
    node: str
    point: str
    amount: float
    verdict: str


class Rule(TypedDict):
    """Numbers by which a node is judged as slow, see ``campaign_facts.campaign_of``."""

    beyond: float
    nodes: int
    repetitions: int


class CampaignContent(TypedDict):
    """The content of ``campaign.json``, which ``campaign_facts.campaign_of`` describes."""

    name: str
    config: Planned
    settings: dict[str, Any]
    preset: str
    cells: int
    missing: int
    instruments: list[str]
    times: Times
    jobs: list[str]
    node_seconds: list[float]
    versions: list[str]
    programs: list[ProgramContent]
    commands: dict[str, list[str]]
    outputs: dict[str, str]
    empty: dict[str, str]
    failures: list[FailureContent]
    networks: dict[str, dict[str, Any]]
    on_cluster: bool
    behind: dict[str, list[str]]
    checksums: Checksums
    left_out: list[str]
    tables: list[str]
    unplanned: dict[str, str]
    promises: list[PromiseContent]
    rule: Rule


@dataclass(frozen=True)
class CampaignFrames:
    """A judged campaign: a frame for each file, and the facts about the whole campaign.

    Attributes:
        runs: a line for each measured value and for each planned value that is missing.
        rows: a line for each point and instrument, in the order of the tables. Peakmark's kernel has a
            line at every point, with ``n`` 0 if it has no values.
        warnings: a line for each message, in the order of printing.
        findings: a line for each sentence about a table.
        nodes: a line for each node.
        facts: a line for each fact of each host.
        fleet: a line for each slow node and pair of nodes.
        campaign: the content of ``campaign.json``.
    """

    runs: pd.DataFrame
    rows: pd.DataFrame
    warnings: pd.DataFrame
    findings: pd.DataFrame
    nodes: pd.DataFrame
    facts: pd.DataFrame
    fleet: pd.DataFrame
    campaign: Mapping[str, Any]

    @property
    def printed_in(self) -> str:
        """Return the report that printed the values; empty for values that peakmark measured."""
        return str(self.rows["printed_in"].max()) if len(self.rows) else ""


def typed(name: str, frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame with exactly the columns of a file, in the file's order and types.

    Args:
        name: name of the file, such as ``rows``.
        frame: frame with any columns. Missing columns become empty; unknown columns are dropped.
    """
    empty = {}
    for kind, value in EMPTY.items():
        empty[kind] = pd.Series(value, index=frame.index, dtype=DTYPES[kind])
    columns = {}
    for column in FILES[name]:
        values, dtype = frame.get(column.name, empty[column.kind]), DTYPES[column.kind]
        # A missing text is empty, and a missing flag is False.
        if column.kind in ("text", "json") and values.hasnans:
            values = values.astype(object).where(values.notna(), "")
        elif column.kind == "flag" and values.dtype != "bool":
            values = values.astype(object).eq(True)
        columns[column.name] = values if values.dtype == dtype else values.astype(dtype)
    return pd.DataFrame(columns, index=frame.index)


def write(campaign: Path, judged: CampaignFrames) -> None:
    """Write the files of a judged campaign.

    Args:
        campaign: folder of the campaign.
        judged: frames of the campaign.

    Raises:
        PeakmarkError: a file cannot be written.
    """
    folder = campaign / FOLDER
    for name in FILES:
        text = getattr(judged, name).to_csv(index=False, lineterminator="\n")
        files.write_text(folder / f"{name}.csv", text)
    content = json.dumps(judged.campaign, indent=1, ensure_ascii=False)
    files.write_text(folder / CAMPAIGN, content + "\n")


def read(campaign: Path) -> CampaignFrames:
    """Read the files of a judged campaign.

    Args:
        campaign: folder of the campaign.

    Raises:
        RecordError: a file is missing, damaged, or has the columns of another version.
    """
    folder = campaign / FOLDER
    frames = {name: _read_frame(folder / f"{name}.csv", name) for name in FILES}
    try:
        content = json.loads((folder / CAMPAIGN).read_bytes())
        msgspec.convert(content, CampaignContent)
    except (OSError, ValueError) as error:
        raise _damaged(folder / CAMPAIGN, str(error)) from error
    return CampaignFrames(**frames, campaign=content)


def _read_frame(path: Path, name: str) -> pd.DataFrame:
    """Read one file into a frame with the types of ``FILES``."""
    columns = FILES[name]
    dtypes = {column.name: DTYPES[column.kind] for column in columns}
    numbers = {column.name: [""] for column in columns if column.kind in ("int", "float")}
    try:
        # Only an empty number is missing: a host may be called NA, which pandas reads as missing.
        frame = pd.read_csv(
            path,
            dtype=dtypes,
            keep_default_na=False,
            na_values=numbers,
        )
    except (OSError, ValueError, TypeError) as error:
        raise _damaged(path, _unreadable(path, numbers) or str(error)) from error
    if list(frame) != list(dtypes):
        raise _damaged(path, "its columns are not those of this version")
    for column in columns:
        line, why = _first_wrong(frame[column.name], column)
        if why:
            # The first line of the file has the names of the columns.
            raise _damaged(path, f"line {line + 2}, column {column.name}: {why}")
    if name == "rows":
        is_again = frame.duplicated(["point", "instrument"])
        if is_again.any():
            line = int(is_again.to_numpy().argmax()) + 2
            raise _damaged(path, f"line {line}: an earlier line has its point and instrument")
    return frame


def _unreadable(path: Path, numbers: Iterable[str]) -> str:
    """Return where a file has a text in place of a number, such as ``line 3, column n: 'x' is no number``.

    The result is empty if there is no such place.

    Args:
        path: the file.
        numbers: names of the columns with numbers.
    """
    try:
        frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    except (OSError, ValueError):
        return ""
    for name in numbers:
        texts = frame.get(name, pd.Series(dtype=str))
        parsed = pd.to_numeric(texts, errors="coerce").abs()
        wrong = texts[texts.ne("") & ~parsed.le(MAXIMUM)]
        if len(wrong):
            # The index begins at 0, and the first line of the file has the names of the columns.
            return f"line {wrong.index[0] + 2}, column {name}: {wrong.iloc[0]!r} is no number up to 2^62"
    return ""


def _first_wrong(values: pd.Series, column: SchemaColumn) -> tuple[int, str]:
    """Return the first value of a column that peakmark never writes: (index of its line, what is wrong).

    The text is empty if all values are right.
    """
    if column.kind in ("int", "float"):
        known = values.dropna()
        possible = known.abs().le(MAXIMUM)
        if column.kind == "int":  # a count, a size or a position
            possible &= known.ge(0)
        elif column.name in POSITIVE:
            possible &= known.gt(0)
        if not possible.all():
            wrong = known[~possible]
            return int(wrong.index[0]), f"{wrong.iloc[0]} is not possible"
    allowed = VOCABULARY.get(column.name)
    if column.kind == "text" and allowed:
        wrong = values[~values.isin(allowed)]
        if len(wrong):
            return int(
                wrong.index[0]
            ), f"{wrong.iloc[0]!r} is not one of {', '.join(sorted(allowed))}"
    if column.kind == "json":
        # Most lines of a column have the same text, which is decoded once. Its first line is reported.
        for text in values.unique():
            try:
                msgspec.json.decode(text or "null", type=JSON_TYPES[column.name] | None)
            except ValueError as error:
                return int(values.eq(text).to_numpy().argmax()), f"{text!r}: {error}"
    return 0, ""


def _damaged(path: Path, why: str) -> RecordError:
    """Return the error for a file that cannot be used."""
    campaign = path.parent.parent
    remedy = f"peakmark tables {campaign} writes it anew"
    if not (campaign / "plan.json").is_file():
        remedy = "the folder has no records to make it from: take the folder from its source again"
    return RecordError(f"{path} cannot be used ({why})", remedy)


def lines(frame: pd.DataFrame) -> Iterator[Any]:
    """Yield the lines of a frame as named tuples, with None for a missing number.

    A frame of ``FILES`` has dozens of columns: ``DataFrame.itertuples`` converts them one after the other, and
    takes 40 times as long for a few lines. ``PART`` lines are converted at a time, to save memory.
    """
    line_type = _line_type(tuple(frame.columns))
    for first in range(0, len(frame), PART):
        part = frame.iloc[first : first + PART]
        values = part.to_numpy(dtype=object, na_value=None)  # type: ignore[arg-type]
        for index, line in zip(part.index, values.tolist(), strict=True):
            yield line_type(index, *line)


@cache
def _line_type(columns: tuple[str, ...]) -> Any:
    """Return the type of a line, with the fields that ``DataFrame.itertuples`` would give it.

    Like ``itertuples``, it replaces names that Python does not allow for a field, such as
    ``class``.
    """
    return namedtuple("Line", ["Index", *columns], rename=True)


# -- which rows


def is_pair(rows: pd.DataFrame) -> pd.Series:
    """Return a mask of the rows of pairs of nodes, whose ``node`` is ``client+server``."""
    return rows["node"].str.contains("+", regex=False)


def is_right(rows: pd.DataFrame) -> pd.Series:
    """Return a mask of the rows of any program that have a value, and no warning that it is wrong."""
    return rows["n"].gt(0) & rows["wrong_codes"].eq("")


def is_usable(rows: pd.DataFrame) -> pd.Series:
    """Return a mask of the rows of peakmark's kernel that have a value, and no warning that it is wrong.

    The interval of the median must be above 0, because comparisons use ratios.
    """
    return rows["is_own"] & is_right(rows) & rows["low"].gt(0)


def shows_link(rows: pd.DataFrame) -> pd.Series:
    """Return a mask of the rows of pairs of nodes whose value is that of their link.

    Pairs that were measured together are left out, because they may share an uplink. A value that ``tc``
    slows down (``rate-limit``) counts, although it is marked as wrong for the hardware: the link is slow.
    """
    has_value = rows["is_own"] & rows["n"].gt(0) & is_pair(rows)
    has_value &= rows["variant"].ne(TOGETHER)
    return has_value & rows["wrong_codes"].isin(["", "rate-limit"])


def is_disturbance(warnings: pd.DataFrame) -> pd.Series:
    """Return a mask of the warnings which say that other activity may have changed a value."""
    return warnings["code"].isin(DISTURBANCES) & warnings["trust"].ne(Trust.OK)


def is_disturbed(rows: pd.DataFrame, warnings: pd.DataFrame) -> pd.Series:
    """Return a mask of the rows with a warning of ``is_disturbance`` on their program, or on their whole point."""
    found = warnings[is_disturbance(warnings)]
    # ``about`` is empty if a warning is on all programs of a point.
    names = found["point"] + " " + found["about"]
    point = rows["point"] + " "
    return point.isin(names) | (point + rows["instrument"]).isin(names)


def may_be_one(first: pd.Series, second: pd.Series) -> pd.Series:
    """Return a mask of the pairs of rows that may have one placement.

    Their bands are near each other, or one of them is unknown.
    """
    ratio = first / second
    # A band is a core-to-core time. Times of two bands differ by ``GAP`` or more. The ratio of an
    # unknown band is NaN, which is neither.
    return ~(ratio.le(1 / GAP) | ratio.ge(GAP))


# -- runs of matrices and curves, which one cell measures as a whole


def points_of(run: Line) -> list[list[float]]:
    """Return the points of a run.

    A point of a matrix is ``[CPU, CPU, value]`` or ``[NUMA node, NUMA node, value]``. A point of a curve
    is ``[position, value, ...]``.
    """
    points: list[list[float]] = json.loads(run.points or "[]")
    return points


def matrix_of(runs: Iterable[Line]) -> Matrix:
    """Return the matrix of a row: for each pair of CPUs or NUMA nodes, the median over the runs."""
    values: dict[tuple[int, int], list[float]] = defaultdict(list)
    for run in runs:
        for first, second, value in points_of(run):
            values[int(first), int(second)].append(value)
    return {pair: median(measured) for pair, measured in values.items()}


def order_of(runs: Sequence[Line]) -> list[int]:
    """Return the order of a matrix's rows and columns: CPUs by topology, or NUMA nodes by number."""
    order: list[int] = json.loads(runs[0].order or "[]")
    if order:
        return order
    pairs = matrix_of(runs)
    return sorted(set().union(*pairs))


def curve_of(rows_of_runs: Iterable[Sequence[Line]]) -> list[NDArray[np.float64]]:
    """Return the curve that several rows make up, such as a ladder with one row for each cache level.

    Args:
        rows_of_runs: the runs of each row; rows may differ in their number of runs.

    Returns:
        One array for each point, with a line for each run and columns (position, value, ...), in SI units.
    """
    curve = []
    for runs in rows_of_runs:
        points_of_runs = [points_of(run) for run in runs]
        # If a run has fewer points than another, only those that all runs have count.
        curve += [np.array(point) for point in zip(*points_of_runs, strict=False)]
    return curve


def medians(curve: Iterable[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the median over runs of each point: an array of points x (position, value, ...).

    Args:
        curve: as ``curve_of`` returns it.
    """
    return np.array([np.median(point, axis=0) for point in curve])
