"""What users write, as types: campaign, site and layout files.

``config.schemas`` makes JSON schemas of them, with the texts below ``Attributes`` as descriptions
of the keys.
"""

from __future__ import annotations

from typing import Annotated, Literal, Required, TypedDict

from msgspec import Meta, field

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
NodeOrLink = Annotated[
    str,
    allowed(
        "the name of a node, or of a link: client+server",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*([+][A-Za-z0-9][A-Za-z0-9._-]*)?\Z",
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
Concurrency = Annotated[
    Annotated[int, Meta(ge=1, le=4096)] | Literal["numa", "socket", "cores", "cpus"],
    allowed("a whole number from 1 to 4096, or one of the words numa, socket, cores, cpus"),
]
Concurrencies = Annotated[list[Concurrency], UNIQUE]
InstructionSet = Literal["auto", "scalar", "sse2", "avx2", "avx512", "neon"]
ReferenceTool = Literal[REFERENCES]  # type: ignore[valid-type] # a type for each module in tools/programs
Subsystem = Literal["cpu", "memory", "disk", "network"]
Metric = Literal[
    "rate", "throughput", "latency", "iops", "core_to_core", "numa_throughput", "numa_latency",
    "ladder_throughput", "ladder_latency", "loaded_latency",
]  # fmt: skip
TableName = Literal[
    "cpu", "memory_throughput", "memory_latency", "memory_core_to_core", "memory_numa_throughput",
    "memory_numa_latency", "memory_ladder_throughput", "memory_ladder_latency",
    "memory_loaded_latency", "disk_throughput", "disk_latency", "disk_iops",
    "network_throughput", "network_latency",
]  # fmt: skip
Unit = Literal["op/s", "B/s", "bit/s", "s", "1/s"]


class Sample(Keys):
    """Some nodes of a partition.

    Attributes:
        sample: Number of nodes, chosen by the seed.
    """

    sample: Annotated[int, Meta(ge=1, le=100000)]


class Batch(Keys):
    """Jobs of some cells each.

    Attributes:
        batch: Cells of a job.
    """

    batch: Annotated[int, Meta(ge=1, le=100000)]


class Rounds(Keys):
    """Rounds of pairs of nodes.

    Attributes:
        rounds: In each round every node is in one pair, chosen by the seed; no pair comes twice.
    """

    rounds: Annotated[int, Meta(ge=1, le=100000)]


Repetitions = Annotated[int, allowed("a whole number from 1 to 1000", ge=1, le=1000)]


class ReferenceGrid(TypedDict, total=False):
    """A reference tool beside a grid, which it may narrow.

    Attributes:
        size: disk tools: size of all files together.
        budget_s: hpl: wall time the problem size is chosen for.
        nb: hpl: block size NB.
        ops: iozone: report operations per second (IOPS and latency).
        count: ping: packets.
    """

    workloads: Words
    concurrency: Concurrencies
    blocks: Sizes
    variants: Words
    repetitions: Repetitions
    seconds: Seconds
    size: Size
    budget_s: Positive
    nb: Annotated[int, Meta(ge=16, le=1024)]
    ops: bool
    count: Annotated[int, Meta(ge=1, le=1000000)]


class CampaignGrid(TypedDict, total=False):
    """Workloads of a subsystem, measured at all combinations of the other keys.

    Attributes:
        workloads: Workloads, in the order of the table.
        concurrency: Threads, processes or streams: numbers; for cpu and memory also words for
            parts of the node that measures: numa and socket (the cores of one NUMA node, of one
            socket), cores (all), cpus (all hardware threads).
        blocks: Block, record or message sizes; for LAT of the memory the area that is walked, where
            auto is at least four times a last-level cache of the node that measures.
        variants: memory: block, pool, pool-temporal, of ladders small and huge (pages); disk: psync, io_uring-qdN; network: gso,
            busy-poll.
        total: Fixed work instead of a time: operations (1e12), bytes (100GiB), or round trips.
        pool: memory: size of the pool of variant pool, all threads together; auto (default) is four
            times the last-level caches that the threads reach, within half the memory the job may
            have.
        store: memory: how WS WR RWS RWR write, the references too: temporal (through the caches,
            which first read each line), streaming (around them), libc (memcpy and memset of the C
            library). Without it a pool's rows stream and a block's rows do not.
        reads: memory: mixes of LOADED, in percent of the traffic that are reads; without it 100, 75
            and 50.
        rates: memory: how many rates of traffic LOADED measures for each mix (12), beside idle.
        size: disk: size of all files together.
        pairs: memory: of which pairs of CPUs C2C measures the latency (all); without it of all on up
            to 64 CPUs, of a sample of each distance on more. network: which pairs of nodes are
            measured, each as a row of client and server: all, {rounds: 5} of disjoint pairs, or
            [[node1, node2]]; without it each node measures to the one that peers says.
        steps: memory: working sets of a ladder for each doubling; 4 without it.
        isa: cpu and memory: instruction set of this grid's own kernel instead of the campaign's;
            scalar is plain arithmetic, as a compiler makes it without vectors.
        sync: disk: when the device must have what WS and WR write, the references too: at the end,
            by one flush inside the clock (default), or after each record, as with O_SYNC.
        fill: disk: whether WS and WR overwrite files that are there (default) or write new ones,
            whose blocks are allocated meanwhile. IOZone's WS is then its first phase, write instead
            of rewrite; its WR overwrites.
        references: Reference tools beside this grid; each may narrow it.
    """

    workloads: Required[Words]
    concurrency: Required[Concurrencies]
    blocks: Sizes
    variants: Words
    seconds: Seconds
    warmup: WarmUp
    repetitions: Repetitions
    total: Annotated[str | float, allowed("an amount such as 1e12 or 100GiB")]
    pool: Size
    store: Literal["temporal", "streaming", "libc"]
    reads: Annotated[list[Literal[100, 75, 50]], UNIQUE]
    rates: Annotated[int, Meta(ge=1, le=64)]
    size: Size
    pairs: Annotated[
        Literal["all"]
        | Rounds
        | Annotated[
            list[Annotated[list[NodeName], Meta(min_length=2, max_length=2)]],
            Meta(min_length=1),
        ],
        allowed("all, {rounds: 5}, or pairs of nodes such as [[node1, node2]]"),
    ]
    steps: Annotated[int, Meta(ge=1, le=8)]
    isa: InstructionSet
    sync: Literal["end", "each"]
    fill: Literal["overwrite", "new"]
    references: dict[ReferenceTool, ReferenceGrid]


class Author(Keys):
    """A person who wrote the report."""

    name: Text
    affiliation: str | None = None


class Report(Keys):
    """What the report says about itself.

    Attributes:
        title: Title on the first page.
        author: Author on the first page.
        authors: Authors with their affiliation, instead of author.
        text: Folder of the author's chapters, Markdown files such as introduction.md. Introduction
            and design stand before the results; cpu, memory, disk and network at the end of the
            chapter of their resource, below a table where a heading is its title; the others
            behind the results.
        course: Course or project on the first page.
        tables: Layout of the tables: a name in reports/layouts, or the path of such a file. Null:
            all columns that there are.
    """

    title: str = "Performance report"
    author: str | None = None
    authors: Annotated[list[Author], Meta(max_length=50)] = field(default_factory=list)
    text: Annotated[Text | None, allowed("the path of a folder of Markdown files")] = None
    course: str | None = None
    tables: Text | None = None


class Campaign(Keys):
    """What a campaign measures. Presets in config/presets replace these keys; --config on the
    command line replaces both.

    Attributes:
        campaign: Name of the campaign: its folder below results/. Letters, digits, dot, dash and
            underscore.
        seed: Seed of every random choice: orders, offsets, data.
        nodes: Nodes that are measured, each by itself: any (Slurm chooses), a name, a list of
            names, all of the partition, or {sample: 3} of them.
        fan_out: On a cluster: a job for every cell, one job per node that measures its cells one
            after the other, or {batch: 20}: a job for so many.
        peers: On a cluster of several named nodes, which other node the network of each is measured
            to: the next one, always the first, or the next in an order by the seed.
        give_up_after: How long a job may wait for a node that is drained or down, such as 90 s,
            30 min or 2 h, before its cells are told as failed.
        retries: How often a cell is submitted again by itself whose node was lost (NODE_FAIL,
            BOOT_FAIL) or whose job was preempted.
        interface: Interface of the nodes whose network is measured, e.g. ib0. Null: the one on the
            route between the two nodes.
        seconds: Measuring time of one repetition of an own kernel, in seconds, where no fixed total
            is given.
        warmup: Warm-up before the clock starts, in seconds.
        scale: Factor for every total, time, file size and count: 0.01 makes a preset a hundred
            times shorter. Blocks and the pool stay: they decide what is measured.
        repetitions: Repetitions of each cell of an own kernel.
        reference_repetitions: Repetitions of each cell of a reference tool.
        repeat_disturbed: How often a repetition is measured again at most that other programs, the
            hypervisor, lost CPU time or a clock that moved have disturbed. 0: never.
        suspects: Slow nodes and links of an earlier campaign -> the healthy ones that are measured
            beside them. peakmark fleet --suspects writes it, and peakmark fleet of this campaign
            says whether they are slow again. A link is client+server.
        placement: One thread for each core first; compact fills a last-level cache, a NUMA node, a
            socket before the next one, spread takes sockets, NUMA nodes and caches in turn. numa
            and socket are always compact.
        isa: Instruction set of the own cpu and memory kernels; auto is the best the CPU and the OS
            allow.
        scratch: Directory on the disk that is measured. Null: $TMPDIR of the job, else /tmp.
        site: File with facts no tool can read (datasheet values, memory channels), e.g.
            config/sites/example.yaml; or a list of files, of which later ones count where two say
            different things.
        tools_on: Where the reference tools are looked for when planning: here (this machine
            measures), or nodes (plan all, each node answers for itself).
        tools: Path of a tool that is not on PATH, by instrument name; false or none leaves the tool
            out.
        modules: Environment modules that bring a tool, by instrument name, e.g. {hpl: [gcc/13,
            hpl/2.3]}.
        cpu: Grids of QP HP SP DP FP32 DPMIX FP32MIX QPDOT FP16 BF16DOT QPMM BF16MM.
        memory: Grids of RS WS RWS RR WR RWR LAT C2C LADDER-RS LADDER-LAT LOADED NUMA-RS NUMA-WS NUMA-LAT;
            variants block (cache), pool (DRAM), pool-temporal (DRAM with ordinary stores, beside
            pool with streaming ones); of ladders small and huge (pages).
        disk: Grids of the disk: workloads WS RS WR RR; variants psync and io_uring-qdN.
        network: Grids of the network: workloads TCP UDP LAT-TCP LAT-UDP.
        report: What the report says about itself.
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
    peers: Literal["ring", "fixed", "random"] = "ring"
    give_up_after: Duration = "1 h"
    retries: Annotated[int, Meta(ge=0, le=100)] = 2
    interface: InterfaceName | None = None
    seconds: Seconds = 1.0
    warmup: WarmUp = 0.2
    scale: Annotated[float, Meta(gt=0, le=1000)] = 1
    repetitions: Repetitions = 3
    reference_repetitions: Repetitions = 1
    repeat_disturbed: Annotated[int, Meta(ge=0, le=100)] = 2
    suspects: dict[NodeOrLink, list[NodeOrLink]] = field(default_factory=dict)
    placement: Literal["compact", "spread"] = "compact"
    isa: InstructionSet = "auto"
    scratch: Text | None = None
    site: Annotated[
        Text | Annotated[list[Text], UNIQUE] | None,
        allowed("the path of a site file, or a list of such"),
    ] = None
    tools_on: Literal["here", "nodes"] = "here"
    tools: dict[
        ReferenceTool, Annotated[str | bool, allowed("the path of a program, or false")]
    ] = field(default_factory=dict)
    modules: dict[ReferenceTool, Annotated[list[ModuleName], Meta(min_length=1)]] = field(
        default_factory=dict
    )
    cpu: list[CampaignGrid] = field(default_factory=list)
    memory: list[CampaignGrid] = field(default_factory=list)
    disk: list[CampaignGrid] = field(default_factory=list)
    network: list[CampaignGrid] = field(default_factory=list)
    report: Report = field(default_factory=Report)


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
Latency = Annotated[
    float, allowed("seconds from 1e-7 to 10, such as 85e-6 for 85 us", ge=1e-7, le=10)
]
CpuWorkload = Literal[
    "QP", "HP", "SP", "DP", "FP32", "DPMIX", "FP32MIX", "QPDOT", "FP16", "BF16DOT", "QPMM", "BF16MM",
]  # fmt: skip
DiskWorkload = Literal["RS", "WS", "RR", "WR"]
NetworkWorkload = Literal["TCP", "UDP"]
Workload = Literal[
    "QP", "HP", "SP", "DP", "FP32", "DPMIX", "FP32MIX", "QPDOT", "FP16", "BF16DOT", "QPMM", "BF16MM",
    "RS", "WS", "RWS", "RR", "WR", "RWR", "LAT", "TCP", "UDP", "LAT-TCP", "LAT-UDP",
]  # fmt: skip


class SiteCpu(TypedDict, total=False):
    """CPU of a node.

    Attributes:
        microarchitecture: where a hypervisor hides the CPU: a name such as Zen 3 or Ice Lake-SP
        clock: which clock the limit uses; default observed
        operations_per_cycle: per core, instead of the table's
        source: where the values are from: datasheet, tender, dmidecode
    """

    microarchitecture: Text
    clock: Literal["observed", "nominal", "maximum"]
    nominal_hz: Hertz
    maximum_hz: Hertz
    cores: Annotated[int, allowed("a whole number of cores from 1 to 4096", ge=1, le=4096)]
    operations_per_cycle: Annotated[dict[CpuWorkload, Operations], Meta(min_length=1)]
    source: Text


class SiteMemory(TypedDict, total=False):
    """Memory of a node.

    Attributes:
        channels: of the whole node
        bandwidth: B/s of the whole node, where channels do not say it (HBM)
        latency: s per dependent load from memory
        source: where the values are from: datasheet, tender, dmidecode
    """

    type: Text
    channels: Annotated[
        int, allowed("a whole number of channels of the whole node, 1 to 256", ge=1, le=256)
    ]
    speed_mts: Annotated[
        float,
        allowed(
            "transfers in MT/s from 100 to 20000, such as 3200 for DDR4-3200", ge=100, le=20000
        ),
    ]
    bytes_per_transfer: Annotated[
        float,
        allowed(
            "bytes of a channel from 1 to 1024: 8 of DDR modules, 2 or 4 of LPDDR5", ge=1, le=1024
        ),
    ]
    bandwidth: Annotated[
        float,
        allowed("B/s from 1e8 to 1e14, such as 204.8e+9 for 204.8 GB/s", ge=1e8, le=1e14),
    ]
    latency: Annotated[
        float, allowed("seconds from 1e-9 to 1e-5, such as 90e-9 for 90 ns", ge=1e-9, le=1e-5)
    ]
    source: Text


class SiteDisk(TypedDict, total=False):
    """Disk of a node.

    Attributes:
        throughput: B/s
        iops: 1/s at the datasheet's record size and queue depth
        latency: s
        source: where the values are from: datasheet, tender, dmidecode
    """

    model: Text
    throughput: Annotated[dict[DiskWorkload, DiskRate], Meta(min_length=1)]
    iops: Annotated[dict[DiskWorkload, Iops], Meta(min_length=1)]
    latency: Annotated[dict[DiskWorkload, Latency], Meta(min_length=1)]
    source: Text


class SiteNetwork(TypedDict, total=False):
    """Network of a node.

    Attributes:
        latency: s, round trip
        source: where the values are from: datasheet, tender, dmidecode
    """

    speed_bps: Annotated[
        float,
        allowed("bit/s from 1e6 to 1e13, such as 100e+9 for 100 Gbit/s", ge=1e6, le=1e13),
    ]
    mtu: Annotated[int, allowed("bytes from 68 (RFC 791) to 65536", ge=68, le=65536)]
    latency: Annotated[dict[NetworkWorkload, Latency], Meta(min_length=1)]
    source: Text


class NodeKind(TypedDict, total=False):
    """Values of some nodes, over those of the site.

    Attributes:
        match: host name pattern such as compute-[0-9]*
    """

    match: Required[Text]
    cpu: SiteCpu
    memory: SiteMemory
    disk: SiteDisk
    network: SiteNetwork


class SiteSlurm(TypedDict, total=False):
    """What jobs must tell this cluster's Slurm; the command line's --default-resources does the
    same.

    Attributes:
        constraint: as for sbatch --constraint
        reservation: name of a reservation; only its nodes are measured, also during maintenance
        runtime_factor: time limits of jobs are multiplied by it; default 1
        memory_factor: memory that jobs ask for is multiplied by it, up to all of a node's; default
            1
        extra: further options of sbatch by their long names: --gres=gpu:1 --nice=100
        exclusive: false: jobs do not ask for their nodes alone, where a site forbids it; what else
            runs there then disturbs; default true
        memory: how jobs ask for memory: per_node (default; all of it where they have the node
            alone), per_cpu, or none where a site forbids both
        max_jobs: most jobs that are handed to Slurm at a time; default 1000
        scratch_shared: true: the disk that is measured belongs to several nodes, so disk cells
            never run at once
    """

    partition: Annotated[
        str,
        allowed(
            "the name of a partition, or several with commas",
            pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*( *, *[A-Za-z0-9][A-Za-z0-9_.-]*)*\Z",
        ),
    ]
    account: Annotated[
        str, allowed("the name of an account", pattern=r"^[A-Za-z0-9][A-Za-z0-9_.@-]*\Z")
    ]
    qos: Annotated[str, allowed("the name of a QOS", pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*\Z")]
    constraint: Annotated[
        str,
        allowed(
            "features as for sbatch --constraint, such as skylake or a&b",
            pattern=r"^[A-Za-z0-9(\[][A-Za-z0-9_.&|*()\[\],-]*\Z",
        ),
    ]
    reservation: Annotated[
        str, allowed("the name of a reservation", pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*\Z")
    ]
    runtime_factor: Annotated[float, Meta(gt=0, le=1000)]
    memory_factor: Annotated[float, Meta(gt=0, le=1000)]
    extra: Annotated[
        str,
        allowed(
            "options of sbatch by their long names, such as --gres=gpu:1 --nice=100",
            pattern=r"^--[a-z][A-Za-z0-9_.,:=@%+/-]*( +--[a-z][A-Za-z0-9_.,:=@%+/-]*)*\Z",
        ),
    ]
    exclusive: bool
    memory: Literal["per_node", "per_cpu", "none"]
    max_jobs: Annotated[int, Meta(ge=1)]
    scratch_shared: bool


class SiteValues(TypedDict, total=False):
    """The values of site files, as a plan holds them."""

    description: Text
    cpu: SiteCpu
    memory: SiteMemory
    disk: SiteDisk
    network: SiteNetwork
    nodes: list[NodeKind]
    shared: dict[Text, Annotated[list[Text], Meta(min_length=1)]]
    slurm: SiteSlurm


class Site(SiteValues):
    """What no tool can read on a node: datasheet values, memory channels, the clock a report wants.
    SI base units.

    Attributes:
        nodes: kinds of nodes: the first entry whose pattern matches the host name lies over the
            values above
        shared: name of an uplink or a switch -> patterns of the nodes behind it, such as
            rack1-[0-9]*; two pairs that both cross it are never measured at once; without it
            Slurm's topology says so, {} says that nothing is shared
        slurm: what jobs must tell this cluster's Slurm; the command line's --default-resources does
            the same
    """

    schema: Literal[1]
    name: Annotated[
        str,
        allowed(
            "a name of letters, digits, dots, dashes and underscores",
            pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*\Z",
        ),
    ]


class Planned(Campaign):
    """The configuration of a plan: with the values of its site files."""

    site_facts: SiteValues | None = None
