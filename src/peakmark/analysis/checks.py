"""What physics forbids and what noise makes doubtful, as messages on a row.

Pure functions. A message marks a row; it never changes or removes a value.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from peakmark import statistics
from peakmark.analysis import core_checks
from peakmark.analysis.row import MOST, Measured
from peakmark.catalogue import KERNELS, POOLS
from peakmark.limits import share as limit_share
from peakmark.messages import ORDER, Message, Severity, Value, message
from peakmark.statistics import ENOUGH
from peakmark.units import format_size

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


def scatter(row: Measured) -> Iterator[Message]:
    """What the repetitions tell about themselves: of a row whose figure stands, the clean ones. What
    a program's resolution explains is left out.
    """
    runs = core_checks.clean_runs(row) if core_checks.stands(row) else row.in_time
    in_time = [run.value for run in runs]
    if not _is_resolution(in_time, max(row.details("resolution"), default=0.0)):
        yield from _varies(in_time)


def _is_resolution(values: Sequence[float], step: float) -> bool:
    """Whether values lie as near to their median as a program tells that prints whole steps."""
    middle = statistics.median(values)
    return max(abs(value - middle) for value in values) < RESOLVED * step


def _varies(in_time: Sequence[float]) -> Iterator[Message]:
    first, trend = first_differs(in_time), drifts(in_time)
    if first is not None:
        yield message("first-differs", Severity.UNSURE, more=first)
    elif trend is not None:
        yield message("drift", Severity.UNSURE, more=trend.relative, p=trend.p)
    spread = statistics.summarise(in_time).cv
    if spread is not None and is_wide(in_time):
        yield message("spread", Severity.UNSURE, spread=spread)


def hosts(row: Measured) -> Iterator[Message]:
    by_host: dict[str, list[float]] = {}
    for run in row.runs:
        by_host.setdefault(run.where, []).append(run.value)
    apart = hosts_differ(by_host)
    if apart is not None:
        yield message(
            "hosts-differ", highest=apart.highest, lowest=apart.lowest, share=apart.share, p=apart.p
        )


def disturbed(row: Measured) -> Iterator[Message]:
    level = partial(core_checks.severity, row)
    yield from core_checks.noise_warnings(row.noises, level)
    for host, noises in row.server_noises.items():
        yield from core_checks.noise_warnings(noises, level, host)


def few(row: Measured) -> Iterator[Message]:
    n = row.summary.n
    if n == 1:
        yield message("few", case="once", enough=ENOUGH)
    elif not row.summary.enough:
        yield message("few", n=n, level=row.summary.level, enough=ENOUGH)


def short(row: Measured) -> Iterator[Message]:
    seconds = row.details("seconds")
    if row.instrument in KERNELS.values() and seconds and max(seconds) < SHORTEST_S:
        yield message("short-runs", seconds=max(seconds))


def lost_round_trips(row: Measured) -> Iterator[Message]:
    if row.workload != "LAT-UDP":
        return
    counts = [(run.known("lost") or 0, run.known("round_trips") or 0) for run in row.runs]
    losses = [lost / (lost + whole) for lost, whole in counts if lost]
    if losses and max(losses) > LOSS:
        yield message("lost-round-trips", Severity.UNSURE, share=max(losses))


def udp_loss(row: Measured) -> Iterator[Message]:
    if row.workload != "UDP":
        return
    losses = []
    for run in row.runs:
        lost = run.details.get("lost")
        total = next(
            (run.details[name] for name in ("sent", "packets") if run.details.get(name)), None
        )
        if run.details.get("loss") is not None:
            losses.append(float(run.details["loss"]))
        elif lost is not None and total:
            losses.append(float(lost) / float(total))
    if losses and max(losses) > LOSS:
        level, case = Severity.NOTE, ""
        if max(losses) > MOST_LOSS:
            level, case = Severity.WRONG, "overrun"
        elif max(losses) > HEAVY_LOSS:
            level, case = Severity.UNSURE, "pushed"
        fewer = message("fewer-streams") if row.concurrency > 1 else ""
        yield message("udp-loss", level, case=case, share=max(losses), fewer=fewer)


def loopback(row: Measured) -> Iterator[Message]:
    if row.subsystem != "network":
        return
    networks = [run.context.get("network") or {} for run in row.runs]
    if any(network.get("loopback") for network in networks):
        yield message("loopback")


def shaped(row: Measured) -> Iterator[Message]:
    shapes = {str((run.context.get("network") or {}).get("shaping") or "") for run in row.runs} - {
        ""
    }
    if shapes:
        yield message("shaped", Severity.WRONG, shapes="; ".join(sorted(shapes)))


RAM_FILE_SYSTEMS = ("tmpfs", "ramfs", "devtmpfs", "hugetlbfs")
NEAR_LIMIT = 0.7  # share of a cgroup's limit from which on it is the limit that is measured


def never_reached_device(row: Measured) -> Iterator[Message]:
    if row.subsystem != "disk":
        return
    names = {run.details.get("filesystem") for run in row.runs} | {
        row.fact("storage", "filesystem")
    }
    ram = sorted(name for name in names if name in RAM_FILE_SYSTEMS)
    if ram:
        yield message("ram-file-system", Severity.WRONG, file_system=ram[0])
        return
    shares = [
        run.details["device_bytes"] / run.details["work"]
        for run in row.runs
        if isinstance(run.details.get("device_bytes"), int | float) and run.details.get("work")
    ]
    if shares and min(shares) < DEVICE:
        yield message("cached", Severity.WRONG, share=min(shares))
    elif any(run.details.get("direct") is False for run in row.runs):
        yield message("buffered", Severity.WRONG)


def unflushed(row: Measured) -> Iterator[Message]:
    """A flush that takes no time means that nothing waited in the disk: it protects its cache, or a
    host keeps the data.
    """
    if (
        row.subsystem != "disk"
        or row.instrument != KERNELS["disk"]
        or not row.workload.startswith("W")
    ):
        return
    pairs = [(run.details.get("flush_seconds"), run.details.get("work")) for run in row.runs]
    known = [(float(flush), float(work)) for flush, work in pairs if flush is not None and work]
    if not known or row.metric != "throughput":
        return
    flush, work = max(known, key=lambda pair: pair[0])
    if flush < FLUSH_S and work > FLUSHED:
        held = bool(row.fact("cpu", "virtualised"))
        level, case = (Severity.UNSURE, "") if held else (Severity.NOTE, "safe")
        yield message("flush", level, case=case, flush=flush, megabytes=work / 1e6)


def limited_disk(row: Measured) -> Iterator[Message]:
    """A limit of the cgroup that the measurement came near to; one far above it changes nothing."""
    limits: Mapping[str, int] = next(
        (run.context["io_limits"] for run in row.runs if run.context.get("io_limits")), {}
    )
    way = {"R": "read", "W": "write"}.get(row.workload[:1], "")
    block = row.block or 1
    rate = {
        "throughput": row.centre / block,
        "iops": row.centre,
        "latency": row.concurrency / row.centre,
    }
    operations = rate.get(row.metric, 0.0)
    # Bytes per second as the tables of disks have them, whatever their size.
    for name, value, unit, factor in (
        ("bps", operations * block, "MB/s", 1e-6),
        ("iops", operations, "IOPS", 1.0),
    ):
        limit = limits.get(f"{way}_{name}")
        if limit and value > NEAR_LIMIT * limit:
            yield message(
                "io-limit", Severity.WRONG, way=way, rate=message(unit, rate=limit * factor)
            )


STORES = ("temporal", "streaming", "libc")


def pool_in_cache(row: Measured) -> Iterator[Message]:
    if row.variant not in POOLS and row.metric != "loaded_latency":
        return
    caches = [cache for cache in row.fact("cpu", "caches") or () if cache["type"] != "instruction"]
    pools = row.details("working_set_bytes") or row.details("working_set")
    if not caches or not pools:
        return
    last = max(caches, key=lambda cache: int(cache["level"]))
    # Where the placement is not known, each thread reaches one cache.
    reached = [
        run.context["placed"]["last_level_bytes"] for run in row.runs if run.context.get("placed")
    ]
    held = max(reached, default=0) or int(last["size"]) * min(int(last["count"]), row.concurrency)
    if min(pools) < POOL * held:
        sizes = zip(("pool", "held", "needed"), (min(pools), held, POOL * held), strict=True)
        named = {name: format_size(int(size)) for name, size in sizes}
        yield message(
            "pool-in-cache", Severity.WRONG, times=POOL, level=str(last["level"]), **named
        )


def stores(row: Measured) -> Iterator[Message]:
    """Of which kind a memory row's stores are, where it could be another."""
    known = {str(run.details["store"]) for run in row.runs if run.details.get("store")}
    if row.subsystem == "memory" and row.variant in POOLS:
        for store in known if len(known) == 1 else ():
            yield message("stores", case=store if store in STORES else "", store=store)


QUIET = 0.05
"""The coefficient of variation up to which a machine counts as quiet."""
DRIFT_P = 0.015
HOSTS_P = 0.05

# n -> what the modified z score of a clean row's first value stays below in 98.5 %.
_FIRST = (
    (4, 73.5),
    (5, 12.7),
    (6, 11.8),
    (7, 6.9),
    (9, 5.3),
    (11, 5.05),
    (12, 4.4),
    (15, 3.7),
    (20, 3.4),
    (30, 3.0),
)


@dataclass(frozen=True)
class HostDifference:
    """The hosts with the highest and the lowest median, by what share the first is above the
    second, and the test's p.
    """

    highest: str
    lowest: str
    share: float
    p: float


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


def first_differs(values: Sequence[float]) -> float | None:
    """By what share the first value differs from the median of the others, None unless it stands
    out.
    """
    difference = statistics.first_difference(values)
    if (
        difference is None
        or abs(difference.relative) <= QUIET
        or abs(difference.z) <= _threshold(_FIRST, len(values))
    ):
        return None
    return difference.relative


def drifts(values: Sequence[float]) -> statistics.Drift | None:
    """The trend over the values in the order of time, None unless it is larger than the spread
    explains.
    """
    trend = statistics.drift(values)
    if trend is None or trend.p > DRIFT_P or abs(trend.relative) <= QUIET:
        return None
    return trend


def is_doubtful(values: Sequence[float]) -> bool:
    """Whether what the values tell about themselves, in the order of time, is a doubt."""
    return bool(is_wide(values) or first_differs(values) or drifts(values))


def hosts_differ(by_host: Mapping[str, Sequence[float]]) -> HostDifference | None:
    """By how much the positive values of hosts differ; None unless it is beyond chance.

    Of two hosts the rank sum test counts exactly: three repetitions on each can show nothing, four
    can.
    """
    groups = list(by_host.values())
    if len(groups) < 2:
        return None
    if len(groups) == 2:
        p = statistics.rank_test([(groups[0], groups[1])])
    else:
        p = statistics.kruskal_wallis(groups)
    medians = {host: statistics.median(values) for host, values in by_host.items()}
    highest, lowest = max(medians, key=medians.__getitem__), min(medians, key=medians.__getitem__)
    if p > HOSTS_P or medians[highest] == medians[lowest]:
        return None
    return HostDifference(highest, lowest, medians[highest] / medians[lowest] - 1, p)


def _threshold(table: Sequence[tuple[int, float]], n: int) -> float:
    """The entry of the largest n in the table that is not above ``n``: it errs on the side of no
    mark.
    """
    return table[max(0, bisect_right(table, (n, math.inf)) - 1)][1]


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


def counters(row: Measured) -> Iterator[Message]:
    """What counters of errors and throttling went on by, on the row's nodes."""
    codes = _EVERYWHERE | (_OF_NETWORK if row.subsystem == "network" else {})
    code_of = {name: code for code, names in codes.items() for name in names}
    yield from _counters(code_of, row.noises, "")
    for host, noises in row.server_noises.items():
        yield from _counters(code_of, noises, message("server", hosts=frozenset([host])))


def _counters(
    code_of: Mapping[str, str], noises: Sequence[Mapping[str, Any]], where: Value
) -> Iterator[Message]:
    runs = []
    for noise in noises:
        moved: Counter[tuple[str, str]] = Counter()
        for name, count in ((noise.get("during") or {}).get("moved") or {}).items():
            device, _, counter = name.partition(" ")
            if counter in code_of:
                moved[code_of[counter], device] += count
        runs.append(moved)
    for code, device in dict.fromkeys(each for moved in runs for each in moved):
        counts = [moved[code, device] for moved in runs if moved[code, device]]
        level = Severity.NOTE if code in _NOTES else Severity.UNSURE
        often = core_checks.in_how_many(len(counts), len(noises), where) or where
        yield message(code, level, device=device, count=sum(counts), often=often)


def slow_link(row: Measured) -> Iterator[Message]:
    """A device whose PCI Express link is narrower or slower than both ends could be: the limit is
    that of the link as it is.
    """
    part = {"disk": "storage", "network": "network"}.get(row.subsystem)
    if part is None:
        return
    link = row.fact(part, "pcie")
    if link and any(link[f"current_{name}"] != link[f"max_{name}"] for name in ("width", "speed")):
        name = row.fact(part, "device" if part == "storage" else "interface")
        yield message("slow-link", device=name, **link)


HPL_THRESHOLD = 16.0  # HPL's own limit of the scaled residual


def check_row(row: Measured) -> list[Message]:
    """All notes on a row, the heaviest first."""
    notes = [note for check in CHECKS for note in check(row)]
    return sorted(notes, key=lambda note: ORDER.index(note.severity))


def _above_limit(row: Measured) -> Iterator[Message]:
    share = limit_share(row.centre, row.limit)
    if share is None or share <= MOST or row.limit.kind == "best_seen":
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


def _residual(row: Measured) -> Iterator[Message]:
    residuals = row.details("residual") if row.instrument == "hpl" else []
    if residuals and not max(residuals) < HPL_THRESHOLD:
        yield message("residual", Severity.WRONG, residual=max(residuals), allowed=HPL_THRESHOLD)


CHECKS: tuple[Callable[[Measured], Iterator[Message]], ...] = (
    _above_limit,
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
    udp_loss,
    lost_round_trips,
    limited_disk,
    shaped,
    _residual,
    counters,
    slow_link,
    core_checks.concurrency,
    scatter,
    hosts,
    disturbed,
    few,
    short,
    loopback,
)
