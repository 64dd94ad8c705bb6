"""The files in ``results/C/rows/``: their columns, and the only code that writes and reads them.

Whatever shows a campaign reads these files and nothing else. Values are in SI base units. A missing
number is an empty field, a missing text is an empty text.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pandas as pd

from peakmark import files
from peakmark.errors import RecordError
from peakmark.messages import Message, Range, Scope, Severity, Value, texts
from peakmark.rows.names import CAMPAIGN, FOLDER, FRAMES

Kind = Literal["text", "int", "float", "flag", "json"]
DTYPES: Mapping[Kind, Any] = {
    "text": "str",
    "int": "Int64",
    "float": "float64",
    "flag": "bool",
    "json": "str",
}


class SchemaColumn(NamedTuple):
    """One column of a file.

    Attributes:
        name: heading.
        kind: ``text``, ``int``, ``float``, ``flag`` (True or False) or ``json`` (a text that holds
            a JSON value, empty for none).
        meaning: one line, with the unit where it has one.
    """

    name: str
    kind: Kind
    meaning: str


def _columns(text: str) -> tuple[SchemaColumn, ...]:
    """Read columns from lines of ``name kind meaning``."""
    columns = []
    for line in text.strip().splitlines():
        name, kind, meaning = line.split(maxsplit=2)
        columns.append(SchemaColumn(name, kind, meaning))  # type: ignore[arg-type]  # checked by a test
    return tuple(columns)


POINT = ("table", "node", "workload", "variant", "block_bytes", "concurrency", "concurrency_word")
"""Columns that tell one point from another; ``point`` joins them."""

_POINT = """
point               text   name of the point: table, node, workload, variant, block, concurrency and word, joined by "/"
table               text   table that shows the value, such as memory_throughput; empty where none does
subsystem           text   cpu, memory, disk or network
node                text   node as planned, "any" for any node of one class, "client+server" for a pair
workload            text   workload, such as RWS
variant             text   working set, engine, mode, distance or level; empty where there is no choice
block_bytes         int    block, record, message or area, B
concurrency         int    threads, processes or streams; 0 where a word was asked for and nothing measured it
concurrency_word    text   word that was asked for instead of a number: numa, socket, cores or cpus
instrument          text   program that measures, by its name in the configuration
"""

RUNS = _columns(
    """
cell                text   path of the cell's record below cells/, without .json
record              text   path of the record, or of the failed attempt, below the campaign
attempt             int    0 for the execution that counts, then those that were disturbed and measured again
measurement         int    place of the value in its record
status              text   ok, missing (no record), unavailable (not possible here) or failed
reason              text   why it is unavailable or failed
wrong_core          int    core, by its first CPU, whose wrong result made the cell fail
"""
    + _POINT.strip()
    + """
is_automatic        flag   the node chose the block: the area of LAT
measured_workload   text   workload as in the record
measured_block_bytes int   block as in the record, B
measured_concurrency int   concurrency as in the record
host                text   host that measured, or failed to, or of the client
server_host         text   host of the server
repetition          int    number of the repetition, from 0
started             text   when the cell was begun, ISO 8601 with its offset from UTC
time                float  the same as seconds since 1970, s
cell_seconds        float  how long the cell took, s
run_seconds         float  how long the program measured, s
job_id              text   number of the Slurm job
tool_version        text   version of the program
metric              text   what the value is: rate, throughput, latency, iops, ...
unit                text   SI unit of the value
value               float  measured value, in SI units
resolution          float  smallest difference that the program tells, in SI units; 0 where it prints all digits
estimated           flag   the value is an estimate from others
derived             flag   the value was computed from other values of the program
too_small           flag   HPL solved too small a matrix to show its rate
disturbed           text   codes of what disturbed the execution, which was measured again
causes              text   codes of what changed the value, which counts all the same
above_limit         flag   no measurement of the row can be so good
kept                flag   the value is part of its row's summary
clock_hz            float  clock under the work; where that is unknown, the median of before and after, Hz
clock_work_hz       float  clock under the work itself, Hz
clock_before_hz     float  clock before the work, Hz
clock_after_hz      float  clock after the work, Hz
placed_threads      int    threads that were placed
placed_cores        int    cores that the threads were placed on
placed_sockets      int    sockets that the threads were placed on
placed_numa_nodes   json   NUMA nodes that the threads were placed on
placed_cache_bytes  int    last-level caches that these cores share, B
allowed_cores       int    cores that the job was given
node_cores          int    cores of the whole node
job_cpus            int    CPUs that the cell used
cpu_quota           float  CPUs' worth of time that the cgroup allows
cpu_share           float  share of the time for which the threads had their CPUs
held_up_known       flag   the record tells whether others held up the threads
held_up_cores       int    cores on which others held up threads that did not wait and share no core
noise_known         flag   the record tells what else went on
noise_seconds       float  how long other load was watched, s
steal               float  share of the CPUs' time that the hypervisor took
others              float  CPUs' worth of time that other programs used
busy                int    other programs that used more than a tenth of a CPU
users               int    other users they belong to
throttled_seconds   float  time for which the CPU quota held the threads back, s
hot                 float  times that heat slowed a core down
counters            json   device and kernel counter of errors -> by how much it went on
server_noise_known  flag   the same of the server's node, to server_counters
server_noise_seconds float how long other load was watched there, s
server_steal        float  share of the CPUs' time that the hypervisor took there
server_others       float  CPUs' worth of time that other programs used there
server_busy         int    other programs there that used more than a tenth of a CPU
server_users        int    other users there they belong to
server_throttled_seconds float time for which the CPU quota held threads back there, s
server_hot          float  times that heat slowed a core down there
server_counters     json   device and kernel counter of errors there -> by how much it went on
probe_before        float  rate at which the threads read DRAM before the work, B/s
probe_after         float  the same after the work, B/s
memory_load         float  share by which DRAM was slower than its best in the campaign; 0 where that is usual
store               text   how a memory row writes: temporal, streaming or libc
isa                 text   instruction set that ran
working_set_bytes   float  area that the threads walk together, B
huge_pages          float  share of the area, or number, on huge pages
cache_bytes         float  size that the machine states for the cache of a ladder's level, B
flush_seconds       float  duration of the final flush, s
work                float  bytes or operations moved
device_bytes        float  bytes that the device moved, B
direct              text   whether the files were opened with O_DIRECT: yes, no or empty
filesystem          text   filesystem of the scratch folder
io_limits           json   cgroup's limits of the disk, B/s and 1/s
loopback            flag   client and server were one machine
interface           text   network interface
link                json   facts of the interface that was measured
shaping             text   traffic shaping that was found on the path
loss                float  share of messages that were lost
lost                float  messages or round trips that were lost
sent                float  messages that were sent
round_trips         float  round trips
residual            float  scaled residual of HPL
p50                 float  time that half of the operations took at most, s
p90                 float  time that 90 % of the operations took at most, s
p99                 float  time that 99 % of the operations took at most, s
p999                float  time that 99.9 % of the operations took at most, s
longest             float  longest operation, s
histogram           text   operations by time, 128 buckets for each power of two, in ns
joules              float  energy of processors and memory in the measured time, J
watts               float  mean power, W
instead_of          text   instrument for which this one stands in, as that one's build cannot
chosen_isa          text   instruction set that the configuration asks for
points              json   points of a matrix or curve: lists of place, place or value, value
order               json   CPUs in the order of the topology
program_warnings    json   warnings of the program
"""
)

ROWS = _columns(
    _POINT.strip()
    + """
program             text   heading of the instrument in tables
is_own              flag   the instrument is peakmark's kernel
n                   int    values that count
planned             int    values that were planned; of peakmark's kernel
missing             int    planned values without a measurement; of peakmark's kernel
measured_again      int    repetitions that were disturbed and measured again
above_limit         int    values that no measurement of the row can reach
reason              text   why the last of them is missing
unit                text   SI unit of all values of the row
value               float  centre that tables show
mean                float  mean
median              float  median
sd                  float  standard deviation, with n - 1
min                 float  lowest value
max                 float  highest value
low                 float  lower end of the interval of the median
high                float  upper end of the interval of the median
level               float  level of that interval, as a share
resolution          float  smallest difference that the program tells
p50                 float  median time of all operations, s
p50_low             float  lower end of its interval over repetitions, s
p50_high            float  upper end of its interval over repetitions, s
p90                 float  90th percentile, s
p90_low             float  lower end of its interval over repetitions, s
p90_high            float  upper end of its interval over repetitions, s
p99                 float  99th percentile, s
p99_low             float  lower end of its interval over repetitions, s
p99_high            float  upper end of its interval over repetitions, s
p999                float  99.9th percentile, s
p999_low            float  lower end of its interval over repetitions, s
p999_high           float  upper end of its interval over repetitions, s
joules              float  median energy of a repetition, J
watts               float  median of the mean power, W
cache_level         text   level that a memory row measures: L1 to DRAM; empty where it is between two, or unknown
limit               float  physical limit; empty where it is unknown
bound               float  instead of a limit: what nothing can exceed
limit_kind          text   limit, at_most (a bound) or none
limit_origin        text   measured, read, site, datasheet or unknown
limit_name          text   what it is the limit of, where the machine has another limit too
limit_formula       text   formula with its numbers
limit_detail        text   what stands in brackets behind it
limit_sources       json   where the numbers are from
limit_clock         text   clock at which the limit holds: observed, nominal or maximum; empty where it has none
limit_clock_hz      float  clock that was observed while the row was measured, Hz
limit_bandwidth     float  bandwidth of the memory, of a latency under load, B/s
limit_reason        json   message that says why there is no limit
limit_remarks       json   messages about what a reader must know of the limit
limit_finding       json   message about what keeps the limit below what the CPU could have
limit_host          text   host of whose facts the limit was made
efficiency          float  share of the limit that the value reaches
share               float  share of the limit or, without one, of the bound
efficiency_at_nominal float share of the limit that holds at the nominal clock
efficiency_at_maximum float share of the limit that holds at the maximum clock
is_comparable       flag   a reference that measured the same on equal nodes
ratio               float  value of peakmark's kernel by this one's: median over the rounds in which both ran
ratio_low           float  lowest of these ratios
ratio_high          float  highest of these ratios
unequal_nodes       text   in what the nodes differ that measured the row
instead_of          text   instrument for which this one stands in
clock_hz            float  clock under the work, of undisturbed repetitions, Hz
clock_share         float  share of the best clock that is known of such work
hosts               json   hosts that measured
clients             text   hosts of the clients, pair by pair, joined by "; "
servers             text   hosts of the servers, pair by pair
loopback            flag   measured within one machine
isa                 text   instruction set of the first repetition
settings            json   what was asked of the row and how it writes, by title
recorded            json   what the first record tells that matters to a comparison, by title
severity            text   heaviest severity of its warnings: wrong, unsure or empty
wrong_codes         text   codes of the warnings that say that it is wrong, joined by blanks
warning_kinds       text   kinds of its warnings: wrong, varies, programs disagree, not the device
warnings            text   codes of its warnings and notes, joined by blanks
place               text   point without its node; a word stands there without its number
node_class          text   name of the class of equal nodes; empty where there is one class only
is_judged           flag   the row counts in the verdict on its node
behind              float  share of the class's value by which the node is worse
behind_low          float  the least that it may be, by the interval of the median
behind_high         float  the most that it may be
behind_p            float  chance of a healthy node so far behind
is_slow             flag   the node is slower than its class in this row
"""
)

WARNINGS = _columns(
    """
point               text   point that it is about
about               text   instrument that it is about; empty for the point as such
code                text   name of the message
case                text   which text of the message
severity            text   wrong, unsure or note
scope               text   point, or campaign: printed once
kind                text   kind that the column of warnings names; empty for none
values              json   values of the text's fields
text                text   what happened
remedy              text   what to do
"""
)

FINDINGS = _columns(
    """
table               text   table whose rows say it
topic               text   heading
better              text   the better choice, configuration or program
worse               text   the worse one
factor_low          float  lowest factor between them: how many times as fast; of a limit the lowest share
factor_high         float  highest factor
certainty           text   in every repetition, measured once, measured twice or level
points              json   points that it is about
text                text   sentence
"""
)

NODES = _columns(
    """
node                text   node
class               text   name of its class of equal nodes; empty where there is one class only
cpu                 text   processor and number of threads
memory              text   memory
network             text   driver and rate of the network card
kernel              text   version of the kernel
clock               text   governor and turbo
sockets             int    sockets
cores               int    physical cores
threads             int    hardware threads
memory_bytes        int    memory, B
rows                int    rows in which it has a value that may be right, those of its pairs included
judged              int    of these, rows by which it was judged beside its class or by its pairs
"""
)

FACTS = _columns(
    """
host                text   host
key                 text   name of the fact: its parts joined by dots, places in lists as numbers
value               json   value
"""
)

FLEET = _columns(
    """
kind                text   node, switch, link, or suspect of a second measurement
name                text   node, switch, or "client+server"
subsystem           text   cpu, memory, disk or network
table               text   table
point               text   place of the pairs, as in rows.csv; of a node "" for all its rows of the subsystem
behind              float  share by which it is worse than its like
behind_low          float  the least that it may be
behind_high         float  the most that it may be
rows                int    rows in which a node or suspect is slow
judged              int    rows that were judged: of the node in the subsystem, or of the suspect
reasons             json   messages about what may be the reason
pairs               int    pairs in which a node, switch or link was measured
confirmed           flag   False for a link that its own repetitions do not show yet, and for a suspect that is not slow again
beside              json   healthy nodes or links that a suspect was measured beside
"""
)

FILES: Mapping[str, tuple[SchemaColumn, ...]] = dict(
    zip(FRAMES, (RUNS, ROWS, WARNINGS, FINDINGS, NODES, FACTS, FLEET), strict=True)
)
"""Name of a file without its ending -> its columns."""


@dataclass(frozen=True)
class CampaignFrames:
    """A judged campaign: one frame a file, and what holds for the whole campaign.

    Attributes:
        runs: a line for each measured value and each planned value that is missing.
        rows: a line for each point and instrument, in the order of the tables; peakmark's kernel
            has one at every point, with ``n`` 0 where it measured nothing.
        warnings: a line for each message, in the order in which they are printed.
        findings: a line for each sentence about a table.
        nodes: a line for each node.
        facts: a line for each fact of each host.
        fleet: a line for each slow node, switch and link, and for each suspect.
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


def typed(name: str, frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame with the columns of a file, in their order and types.

    Args:
        name: of the file, such as ``rows``.
        frame: columns that it lacks become empty; others are left out.
    """
    columns = {}
    for column in FILES[name]:
        values = frame.get(column.name, pd.Series(None, index=frame.index, dtype=object))
        if column.kind in ("text", "json"):
            values = values.astype(object).where(values.notna(), "")
        elif column.kind == "flag":
            values = values.astype(object).eq(True)
        columns[column.name] = values.astype(DTYPES[column.kind])
    return pd.DataFrame(columns, index=frame.index)


def write(campaign: Path, judged: CampaignFrames) -> None:
    """Write the files of a judged campaign below its folder. Errors: PeakmarkError."""
    folder = files.made_folder(campaign, FOLDER)
    for name in FILES:
        frame = typed(name, getattr(judged, name))
        text = frame.to_csv(index=False, lineterminator="\n")
        files.write_text(folder / f"{name}.csv", text)
    content = json.dumps(judged.campaign, indent=1, ensure_ascii=False)
    files.write_text(folder / CAMPAIGN, content + "\n")


def read(campaign: Path) -> CampaignFrames:
    """Return a judged campaign, as its files hold it.

    Raises:
        RecordError: a file is missing, or is not as it was written.
    """
    folder = campaign / FOLDER
    frames = {name: _read_frame(folder / f"{name}.csv", name) for name in FILES}
    try:
        content = json.loads(files.read_bytes(folder / CAMPAIGN))
    except (OSError, ValueError) as error:
        raise _damaged(folder / CAMPAIGN, str(error)) from error
    return CampaignFrames(**frames, campaign=content)


def _read_frame(path: Path, name: str) -> pd.DataFrame:
    """Return a file as a frame with the types of its columns."""
    columns = FILES[name]
    dtypes = {column.name: DTYPES[column.kind] for column in columns}
    numbers = {column.name: [""] for column in columns if column.kind in ("int", "float")}
    try:
        # Without the default list of missing values, as a host may be called NA.
        frame = pd.read_csv(
            path,
            dtype=dtypes,
            keep_default_na=False,
            na_values=numbers,
            quoting=csv.QUOTE_MINIMAL,
        )
    except (OSError, ValueError) as error:
        raise _damaged(path, str(error)) from error
    if list(frame) != list(dtypes):
        raise _damaged(path, "its columns are not those of this version")
    return frame


def _damaged(path: Path, why: str) -> RecordError:
    """Return the error for a file that cannot be used."""
    campaign = path.parent.parent
    return RecordError(
        f"{path} cannot be used ({why})", f"peakmark tables {campaign} writes it anew"
    )


def lines(frame: pd.DataFrame) -> Iterator[Any]:
    """Yield the lines of a frame as named tuples, with None for a missing number."""
    known = frame.astype(object).where(frame.notna(), None)
    yield from known.itertuples(name="Line")


# -- messages as JSON


def to_json(value: Value) -> Any:
    """Return a value of a message as a JSON value, from which ``from_json`` makes it again."""
    if isinstance(value, Message):
        values = {name: to_json(each) for name, each in value.values}
        return {"code": value.code, "case": value.case, "values": values}
    if isinstance(value, Range):
        return {"low": value.low, "high": value.high}
    if isinstance(value, frozenset):
        return {"names": sorted(value)}
    if isinstance(value, tuple):
        return [to_json(each) for each in value]
    return value


def from_json(value: Any) -> Value:
    """Return the value of a message that ``to_json`` made a JSON value of."""
    if isinstance(value, list):
        return tuple(from_json(each) for each in value)
    if not isinstance(value, dict):
        return value  # type: ignore[no-any-return]  # a text or a number
    if "low" in value:
        return Range(value["low"], value["high"])
    if "names" in value:
        return frozenset(value["names"])
    return message_of(value)


def message_of(value: Mapping[str, Any], **more: Any) -> Message:
    """Return the message of a JSON object with ``code``, ``case`` and ``values``."""
    values = tuple((name, from_json(each)) for name, each in value["values"].items())
    return Message(value["code"], values, case=value["case"], **more)


def line_of_message(message: Message, point: str) -> dict[str, Any]:
    """Return the line of a message in ``warnings``."""
    fact, remedy = _words_of(message.entry, message.values)
    return {
        "point": point,
        "about": message.about,
        "code": message.code,
        "case": message.case,
        "severity": str(message.severity),
        "scope": str(message.scope),
        "kind": str(message.kind) if message.is_named else "",
        "values": json.dumps(to_json(message)["values"], ensure_ascii=False),
        "text": fact,
        "remedy": remedy,
    }


@cache
def _words_of(entry: str, values: tuple[tuple[str, Value], ...]) -> tuple[str, str]:
    """Return fact and remedy of a message: rows of many nodes have the same ones."""
    return texts(entry, dict(values))


def message_of_line(line: Any) -> Message:
    """Return the message of a line of ``warnings``."""
    content = {"code": line.code, "case": line.case, "values": json.loads(line.values)}
    severity, scope = Severity(line.severity), Scope(line.scope)
    return message_of(content, severity=severity, about=line.about, scope=scope)
