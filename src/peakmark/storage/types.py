"""What a campaign's own files hold, as types: records, machine facts and plan.

``config.schemas`` makes JSON schemas of them, with the texts below ``Attributes`` as descriptions
of the keys. SI base units: bytes, Hz, bit/s, B/s, seconds.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from msgspec import Meta

from peakmark.cell import CellKeys
from peakmark.config.types import CampaignName, Metric, Text, Unit
from peakmark.tools.common import HISTOGRAM
from peakmark.validation import allowed

# What is computed from numbers between these bounds stays finite.
Integer = Annotated[int, Meta(ge=-(1 << 62), le=1 << 62)]
Count = Annotated[int, Meta(ge=0, le=1 << 62)]
Several = Annotated[int, Meta(ge=1, le=1 << 62)]
Number = Annotated[float, Meta(ge=-1e30, le=1e30)]
Amount = Annotated[float, Meta(ge=0, le=1e30)]
Positive = Annotated[float, Meta(ge=1e-99, le=1e30)]
Digest = Annotated[str, allowed("a SHA-256 checksum", pattern=r"^[0-9a-f]{64}\Z")]
Time = Annotated[
    str,
    allowed(
        "a time such as 2026-05-04T10:11:12+02:00",
        pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}",
    ),
]
OptionalText = str | None
OptionalBool = bool | None
OptionalInteger = Integer | None
OptionalNumber = Number | None
OptionalCount = Several | None
OptionalAmount = Amount | None
OptionalPositive = Positive | None
OptionalList = list[str] | None


class Moment(TypedDict):
    """A node at one moment.

    Attributes:
        load: average of the last minute
        clock_hz: slowest of the given CPUs, by cpufreq
        clock_limit_hz: what governor and firmware allow it at most
        celsius: hottest sensor of the processor
        running: other processes that run or are ready to
        users: other users they belong to
    """

    load: OptionalNumber
    clock_hz: OptionalNumber
    clock_limit_hz: OptionalNumber
    celsius: OptionalNumber
    running: Count
    users: Count


class Disturbance(TypedDict):
    """What else went on while a cell was measured.

    Attributes:
        steal: share of the given CPUs' time that the hypervisor took
        others: CPUs' worth of time that other programs used
        busy: other processes that used more than a tenth of a CPU
        users: other users they belong to
        throttled_s: held back by the cgroup's CPU quota, s
        hot: times that CPUs slowed down because of heat
        moved: device and counter of the kernel -> what it went on by; of errors, drops and throttling
    """

    seconds: Positive
    steal: OptionalAmount
    others: Amount
    busy: Count
    users: Count
    throttled_s: OptionalNumber
    hot: OptionalNumber
    moved: NotRequired[dict[str, Count]]


class Noise(TypedDict):
    """A node before, during and after a cell; others are counted, never named.

    Attributes:
        during: null for less than 0.1 s
    """

    before: Moment
    during: Disturbance | None
    after: Moment


class Details(TypedDict, total=False):
    """What else the program said; here are the values that are computed with.

    Attributes:
        histogram: operations by time, 128 buckets for each power of two, in ns: runs of buckets
            with the index of the first one, then the counts
        retransmits: TCP segments sent again by the sender, of all streams since they were connected
        congestion_control: of the sender's TCP, as the kernel names it
    """

    clock_hz_before: OptionalAmount
    clock_hz_after: OptionalAmount
    clock_hz_loaded: OptionalAmount
    seconds: OptionalAmount
    work: OptionalAmount
    held_up: OptionalAmount
    cpu_share: OptionalAmount
    residual: OptionalAmount
    loss: OptionalAmount
    lost: OptionalAmount
    packets: OptionalAmount
    round_trips: OptionalAmount
    device_bytes: OptionalAmount
    flush_seconds: OptionalAmount
    huge_pages: OptionalAmount
    resolution: OptionalAmount
    working_set_bytes: OptionalAmount
    pool: OptionalAmount
    p50: OptionalAmount
    p90: OptionalAmount
    p99: OptionalAmount
    p999: OptionalAmount
    max: OptionalAmount
    histogram: Annotated[str, allowed("counts in buckets", pattern=HISTOGRAM)]
    min: OptionalAmount
    sent: OptionalAmount
    retransmits: OptionalAmount
    congestion_control: OptionalText
    joules: OptionalAmount
    watts: OptionalAmount
    isa: OptionalText
    store: OptionalText
    instruction: OptionalText
    filesystem: OptionalText
    device: OptionalText
    formula: OptionalText
    sync: OptionalText
    fill: OptionalText
    points: list[list[float]]
    order: list[int] | None
    energy_of: OptionalText


class MeasuredValue(TypedDict):
    """One measured value."""

    workload: Text
    variant: str
    block: OptionalCount
    concurrency: Several
    metric: Metric
    value: Annotated[float, allowed("1e-15 to 1e21 in SI units", ge=1e-15, le=1e21)]
    unit: Unit
    details: Details


class CommandRun(TypedDict):
    """One execution of a program."""

    argv: list[str]
    returncode: int
    seconds: float
    env: NotRequired[dict[str, Any]]


class ToolFacts(TypedDict):
    """A program that measures."""

    path: str
    version: str


class ToolUsed(ToolFacts):
    """The program that measured."""

    name: str


class Allowed(TypedDict):
    """What the job of a cell could use.

    Attributes:
        memory_nodes: NUMA nodes, in the kernel's list format
        node_cores: cores of the whole node
    """

    cpus: list[int]
    cores: Several
    cpu_quota: OptionalNumber
    memory_bytes: OptionalInteger
    memory_limited_by: OptionalText
    memory_nodes: OptionalText
    node_cores: NotRequired[Several]


class Placed(TypedDict):
    """What of it the threads of a cell took and can reach.

    Attributes:
        word: concurrency as it was asked for, where that was a word
        cpus: in the order in which threads take them
        last_level_bytes: of all last-level caches these CPUs share
    """

    word: OptionalText
    threads: Several
    placement: Literal["compact", "spread"]
    cpus: list[int]
    cores: Several
    sockets: Several
    numa_nodes: list[int]
    last_level_bytes: Count


class PcieLink(TypedDict):
    """Lanes of a PCI Express link and their speed, as negotiated and at most."""

    current_width: Several
    max_width: Several
    current_speed: Text
    max_speed: Text


class NetworkFacts(TypedDict, total=False):
    """A network interface of a node.

    Attributes:
        mode: of a bond
        stream_bps: of a bond: what one stream can have
    """

    interface: OptionalText
    kind: Literal["loopback", "ethernet", "infiniband", "bond", "virtual"] | None
    driver: OptionalText
    speed_bps: OptionalPositive
    speed_note: OptionalText
    mtu: OptionalCount
    members: OptionalList
    loopback: OptionalBool
    mode: OptionalText
    stream_bps: OptionalPositive
    pcie: PcieLink | None


class Connection(TypedDict):
    """What a cell of two nodes was measured over."""

    interface: OptionalText
    loopback: NotRequired[OptionalBool]
    shaping: NotRequired[OptionalText]
    link: NotRequired[NetworkFacts | None]


class RecordContext(TypedDict):
    """What is needed to trust a measurement.

    Attributes:
        started: ISO 8601 with offset
        io_limits: what cgroups let the job move on the disk at most: B/s and 1/s
        noise: what else went on on the node; null where it cannot be read
        server_noise: the same of the server's node; null where it is the same node
        dram_compared: B/s that DRAM was held against: the median at which as many threads have read
            it in this campaign by then
        wrong_core: of a failed attempt: core, by its first CPU, that gave a wrong result
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
    network: NotRequired[Connection | None]
    job_id: NotRequired[OptionalText]
    library: NotRequired[dict[str, str | float | bool | None]]
    allowed: NotRequired[Allowed | None]
    placed: NotRequired[Placed | None]
    clock_hz_before: NotRequired[OptionalNumber]
    clock_hz_after: NotRequired[OptionalNumber]
    scratch: NotRequired[OptionalText]
    io_limits: NotRequired[
        dict[Literal["read_bps", "write_bps", "read_iops", "write_iops"], Several] | None
    ]
    noise: NotRequired[Noise | None]
    server_noise: NotRequired[Noise | None]
    dram_compared: NotRequired[float]
    wrong_core: NotRequired[int]
    peakmark: NotRequired[str]


class DisturbedContext(TypedDict):
    """What the context of a disturbed attempt has of its own, as ``RecordContext``."""

    started: Time
    seconds: Annotated[float, Meta(ge=0, le=1e9)]
    load_before: OptionalNumber
    load_after: OptionalNumber
    clock_hz_before: OptionalNumber
    clock_hz_after: OptionalNumber
    noise: Noise | None
    server_noise: Noise | None


class DisturbedAttempt(TypedDict):
    """A measurement of the cell that was disturbed and made again.

    Attributes:
        reasons: code of the warning -> CPUs' worth of time, share of that time, of the clock or of
            the rate of DRAM
    """

    reasons: dict[
        Literal["other-load", "steal", "waited", "clock-moved", "hot", "memory-load"], float
    ]
    context: DisturbedContext
    measurements: list[MeasuredValue]


class Record(TypedDict):
    """All that one cell left behind. SI base units. Written once, never changed.

    Attributes:
        disturbed: earlier or later measurements that do not count, as this one was less disturbed
        sha256: of all else here
        status: failed only in attempts/, never as a cell's output
        reason: why unavailable or failed, in one sentence
        raw: file name beside the record -> its SHA-256
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


class Clocks(TypedDict, total=False):
    """Clocks of a processor, Hz."""

    nominal: OptionalPositive
    maximum: OptionalPositive
    observed: OptionalPositive


class ClockSources(TypedDict, total=False):
    """Where the clocks are from."""

    nominal: OptionalText
    maximum: OptionalText
    observed: OptionalText


class CacheFacts(TypedDict):
    """A cache of a processor.

    Attributes:
        shared_by: hardware threads that share one
    """

    level: Several
    type: Literal["data", "instruction", "unified"]
    size: Several
    shared_by: Count
    count: Several


class NumaNode(TypedDict, total=False):
    """A NUMA node.

    Attributes:
        cpus: in the kernel's list format; empty for memory alone
        memory: bytes
        distances: to all nodes in their order
    """

    node: Count
    cpus: str
    memory: OptionalInteger
    distances: list[int]


class CoreKind(TypedDict, total=False):
    """Cores of one kind among several.

    Attributes:
        name: with their number, as 4 x Cortex-A73
        cpus: in the kernel's list format
        maximum: highest clock, Hz
    """

    name: str
    cpus: str
    maximum: OptionalPositive


class CpuFacts(TypedDict, total=False):
    """The processors of a node.

    Attributes:
        family: on Arm the implementer code
        model: on Arm the part number
        microarchitecture: as in data/operations.csv; null for a processor that is not in the table
        cores: physical cores of the machine
        threads: hardware threads of the machine
        virtualised: hypervisor, or null on bare metal
        smt: cores run more than one hardware thread
        idle_states: that are not disabled
        energy: whose energy a user can read, as package-0, dram
        kinds: only where the cores are of several kinds
    """

    vendor: OptionalText
    model_name: OptionalText
    family: OptionalInteger
    model: OptionalInteger
    stepping: OptionalInteger
    microarchitecture: OptionalText
    sockets: Several
    cores: Several
    threads: Several
    clock_hz: Clocks
    clock_source: ClockSources
    isa: list[str]
    isa_best: Literal["scalar", "sse2", "avx2", "avx512", "neon"]
    caches: list[CacheFacts]
    numa_nodes: Several
    virtualised: OptionalText
    governor: OptionalText
    turbo: OptionalBool
    microcode: OptionalText
    mitigations: dict[str, str]
    numa: list[NumaNode]
    smt: OptionalBool
    idle_states: OptionalList
    energy: OptionalText
    kinds: list[CoreKind]


class HugePages(TypedDict, total=False):
    """Huge pages of a node, by their size in bytes."""

    size: OptionalInteger
    total: OptionalInteger
    free: OptionalInteger


class MemoryFacts(TypedDict, total=False):
    """The memory of a node.

    Attributes:
        speed_mts: million transfers per second
        channels: channels of the whole node that hold a module
        bytes_per_transfer: width of a channel; null where neither firmware nor type tells it
    """

    total: OptionalCount
    available: OptionalInteger
    type: OptionalText
    speed_mts: OptionalPositive
    channels: OptionalCount
    channels_source: OptionalText
    bytes_per_transfer: OptionalPositive
    modules: OptionalCount
    huge_pages: HugePages
    transparent_huge_pages: OptionalText
    transparent_huge_pages_defrag: OptionalText
    swap_total: OptionalInteger


class SystemFacts(TypedDict, total=False):
    """The operating system of a node.

    Attributes:
        numa_balancing: kernel.numa_balancing
        command_line: kernel parameters that change what is measured
        firmware: maker, version and date of the BIOS
    """

    kernel: OptionalText
    architecture: OptionalText
    distribution: OptionalText
    glibc: OptionalText
    io_uring_disabled: OptionalInteger
    numa_balancing: OptionalInteger
    command_line: OptionalText
    firmware: OptionalText


class StorageFacts(TypedDict, total=False):
    """The disk below a folder of a node.

    Attributes:
        rotational: null for virtual disks, which claim anything
        interface: nvme sata sas usb virtio xen loop ram network
        interface_limit: B/s the link carries: a limit of the link, not of the medium
    """

    scratch: str
    filesystem: OptionalText
    mount_point: OptionalText
    mount_options: OptionalText
    device: OptionalText
    members: OptionalList
    model: OptionalText
    rotational: OptionalBool
    interface: OptionalText
    interface_limit: OptionalPositive
    interface_limit_formula: OptionalText
    logical_block_size: OptionalCount
    physical_block_size: OptionalCount
    scheduler: OptionalText
    write_cache: OptionalText
    size: OptionalInteger
    free: OptionalInteger
    pcie: PcieLink | None


class SlurmLimits(TypedDict, total=False):
    """What Slurm granted a job."""

    cpus_on_node: OptionalInteger
    cpus_per_task: OptionalInteger
    memory_per_node_bytes: OptionalInteger
    memory_per_cpu_bytes: OptionalInteger


class LimitFacts(TypedDict, total=False):
    """What a process may use of a node.

    Attributes:
        cpus_allowed: one CPU of each physical core first
        cpu_quota: CPUs' worth of time a cgroup grants
        memory_bytes: what the cgroup or Slurm grants, else all
    """

    cpus_allowed: Annotated[list[Count], Meta(min_length=1)]
    physical_cores_allowed: Several
    cpu_quota: OptionalPositive
    memory_bytes: OptionalCount
    memory_limited_by: OptionalText
    slurm: SlurmLimits | None


class SlurmFacts(TypedDict, total=False):
    """The Slurm that a node belongs to."""

    version: OptionalText
    job_id: OptionalText
    partition: OptionalText
    node: OptionalText


class BuildFacts(TypedDict, total=False):
    """How the own kernels were compiled.

    Attributes:
        left_out: instruction sets that the toolchain could not make, with what it said
        io_uring: whether diskbench was compiled with liburing
    """

    compiler: OptionalText
    flags: OptionalText
    isa_flags: dict[str, str] | None
    io_uring: OptionalBool
    left_out: dict[str, str] | None


class BlasFacts(TypedDict, total=False):
    """The BLAS of HPL, else the one that programs get.

    Attributes:
        core_type: kind of core whose kernels it has chosen
        config: version and configuration in its own words
    """

    library: OptionalText
    name: OptionalText
    core_type: OptionalText
    config: OptionalText


class Facts(TypedDict, total=False):
    """What a node is, as an ordinary user can read it. Bytes, Hz, bit/s, B/s. null: not readable,
    see unknown.

    Attributes:
        collected: ISO 8601 with offset
        libraries: shared libraries of the tools that results can depend on: name -> file
        unknown: dotted name of a fact -> how to supply it
    """

    schema: Literal[1]
    host: Text
    collected: str
    cpu: CpuFacts
    memory: MemoryFacts
    os: SystemFacts
    storage: StorageFacts
    network: NetworkFacts
    limits: LimitFacts
    tools: dict[str, ToolFacts]
    slurm: SlurmFacts | None
    unknown: dict[str, str]
    build: BuildFacts
    blas: BlasFacts
    libraries: dict[str, str]


JobName = Annotated[
    str,
    allowed(
        "a name of letters, digits, dots, dashes, underscores and plus signs that begins with a "
        "letter or digit",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*\Z",
    ),
]


class PlannedCell(CellKeys):
    """A cell of a plan, and the job that measures it together with others."""

    id: NotRequired[str]
    job: NotRequired[JobName]


class JobConfig(TypedDict, total=False):
    """What a job reads of the configuration."""

    tools: dict[str, Any]
    modules: dict[str, list[str]]


class PlanFile(TypedDict):
    """What a campaign consists of; ``config`` is checked before a plan is written."""

    schema: NotRequired[Literal[1]]
    campaign: CampaignName
    cells: Annotated[list[PlannedCell], Meta(min_length=1)]
    config: NotRequired[JobConfig | None]
    references: NotRequired[list[dict[str, Any]] | None]
    cluster: NotRequired[dict[str, Any] | None]
