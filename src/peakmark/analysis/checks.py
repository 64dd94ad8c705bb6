"""What physics forbids and what noise makes doubtful, as messages on a row.

Pure functions. A message marks a row; it never changes or removes a value.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

from peakmark import statistics
from peakmark.analysis import core_checks
from peakmark.analysis.row import MOST, Details, Measured, Messages
from peakmark.catalogue import KERNELS, POOLS
from peakmark.formatting import format_size
from peakmark.messages import ORDER, Message, Severity, message
from peakmark.statistics import ENOUGH

LOSS = 0.01
"""Share of UDP messages that did not arrive: above it a rate is not a throughput in the sense of RFC
2544, which has no loss at all.
"""
HEAVY_LOSS = 0.1
"""So much that the sender's rate decides what arrives."""
MOST_LOSS = 0.5
"""More than did arrive."""
DEVICE = 0.9
"""Least share of the bytes that the disk moved."""
NEAR_LIMIT = 0.7
"""Share of a cgroup's limit from which on it is the limit that is measured."""
FLUSH_S = 1e-3
"""A shorter flush moved nothing."""
FLUSHED = 1e8
"""Bytes after which that is remarkable."""
POOL = 4.0
"""Least multiple of the last cache that a pool must be."""
SHORTEST_S = 0.5
"""A run should last so long."""
RESOLVED = 2.5
"""Steps of a program's last digit from the median that say nothing about the machine: two, with room
for rounding.
"""
QUIET = 0.05
"""The coefficient of variation up to which a machine counts as quiet."""
DRIFT_P = 0.015
HOSTS_P = 0.05
HPL_THRESHOLD = 16.0
"""HPL's own limit of the scaled residual."""
RAM_FILE_SYSTEMS = ("tmpfs", "ramfs", "devtmpfs", "hugetlbfs")
STORES = ("temporal", "streaming", "libc")
DEVICES = {"disk": ("storage", "device"), "network": ("network", "interface")}
"""Subsystem -> part of the facts, and the fact that names the device."""


def above_limit(row: Measured) -> Messages:
    share = row.limit.share(row.centre)
    if share is None or share <= MOST:
        return
    case = ""
    if row.limit.kind == "at_most":
        case = "bound"
    elif row.limit.clock == "nominal":
        case = "nominal"
    elif row.subsystem == "disk":
        case = "disk"
    elif row.subsystem == "memory" and row.variant in POOLS:
        case = "pool"
    yield message("above-limit", Severity.WRONG, case=case, share=share)


def residual(row: Measured) -> Messages:
    residuals = row.details("residual") if row.instrument == "hpl" else []
    if residuals and not max(residuals) < HPL_THRESHOLD:
        yield message("residual", Severity.WRONG, residual=max(residuals), allowed=HPL_THRESHOLD)


def scatter(row: Measured) -> Messages:
    """What the repetitions tell about themselves: of a row whose figure stands, the clean ones. What
    a program's resolution explains is left out.
    """
    runs = core_checks.clean_runs(row) or row.in_time
    values = [run.value for run in runs]
    step = max(row.details("resolution"), default=0.0)
    middle = statistics.median(values)
    if max(abs(value - middle) for value in values) < RESOLVED * step:
        return
    trend = drifts(values)
    if trend is not None:
        yield message("drift", Severity.UNSURE, more=trend.relative, p=trend.p)
    spread = statistics.summarise(values).cv
    if spread is not None and is_wide(values):
        yield message("spread", Severity.UNSURE, spread=spread)


def widest(n: int) -> float:
    """The sample coefficient of variation that a quiet machine passes in 2 % of rows of ``n`` >= 2
    values [chi].
    """
    from scipy import stats

    return QUIET * math.sqrt(float(stats.chi2.ppf(0.98, n - 1)) / (n - 1))


def is_wide(values: Sequence[float]) -> bool:
    """Whether the values spread more than those of a quiet machine would."""
    summary = statistics.summarise(values)
    return summary.cv is not None and summary.cv > widest(summary.n)


def drifts(values: Sequence[float]) -> statistics.Drift | None:
    """The trend over the values in the order of time, None unless it is larger than the spread
    explains.
    """
    trend = statistics.drift(values)
    if trend is None or trend.p > DRIFT_P or abs(trend.relative) <= QUIET:
        return None
    return trend


def hosts(row: Measured) -> Messages:
    """Hosts whose values differ beyond chance.

    Of two hosts the rank sum test counts exactly: three repetitions on each can show nothing, four
    can.
    """
    by_host = defaultdict(list)
    for run in row.runs:
        by_host[run.where].append(run.value)
    groups = list(by_host.values())
    if len(groups) < 2:
        return
    if len(groups) == 2:
        p = statistics.rank_test([(groups[0], groups[1])])
    else:
        p = statistics.kruskal_wallis(groups)
    medians = {host: statistics.median(values) for host, values in by_host.items()}
    lowest, *_, highest = sorted(medians, key=medians.__getitem__)
    more = medians[highest] / medians[lowest] - 1
    if p <= HOSTS_P and more > 0:
        yield message("hosts-differ", highest=highest, lowest=lowest, share=more, p=p)


def few(row: Measured) -> Messages:
    n = row.summary.n
    if n == 1:
        yield message("few", case="once", enough=ENOUGH)
    elif not row.summary.enough:
        yield message("few", n=n, level=row.summary.level, enough=ENOUGH)


def short(row: Measured) -> Messages:
    seconds = row.details("seconds")
    if row.instrument in KERNELS.values() and seconds and max(seconds) < SHORTEST_S:
        yield message("short-runs", seconds=max(seconds))


def losses(row: Measured) -> Messages:
    """Messages of UDP, or round trips, that were lost."""
    shares = [_lost(run.details) for run in row.runs]
    most = max(shares) if row.workload in ("UDP", "LAT-UDP") else 0.0
    if most <= LOSS:
        return
    if row.workload == "LAT-UDP":
        yield message("lost-round-trips", Severity.UNSURE, share=most)
        return
    level, case = Severity.NOTE, ""
    if most > MOST_LOSS:
        level, case = Severity.WRONG, "overrun"
    elif most > HEAVY_LOSS:
        level, case = Severity.UNSURE, "pushed"
    fewer = message("fewer-streams") if row.concurrency > 1 else ""
    yield message("udp-loss", level, case=case, share=most, fewer=fewer)


def _lost(details: Details) -> float:
    """Share of the messages or round trips of a repetition that were lost."""
    lost = details.get("lost") or 0
    sent = details.get("sent") or lost + (details.get("round_trips") or 0)
    return float(details.get("loss") or (lost / sent if lost else 0.0))


def path(row: Measured) -> Messages:
    """What lies between the two ends of a network: nothing, or a limit that was set on purpose."""
    networks = [run.context.get("network") or {} for run in row.runs]
    shapes = {str(network["shaping"]) for network in networks if network.get("shaping")}
    if shapes:
        yield message("shaped", Severity.WRONG, shapes="; ".join(sorted(shapes)))
    if row.subsystem == "network" and any(network.get("loopback") for network in networks):
        yield message("loopback")


def never_reached_device(row: Measured) -> Messages:
    if row.subsystem != "disk":
        return
    of_runs = [run.details for run in row.runs]
    names = [row.fact("storage", "filesystem"), *(of_run.get("filesystem") for of_run in of_runs)]
    ram = [name for name in names if name in RAM_FILE_SYSTEMS]
    moved = [of_run for of_run in of_runs if of_run.get("device_bytes") is not None]
    shares = [of_run["device_bytes"] / of_run["work"] for of_run in moved if of_run.get("work")]
    if ram:
        yield message("ram-file-system", Severity.WRONG, file_system=ram[0])
    elif shares and min(shares) < DEVICE:
        yield message("cached", Severity.WRONG, share=min(shares))
    elif any(of_run.get("direct") is False for of_run in of_runs):
        yield message("buffered", Severity.WRONG)


def unflushed(row: Measured) -> Messages:
    """A flush that takes no time means that nothing waited in the disk: it protects its cache, or a
    host keeps the data.
    """
    if row.instrument != KERNELS["disk"] or row.metric != "throughput" or row.workload[0] != "W":
        return
    pairs = [(run.details.get("flush_seconds"), run.details.get("work")) for run in row.runs]
    known = [(float(flush), float(work)) for flush, work in pairs if flush is not None and work]
    flush, work = max(known, default=(FLUSH_S, 0.0))
    if flush < FLUSH_S and work > FLUSHED:
        held = row.fact("cpu", "virtualised")
        level, case = (Severity.UNSURE, "") if held else (Severity.NOTE, "safe")
        yield message("flush", level, case=case, flush=flush, megabytes=work / 1e6)


def limited_disk(row: Measured) -> Messages:
    """A limit of the cgroup that the measurement came near to; one far above it changes nothing."""
    limits = row.runs[0].context.get("io_limits") or {}
    way = "write" if row.workload.startswith("W") else "read"
    block = row.block or 1
    operations = row.concurrency / row.centre if row.metric == "latency" else row.centre
    if row.metric == "throughput":
        operations /= block
    rates = {"MB/s": (operations * block, "bps", 1e-6), "IOPS": (operations, "iops", 1.0)}
    for unit, (used, name, factor) in rates.items():
        limit = limits.get(f"{way}_{name}")
        if limit and used > NEAR_LIMIT * limit:
            rate = message(unit, rate=limit * factor)
            yield message("io-limit", Severity.WRONG, way=way, rate=rate)


def pool_in_cache(row: Measured) -> Messages:
    caches = [cache for cache in row.fact("cpu", "caches") or () if cache["type"] != "instruction"]
    pools = row.details("working_set_bytes") or row.details("working_set")
    is_pool = row.variant in POOLS or row.metric == "loaded_latency"
    if not (is_pool and caches and pools):
        return
    last = max(caches, key=lambda cache: int(cache["level"]))
    # Where the placement is not known, each thread reaches one cache.
    reached = [place["last_level_bytes"] for place in row.placed]
    held = max(reached, default=last["size"] * min(last["count"], row.concurrency))
    if min(pools) < POOL * held:
        sizes = {"pool": min(pools), "held": held, "needed": POOL * held}
        named = {name: format_size(int(size)) for name, size in sizes.items()}
        level = str(last["level"])
        yield message("pool-in-cache", Severity.WRONG, times=POOL, level=level, **named)


def stores(row: Measured) -> Messages:
    """Of which kind a memory row's stores are, where it could be another."""
    known = {str(run.details["store"]) for run in row.runs if run.details.get("store")}
    if row.variant in POOLS and len(known) == 1:
        (store,) = known
        yield message("stores", case=store if store in STORES else "", store=store)


_EVERYWHERE = {
    "memory-corrected": ("ce_count",),
    "memory-uncorrected": ("ue_count",),
    "machine-check": ("MCE", "THR", "DFR"),
    "pcie-corrected": ("aer_dev_correctable",),
    "pcie-uncorrected": ("aer_dev_nonfatal", "aer_dev_fatal"),
    "power-limited": ("package_power_limit_count",),
    "disk-hot": ("temp1_alarm",),
}
_OF_NETWORK = {
    "network-errors": ("rx_errors", "tx_errors"),
    "network-drops": ("rx_dropped", "tx_dropped"),
    "retransmits": ("RetransSegs",),
    "udp-overflow": ("RcvbufErrors",),
}
"""Code of the warning -> the kernel's counters. Those of the network say nothing of other rows."""
_NOTES = ("pcie-corrected", *_OF_NETWORK)
"""What healthy machines do too."""


def counters(row: Measured) -> Messages:
    """What counters of errors and throttling went on by, on the row's nodes."""
    codes = _EVERYWHERE | (_OF_NETWORK if row.subsystem == "network" else {})
    code_of = {name: code for code, names in codes.items() for name in names}
    for where, noises in row.noises:
        moved: dict[tuple[str, str], dict[int, int]] = defaultdict(Counter)
        for number, noise in enumerate(noises):
            for name, count in ((noise.get("during") or {}).get("moved") or {}).items():
                device, _, counter = name.partition(" ")
                if counter in code_of:
                    moved[code_of[counter], device][number] += count
        for (code, device), counts in moved.items():
            level = Severity.NOTE if code in _NOTES else Severity.UNSURE
            often = core_checks.in_how_many(len(counts), len(noises), where) or where
            yield message(code, level, device=device, count=sum(counts.values()), often=often)


def slow_link(row: Measured) -> Messages:
    """A device whose PCI Express link is narrower or slower than both ends could be: the limit is
    that of the link as it is.
    """
    part, device = DEVICES.get(row.subsystem, ("", ""))
    link = row.fact(part, "pcie")
    if link and any(link[f"current_{name}"] != link[f"max_{name}"] for name in ("width", "speed")):
        yield message("slow-link", device=row.fact(part, device), **link)


def check_row(row: Measured) -> list[Message]:
    """All notes on a row, the heaviest first."""
    notes = [note for check in CHECKS for note in check(row)]
    return sorted(notes, key=lambda note: ORDER.index(note.severity))


CHECKS: tuple[Callable[[Measured], Messages], ...] = (
    above_limit,
    never_reached_device,
    unflushed,
    core_checks.slow_core,
    core_checks.crowded,
    core_checks.waited,
    core_checks.overlap,
    core_checks.memory_load,
    pool_in_cache,
    stores,
    core_checks.clock,
    core_checks.below_nominal,
    core_checks.narrower,
    core_checks.placement,
    losses,
    limited_disk,
    residual,
    counters,
    slow_link,
    core_checks.concurrency,
    scatter,
    hosts,
    core_checks.disturbed,
    few,
    short,
    path,
)
