"""Types of the files that users write: campaign and site files.

``dev/schemas.py`` generates JSON schemas from these types. The texts below ``Attributes`` become the
descriptions of the keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta, field

from peakmark import promises
from peakmark.catalogue import AUTO, SUBSYSTEMS, WORKLOADS
from peakmark.tools import REFERENCES
from peakmark.validation import UNIQUE, Keys, allowed

CampaignName = Annotated[
    str,
    allowed(
        "a name of at most 64 letters, digits, dots, dashes and underscores that begins with a "
        "letter or digit",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z",
    ),
]
NodeName = Annotated[
    str,
    allowed(
        "the name of a node: letters, digits, dots, dashes and underscores",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*\Z",
    ),
]
InterfaceName = Annotated[
    str,
    allowed(
        "the name of a network interface, such as ib0",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._:@-]{0,31}\Z",
    ),
]
ModuleName = Annotated[
    str,
    allowed(
        "the name of an environment module, such as hpl/2.3",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._/+@~=-]*\Z",
    ),
]
Text = Annotated[str, Meta(min_length=1)]
Words = Annotated[list[str], UNIQUE]
Positive = Annotated[float, Meta(gt=0)]
Seconds = Annotated[float, Meta(gt=0, le=86400)]
WarmUp = Annotated[float, Meta(ge=0, le=3600)]
Size = Annotated[str | int, allowed("a size such as 64KiB, 1MiB or 4096")]
Sizes = Annotated[list[Size], UNIQUE]
Duration = Annotated[str | float, allowed("a time such as 90 s, 30 min or 2 h")]
OptionalSize = Annotated[str | int | None, allowed("a size such as 64KiB, 1MiB or 4096")]
Total = Annotated[str | float | None, allowed("an amount such as 1e12 or 100GiB")]
Count = Annotated[int, Meta(ge=1, le=4096)]
_COUNT = "a whole number from 1 to 4096"
_WORDS = "one of the words numa, socket, cores, cpus"
Number = Annotated[int, allowed(_COUNT, ge=1, le=4096)]
Pinned = Annotated[
    Count | Literal["numa", "socket", "cores", "cpus"], allowed(f"{_COUNT}, or {_WORDS}")
]
Gpus = Annotated[Count | Literal["gpus"], allowed(f"{_COUNT}, or the word gpus")]
Concurrency = Annotated[
    Count | Literal["numa", "socket", "cores", "cpus", "gpus"],
    allowed(f"{_COUNT}, or {_WORDS}, gpus"),
]
NodeCount = Annotated[int, Meta(ge=1, le=100000)] | Literal["all"]
InstructionSet = Literal["auto", "scalar", "sse2", "avx2", "avx512", "neon"]
ReferenceTool = Literal[REFERENCES]  # type: ignore[valid-type] # a type for each module in tools/programs
_CPU, _MEMORY, _DISK, _NETWORK, _MPI, _GPU = WORKLOADS.values()
CpuWorkloads = Annotated[list[Literal[_CPU]], UNIQUE]  # type: ignore[valid-type]
MemoryWorkloads = Annotated[list[Literal[_MEMORY]], UNIQUE]  # type: ignore[valid-type]
DiskWorkloads = Annotated[list[Literal[_DISK]], UNIQUE]  # type: ignore[valid-type]
NetworkWorkloads = Annotated[list[Literal[_NETWORK]], UNIQUE]  # type: ignore[valid-type]
MpiWorkloads = Annotated[list[Literal[_MPI]], UNIQUE]  # type: ignore[valid-type]
GpuWorkloads = Annotated[list[Literal[_GPU]], UNIQUE]  # type: ignore[valid-type]
Subsystem = Literal["cpu", "memory", "disk", "network", "mpi", "gpu"]


def _variant(subsystem: str) -> Meta:
    """Return which variants a grid of the subsystem may set: a pattern, and words for messages."""
    pattern, words = SUBSYSTEMS[subsystem].allowed
    return allowed(words, pattern=rf"^(?:{pattern})\Z")


class Sample(Keys, frozen=True):
    """Some nodes of a partition.

    Attributes:
        sample: Number of nodes. The seed decides which.
    """

    sample: Annotated[int, Meta(ge=1, le=100000)]


class Batch(Keys, frozen=True):
    """Jobs that measure several cells each.

    Attributes:
        batch: Number of cells in a job.
    """

    batch: Annotated[int, Meta(ge=1, le=100000)]


class Rounds(Keys, frozen=True):
    """Rounds in which pairs of nodes are measured.

    Attributes:
        rounds: Number of rounds. In each round every node is in one pair. The seed chooses the
            pairs; no pair is measured twice.
    """

    rounds: Annotated[int, Meta(ge=1, le=100000)]


Repetitions = Annotated[int, allowed("a whole number from 1 to 1000", ge=1, le=1000)]


class ReferenceGrid(Keys, frozen=True, omit_defaults=True):
    """Changes to a grid for one reference tool. Keys that are left out are those of the grid.

    Attributes:
        size: disk tools: total size of all files.
        budget_s: hpl: wall time in seconds for which the problem size is chosen.
        nb: hpl: block size NB.
        nodes: hpl: numbers of nodes, such as [1, 2, 4, all], that solve one system together on all
            their cores: the first nodes of each class of equal nodes.
        memory: hpl: with nodes, share of their memory that the matrix takes, 0.8 for example.
            Without budget_s it alone decides the problem size.
        ranks: hpl: with nodes, one process for each socket (default) or core. With socket, the BLAS
            of a process runs a thread on each core of its socket.
        ops: iozone: report operations per second (IOPS and latency).
        count: ping: number of packets; osu, imb and perftest: number of messages or windows of each
            size.
    """

    workloads: Words | None = None
    concurrency: Annotated[list[Concurrency], UNIQUE] | None = None
    blocks: Sizes | None = None
    variants: Words | None = None
    repetitions: Repetitions | None = None
    seconds: Seconds | None = None
    size: OptionalSize = None
    budget_s: Positive | None = None
    nb: Annotated[int, Meta(ge=16, le=1024)] | None = None
    nodes: Annotated[
        Annotated[list[NodeCount], UNIQUE] | None,
        allowed("numbers of nodes, such as [1, 2, 4, all]"),
    ] = None
    memory: Annotated[
        Annotated[float, Meta(gt=0, le=0.95)] | None,
        allowed("a share of the memory, above 0 and at most 0.95"),
    ] = None
    ranks: Literal["socket", "core"] | None = None
    ops: bool | None = None
    count: Annotated[int, Meta(ge=1, le=1000000)] | None = None


class AnyGrid(Keys, frozen=True, kw_only=True, omit_defaults=True):
    """Workloads of a subsystem, measured at all combinations of the other keys.

    Attributes:
        workloads: Workloads, in the order of the table.
        concurrency: Threads, processes or streams, as numbers. For cpu and memory also words: numa
            and socket (the cores of one NUMA node, of one socket), cores (all), cpus (all hardware
            threads). For gpu the number of GPUs, or gpus (all). The node that measures decides what
            a word means.
        seconds: Measuring time of one repetition, overrides the campaign's.
        warmup: Warm-up before the clock starts, overrides the campaign's.
        repetitions: Repetitions of each cell, overrides the campaign's.
        blocks: Block, record or message sizes.
        total: Fixed amount of work instead of a time: operations (1e12), bytes (100GiB), or round
            trips.
        isa: Instruction set of peakmark's kernel. auto is the best that the CPU and the operating
            system allow; scalar is arithmetic without vector instructions.
        references: Reference tools that measure this grid too. Each may narrow the grid.
    """

    workloads: Sequence[str]
    concurrency: Sequence[int | str]
    seconds: Seconds | None = None
    warmup: WarmUp | None = None
    repetitions: Repetitions | None = None
    references: dict[ReferenceTool, ReferenceGrid] = {}

    @property
    def blocks(self) -> list[str | int]:
        """Return the block sizes; none, if the subsystem has no blocks."""
        return []

    @property
    def variants(self) -> list[str]:
        """Return the variants; none, if the grid or its subsystem has none."""
        return []

    @property
    def total(self) -> str | float | None:
        """Return the fixed amount of work; None if the time is fixed."""
        return None


class CpuGrid(AnyGrid, frozen=True, kw_only=True):
    """Workloads of the CPU, measured at all combinations of the other keys."""

    workloads: CpuWorkloads
    concurrency: Annotated[list[Pinned], UNIQUE]
    total: Total = None
    isa: InstructionSet = "auto"


class MemoryGrid(AnyGrid, frozen=True, kw_only=True):
    """Workloads of the memory, measured at all combinations of the other keys.

    Attributes:
        blocks: Block sizes. For LAT: size of the area that is walked; auto is at least four times a
            last-level cache of the node that measures.
        variants: block, pool, pool-temporal; for ladders small and huge (pages).
        pool: Total size of the pool of all threads, for variant pool. auto is four times the
            last-level caches that the threads reach, but at most half the memory of the job.
        store: How WS WR RWS RWR TRIAD write, also in reference tools: temporal (through the caches,
            which first read each line), streaming (around the caches), libc (memcpy and memset of
            the C library; not TRIAD). Default: streaming for pools, temporal for blocks.
        pairs: all measures C2C between all pairs of CPUs. Default: all pairs on up to 64 CPUs, a
            sample of each distance on more.
        steps: Number of working sets of a ladder for each doubling. Default: 4.
    """

    workloads: MemoryWorkloads
    concurrency: Annotated[list[Pinned], UNIQUE]
    blocks: Sizes = []
    variants: Annotated[list[Annotated[str, _variant("memory")]], UNIQUE] = []
    total: Total = None
    pool: Size = AUTO
    store: Literal["temporal", "streaming", "libc"] | None = None
    pairs: Literal["all"] | None = None
    steps: Annotated[int, Meta(ge=1, le=8)] | None = None
    isa: InstructionSet = "auto"


class DiskGrid(AnyGrid, frozen=True, kw_only=True):
    """Workloads of the disk, measured at all combinations of the other keys.

    Attributes:
        variants: psync, io_uring-qdN.
        size: Total size of all files.
        together: Numbers of nodes, such as [1, 2, 4, all], that start at one moment on a shared file
            system; a row has the sum of its nodes. Needs fan_out: node.
        one_file: With together: all nodes use one file, each a part of its own.
        sync: When data of WS and WR must have reached the device, also in reference tools. end
            (default): by one flush inside the clock; each: after each record, as with O_SYNC.
        fill: Whether WS and WR overwrite existing files (default) or write new ones, which includes
            the allocation of blocks. With new, IOZone's WS is its first phase (write instead of
            rewrite); its WR always overwrites.
    """

    workloads: DiskWorkloads
    concurrency: Annotated[list[Number], UNIQUE]
    blocks: Sizes = []
    variants: Annotated[list[Annotated[str, _variant("disk")]], UNIQUE] = []
    total: Total = None
    size: Size = "1GiB"
    together: Annotated[
        Annotated[list[NodeCount], UNIQUE] | None,
        allowed("numbers of nodes, such as [1, 2, 4, all]"),
    ] = None
    one_file: bool = False
    sync: Literal["end", "each"] | None = None
    fill: Literal["overwrite", "new"] | None = None


class NetworkGrid(AnyGrid, frozen=True, kw_only=True):
    """Workloads of the network, measured at all combinations of the other keys.

    Attributes:
        variants: gso, busy-poll.
        pairs: Pairs of client and server to measure: all, or {rounds: 5} for five rounds of disjoint
            pairs. Default: each node measures to the next one.
        together: With pairs in rounds, also measure all pairs of a round at one moment, as rows of
            their own. Needs fan_out: node.
    """

    workloads: NetworkWorkloads
    concurrency: Annotated[list[Number], UNIQUE]
    blocks: Sizes
    variants: Annotated[list[Annotated[str, _variant("network")]], UNIQUE] = []
    total: Total = None
    pairs: Annotated[Literal["all"] | Rounds | None, allowed("all, or {rounds: 5}")] = None
    together: bool = False


class MpiGrid(AnyGrid, frozen=True, kw_only=True):
    """Workloads of MPI, measured at all combinations of the other keys.

    Attributes:
        concurrency: Ranks on each node: a number, or cores.
        variants: same-socket and other-socket place two ranks on one node, with concurrency: [2].
            Default: the ranks are on two nodes.
        pairs: Pairs of nodes to measure: all, or {rounds: 5} for five rounds of disjoint pairs.
        nodes: How many nodes the ranks are on, such as [2, 4, all]: the first nodes of each class of
            equal nodes. Default: two, and each node of the run measures to the next one.
    """

    workloads: MpiWorkloads
    concurrency: Annotated[list[Pinned], UNIQUE]
    blocks: Sizes = []
    variants: Annotated[list[Annotated[str, _variant("mpi")]], UNIQUE] = []
    pairs: Annotated[Literal["all"] | Rounds | None, allowed("all, or {rounds: 5}")] = None
    nodes: Annotated[
        Annotated[list[NodeCount], UNIQUE] | None,
        allowed("numbers of nodes, such as [2, 4, all]"),
    ] = None


class GpuGrid(AnyGrid, frozen=True, kw_only=True):
    """Workloads of the GPUs, measured at all combinations of the other keys.

    Attributes:
        variants: sustained (default) and burst (the first 20 ms) of rates; to, from, both and peer
            of LINK.
    """

    workloads: GpuWorkloads
    concurrency: Annotated[list[Gpus], UNIQUE]
    blocks: Sizes = []
    variants: Annotated[list[Annotated[str, _variant("gpu")]], UNIQUE] = []


class Author(Keys, frozen=True):
    """A person who wrote the report.

    Attributes:
        id: Number or name under which a course knows the author.
    """

    name: Text
    affiliation: str | None = None
    id: str | None = None
    email: str | None = None


class Report(Keys, frozen=True):
    """Title, authors, chapters and tables of the report.

    Attributes:
        title: Title on the first page.
        author: Author on the first page.
        authors: Authors with their affiliation, id and email, instead of author.
        text: Folder of the author's chapters, Markdown files such as introduction.md. Introduction
            and design are printed before the results. cpu, memory, disk, network, mpi and gpu are
            printed at the end of the chapter of their resource; a section whose heading is the title of a
            table is printed below that table. All others follow the results.
        course: Course or project on the first page.
        team: Team on the first page.
        draft: true prints what to write in each empty chapter. Empty chapters are left out otherwise.
        tables: Layout of the tables: a name in reports/layouts, or the path of a layout file. Null:
            all columns.
    """

    title: str = ""
    author: str | None = None
    authors: Annotated[list[Author], Meta(max_length=50)] = []
    text: Annotated[Text | None, allowed("the path of a folder of Markdown files")] = None
    course: str | None = None
    team: str | None = None
    draft: bool = False
    tables: Text | None = None


class Campaign(Keys, frozen=True):
    """Configuration of a campaign. Files such as the presets in config/presets override
    config/config.yaml; --config on the command line overrides both.

    Attributes:
        campaign: Name of the campaign and of its folder below results/. Letters, digits, dots,
            dashes and underscores.
        seed: Seed of every random choice: orders, offsets, data.
        nodes: Nodes to measure, each by itself: any (Slurm chooses one), a name, a list of names,
            all of the partition, or {sample: 3} of them.
        fan_out: On a cluster: cell submits a job for every cell; node submits one job per node,
            which measures its cells one after the other; {batch: 20} submits jobs of 20 cells.
        give_up_after: How long a job may wait for a node that is drained or down before its cells
            are reported as failed, such as 90 s, 30 min or 2 h.
        retries: How often a cell is resubmitted after its node was lost (NODE_FAIL, BOOT_FAIL) or
            its job was preempted.
        interface: Network interface of the nodes to measure, e.g. ib0. Null: the one on the route
            between the two nodes.
        seconds: Measuring time of one repetition of peakmark's kernels, in seconds, unless a grid
            sets a fixed total.
        warmup: Warm-up before the clock starts, in seconds.
        scale: Factor for every total, time, file size and count. 0.01 makes a preset a hundred
            times shorter. Blocks and the pool are not scaled, because they decide what is measured.
        repetitions: Repetitions of each cell of peakmark's kernels.
        reference_repetitions: Repetitions of each cell of a reference tool.
        repeat_disturbed: How often at most a repetition is measured again because other programs,
            the hypervisor, lost CPU time or a changing clock disturbed it. 0: never.
        scratch: Directory on the disk to measure. Null: $TMPDIR of the job, else /tmp.
        site: Site file, with facts that no tool can read (datasheet values, memory channels), e.g.
            config/sites/example.yaml.
        tools_on: Where peakmark looks for the reference tools. here: on this machine, when it
            plans. nodes: on each node, when it measures; all cells are planned, and each node
            reports the tools it lacks.
        tools: Path of a tool that is not on PATH, by instrument name. false or none leaves the tool
            out.
        modules: Environment modules that provide a tool, by instrument name, e.g. {hpl: [gcc/13,
            hpl/2.3]}.
        cpu: Grids of QP HP SP DP FP32 DPMIX FP32MIX QPDOT FP16 BF16DOT QPMM BF16MM.
        memory: Grids of RS WS RWS RR WR RWR TRIAD LAT C2C LADDER-RS LADDER-LAT LOADED NUMA-RS
            NUMA-WS NUMA-LAT. Variants are block (cache), pool (DRAM, streaming stores) and
            pool-temporal (DRAM, ordinary stores); those of ladders are small and huge (pages).
        disk: Grids of WS RS WR RR META. Variants are psync and io_uring-qdN; META has none.
        network: Grids of TCP UDP LAT-TCP LAT-UDP.
        mpi: Grids of PINGPONG RATE BIRATE MSGRATE ALLREDUCE ALLTOALL BARRIER BCAST. Without a
            compiler for MPI the campaign has no such rows, and says so.
        gpu: Grids of FP64 FP32 FP16 INT32 TC-FP64 TC-TF32 TC-FP16 TC-BF16 TC-INT8 TC-FP8 RS WS RWS
            RWR LINK LAUNCH LADDER-LAT. TC run on the matrix units. A machine without NVIDIA's
            driver has no such rows; a cluster has them if the site file has gpus.
        report: Title, authors, chapters and tables of the report.
    """

    campaign: CampaignName = "node"
    seed: Annotated[int, Meta(ge=0, le=1000000000000000)] = 1
    nodes: Annotated[
        NodeName | Annotated[list[NodeName], UNIQUE] | Sample,
        allowed("any, all, the name of a node, a list of names, or {sample: 3}"),
    ] = "any"
    fan_out: Annotated[Literal["cell", "node"] | Batch, allowed("cell, node, or {batch: 20}")] = (
        "cell"
    )
    give_up_after: Duration = "1 h"
    retries: Annotated[int, Meta(ge=0, le=100)] = 2
    interface: InterfaceName | None = None
    seconds: Seconds = 1.0
    warmup: WarmUp = 0.2
    scale: Annotated[float, Meta(gt=0, le=1000)] = 1
    repetitions: Repetitions = 3
    reference_repetitions: Repetitions = 1
    repeat_disturbed: Annotated[int, Meta(ge=0, le=100)] = 2
    scratch: Text | None = None
    site: Annotated[Text | None, allowed("the path of a site file")] = None
    tools_on: Literal["here", "nodes"] = "here"
    tools: dict[
        ReferenceTool, Annotated[str | bool, allowed("the path of a program, or false")]
    ] = {}
    modules: dict[ReferenceTool, Annotated[list[ModuleName], Meta(min_length=1)]] = {}
    cpu: list[CpuGrid] = []
    memory: list[MemoryGrid] = []
    disk: list[DiskGrid] = []
    network: list[NetworkGrid] = []
    mpi: list[MpiGrid] = []
    gpu: list[GpuGrid] = []
    report: Report = field(default_factory=Report)

    def grids(self) -> dict[str, Sequence[AnyGrid]]:
        """Return each subsystem -> its grids, in the order of a report."""
        return {subsystem: getattr(self, subsystem) for subsystem in WORKLOADS}


Hertz = Annotated[
    float,
    allowed("a clock in Hz from 1e8 to 1e10, such as 2.45e+9 for 2.45 GHz", ge=1e8, le=1e10),
]
Operations = Annotated[
    float, allowed("0.25 to 65536 operations per cycle and core", ge=0.25, le=65536)
]
DiskRate = Annotated[
    float, allowed("B/s from 1e5 to 1e12, such as 3.2e+9 for 3.2 GB/s", ge=1e5, le=1e12)
]
Iops = Annotated[float, allowed("operations per second from 1 to 1e9", ge=1, le=1e9)]
Seek = Annotated[float, allowed("milliseconds from 0.1 to 100, such as 8.5", ge=0.1, le=100)]
Latency = Annotated[
    float, allowed("seconds from 1e-7 to 10, such as 85e-6 for 85 us", ge=1e-7, le=10)
]
DiskWorkload = Literal["RS", "WS", "RR", "WR"]
NetworkWorkload = Literal["TCP", "UDP"]


class SiteCpu(Keys, frozen=True, omit_defaults=True):
    """CPU of a node.

    Attributes:
        microarchitecture: Name such as Zen 3 or Ice Lake-SP, if a hypervisor hides the CPU.
        clock: Clock from which limits are computed. Default: observed.
        operations_per_cycle: Operations per cycle and core, overrides peakmark's table.
        source: Source of the values: datasheet, tender, dmidecode.
    """

    microarchitecture: Text | None = None
    clock: Literal["observed", "nominal", "maximum"] | None = None
    nominal_hz: Hertz | None = None
    maximum_hz: Hertz | None = None
    cores: (
        Annotated[int, allowed("a whole number of cores from 1 to 4096", ge=1, le=4096)] | None
    ) = None
    operations_per_cycle: dict[Literal[_CPU], Operations] = {}  # type: ignore[valid-type]
    source: str = ""


class SiteMemory(Keys, frozen=True, omit_defaults=True):
    """Memory of a node.

    Attributes:
        channels: Memory channels of the whole node.
        bandwidth: Bandwidth of the whole node in B/s, if it does not follow from channels (HBM).
        latency: Time of a dependent load from memory, in seconds.
        source: Source of the values: datasheet, tender, dmidecode.
    """

    type: Text | None = None
    channels: (
        Annotated[
            int, allowed("a whole number of channels of the whole node, 1 to 256", ge=1, le=256)
        ]
        | None
    ) = None
    speed_mts: (
        Annotated[
            float,
            allowed(
                "transfers in MT/s from 100 to 20000, such as 3200 for DDR4-3200", ge=100, le=20000
            ),
        ]
        | None
    ) = None
    bytes_per_transfer: (
        Annotated[
            float,
            allowed(
                "bytes of a channel from 1 to 1024: 8 for DDR modules, 2 or 4 for LPDDR5",
                ge=1,
                le=1024,
            ),
        ]
        | None
    ) = None
    bandwidth: (
        Annotated[
            float,
            allowed("B/s from 1e8 to 1e14, such as 204.8e+9 for 204.8 GB/s", ge=1e8, le=1e14),
        ]
        | None
    ) = None
    latency: (
        Annotated[
            float,
            allowed("seconds from 1e-9 to 1e-5, such as 90e-9 for 90 ns", ge=1e-9, le=1e-5),
        ]
        | None
    ) = None
    source: str = ""


class SiteDisk(Keys, frozen=True, omit_defaults=True):
    """Disk of a node.

    Attributes:
        throughput: Workload -> B/s.
        iops: Workload -> operations per second, at the datasheet's record size and queue depth.
        latency: Workload -> seconds.
        seek_ms: Workload -> average seek of a hard disk in milliseconds. With rpm, it gives iops and
            latency of random operations where the site file does not state them.
        rpm: Turns of a hard disk in a minute.
        source: Source of the values: datasheet, tender, dmidecode.
    """

    model: str = ""
    throughput: dict[DiskWorkload, DiskRate] = {}
    iops: dict[DiskWorkload, Iops] = {}
    latency: dict[DiskWorkload, Latency] = {}
    seek_ms: dict[Literal["RR", "WR"], Seek] = {}
    rpm: (
        Annotated[int, allowed("turns in a minute from 1000 to 30000", ge=1000, le=30000)] | None
    ) = None
    source: str = ""


class SiteNetwork(Keys, frozen=True, omit_defaults=True):
    """Network of a node.

    Attributes:
        latency: Workload -> round-trip time in seconds.
        source: Source of the values: datasheet, tender, dmidecode.
    """

    speed_bps: (
        Annotated[
            float,
            allowed("bit/s from 1e6 to 1e13, such as 100e+9 for 100 Gbit/s", ge=1e6, le=1e13),
        ]
        | None
    ) = None
    mtu: Annotated[int, allowed("bytes from 68 (RFC 791) to 65536", ge=68, le=65536)] | None = None
    latency: dict[NetworkWorkload, Latency] = {}
    source: str = ""


class SiteGpus(Keys, frozen=True, omit_defaults=True):
    """GPUs of a cluster.

    Attributes:
        gres: Name of the GPUs in Slurm, such as gpu or gpu:h100. Jobs that measure GPUs ask for them
            with sbatch --gres.
    """

    gres: Annotated[
        str,
        allowed(
            "the name of the GPUs in Slurm, such as gpu or gpu:h100",
            pattern=r"^[A-Za-z][A-Za-z0-9_.-]*(:[A-Za-z0-9_.-]+)?\Z",
        ),
    ] = ""


class SiteMpi(Keys, frozen=True, omit_defaults=True):
    """How MPI programs are compiled and started on this cluster.

    Attributes:
        launch: srun, or mpirun within the job's nodes. Default: srun, or mpirun if no type of srun
            starts two ranks. Without Slurm it is mpirun.
        type: Type of srun --mpi, such as pmix. Default: the first of pmix, pmi2, cray_shasta and none
            that starts two ranks.
        modules: Environment modules with the MPI library and its mpicc.
        environment: Variables of the environment in which MPI programs are compiled and run.
    """

    launch: Literal["srun", "mpirun"] | None = None
    type: Annotated[
        str,
        allowed("a type of srun --mpi, such as pmix", pattern=r"^[a-z0-9][a-z0-9_]*\Z"),
    ] = ""
    modules: list[ModuleName] = []
    environment: dict[str, str] = {}


class NodeKind(Keys, frozen=True, omit_defaults=True):
    """Values for some nodes, which override those of the site.

    Attributes:
        match: Pattern of host names, such as compute-[0-9]*.
    """

    match: Text
    cpu: SiteCpu = SiteCpu()
    memory: SiteMemory = SiteMemory()
    disk: SiteDisk = SiteDisk()
    network: SiteNetwork = SiteNetwork()


class SiteSlurm(Keys, frozen=True, omit_defaults=True):
    """Options of jobs on this cluster. --default-resources on the command line does the same.

    Attributes:
        constraint: Features that nodes must have, as for sbatch --constraint.
        reservation: Name of a reservation. Only its nodes are measured, also during maintenance.
        runtime_factor: Factor for the time limits of jobs.
        memory_factor: Factor for the memory that jobs ask for, which is at most all memory of the
            node.
        extra: Further options of sbatch by their long names, such as --gres=gpu:1 --nice=100.
        exclusive: false: jobs do not ask for exclusive nodes, for sites that forbid it. Other jobs
            on the node may then disturb the measurements.
        memory: How jobs ask for memory: per_node (exclusive jobs ask for all of it), per_cpu, or
            none if the site forbids both.
        max_jobs: Most jobs that are submitted at a time.
        scratch_shared: true: several nodes share the disk to measure, so that only one disk cell
            runs at a time.
    """

    partition: Annotated[
        str,
        allowed(
            "the name of a partition, or several with commas",
            pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*( *, *[A-Za-z0-9][A-Za-z0-9_.-]*)*\Z",
        ),
    ] = ""
    account: Annotated[
        str, allowed("the name of an account", pattern=r"^[A-Za-z0-9][A-Za-z0-9_.@-]*\Z")
    ] = ""
    qos: Annotated[str, allowed("the name of a QOS", pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*\Z")] = ""
    constraint: Annotated[
        str,
        allowed(
            "features as for sbatch --constraint, such as skylake or a&b",
            pattern=r"^[A-Za-z0-9(\[][A-Za-z0-9_.&|*()\[\],-]*\Z",
        ),
    ] = ""
    reservation: Annotated[
        str, allowed("the name of a reservation", pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*\Z")
    ] = ""
    runtime_factor: Annotated[float, Meta(gt=0, le=1000)] = 1.0
    memory_factor: Annotated[float, Meta(gt=0, le=1000)] = 1.0
    extra: Annotated[
        str,
        allowed(
            "options of sbatch by their long names, such as --gres=gpu:1 --nice=100",
            pattern=r"^--[a-z][A-Za-z0-9_.,:=@%+/-]*( +--[a-z][A-Za-z0-9_.,:=@%+/-]*)*\Z",
        ),
    ] = ""
    exclusive: bool = True
    memory: Literal["per_node", "per_cpu", "none"] = "per_node"
    max_jobs: Annotated[int, Meta(ge=1)] = 1000
    scratch_shared: bool = False


PromisedValue = Annotated[
    str,
    allowed(
        "a value with its unit, such as 380 GB/s (at least) or 95 ns (at most)",
        pattern=promises.AMOUNT,
    ),
]


class SiteValues(Keys, frozen=True, kw_only=True, omit_defaults=True):
    """Values of a site file as a plan holds them; empty without a site file."""

    schema: Literal[1] = 1
    name: str = ""
    description: str = ""
    cpu: SiteCpu = SiteCpu()
    memory: SiteMemory = SiteMemory()
    disk: SiteDisk = SiteDisk()
    network: SiteNetwork = SiteNetwork()
    gpus: SiteGpus = SiteGpus()
    mpi: SiteMpi = SiteMpi()
    nodes: list[NodeKind] = []
    slurm: SiteSlurm = SiteSlurm()
    promise: dict[str, PromisedValue] = {}


class Site(SiteValues, frozen=True, kw_only=True):
    """Facts that no tool can read on a node, in SI base units: datasheet values, memory channels,
    the clock from which limits are computed.

    Attributes:
        nodes: Values for some nodes. The first entry whose pattern matches the host name overrides
            the values above.
        slurm: Options of jobs on this cluster. --default-resources on the command line does the
            same.
        promise: Rows -> value that each node was promised to reach. If several rows match, the best
            one counts.
    """

    schema: Literal[1]
    name: Annotated[
        str,
        allowed(
            "a name of letters, digits, dots, dashes and underscores",
            pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*\Z",
        ),
    ]


class Planned(Campaign, frozen=True):
    """Configuration in a plan, together with the values of its site files."""

    site_facts: SiteValues = SiteValues()
