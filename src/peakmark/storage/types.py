"""Types of the files that peakmark writes into a campaign: records, machine facts and plan.

``config.schemas`` generates JSON schemas from these types. The texts below ``Attributes`` become the
descriptions of the keys. All values are in SI base units: bytes, Hz, bit/s, B/s, seconds.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from msgspec import Meta

from peakmark.cell import CellKeys
from peakmark.config.types import CampaignName, Metric, Text, Unit
from peakmark.tools.common import HISTOGRAM
from peakmark.validation import allowed

# Sums, squares and ratios of numbers within these bounds stay finite.
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
    """State of a node at one moment.

    Attributes:
        load: load average of the last minute
        clock_hz: lowest clock among the given CPUs, from cpufreq
        clock_limit_hz: highest clock of that CPU that governor and firmware allow
        running: number of other processes that run or are ready to run
        users: number of other users who own these processes
    """

    load: OptionalNumber
    clock_hz: OptionalNumber
    clock_limit_hz: OptionalNumber
    running: Count
    users: Count


class Disturbance(TypedDict):
    """Other activity on a node while a cell was measured.

    Attributes:
        steal: share of the given CPUs' time that the hypervisor took
        others: average number of CPUs that other programs kept busy
        busy: number of other processes that used more than a tenth of a CPU
        users: number of other users who own these processes
        throttled_s: time for which the cgroup's CPU quota held the program back, in seconds
        hot: how often CPUs slowed down because of heat
        moved: counter of errors, drops or throttling -> its increase
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
    """Activity on a node before, during and after a cell. Other users are counted, never named.

    Attributes:
        during: null if the cell took less than 0.1 s
    """

    before: Moment
    during: Disturbance | None
    after: Moment


class Details(TypedDict, total=False):
    """Further output of the program. Only values that peakmark computes with have a type here.

    Attributes:
        histogram: number of operations by duration in ns, 128 buckets for each power of two. Each
            run of consecutive buckets is the index of its first bucket, then the counts.
        retransmits: TCP segments that the sender sent again, over all streams since they connected
        congestion_control: congestion control of the sender's TCP, as the kernel names it
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
    """An installed program that can measure."""

    path: str
    version: str


class ToolUsed(ToolFacts):
    """The program that measured a cell."""

    name: str


class Allowed(TypedDict):
    """CPUs and memory that the job of a cell could use.

    Attributes:
        memory_nodes: NUMA nodes whose memory the job could use, in the kernel's list format
        node_cores: number of cores of the whole node
    """

    cpus: list[int]
    cores: Several
    cpu_quota: OptionalNumber
    memory_bytes: OptionalInteger
    memory_limited_by: OptionalText
    memory_nodes: OptionalText
    node_cores: NotRequired[Several]


class Placed(TypedDict):
    """CPUs that the threads of a cell used, and the caches that these CPUs reach.

    Attributes:
        word: concurrency in the configuration, if it was a word such as cores
        cpus: CPUs in the order in which threads take them
        last_level_bytes: total size of the last-level caches of these CPUs
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
    """Lanes and speed of a PCI Express link: the negotiated values and the highest possible ones."""

    current_width: Several
    max_width: Several
    current_speed: Text
    max_speed: Text


class NetworkFacts(TypedDict, total=False):
    """A network interface of a node.

    Attributes:
        mode: mode of a bond
        stream_bps: rate that one stream can reach on a bond, in bit/s
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
    """Network interface and link over which a two-node cell was measured."""

    interface: OptionalText
    loopback: NotRequired[OptionalBool]
    shaping: NotRequired[OptionalText]
    link: NotRequired[NetworkFacts | None]


class RecordContext(TypedDict):
    """Circumstances of a measurement, by which its value can be judged.

    Attributes:
        started: ISO 8601 with offset
        io_limits: highest rates that cgroups allow the job on the disk, in B/s and operations per
            second
        noise: other activity on the node; null if it cannot be read
        server_noise: other activity on the server's node; null if client and server share a node
        dram_compared: B/s with which the rate of DRAM was compared: the median over earlier reads
            with the same number of threads in this campaign
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
        reasons: code of the warning -> its value: number of CPUs, or share of the time, of the clock
            or of the rate of DRAM
    """

    reasons: dict[
        Literal["other-load", "steal", "waited", "clock-moved", "hot", "memory-load"], float
    ]
    context: DisturbedContext
    measurements: list[MeasuredValue]


class Record(TypedDict):
    """Result of one cell, in SI base units. A record is written once and never changed.

    Attributes:
        disturbed: other measurements of the cell, which were more disturbed and do not count
        sha256: checksum of all other keys
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


class Clocks(TypedDict, total=False):
    """Clocks of a processor in Hz."""

    nominal: OptionalPositive
    maximum: OptionalPositive
    observed: OptionalPositive


class ClockSources(TypedDict, total=False):
    """Source of each clock of a processor."""

    nominal: OptionalText
    maximum: OptionalText
    observed: OptionalText


class CacheFacts(TypedDict):
    """A cache of a processor.

    Attributes:
        shared_by: number of hardware threads that share one such cache
    """

    level: Several
    type: Literal["data", "instruction", "unified"]
    size: Several
    shared_by: Count
    count: Several


class NumaNode(TypedDict, total=False):
    """A NUMA node.

    Attributes:
        cpus: its CPUs in the kernel's list format; empty for a node without CPUs
        memory: its memory in bytes
        distances: distances to all NUMA nodes, in the order of the nodes
    """

    node: Count
    cpus: str
    memory: OptionalInteger
    distances: list[int]


class CoreKind(TypedDict, total=False):
    """Cores of one kind, on a processor with several kinds.

    Attributes:
        name: number and name of the cores, such as 4 x Cortex-A73
        cpus: their CPUs in the kernel's list format
        maximum: highest clock in Hz
    """

    name: str
    cpus: str
    maximum: OptionalPositive


class CpuFacts(TypedDict, total=False):
    """The processors of a node.

    Attributes:
        family: CPU family; on Arm the implementer code
        model: model number; on Arm the part number
        microarchitecture: name as in data/operations.csv; null if the table lacks the processor
        cores: physical cores of the machine
        threads: hardware threads of the machine
        virtualised: hypervisor, or null on bare metal
        smt: whether cores run more than one hardware thread
        idle_states: idle states that are enabled
        energy: domains whose energy counters a user can read, such as package-0, dram
        kinds: kinds of cores, if there are several
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
    """Huge pages of a node: their size in bytes, and how many exist and are free."""

    size: OptionalInteger
    total: OptionalInteger
    free: OptionalInteger


class MemoryFacts(TypedDict, total=False):
    """The memory of a node.

    Attributes:
        speed_mts: million transfers per second
        channels: number of channels of the whole node that hold a module
        bytes_per_transfer: width of a channel in bytes; null if it follows from neither firmware nor
            memory type
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
    """The disk that holds a folder of a node.

    Attributes:
        rotational: whether the disk rotates; null for virtual disks, which report it unreliably
        interface: nvme, sata, sas, usb, virtio, xen, loop, ram or network
        interface_limit: highest rate of the link in B/s; the medium may be slower
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
    """CPUs and memory that Slurm granted a job."""

    cpus_on_node: OptionalInteger
    cpus_per_task: OptionalInteger
    memory_per_node_bytes: OptionalInteger
    memory_per_cpu_bytes: OptionalInteger


class LimitFacts(TypedDict, total=False):
    """CPUs and memory of a node that a process may use.

    Attributes:
        cpus_allowed: CPUs, first one of each physical core, then the others
        cpu_quota: number of CPUs whose time a cgroup grants
        memory_bytes: memory that the cgroup or Slurm grants, else all memory of the node
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
    """How peakmark's kernels were compiled.

    Attributes:
        left_out: instruction set that the toolchain could not compile -> its error message
        io_uring: whether diskbench was compiled with liburing
    """

    compiler: OptionalText
    flags: OptionalText
    isa_flags: dict[str, str] | None
    io_uring: OptionalBool
    left_out: dict[str, str] | None


class BlasFacts(TypedDict, total=False):
    """The BLAS that HPL is linked with or, without HPL, the system's default BLAS.

    Attributes:
        core_type: type of core whose kernels the BLAS selected
        config: version and configuration as the BLAS reports them
    """

    library: OptionalText
    name: OptionalText
    core_type: OptionalText
    config: OptionalText


class GpuModel(TypedDict, total=False):
    """Facts of one GPU, or of all GPUs of a node; null: unknown, or not the same for all.

    Attributes:
        clock_hz: highest clock of the SMs
        generation: highest generation of PCI Express that GPU and slot support
        pcie: PCI Express link of the GPU; for a node, its narrowest link
    """

    name: OptionalText
    compute: OptionalText
    sms: OptionalCount
    clock_hz: OptionalPositive
    memory_clock_hz: OptionalPositive
    bus_bits: OptionalCount
    l2_bytes: OptionalCount
    memory_bytes: OptionalCount
    ecc: OptionalBool
    vbios: OptionalText
    power_cap_watts: OptionalCount
    generation: OptionalCount
    pcie: PcieLink | None


class Gpu(GpuModel, total=False):
    """A GPU of a node.

    Attributes:
        mig: whether the GPU is divided into instances, which are not measured
        width: number of lanes of the PCI Express link
        nvlinks: number of NVLinks to each GPU of the node, in the order of ``gpus``
    """

    index: Count
    pci: Text
    numa_node: OptionalInteger
    mig: bool
    width: OptionalCount
    nvlinks: list[int | None]


class GpuFacts(GpuModel, total=False):
    """The GPUs of a node.

    Attributes:
        driver: version of the driver
        partitioned: whether a GPU is divided into instances (MIG)
    """

    driver: OptionalText
    count: Several
    partitioned: bool
    gpus: list[Gpu]


class Facts(TypedDict, total=False):
    """Facts of a node that an ordinary user can read, in bytes, Hz, bit/s and B/s. null: not
    readable, see unknown.

    Attributes:
        collected: time at which the facts were read, ISO 8601 with offset
        libraries: name of a shared library that can affect results -> its file
        gpu: facts of GPUs, if the node has any
        unknown: dotted name of an unknown fact -> how to supply it
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
    gpu: GpuFacts


JobName = Annotated[
    str,
    allowed(
        "a name of letters, digits, dots, dashes, underscores and plus signs that begins with a "
        "letter or digit",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*\Z",
    ),
]


class PlannedCell(CellKeys):
    """A cell of a plan, with the name of its job if the job measures several cells."""

    id: NotRequired[str]
    job: NotRequired[JobName]


class JobConfig(TypedDict, total=False):
    """Part of the configuration that a job reads."""

    tools: dict[str, Any]
    modules: dict[str, list[str]]


class PlanFile(TypedDict):
    """The plan of a campaign. ``config`` was checked before the plan was written."""

    schema: NotRequired[Literal[1]]
    campaign: CampaignName
    cells: Annotated[list[PlannedCell], Meta(min_length=1)]
    config: NotRequired[JobConfig | None]
    references: NotRequired[list[dict[str, Any]] | None]
    cluster: NotRequired[dict[str, Any] | None]
    left_out: NotRequired[dict[str, str]]
