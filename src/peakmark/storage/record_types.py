"""Types of the files that peakmark writes into a campaign: records and plan.

``config.schemas`` generates JSON schemas from these types. The texts below ``Attributes`` become the
descriptions of the keys. All values are in SI base units: bytes, Hz, bit/s, B/s, seconds.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from msgspec import Meta, Struct

from peakmark.cell import CellKeys
from peakmark.config.types import CampaignName, Metric, Planned, Text, Unit
from peakmark.validation import allowed

# Sums, squares and ratios of numbers within these bounds stay finite.
Count = Annotated[int, Meta(ge=0, le=1 << 62)]
Several = Annotated[int, Meta(ge=1, le=1 << 62)]
Number = Annotated[float, Meta(ge=-1e30, le=1e30)]
Digest = Annotated[str, allowed("a SHA-256 checksum", pattern=r"^[0-9a-f]{64}\Z")]
Time = Annotated[
    str,
    allowed(
        "a time such as 2026-05-04T10:11:12+02:00",
        pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}",
    ),
]
OptionalText = str | None
OptionalNumber = Number | None
OptionalCount = Several | None


class Noise(TypedDict):
    """Activity on a node before, during and after a cell. Other users are counted, never named.

    Attributes:
        before: load (average of the last minute), clock_hz (lowest clock among the given CPUs, from
            cpufreq), clock_limit_hz (highest clock of that CPU that governor and firmware allow),
            running (number of other processes that run or are ready to run), users (number of other
            users who own these processes)
        during: null if the cell took less than 0.1 s. steal (share of the given CPUs' time that the
            hypervisor took), others (average number of CPUs that other programs kept busy), busy
            (number of other processes that used more than a tenth of a CPU), users (number of other
            users who own these processes), throttled_s (time for which the cgroup's CPU quota held
            the program back, in seconds), hot (how often CPUs slowed down because of heat), moved
            (counter of errors, drops or throttling -> its increase)
        after: as before
    """

    before: dict[str, OptionalNumber]
    during: dict[str, Number | dict[str, Count] | None] | None
    after: dict[str, OptionalNumber]


class MeasuredValue(TypedDict):
    """One measured value.

    Attributes:
        details: further output of the program, in SI base units. ``histogram`` is the number of
            operations by duration in ns, 128 buckets for each power of two; each run of consecutive
            buckets is the index of its first bucket, then the counts. ``retransmits`` are the TCP
            segments that the sender sent again, over all streams since they connected.
    """

    workload: Text
    variant: str
    block: OptionalCount
    concurrency: Several
    metric: Metric
    value: Annotated[float, allowed("1e-15 to 1e21 in SI units", ge=1e-15, le=1e21)]
    unit: Unit
    details: dict[str, Number | str | bool | list[Any] | dict[str, Any] | None]


class CommandRun(TypedDict):
    """One execution of a program."""

    argv: list[str]
    returncode: int
    seconds: float
    env: NotRequired[dict[str, Any]]


class ToolUsed(TypedDict):
    """The program that measured a cell."""

    name: str
    path: str
    version: str


class RecordContext(TypedDict):
    """Circumstances of a measurement, by which its value can be judged.

    Attributes:
        started: ISO 8601 with offset
        io_limits: highest rates that cgroups allow the job on the disk, in B/s and operations per
            second
        noise: other activity on the node; null if it cannot be read
        server_noise: other activity on the server's node; null if client and server share a node
        core_to_core_before: s of a cache line from the first CPU to the second before a reference, on a
            virtual machine; details of peakmark's kernels have their own
        core_to_core_after: the same after the reference
        wrong_core: failed attempts: the core that computed a wrong result, by its first CPU
    """

    host: Text
    started: Time
    seconds: Annotated[float, Meta(ge=0, le=1e9)]
    commands: list[CommandRun]
    tool: ToolUsed | None
    cpus: list[int]
    load_before: OptionalNumber
    load_after: OptionalNumber
    server_host: NotRequired[OptionalText]
    network: NotRequired[dict[str, Any] | None]
    job_id: NotRequired[OptionalText]
    library: NotRequired[dict[str, str | float | bool | None]]
    allowed: NotRequired[dict[str, Any] | None]
    placed: NotRequired[dict[str, Any] | None]
    clock_hz_before: NotRequired[OptionalNumber]
    clock_hz_after: NotRequired[OptionalNumber]
    scratch: NotRequired[OptionalText]
    io_limits: NotRequired[
        dict[Literal["read_bps", "write_bps", "read_iops", "write_iops"], Several] | None
    ]
    noise: NotRequired[Noise | None]
    server_noise: NotRequired[Noise | None]
    core_to_core_before: NotRequired[OptionalNumber]
    core_to_core_after: NotRequired[OptionalNumber]
    wrong_core: NotRequired[int]
    peakmark: NotRequired[str]


class DisturbedContext(TypedDict):
    """Keys of ``RecordContext`` that a disturbed attempt has instead of those of its record."""

    started: Time
    seconds: Annotated[float, Meta(ge=0, le=1e9)]
    load_before: OptionalNumber
    load_after: OptionalNumber
    clock_hz_before: OptionalNumber
    clock_hz_after: OptionalNumber
    noise: Noise | None
    server_noise: Noise | None


class DisturbedAttempt(TypedDict):
    """A disturbed measurement of a cell, which was then repeated.

    Attributes:
        reasons: code of the warning -> its value: number of CPUs, or share of the time or of the clock
    """

    reasons: dict[Literal["other-load", "steal", "waited", "clock-moved", "hot"], float]
    context: DisturbedContext
    measurements: list[MeasuredValue]


class Record(TypedDict):
    """Result of one cell, in SI base units. A record is written once and never changed.

    Attributes:
        disturbed: other measurements of the cell, which were more disturbed and do not count
        sha256: checksum of the file with an empty text in its place
        status: failed occurs only below attempts/, never as the output of a cell
        reason: why the cell is unavailable or failed, in one sentence
        raw: name of a file with raw output, in the folder of the record -> its SHA-256
    """

    schema: Literal[1]
    cell: CellKeys
    status: Literal["ok", "unavailable", "failed"]
    reason: OptionalText
    measurements: list[MeasuredValue]
    context: RecordContext
    warnings: list[str]
    raw: dict[str, Digest]
    disturbed: NotRequired[list[DisturbedAttempt]]
    sha256: NotRequired[Digest]


JobName = Annotated[
    str,
    allowed(
        "a name of letters, digits, dots, dashes, underscores and plus signs that begins with a "
        "letter or digit",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*\Z",
    ),
]


class PlannedCell(CellKeys, kw_only=True):
    """A cell of a plan, with the name of its job if the job measures several cells."""

    id: str = ""
    job: JobName = ""


class Reference(Struct, frozen=True):
    """A reference tool of the plan.

    Attributes:
        instrument: name of the tool in the registry.
        executable: name of its program.
        path: path of the program; None if it was not found, so that its column stays empty.
        reason: why the program was not found.
        package: Debian package of the tool.
    """

    instrument: str
    executable: str
    path: str | None
    reason: str | None
    package: str | None


class PlanFile(Struct, frozen=True, kw_only=True):
    """The plan of a campaign.

    Attributes:
        cluster: values of ``plan.cluster.Cluster``; None if one machine measures.
        left_out: subsystem -> why no cells of its grids are planned.
    """

    schema: Literal[1] = 1
    campaign: CampaignName
    cells: Annotated[list[PlannedCell], Meta(min_length=1)]
    config: Planned = Planned()
    references: list[Reference] = []
    cluster: dict[str, Any] | None = None
    left_out: dict[str, str] = {}
