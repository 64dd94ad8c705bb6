"""Types of the files that peakmark writes into a campaign: records and plan.

``dev/schemas.py`` generates JSON schemas from these types. The texts below ``Attributes`` become the
descriptions of the keys. All values are in SI base units: bytes, Hz, bit/s, B/s, seconds.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from peakmark.cell import CellKeys
from peakmark.config.types import CampaignName, Planned, Text
from peakmark.storage.activity import Activity, Noise
from peakmark.tools.base import Measurement, Number, Several, Tool, Whole
from peakmark.validation import allowed

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


class CommandRun(Struct, omit_defaults=True):
    """One execution of a program."""

    argv: tuple[str, ...]
    returncode: int
    seconds: float
    env: dict[str, str] = {}


class Allowed(Struct, frozen=True):
    """The CPUs and the memory that the job may use, and the cores of the whole node."""

    cores: int | None
    cpu_quota: OptionalNumber
    cpus: tuple[int, ...]
    memory_bytes: int | None
    memory_limited_by: str | None
    node_cores: int | None


class Placed(Struct, frozen=True):
    """The CPUs that the threads of a cell use, with their cores, sockets, NUMA nodes and caches.

    Attributes:
        word: word of the configuration that stood for the number of threads.
        numa_nodes: numbers that name the NUMA nodes.
        last_level_bytes: last-level caches together, in bytes.
    """

    word: str | None
    threads: int
    placement: str
    cpus: tuple[int, ...]
    cores: int
    sockets: int
    numa_nodes: tuple[int, ...]
    last_level_bytes: int


class NetworkUsed(Struct):
    """The interface through which a network cell reached its server.

    Attributes:
        link: facts of the interface; null for loopback.
    """

    interface: str
    loopback: bool
    address: str
    server_interface: str
    shaping: str | None
    link: dict[str, Any] | None


class DisturbedContext(Struct, kw_only=True, omit_defaults=True):
    """Circumstances of a disturbed attempt that differ from those of the record which holds it.

    Attributes:
        started: ISO 8601 with offset
        noise: other activity on the node; null if it cannot be read
        server_noise: other activity on the server's node; null if client and server share a node
    """

    started: Time
    seconds: Annotated[float, Meta(ge=0, le=1e9)]
    clock_hz_before: OptionalNumber = None
    clock_hz_after: OptionalNumber = None
    noise: Noise | None = None
    server_noise: Noise | None = None


class RecordContext(DisturbedContext, kw_only=True, omit_defaults=True):
    """Circumstances of a measurement, by which its value can be judged.

    Attributes:
        io_limits: highest rates that cgroups allow the job on the disk, in B/s and operations per
            second
        core_to_core_before: on a virtual machine, seconds that a cache line takes from the first
            CPU to the second before a reference tool runs; peakmark's kernels have this time in
            their details
        core_to_core_after: the same time after the reference tool has run
        wrong_core: failed attempts: first CPU of the core that computed a wrong result
        job_log: failed attempts: path of the log of the job that Slurm ended
    """

    host: Text
    commands: tuple[CommandRun, ...] = ()
    tool: Tool | None = None
    cpus: tuple[int, ...] = ()
    server_host: OptionalText = None
    network: NetworkUsed | None = None
    job_id: OptionalText = None
    library: dict[str, str | Whole | float | bool | None] = {}
    allowed: Allowed | None = None
    placed: Placed | None = None
    scratch: OptionalText = None
    io_limits: dict[str, Several] | None = None
    core_to_core_before: OptionalNumber = None
    core_to_core_after: OptionalNumber = None
    wrong_core: int | None = None
    job_log: OptionalText = None
    peakmark: str = "unknown"

    @property
    def activity(self) -> tuple[Activity | None, Activity | None]:
        """Return the activity during the cell on its node, and on the server's node."""
        on_node = self.noise.during if self.noise else None
        on_server = self.server_noise.during if self.server_noise else None
        return on_node, on_server

    @property
    def is_crowded(self) -> bool:
        """Return whether the cell has more threads than the CPUs whose time it may use."""
        if self.placed is None:
            return False
        cpus: float = len(self.placed.cpus)
        if self.allowed and self.allowed.cpu_quota:
            cpus = min(cpus, self.allowed.cpu_quota)
        return self.placed.threads > cpus


class DisturbedAttempt(Struct):
    """A disturbed measurement of a cell, which was then repeated.

    Attributes:
        reasons: code of the warning -> its value: number of CPUs, or share of the time or of the clock
    """

    reasons: dict[str, float]
    context: DisturbedContext
    measurements: tuple[Measurement, ...]


class Record(Struct, kw_only=True):
    """Result of one cell, in SI base units. A record is written once and never changed.

    Attributes:
        disturbed: other measurements of the cell, which were more disturbed and do not count
        sha256: checksum of the file with an empty text in its place
        status: failed occurs only below attempts/, never as the output of a cell
        reason: why the cell is unavailable or failed, in one sentence
        raw: name of a file with raw output, in the folder of the record -> its SHA-256
    """

    schema: Literal[1] = 1
    cell: CellKeys
    status: Literal["ok", "unavailable", "failed"]
    reason: OptionalText
    measurements: tuple[Measurement, ...] = ()
    context: RecordContext
    warnings: tuple[str, ...] = ()
    raw: dict[str, Digest] = {}
    disturbed: tuple[DisturbedAttempt, ...] = ()
    sha256: str = ""


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
