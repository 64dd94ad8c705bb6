"""What is compared with what, and with which target. Data: a new line of the table is a new ``Row``
here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from peakmark.catalogue import UNITS
from peakmark.cell import Cell, Scalar
from peakmark.formatting import format_size
from peakmark.tools import references
from peakmark.tools.programs import pmbw

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
GROUPS = ("cpu", "memory", "disk", "network")
PEAK = "instruction's peak"
CLOCK = "clock before and after"


@dataclass(frozen=True)
class Target:
    """Bounds of the median ratio own / reference, included unless ``strict``; None: no bound."""

    low: float | None = None
    high: float | None = None
    strict: bool = False

    def __str__(self) -> str:
        if self.low is not None and self.high is not None:
            return f"{self.low:g} to {self.high:g}"
        if self.low is not None:
            return f"{'above' if self.strict else 'at least'} {self.low:g}"
        return f"at most {self.high:g}"

    def holds(self, ratio: float) -> bool:
        """Whether one ratio, as measured and not as printed, lies within."""
        if self.strict and ratio == self.low:
            return False
        return (self.low is None or ratio >= self.low) and (self.high is None or ratio <= self.high)


AS_MUCH = Target(low=1.0)
ALIKE = Target(0.95, 1.05)
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
    bundle     rows with the same bundle are measured together: in each turn every cell of them runs
               once, in order
    routine    of a tool that ran several: which one, by the end of its name. Each has a line of its
               own, since the best of several runs would look faster than any of them on a machine
               that is not quiet
    quick      whether --quick measures it too
    working_set  bytes of the point of a ladder that is compared, at which the reference runs
    """

    ours: Cell
    reference: Cell | None
    metric: str
    target: Target
    route: str = ""
    bundle: str = ""
    routine: str = ""
    quick: bool = False
    working_set: int = 0

    @property
    def group(self) -> str:
        return self.ours.subsystem

    @property
    def name(self) -> str:
        """``RS block 1KiB x2``."""
        options = self.ours.options
        size = self.ours.block or self.working_set
        parts = [
            self.ours.workload,
            self.ours.variant or ("pool" if options.get("pool") else ""),
            format_size(size) if size else "",
            str(options.get("isa", "")),
            str(options.get("store", "")),
            f"x{self.ours.concurrency}",
            self.route,
        ]
        return " ".join(filter(None, parts))

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
    """What the command line decides, and what the machine is: seconds of one run, how large a share
    of the machine may be measured, bytes of its data caches from the first level on.
    """

    seconds: float
    cpus: int
    small_pages: bool
    caches: tuple[int, ...] = ()

    def threads(self, *wanted: int) -> tuple[int, ...]:
        """Those numbers of threads that have a CPU each."""
        return tuple(number for number in wanted if number <= self.cpus)


def rows(plan: Plan) -> list[Row]:
    """All rows, group by group."""
    kinds = (_cpu, _memory, _latency, _ladder, _c2c, _loaded, _disk, _depths, _network)
    return [row for kind in kinds for row in kind(plan)]


Point = tuple[str, str, int | None, int]
"""Workload, variant, block and number of threads."""


def _cell(subsystem: str, tool: str, point: Point, **more: Scalar) -> Cell:
    return Cell(subsystem, tool, *point, "any", 0, more)


def _cpu(plan: Plan) -> Iterator[Row]:
    for workload in ("DP", "SP", "HP", "QP", "FP32", "DPMIX", "FP32MIX", "QPDOT", *UNITS):
        for threads in plan.threads(1, 2):
            point: Point = (workload, "", None, threads)
            ours = _cell("cpu", "cpubench", point, seconds=plan.seconds)
            peak = Target(low=0.97 if workload.startswith("DP") else 0.95)
            bundle = f"cpu {workload} {threads}"
            quick = workload in ("DP", "QP")
            yield Row(ours, None, "rate", peak, bundle=bundle, quick=quick)
            # Work may lower the clock, and then the two differ by that; plain C lowers it nowhere.
            yield Row(ours, None, "clock", Target(high=1.05), bundle=bundle, quick=quick)
            if workload not in UNITS:
                plain = replace(ours, options={**ours.options, "isa": "scalar"})
                yield Row(plain, None, "clock", ALIKE, bundle=bundle, quick=quick)
            if workload in ("DP", "FP32"):
                likwid = _cell("cpu", "likwid-bench", point, seconds=plan.seconds)
                yield Row(ours, likwid, "rate", AS_MUCH, bundle=bundle, quick=workload == "DP")
            if workload == "DP":
                hpl = _cell("cpu", "hpl", point, budget_s=8.0)
                yield Row(ours, hpl, "rate", Target(low=1.0, strict=True), bundle=bundle)


def _memory(plan: Plan) -> Iterator[Row]:
    def row(ours: Cell, theirs: Cell, quick: bool, routine: str = "") -> Row:
        point = (ours.workload, ours.variant, ours.block, ours.concurrency)
        bundle = f"memory {point} {ours.options.get('store', '')}"
        return Row(ours, theirs, "throughput", AS_MUCH, "", bundle, routine, quick)

    for block in (KIB, MIB, 10 * MIB):
        for threads, workload in product(plan.threads(1, 2), ("RS", "WS", "RWS")):
            point: Point = (workload, "block", block, threads)
            ours, likwid, scans = (
                _cell("memory", tool, point, seconds=plan.seconds)
                for tool in ("rambench", "likwid-bench", "pmbw")
            )
            quick = block == KIB if workload == "RWS" else block < 10 * MIB
            for routine in ("UnrollLoop", "SimpleLoop") if workload != "RWS" else ():
                yield row(ours, scans, quick, routine)
            yield row(ours, likwid, quick)
    options: dict[str, Scalar] = {"seconds": plan.seconds, "pool": POOL}
    for threads in plan.threads(1, 2):
        for workload, store in product(("WS", "RWS"), ("streaming", "temporal")):
            ours, likwid = (
                _cell("memory", tool, (workload, "pool", MIB, threads), **options, store=store)
                for tool in ("rambench", "likwid-bench")
            )
            yield row(ours, likwid, threads == 1 and workload == "RWS")
        # Blocks of 1 KiB are too small for the C library to stream them.
        ours, libc = (
            _cell("memory", "rambench", ("RWR", "pool", KIB, threads), **options, store=store)
            for store in ("temporal", "libc")
        )
        yield row(ours, libc, threads == 1)


def _latency(plan: Plan) -> Iterator[Row]:
    # pmbw asks for no huge pages: it has small ones unless the kernel gives huge ones to everybody.
    pages: dict[str, Scalar] = {"huge_pages": False} if plan.small_pages else {}
    for area in (16 * KIB, 256 * KIB, MIB, 10 * MIB, 64 * MIB, GIB):
        ours = _cell("memory", "rambench", ("LAT", "", area, 1), seconds=plan.seconds, **pages)
        theirs = _cell("memory", "pmbw", ("LAT", "", area, 1))
        bundle = f"memory LAT {area}"
        yield Row(ours, theirs, "latency", ALIKE, bundle=bundle, quick=area <= MIB)


def _ladder(plan: Plan) -> Iterator[Row]:
    """A size inside each cache and one beyond the last, of which each doubling is a point."""
    first, last = (plan.caches[0] // 2, plan.caches[-1]) if plan.caches else (GIB, 0)
    sizes = [first << step for step in range(32) if first << step <= min(4 * last, GIB)]
    inside = [max(size for size in sizes if size <= cache // 2) for cache in plan.caches]
    # likwid-bench and pmbw ask for no huge pages.
    variant = "small" if plan.small_pages else "huge"
    longer: dict[str, Scalar] = {"seconds": plan.seconds * len(sizes), "steps": 1, "pool": GIB}
    ours, latency = (
        _cell("memory", "rambench", (workload, variant, None, 1), **longer)
        for workload in ("LADDER-RS", "LADDER-LAT")
    )
    for size in dict.fromkeys([*inside, *sizes[-1:]]):
        for other, routine in (("likwid-bench", ""), ("pmbw", "UnrollLoop")):
            if other == "pmbw" and size not in pmbw.AREAS:
                continue
            theirs = _cell("memory", other, ("RS", "block", size, 1), seconds=plan.seconds)
            bundle = "memory LADDER-RS"
            yield Row(ours, theirs, "throughput", AS_MUCH, "", bundle, routine, working_set=size)
    # In larger areas pmbw comes to each line eight times, the ladder once: other things are counted.
    for size in inside[:1]:
        theirs = _cell("memory", "pmbw", ("LAT", "", size, 1))
        bundle = "memory LADDER-LAT"
        yield Row(latency, theirs, "latency", ALIKE, "", bundle, working_set=size)


def _c2c(plan: Plan) -> Iterator[Row]:
    for threads in plan.threads(2):
        point: Point = ("C2C", "", None, threads)
        ours, theirs = (
            _cell("memory", tool, point) for tool in ("rambench", "core-to-core-latency")
        )
        yield Row(ours, theirs, "core_to_core", ALIKE, bundle="memory C2C")


def _loaded(plan: Plan) -> Iterator[Row]:
    longer: dict[str, Scalar] = {"seconds": 20 * plan.seconds}  # a point takes a twentieth
    # loaded-latency asks for no huge pages, as pmbw.
    pages: dict[str, Scalar] = {"huge_pages": False} if plan.small_pages else {}
    # rambench's loads walk four times the last cache, and no more than the pool: so does the reference.
    pool = 4 * plan.caches[-1] if plan.caches else POOL // 4
    for threads in plan.threads(2):
        point: Point = ("LOADED", "", None, threads)
        ours = _cell("memory", "rambench", point, pool=pool, **longer, **pages)
        theirs = _cell("memory", "loaded-latency", point, pool=pool, seconds=plan.seconds)
        near = Target(0.97, 1.03)
        yield Row(ours, theirs, "loaded_latency", near, bundle=f"memory LOADED {threads}")


def _disk(plan: Plan) -> Iterator[Row]:
    for record, size in DISK_SIZES.items():
        for threads in plan.threads(1, 2):
            amount: dict[str, Scalar] = {"size": size, "total": size, "warmup": 0.0}
            bundle = f"disk psync {record} {threads}"
            iozone = _cell("disk", "iozone", ("ALL", "psync", record, threads), size=size)
            for workload in ("RS", "WS", "RR", "WR"):
                point: Point = (workload, "psync", record, threads)
                ours = _cell("disk", "diskbench", point, **amount)
                fio = _cell("disk", "fio", point, **amount)
                quick = record == 4 * KIB and threads == 1
                yield Row(ours, fio, "throughput", Target(0.98, 1.02), bundle=bundle, quick=quick)
                # With more processes than one IOZone sleeps for 20 s a run.
                if threads == 1:
                    yield Row(ours, iozone, "throughput", AS_MUCH, bundle=bundle, quick=quick)


def _depths(plan: Plan) -> Iterator[Row]:
    seconds = max(1.0, plan.seconds)
    amount: dict[str, Scalar] = {"size": 256 * MIB, "seconds": seconds, "warmup": 0.0}
    for workload in ("RR", "WR"):
        for depth in (1, 4, 16, 64):
            point: Point = (workload, f"io_uring-qd{depth}", 4 * KIB, 1)
            ours, fio = (_cell("disk", tool, point, **amount) for tool in ("diskbench", "fio"))
            bundle = f"disk depth {workload} {depth}"
            yield Row(ours, fio, "throughput", AS_MUCH, bundle=bundle, quick=depth == 16)


def _network(plan: Plan) -> Iterator[Row]:
    def cell(tool: str, point: Point) -> Cell:
        # The reference tools take whole seconds; neither side warms up.
        seconds = float(max(1, round(plan.seconds)))
        return _cell("network", tool, point, seconds=seconds, warmup=0.0)

    for route in ("loopback", "namespaces"):
        here = route == "loopback"
        points = list(product((KIB, 32 * KIB), (1, 2, 4, 8)))
        if here:
            points += product((4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB), (1, 2))
        for message, streams in points:
            point: Point = ("TCP", "", message, streams)
            ours, theirs = (cell(tool, point) for tool in ("netbench", "iperf3"))
            bundle = f"network TCP {message} {streams} {route}"
            quick = streams == 1 and message in (KIB, 32 * KIB)
            yield Row(ours, theirs, "throughput", AS_MUCH, route, bundle, quick=quick)
        theirs = cell("iperf3", ("UDP", "", KIB, 1))
        bundle = f"network UDP {route}"
        for variant, target in (("", AS_MUCH), ("gso", Target(low=10.0))):
            ours = cell("netbench", ("UDP", variant, KIB, 1))
            yield Row(ours, theirs, "throughput", target, route, bundle, quick=here)
        for workload in ("LAT-TCP", "LAT-UDP"):
            ours = cell("netbench", (workload, "", 1, 1))
            bundle = f"network {workload} {route}"
            # The reference tools that exchange messages of the size of a row, as an own kernel does.
            every = [(name, row) for name, tool in references().items() for row in tool.rows]
            for name, coverage in every:
                if workload not in coverage.workloads or not coverage.per_block:
                    continue
                theirs = cell(name, (coverage.cell or workload, "", 1, 1))
                yield Row(ours, theirs, "latency", Target(high=1.0), route, bundle, quick=here)
