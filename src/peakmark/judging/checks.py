"""What physics forbids and what noise makes doubtful: notes on a row, facts first, then the remedy.

Pure functions. A note marks a row; it never changes or removes a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from peakmark.catalogue import KERNELS
from peakmark.formatting import significant
from peakmark.judging import disturbance, spread, statistics
from peakmark.judging.notes import ORDER, Level, Note
from peakmark.judging.statistics import Summary
from peakmark.peaks import Peak, efficiency
from peakmark.peaks.words import quantity
from peakmark.units import format_size

RAM_FILE_SYSTEMS = ("tmpfs", "ramfs", "devtmpfs", "hugetlbfs")
NEAR_LIMIT = 0.7  # share of a cgroup's limit from which on it is the limit that is measured
HPL_THRESHOLD = 16.0  # HPL's own limit of the scaled residual


@dataclass(frozen=True)
class Thresholds:
    """Shares and factors beyond which a row is marked.

    limit    share of the physical limit                     clock  change of the clock during or between repetitions
    loss     share of UDP messages that did not arrive
    device   least share of the bytes that the disk moved    pool   least multiple of the last cache that a pool must be
    band     factor between two instruments for the same quantity
    lowered  by how much less the clock is under the work than before and after it
    others   CPUs' worth of time used by other programs      steal  share of the CPUs' time taken by the hypervisor
    shortest seconds that a run should last                  core   least share of a core's pipes
    flush    seconds below which a flush moved nothing       flushed  bytes after which that is remarkable
    """

    limit: float = 1.05
    clock: float = 0.05
    lowered: float = 0.04
    loss: float = 0.01
    device: float = 0.9
    pool: float = 4.0
    band: float = 1.5
    others: float = 0.2
    steal: float = 0.02
    shortest: float = 0.5
    core: float = 0.75
    flush: float = 1e-3
    flushed: float = 1e8


DEFAULT = Thresholds()


@dataclass(frozen=True)
class Run:
    """One repetition: its value in SI units, the measurement's details, the record's context and the cell's options."""

    value: float
    details: Mapping[str, Any] = field(default_factory=dict)
    context: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    def known(self, name: str) -> Any:
        """A detail, else the context's entry of that name, else None."""
        value = self.details.get(name)
        return self.context.get(name) if value is None else value


@dataclass(frozen=True)
class Measured:
    """What one instrument measured in one row; ``runs`` in the order of the repetitions, at least one.

    centre  the summarised value that the table shows (median or mean)
    nominal_hz  the CPU's nominal clock by the site file; without it the facts say it
    """

    subsystem: str
    instrument: str
    workload: str
    variant: str
    block: int | None
    concurrency: int
    metric: str
    unit: str
    runs: Sequence[Run]
    summary: Summary
    centre: float
    peak: Peak
    facts: Mapping[str, Any] = field(default_factory=dict)
    nominal_hz: float | None = None

    def fact(self, part: str, name: str) -> Any:
        """A fact of the machine, None where there is none."""
        return (self.facts.get(part) or {}).get(name)

    @property
    def in_time(self) -> list[Run]:
        """The runs as they were measured: a repetition that had failed came after the others."""
        return sorted(self.runs, key=lambda run: str(run.context.get("started") or ""))

    @property
    def noises(self) -> list[Mapping[str, Any]]:
        """What else went on, of every run that tells it."""
        return [run.context["noise"] for run in self.in_time if run.context.get("noise")]

    @property
    def server_noises(self) -> dict[str, list[Mapping[str, Any]]]:
        """The same on the nodes of the servers, by host."""
        found: dict[str, list[Mapping[str, Any]]] = {}
        for run in self.in_time:
            if run.context.get("server_noise"):
                found.setdefault(str(run.context.get("server_host")), []).append(run.context["server_noise"])
        return found

    @property
    def spare_cpus(self) -> float:
        """CPUs of the node that the row's own threads leave to others; 0 where the threads are not pinned or all are used."""
        total = self.fact("cpu", "threads")
        if self.subsystem not in ("cpu", "memory") or not isinstance(total, int):
            return 0.0
        return float(max(0, total - self.concurrency))

    def details(self, name: str) -> list[float]:
        """A numeric detail of every run that has it."""
        found = [run.known(name) for run in self.runs]
        return [float(value) for value in found if isinstance(value, int | float) and not isinstance(value, bool)]


def check_row(row: Measured, thresholds: Thresholds = DEFAULT) -> list[Note]:
    """All notes on a row, the heaviest first."""
    notes = [note for check in CHECKS for note in check(row, thresholds)]
    return sorted(notes, key=lambda note: ORDER.index(note.level))


# What instruments that disagree may differ in, beside what each counts.
DIFFERENCES = {
    "cpu": "instruction sets, thread placement",
    "memory": "instruction sets, page sizes, thread placement",
    "disk": "buffers, files",
    "network": "socket options, the CPUs of both ends",
}


def check_agreement(
    values: Mapping[str, float],
    unit: str,
    thresholds: Thresholds = DEFAULT,
    own: str | None = None,
    compare: str = DIFFERENCES["cpu"],
) -> list[Note]:
    """Notes for instruments that disagree about one quantity by more than the band.

    values  summarised value by instrument, in ``unit``; own: compare this one with each other (default: all pairs)
    compare  in what they may differ
    """
    notes = []
    names = [name for name, value in values.items() if value > 0]
    for number, first in enumerate(names):
        for second in names[number + 1 :]:
            if own is not None and own not in (first, second):
                continue
            ratio = values[first] / values[second]
            factor = max(ratio, 1 / ratio)
            if factor > thresholds.band:
                text = (
                    f"{first} says {quantity(values[first], unit)} and {second} {quantity(values[second], unit)}, a"
                    f" factor {significant(factor, 2)}: they do not measure the same, or one did not run as meant; compare their"
                    f" {compare} and what each counts before using either"
                )
                notes.append(Note("disagreement", text, Level.UNSURE))
    return notes


def _above_limit(row: Measured, thresholds: Thresholds) -> Iterator[Note]:
    share = efficiency(row.centre, row.peak)
    if share is None or share <= thresholds.limit:
        return
    remedy = "the limit or what was counted is wrong; state the machine's own values in the site file"
    if "nominal clock" in row.peak.formula:
        remedy = (
            "the limit holds at the nominal clock and the cores ran faster; set cpu.clock: observed in the site file"
        )
    elif row.subsystem == "disk":
        remedy = (
            "a cache answered instead of the disk, or the datasheet is another disk's; make size: larger than memory"
        )
    elif row.subsystem == "memory" and row.variant == "pool":
        remedy = "caches served part of it, or the memory has more channels than stated; make pool: larger"
    yield Note("above-limit", f"{share:.0%} of the physical limit: {remedy}", Level.WRONG)


def _never_reached_device(row: Measured, thresholds: Thresholds) -> Iterator[Note]:
    if row.subsystem != "disk":
        return
    names = {run.details.get("filesystem") for run in row.runs} | {row.fact("storage", "filesystem")}
    ram = sorted(name for name in names if name in RAM_FILE_SYSTEMS)
    if ram:
        text = f"{ram[0]} is a file system in memory: this is no disk figure; set scratch: to a directory on a disk"
        yield Note("ram-file-system", text, Level.WRONG)
        return
    shares = [
        run.details["device_bytes"] / run.details["work"]
        for run in row.runs
        if isinstance(run.details.get("device_bytes"), int | float) and run.details.get("work")
    ]
    if shares and min(shares) < thresholds.device:
        text = (
            f"the device moved only {min(shares):.0%} of the bytes: the rest came from or stayed in a cache;"
            " use a file system that supports O_DIRECT"
        )
        yield Note("cached", text, Level.WRONG)
    elif any(run.details.get("direct") is False for run in row.runs):
        text = "the file system refused O_DIRECT: the page cache takes part; set scratch: to one that supports it"
        yield Note("buffered", text, Level.WRONG)


def _unflushed(row: Measured, thresholds: Thresholds) -> Iterator[Note]:
    """A flush that takes no time means that nothing waited in the disk: it protects its cache, or a host keeps the data."""
    if row.subsystem != "disk" or row.instrument != KERNELS["disk"] or not row.workload.startswith("W"):
        return
    pairs = [(run.details.get("flush_seconds"), run.details.get("work")) for run in row.runs]
    known = [(float(flush), float(work)) for flush, work in pairs if flush is not None and work]
    if not known or row.metric != "throughput":
        return
    flush, work = max(known, key=lambda pair: pair[0])
    if flush < thresholds.flush and work > thresholds.flushed:
        held = (
            "the host of this virtual machine may hold the data in its memory" if row.fact("cpu", "virtualised") else ""
        )
        text = (
            f"the flush after {quantity(work, 'B', 2)} took {quantity(flush, 's', 2)}: the data had left the disk's own cache, or"
            f" {held or 'the disk protects that cache against loss of power'}; compare with the disk's datasheet"
        )
        yield Note("flush", text, Level.UNSURE if held else Level.NOTE)


def _slow_core(row: Measured, thresholds: Thresholds) -> Iterator[Note]:
    """Fewer operations a cycle than any kernel here does on its own core, and no reason for it in the record."""
    if row.instrument != KERNELS["cpu"] or row.peak.kind in ("site", "unknown"):
        return
    share = efficiency(row.centre, row.peak)
    asked = {str(run.options.get("isa") or "auto") for run in row.runs}
    cores = row.fact("cpu", "cores")
    if share is None or share >= thresholds.core or asked != {"auto"} or (cores and row.concurrency > cores):
        return
    text = (
        f"the cores did {share:.0%} of the operations that their pipes allow at the clock they had: somebody else may be at"
        " work on the other hardware thread of a core, which no counter here shows; repeat at another time or alone"
    )
    yield Note("slow-core", text, Level.UNSURE)


def _pool_in_cache(row: Measured, thresholds: Thresholds) -> Iterator[Note]:
    if row.subsystem != "memory" or row.variant != "pool":
        return
    caches = [cache for cache in row.fact("cpu", "caches") or () if cache["type"] != "instruction"]
    pools = row.details("working_set_bytes") or row.details("working_set")
    if not caches or not pools:
        return
    last = max(caches, key=lambda cache: int(cache["level"]))
    # Records of earlier versions do not tell which caches were reached: a thread reaches one.
    reached = [run.context["placed"]["last_level_bytes"] for run in row.runs if run.context.get("placed")]
    held = max(reached, default=0) or int(last["size"]) * min(int(last["count"]), row.concurrency)
    if min(pools) < thresholds.pool * held:
        text = (
            f"the pool of {format_size(int(min(pools)))} is less than {thresholds.pool:g} times the L{last['level']}"
            f" caches that its threads reach ({format_size(held)}): part of it is served by them; make pool: auto, or at least"
            f" {format_size(int(thresholds.pool * held))}"
        )
        yield Note("pool-in-cache", text, Level.WRONG)


_STORES = {
    "temporal": "ordinary stores, through the caches: each line is read before it is written, which is not counted",
    "streaming": "streaming stores, around the caches",
    "non-temporal": "streaming stores, around the caches",  # records of earlier versions
    "libc": "the stores of the C library: memcpy or memset of each block",
}


def _stores(row: Measured, _: Thresholds) -> Iterator[Note]:
    """Of which kind a memory row's stores are, where it could be another."""
    known = {str(run.details["store"]) for run in row.runs if run.details.get("store")}
    if row.subsystem == "memory" and row.variant == "pool":
        if len(known) > 1:
            text = f"repetitions wrote in different ways ({', '.join(sorted(known))}): measure the row anew"
            yield Note("stores-differ", text, Level.UNSURE)
        for store in known if len(known) == 1 else ():
            yield Note("stores", _STORES.get(store, store), Level.NOTE)


def _clock(row: Measured, thresholds: Thresholds) -> Iterator[Note]:
    pairs = [(run.known("clock_hz_before"), run.known("clock_hz_after")) for run in row.runs]
    known = [(float(before), float(after)) for before, after in pairs if before and after]
    if not known:
        return
    remedy = "fix the clock (governor performance, no other load) or repeat when the node is cool and idle"
    before, after = max(known, key=lambda pair: abs(pair[1] / pair[0] - 1))
    if abs(after / before - 1) > thresholds.clock:
        way = "fell" if after < before else "rose"
        text = f"the clock {way} by {abs(after / before - 1):.0%} during a run: {remedy}"
        yield Note("clock-moved", text, Level.UNSURE)
        return
    means = [(one + other) / 2 for one, other in known]
    if max(means) / min(means) - 1 > thresholds.clock:
        text = f"the clock of one repetition was {max(means) / min(means) - 1:.0%} above that of another: {remedy}"
        yield Note("clock-differs", text, Level.UNSURE)


def _clock_lowered(row: Measured, thresholds: Thresholds) -> Iterator[Note]:
    """Wide multiplications lower the clock of some cores, and only while they run."""
    seen = [[run.known(f"clock_hz_{when}") for when in ("before", "after", "loaded")] for run in row.runs]
    pairs = [(float(loaded), (float(one) + float(two)) / 2) for one, two, loaded in seen if one and two and loaded]
    if not pairs:
        return
    share = statistics.median([loaded / idle for loaded, idle in pairs])
    if share < 1 - thresholds.lowered:
        clock = quantity(statistics.median([loaded for loaded, _ in pairs]), "Hz", 3)
        text = f"the work itself lowers the clock by {1 - share:.1%}, to {clock}: the limit takes this lower one"
        yield Note("clock-lowered", text, Level.NOTE)


def _below_nominal(row: Measured, thresholds: Thresholds) -> Iterator[Note]:
    """A limit at the clock that was seen makes a throttled node look perfect: that clock is judged too."""
    nominal = row.nominal_hz or (row.fact("cpu", "clock_hz") or {}).get("nominal")
    clock = seen_clock(row.runs)
    if row.subsystem not in ("cpu", "memory") or not nominal or clock is None:
        return
    if clock < (1 - thresholds.clock) * nominal:
        text = (
            f"the cores ran at {quantity(clock, 'Hz', 3)}, below their nominal {quantity(nominal, 'Hz', 3)}: heat, a power"
            " limit, the governor or wide vector instructions held them back, and the limit above is that of the lower"
            f" clock{_share_at(row, clock, nominal)}; see cpupower frequency-info, and the node's cooling and power settings"
        )
        yield Note("below-nominal", text, Level.UNSURE)


def _share_at(row: Measured, clock: float, nominal: float) -> str:
    share = efficiency(row.centre, row.peak)
    if share is None or " clock" not in row.peak.formula:
        return ""
    return f" ({share * clock / nominal:.0%} of it at the nominal clock)"


def seen_clock(runs: Sequence[Run]) -> float | None:
    """Median of the clocks under the work of the runs that could tell it; if none could, of those before and after; Hz."""
    loaded = [float(clock) for run in runs if (clock := run.known("clock_hz_loaded"))]
    names = ("clock_hz_before", "clock_hz_after")
    found = loaded or [float(clock) for run in runs for name in names if (clock := run.known(name))]
    return statistics.median(found) if found else None


def _placement(row: Measured, _: Thresholds) -> Iterator[Note]:
    """Repetitions that were given other cores measured other things."""
    placed = [run.context["placed"] for run in row.runs if run.context.get("placed")]
    seen = sorted({(one["cores"], one["sockets"], len(one["numa_nodes"])) for one in placed})
    if row.subsystem in ("cpu", "memory") and len(seen) > 1:
        words = " and ".join(f"{c} cores of {s} sockets and {n} NUMA nodes" for c, s, n in seen)
        text = (
            f"repetitions ran on {words}: they are not alike; give every job of the row the same CPUs, or whole nodes"
        )
        yield Note("placement-differs", text, Level.UNSURE)


def _lost_round_trips(row: Measured, thresholds: Thresholds) -> Iterator[Note]:
    if row.workload != "LAT-UDP":
        return
    counts = [(run.known("lost") or 0, run.known("round_trips") or 0) for run in row.runs]
    losses = [lost / (lost + whole) for lost, whole in counts if lost]
    if losses and max(losses) > thresholds.loss:
        text = (
            f"up to {max(losses):.2%} of the round trips lost their datagram and are not in the mean: the link or a host"
            " between drops packets; see ip -s link and ethtool -S on both nodes"
        )
        yield Note("lost-round-trips", text, Level.UNSURE)


def _udp_loss(row: Measured, thresholds: Thresholds) -> Iterator[Note]:
    if row.workload != "UDP":
        return
    losses = []
    for run in row.runs:
        lost = run.details.get("lost")
        total = next((run.details[name] for name in ("sent", "packets") if run.details.get(name)), None)
        if run.details.get("loss") is not None:
            losses.append(float(run.details["loss"]))
        elif lost is not None and total:
            losses.append(float(lost) / float(total))
    if losses and max(losses) > thresholds.loss:
        fewer = " or use fewer streams" if row.concurrency > 1 else ""
        text = (
            f"up to {max(losses):.2%} of the messages were lost: the receiver's rate is shown; raise net.core.rmem_max"
            f"{fewer} to see what the network itself carries"
        )
        yield Note("udp-loss", text, Level.NOTE)


def _concurrency(row: Measured, _: Thresholds) -> Iterator[Note]:
    if row.subsystem not in ("cpu", "memory"):
        return
    given = (run.context.get("cpus") for run in row.runs)
    cpus = next((cpus for cpus in given if cpus), None) or row.fact("limits", "cpus_allowed")
    cores, quota = row.fact("limits", "physical_cores_allowed"), row.fact("limits", "cpu_quota")
    allowed = [run.context["allowed"] for run in row.runs if run.context.get("allowed")]
    if allowed:
        cores = min(one["cores"] for one in allowed)
        quota = min((one["cpu_quota"] for one in allowed if one["cpu_quota"]), default=None)
    if cpus and row.concurrency > len(cpus):
        text = (
            f"{row.concurrency} threads shared {len(cpus)} CPUs: they waited for each other; ask Slurm for more CPUs or"
            " read this row as oversubscribed"
        )
        yield Note("oversubscribed", text, Level.WRONG)
    elif quota and row.concurrency > quota:
        text = f"{row.concurrency} threads had the time of {quota:g} CPUs (cgroup quota): ask for more CPUs"
        yield Note("cpu-quota", text, Level.UNSURE)
    elif cores and row.concurrency > cores:
        text = f"{row.concurrency} threads on {cores} cores: hardware threads of a core share its units"
        yield Note("shared-cores", text, Level.NOTE)


def _spread(row: Measured, _: Thresholds) -> Iterator[Note]:
    in_time = [run.value for run in row.in_time]
    first, trend = spread.first_differs(in_time), spread.drifts(in_time)
    if first is not None:
        text = f"the first repetition is {first:+.0%} from the others: warm up longer (warmup:)"
        yield Note("first-differs", text, Level.UNSURE)
    elif trend is not None:
        text = (
            f"values drift by {trend.relative:+.0%} from the first to the last repetition (p = {trend.p:.2g}"
            f"{disturbance.heat(row.noises)}): the machine changed meanwhile (heat, filling disk, other users); repeat on an idle node"
        )
        yield Note("drift", text, Level.UNSURE)
    if spread.is_wide(in_time):
        text = f"values spread by {row.summary.cv:.0%} of their mean: repeat on an idle node, or more often, or longer"
        yield Note("spread", text, Level.UNSURE)
    odd = spread.outliers([run.value for run in row.runs])
    if odd.places:
        numbers = ", ".join(str(index + 1) for index in odd.places)
        yield Note("outlier", f"repetition {numbers} of {odd.total} lies far from the others and is kept", Level.NOTE)


def _disturbed(row: Measured, thresholds: Thresholds) -> Iterator[Note]:
    yield from disturbance.find(row.noises, thresholds.others, thresholds.steal, spare=row.spare_cpus)
    for host, noises in row.server_noises.items():
        where = f" on {host}, the server's node,"
        yield from disturbance.find(noises, thresholds.others, thresholds.steal, where)


def _few(row: Measured, _: Thresholds) -> Iterator[Note]:
    n = row.summary.n
    if n == 1:
        text = f"measured once: nothing is known of the spread; set repetitions: {statistics.ENOUGH} or more"
        yield Note("few", text, Level.NOTE)
    elif not row.summary.enough:
        text = (
            f"n = {n}: the range from lowest to highest value encloses the median with {row.summary.level:.0%} only;"
            f" no single row is called faster than another; set repetitions: {statistics.ENOUGH} or more for 95 %"
        )
        yield Note("few", text, Level.NOTE)


def _short(row: Measured, thresholds: Thresholds) -> Iterator[Note]:
    seconds = row.details("seconds")
    if row.instrument in KERNELS.values() and seconds and max(seconds) < thresholds.shortest:
        text = (
            f"runs of {significant(max(seconds), 2)} s: caches, clocks and neighbours may not have settled; set seconds: 1"
            " or more for figures to hand in"
        )
        yield Note("short-runs", text, Level.NOTE)


def _loopback(row: Measured, _: Thresholds) -> Iterator[Note]:
    if row.subsystem != "network":
        return
    networks = [run.context.get("network") or {} for run in row.runs]
    if any(one.get("loopback") for one in networks):
        text = "over loopback: client and server share one machine, no network lies between them; use two nodes"
        yield Note("loopback", text, Level.NOTE)


def _limited_disk(row: Measured, _: Thresholds) -> Iterator[Note]:
    """A limit of the cgroup that the measurement came near to; one far above it changes nothing."""
    limits: Mapping[str, int] = next((run.context["io_limits"] for run in row.runs if run.context.get("io_limits")), {})
    way = {"R": "read", "W": "write"}.get(row.workload[:1], "")
    block = row.block or 1
    rate = {"throughput": row.centre / block, "iops": row.centre, "latency": row.concurrency / row.centre}
    operations = rate.get(row.metric, 0.0)
    for name, value, unit in ((f"{way}_bps", operations * block, "B/s"), (f"{way}_iops", operations, "1/s")):
        limit = limits.get(name)
        if limit and value > NEAR_LIMIT * limit:
            text = (
                f"a cgroup lets this job {way} at most {quantity(limit, unit, 3)} on the disk: that limit was measured,"
                " not the disk; ask for a job without it (io.max, blkio.throttle)"
            )
            yield Note("io-limit", text, Level.WRONG)


def _shaped(row: Measured, _: Thresholds) -> Iterator[Note]:
    shapes = {str((run.context.get("network") or {}).get("shaping") or "") for run in row.runs} - {""}
    if shapes:
        text = (
            f"the interface is slowed down on purpose ({'; '.join(sorted(shapes))}): that was measured, not the link;"
            " see tc qdisc show, and have it removed"
        )
        yield Note("shaped", text, Level.WRONG)


def _residual(row: Measured, _: Thresholds) -> Iterator[Note]:
    residuals = row.details("residual") if row.instrument == "hpl" else []
    if residuals and not max(residuals) < HPL_THRESHOLD:
        text = f"HPL's residual is {max(residuals):.3g}, allowed is less than {HPL_THRESHOLD:g}: the result is wrong"
        yield Note("residual", text, Level.WRONG)


CHECKS: tuple[Callable[[Measured, Thresholds], Iterator[Note]], ...] = (
    _above_limit,
    _never_reached_device,
    _unflushed,
    _slow_core,
    _pool_in_cache,
    _stores,
    _clock,
    _clock_lowered,
    _below_nominal,
    _placement,
    _udp_loss,
    _lost_round_trips,
    _limited_disk,
    _shaped,
    _residual,
    _concurrency,
    _spread,
    _disturbed,
    _few,
    _short,
    _loopback,
)
