"""What is compared with what, and with which target. Data: a new line of the table is a new ``Row``
here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from benchmarks.kernels.ratios import Target
from peakmark.cell import Cell, Scalar
from peakmark.units import format_size

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
GROUPS = ("cpu", "memory", "disk", "network")
PEAK = "instruction's peak"
CLOCK = "clock before and after"

AS_MUCH = Target(low=1.0)
POOL = GIB
DISK_SIZES = {4 * KIB: 64 * MIB, 64 * KIB: 256 * MIB, MIB: 256 * MIB, 16 * MIB: 512 * MIB}
"""Record -> bytes of all files, each gone through once by diskbench, fio and every phase of IOZone.
"""


@dataclass(frozen=True)
class Row:
    """One line of the table.

    ours       cell of an own kernel
    reference  cell it is compared with; None: the limit of the instruction at the clock the own run
               saw
    metric     which measurement of both; for the metric ``latency`` a smaller ratio is the better
               one, and ``clock`` is that under the work beside the one before and after it
    route      network: ``loopback`` or ``namespaces``
    routine    of a tool that ran several: which one, by the end of its name. Each has a line of its
               own, since the best of several runs would look faster than any of them on a machine
               that is not quiet
    bundle     rows with the same bundle are measured together: in each turn every cell of them runs
               once, in order
    quick      whether --quick measures it too
    """

    ours: Cell
    reference: Cell | None
    metric: str
    target: Target
    route: str = ""
    bundle: str = ""
    routine: str = ""
    quick: bool = False

    @property
    def group(self) -> str:
        return self.ours.subsystem

    @property
    def name(self) -> str:
        """``RS block 1KiB x2``."""
        parts = [
            self.ours.workload,
            self.ours.variant or ("pool" if self.ours.options.get("pool") else ""),
        ]
        parts += [format_size(self.ours.block)] if self.ours.block else []
        parts += [str(self.ours.options["isa"])] if self.ours.options.get("isa") else []
        parts += [str(self.ours.options["store"])] if self.ours.options.get("store") else []
        parts += (
            ["small-pages"]
            if self.ours.subsystem == "disk" and self.ours.options.get("huge_pages") is False
            else []
        )
        return " ".join(
            [*(part for part in parts if part), f"x{self.ours.concurrency}", self.route]
        ).rstrip()

    @property
    def against(self) -> str:
        """Name of the reference."""
        if self.reference is None:
            return CLOCK if self.metric == "clock" else PEAK
        if self.reference.options.get("store") == "libc":
            return "libc memcpy"
        return f"{self.reference.instrument} {self.routine}".rstrip()


@dataclass(frozen=True)
class Plan:
    """What the command line decides: seconds of one run, and how large a share of the machine may
    be measured.
    """

    seconds: float
    cpus: int
    small_pages: bool

    def threads(self, *wanted: int) -> tuple[int, ...]:
        """Those numbers of threads that have a CPU each."""
        return tuple(number for number in wanted if number <= self.cpus)


def rows(plan: Plan) -> list[Row]:
    """All rows, group by group."""
    return [
        *_cpu(plan),
        *_memory(plan),
        *_latency(plan),
        *_disk(plan),
        *_depths(plan),
        *_network(plan),
    ]


def _cell(
    subsystem: str,
    instrument: str,
    workload: str,
    variant: str,
    block: int | None,
    concurrency: int,
    **options: Scalar,
) -> Cell:
    return Cell(subsystem, instrument, workload, variant, block, concurrency, "any", 0, options)


def _cpu(plan: Plan) -> Iterator[Row]:
    for workload in ("DP", "SP", "HP", "QP", "FP32", "QPDOT"):
        for threads in plan.threads(1, 2):
            ours = _cell("cpu", "cpubench", workload, "", None, threads, seconds=plan.seconds)
            peak = Target(low=0.97 if workload == "DP" else 0.95)
            bundle = f"cpu {workload} {threads}"
            quick = workload in ("DP", "QP")
            yield Row(ours, None, "rate", peak, bundle=bundle, quick=quick)
            # Work may lower the clock, and then the two differ by that; plain C lowers it nowhere.
            yield Row(ours, None, "clock", Target(high=1.05), bundle=bundle, quick=quick)
            plain = replace(ours, options={**ours.options, "isa": "scalar"})
            yield Row(plain, None, "clock", Target(0.95, 1.05), bundle=bundle, quick=quick)
            if workload in ("DP", "FP32"):
                likwid = _cell(
                    "cpu", "likwid-bench", workload, "", None, threads, seconds=plan.seconds
                )
                yield Row(ours, likwid, "rate", AS_MUCH, bundle=bundle, quick=workload == "DP")
            if workload == "DP":
                hpl = _cell("cpu", "hpl", "DP", "", None, threads, budget_s=8.0)
                yield Row(ours, hpl, "rate", Target(low=1.0, strict=True), bundle=bundle)


def _memory(plan: Plan) -> Iterator[Row]:
    def cell(
        instrument: str, workload: str, variant: str, block: int, threads: int, **more: Scalar
    ) -> Cell:
        pool = {"pool": POOL} if variant == "pool" else {}
        return _cell(
            "memory",
            instrument,
            workload,
            variant,
            block,
            threads,
            seconds=plan.seconds,
            **pool,
            **more,
        )

    for block in (KIB, MIB, 10 * MIB):
        for threads in plan.threads(1, 2):
            for workload in ("RS", "WS"):
                for tool, routine in (
                    ("pmbw", "UnrollLoop"),
                    ("pmbw", "SimpleLoop"),
                    ("likwid-bench", ""),
                ):
                    ours = cell("rambench", workload, "block", block, threads)
                    theirs = cell(tool, workload, "block", block, threads)
                    bundle = f"memory {workload} {block} {threads}"
                    yield Row(
                        ours,
                        theirs,
                        "throughput",
                        AS_MUCH,
                        "",
                        bundle,
                        routine,
                        quick=block < 10 * MIB,
                    )
            ours, theirs = (
                cell(tool, "RWS", "block", block, threads) for tool in ("rambench", "likwid-bench")
            )
            yield Row(
                ours,
                theirs,
                "throughput",
                AS_MUCH,
                bundle=f"memory RWS {block} {threads}",
                quick=block == KIB,
            )
    for threads in plan.threads(1, 2):
        for workload in ("WS", "RWS"):
            for store in ("streaming", "temporal"):
                ours, theirs = (
                    cell(tool, workload, "pool", MIB, threads, store=store)
                    for tool in ("rambench", "likwid-bench")
                )
                bundle = f"memory {workload} pool {store} {threads}"
                yield Row(
                    ours,
                    theirs,
                    "throughput",
                    AS_MUCH,
                    bundle=bundle,
                    quick=threads == 1 and workload == "RWS",
                )
        # Blocks of 1 KiB are too small for the C library to stream them.
        ours = cell("rambench", "RWR", "pool", KIB, threads, store="temporal")
        theirs = cell("rambench", "RWR", "pool", KIB, threads, store="libc")
        yield Row(
            ours,
            theirs,
            "throughput",
            AS_MUCH,
            bundle=f"memory RWR pool {threads}",
            quick=threads == 1,
        )


def _latency(plan: Plan) -> Iterator[Row]:
    # pmbw asks for no huge pages: it has small ones unless the kernel gives huge ones to everybody.
    pages: dict[str, Scalar] = {"huge_pages": False} if plan.small_pages else {}
    for area in (16 * KIB, 256 * KIB, MIB, 10 * MIB, 64 * MIB, GIB):
        ours = _cell("memory", "rambench", "LAT", "", area, 1, seconds=plan.seconds, **pages)
        theirs = _cell("memory", "pmbw", "LAT", "", area, 1)
        bundle = f"memory LAT {area}"
        yield Row(ours, theirs, "latency", Target(0.95, 1.05), bundle=bundle, quick=area <= MIB)


def _disk(plan: Plan) -> Iterator[Row]:
    for record, size in DISK_SIZES.items():
        for threads in plan.threads(1, 2):
            amount: dict[str, Scalar] = {"size": size, "total": size, "warmup": 0.0}
            bundle = f"disk psync {record} {threads}"
            iozone = _cell("disk", "iozone", "ALL", "psync", record, threads, size=size)
            for workload in ("RS", "WS", "RR", "WR"):
                ours, fio = (
                    _cell("disk", tool, workload, "psync", record, threads, **amount)
                    for tool in ("diskbench", "fio")
                )
                # fio's buffers lie in small pages; of one page all buffers are alike.
                alike = (
                    ours
                    if record == 4 * KIB
                    else replace(ours, options={**ours.options, "huge_pages": False})
                )
                quick = record == 4 * KIB and threads == 1
                yield Row(alike, fio, "throughput", Target(0.98, 1.02), bundle=bundle, quick=quick)
                if alike != ours:
                    yield Row(ours, fio, "throughput", AS_MUCH, bundle=bundle)
                # With more processes than one IOZone sleeps for 20 s a run.
                if threads == 1:
                    yield Row(ours, iozone, "throughput", AS_MUCH, bundle=bundle, quick=quick)


def _depths(plan: Plan) -> Iterator[Row]:
    amount: dict[str, Scalar] = {
        "size": 256 * MIB,
        "seconds": max(1.0, plan.seconds),
        "warmup": 0.0,
    }
    for workload in ("RR", "WR"):
        for depth in (1, 4, 16, 64):
            ours, fio = (
                _cell("disk", tool, workload, f"io_uring-qd{depth}", 4 * KIB, 1, **amount)
                for tool in ("diskbench", "fio")
            )
            yield Row(
                ours,
                fio,
                "throughput",
                AS_MUCH,
                bundle=f"disk depth {workload} {depth}",
                quick=depth == 16,
            )


def _network(plan: Plan) -> Iterator[Row]:
    def cell(tool: str, workload: str, variant: str, message: int, streams: int) -> Cell:
        # iperf3 and qperf take whole seconds; neither side warms up.
        seconds = float(max(1, round(plan.seconds)))
        return _cell(
            "network", tool, workload, variant, message, streams, seconds=seconds, warmup=0.0
        )

    for route in ("loopback", "namespaces"):
        for message in (KIB, 32 * KIB):
            for streams in (1, 2, 4, 8):
                ours, theirs = (
                    cell(tool, "TCP", "", message, streams) for tool in ("netbench", "iperf3")
                )
                bundle = f"network TCP {message} {streams} {route}"
                yield Row(ours, theirs, "throughput", AS_MUCH, route, bundle, quick=streams == 1)
        theirs = cell("iperf3", "UDP", "", KIB, 1)
        for variant, target in (("", AS_MUCH), ("gso", Target(low=10.0))):
            ours = cell("netbench", "UDP", variant, KIB, 1)
            yield Row(
                ours,
                theirs,
                "throughput",
                target,
                route,
                f"network UDP {route}",
                quick=route == "loopback",
            )
        for workload in ("LAT-TCP", "LAT-UDP"):
            ours, theirs = (cell(tool, workload, "", 1, 1) for tool in ("netbench", "qperf"))
            bundle = f"network {workload} {route}"
            yield Row(
                ours, theirs, "latency", Target(high=1.0), route, bundle, quick=route == "loopback"
            )
