"""What physics forbids and what noise makes doubtful, as messages about one row.

A check yields messages; it never changes or removes a value. ``CHECKS`` lists all of them.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import cache

from peakmark import statistics
from peakmark.catalogue import KERNELS, POOLS
from peakmark.messages import ORDER, Message, Severity, message
from peakmark.rows import core_checks
from peakmark.rows.row_runs import Line, Messages, RowRuns, in_how_many
from peakmark.rows.rows import MOST
from peakmark.statistics import ENOUGH

LOSS = 0.01
"""Share of UDP messages that may be lost: above it a rate is no throughput in the sense of RFC 2544,
which has no loss at all.
"""
HEAVY_LOSS = 0.1
"""Share of lost messages from which on the sender's rate decides what arrives."""
MOST_LOSS = 0.5
"""Share of lost messages from which on more is lost than arrives."""
DEVICE = 0.9
"""Least share of the bytes that the disk itself must move."""
NEAR_LIMIT = 0.7
"""Share of a cgroup's limit from which on it is the limit that is measured."""
FLUSH_S = 1e-3
"""Duration, in s, below which a flush moved nothing."""
FLUSHED = 1e8
"""Bytes after which such a flush is remarkable."""
SHORTEST_S = 0.5
"""Least duration of a run, in s, at which warm-up and stragglers do not matter."""
RESOLVED = 2.5
"""Steps of a program's last digit from the median that say nothing about the machine: two, with room
for rounding.
"""
QUIET = 0.05
"""Coefficient of variation up to which a machine counts as quiet (docs/method.md)."""
DRIFT_P = 0.015
"""Largest p-value of a trend over time that is reported."""
HOSTS_P = 0.05
"""Largest p-value of a difference between hosts that is reported."""
HPL_THRESHOLD = 16.0
"""HPL's own limit of the scaled residual."""
RAM_FILE_SYSTEMS = ("tmpfs", "ramfs", "devtmpfs", "hugetlbfs")
STORES = ("temporal", "streaming", "libc")
"""Kinds of stores that have a sentence of their own."""
DEVICES = {"disk": ("storage", "device"), "network": ("network", "interface")}
"""Subsystem -> part of the facts, and the fact that names the device."""


def above_limit(measured: RowRuns) -> Messages:
    """Report a value that is above the limit or bound of its row."""
    row = measured.row
    if row.share is None or row.share <= MOST:
        return
    case = ""
    if row.limit_kind == "at_most":
        case = "bound"
    elif row.limit_clock == "nominal":
        case = "nominal"
    elif row.subsystem == "disk":
        case = "disk"
    elif row.subsystem == "memory" and row.variant in POOLS:
        case = "pool"
    yield message("above-limit", Severity.WRONG, case=case, share=row.share)


def residual(measured: RowRuns) -> Messages:
    """Report a residual of HPL with which the solution does not count."""
    residuals = measured.known("residual") if measured.row.instrument == "hpl" else []
    if residuals and not max(residuals) < HPL_THRESHOLD:
        yield message("residual", Severity.WRONG, residual=max(residuals), allowed=HPL_THRESHOLD)


def scatter(measured: RowRuns) -> Messages:
    """Report a drift over time, and a spread that no quiet machine shows.

    If the value counts despite disturbed runs, only the undisturbed ones are judged. A spread within
    the program's resolution is not reported.
    """
    runs = measured.clean_runs or measured.in_time
    values = [run.value for run in runs]
    step = max(measured.known("resolution"), default=0.0)
    middle = statistics.median(values)
    farthest = max(abs(value - middle) for value in values)
    if farthest < RESOLVED * step:
        return
    trend = drift_of(values)
    if trend is not None:
        yield message("drift", Severity.UNSURE, more=trend.relative, p=trend.p)
    spread = statistics.summarise(values).cv
    if spread is not None and is_wide(values):
        yield message("spread", Severity.UNSURE, spread=spread)


@cache
def widest(n: int) -> float:
    """Return the coefficient of variation that a quiet machine passes in 2 % of rows of n >= 2 runs.

    The sample variance of normal values is distributed as chi-squared with n - 1 degrees of freedom.
    """
    from scipy import stats

    return QUIET * math.sqrt(float(stats.chi2.ppf(0.98, n - 1)) / (n - 1))


def is_wide(values: Sequence[float]) -> bool:
    """Return whether the values spread more than those of a quiet machine would."""
    summary = statistics.summarise(values)
    return summary.cv is not None and summary.cv > widest(summary.n)


def drift_of(values: Sequence[float]) -> statistics.Drift | None:
    """Return the trend over values in the order of time, None unless it is beyond the spread."""
    trend = statistics.drift(values)
    if trend is None or trend.p > DRIFT_P or abs(trend.relative) <= QUIET:
        return None
    return trend


def hosts(measured: RowRuns) -> Messages:
    """Report hosts whose values differ beyond chance.

    Of two hosts the rank sum test counts exactly: three runs on each can show nothing, four can.
    """
    by_host = defaultdict(list)
    for run in measured.runs:
        by_host[where_of(run)].append(run.value)
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


def where_of(run: Line) -> str:
    """Return the host that measured; of two the client and the server: ``node1 → node2``."""
    if run.server_host and run.server_host != run.host:
        return f"{run.host} → {run.server_host}"
    return str(run.host)


def few(measured: RowRuns) -> Messages:
    """Report fewer runs than an interval of 95 % takes."""
    row = measured.row
    if row.n == 1:
        yield message("few", case="once", enough=ENOUGH)
    elif row.level < statistics.LEVEL:
        yield message("few", n=row.n, level=row.level, enough=ENOUGH)


def short(measured: RowRuns) -> Messages:
    """Report runs of peakmark's kernels that were shorter than ``SHORTEST_S``."""
    seconds = []
    for run in measured.runs:
        if run.run_seconds is not None:
            seconds.append(run.run_seconds)
        elif run.cell_seconds is not None:
            seconds.append(run.cell_seconds)
    longest = max(seconds, default=SHORTEST_S)
    if measured.row.instrument in KERNELS.values() and longest < SHORTEST_S:
        yield message("short-runs", seconds=longest)


def losses(measured: RowRuns) -> Messages:
    """Report messages of UDP, or round trips, that were lost."""
    row = measured.row
    if row.workload not in ("UDP", "LAT-UDP"):
        return
    share = max(lost_share(run) for run in measured.runs)
    if share <= LOSS:
        return
    if row.workload == "LAT-UDP":
        yield message("lost-round-trips", Severity.UNSURE, share=share)
        return
    severity, case = Severity.NOTE, ""
    if share > MOST_LOSS:
        severity, case = Severity.WRONG, "overrun"
    elif share > HEAVY_LOSS:
        severity, case = Severity.UNSURE, "pushed"
    fewer = message("fewer-streams") if row.concurrency > 1 else ""
    yield message("udp-loss", severity, case=case, share=share, fewer=fewer)


def lost_share(run: Line) -> float:
    """Return the share of the messages or round trips of a run that were lost."""
    if run.loss:
        return float(run.loss)
    lost = run.lost or 0
    sent = run.sent or lost + (run.round_trips or 0)
    return float(lost / sent) if lost else 0.0


def path(measured: RowRuns) -> Messages:
    """Report what lies between the two ends of a network: nothing, or a limit set on purpose."""
    shapes = sorted(set(measured.told("shaping")))
    if shapes:
        yield message("shaped", Severity.WRONG, shapes="; ".join(shapes))
    if measured.row.subsystem == "network" and any(measured.known("loopback")):
        yield message("loopback")


def never_reached_device(measured: RowRuns) -> Messages:
    """Report values of a disk that memory answered."""
    if measured.row.subsystem != "disk":
        return
    names = [measured.fact("storage", "filesystem"), *measured.told("filesystem")]
    ram = [name for name in names if name in RAM_FILE_SYSTEMS]
    shares = []
    for run in measured.runs:
        if run.device_bytes is not None and run.work:
            shares.append(run.device_bytes / run.work)
    if ram:
        yield message("ram-file-system", Severity.WRONG, file_system=ram[0])
    elif shares and min(shares) < DEVICE:
        yield message("cached", Severity.WRONG, share=min(shares))
    elif "no" in measured.told("direct"):
        yield message("buffered", Severity.WRONG)


def unflushed(measured: RowRuns) -> Messages:
    """Report a flush that took no time: the disk protects its cache, or a host keeps the data."""
    row = measured.row
    is_kernel = row.instrument == KERNELS["disk"]
    if not is_kernel or row.table != "disk_throughput" or row.workload[0] != "W":
        return
    flush, work = FLUSH_S, 0.0
    known = []
    for run in measured.runs:
        if run.flush_seconds is not None and run.work:
            known.append((float(run.flush_seconds), float(run.work)))
    if known:
        flush, work = max(known)
    if flush < FLUSH_S and work > FLUSHED:
        severity, case = Severity.NOTE, "safe"
        if measured.fact("cpu", "virtualised"):
            severity, case = Severity.UNSURE, ""
        yield message("flush", severity, case=case, flush=flush, megabytes=work / 1e6)


def limited_disk(measured: RowRuns) -> Messages:
    """Report a limit of the cgroup that a value came near to; one far above it changes nothing."""
    row = measured.row
    limits = json.loads(measured.runs[0].io_limits or "{}")
    way = "write" if row.workload.startswith("W") else "read"
    block = row.block_bytes or 1
    is_latency = row.table == "disk_latency"
    operations = row.concurrency / row.value if is_latency else row.value
    if row.table == "disk_throughput":
        operations /= block
    rates = {"MB/s": (operations * block, "bps", 1e-6), "IOPS": (operations, "iops", 1.0)}
    for unit, (used, name, factor) in rates.items():
        limit = limits.get(f"{way}_{name}")
        if limit and used > NEAR_LIMIT * limit:
            rate = message(unit, rate=limit * factor)
            yield message("io-limit", Severity.WRONG, way=way, rate=rate)


def kind_of_stores(measured: RowRuns) -> Messages:
    """Say which store instructions a memory row used, where its working set leaves that open.

    Runs of different kinds are told by their settings.
    """
    known = set(measured.told("store"))
    if measured.row.variant in POOLS and len(known) == 1:
        (store,) = known
        yield message("stores", case=store if store in STORES else "", store=store)


EVERYWHERE = {
    "memory-corrected": ("ce_count",),
    "memory-uncorrected": ("ue_count",),
    "machine-check": ("MCE", "THR", "DFR"),
    "pcie-corrected": ("aer_dev_correctable",),
    "pcie-uncorrected": ("aer_dev_nonfatal", "aer_dev_fatal"),
    "power-limited": ("package_power_limit_count",),
    "disk-hot": ("temp1_alarm",),
}
"""Code of a warning -> counters of the kernel that matter to every row."""
OF_NETWORK = {
    "network-errors": ("rx_errors", "tx_errors"),
    "network-drops": ("rx_dropped", "tx_dropped"),
    "retransmits": ("RetransSegs",),
    "udp-overflow": ("RcvbufErrors",),
}
"""Code of a warning -> counters of the kernel that say nothing about rows without a network."""
HARMLESS = ("pcie-corrected", *OF_NETWORK)
"""Codes of what happens on healthy machines too."""


def counters(measured: RowRuns) -> Messages:
    """Report counters of errors and throttling that went on, on the row's nodes."""
    codes = dict(EVERYWHERE)
    if measured.row.subsystem == "network":
        codes |= OF_NETWORK
    code_of: dict[str, str] = {}
    for code, names in codes.items():
        code_of |= dict.fromkeys(names, code)
    for noise in measured.noises:
        moved: dict[tuple[str, str], Counter[int]] = defaultdict(Counter)
        for number, run in enumerate(noise.runs):
            for name, count in run["counters"].items():
                device, _, counter = name.partition(" ")
                if counter in code_of:
                    moved[code_of[counter], device][number] += count
        for (code, device), counts in moved.items():
            severity = Severity.NOTE if code in HARMLESS else Severity.UNSURE
            often = in_how_many(len(counts), len(noise.runs), noise.where) or noise.where
            yield message(code, severity, device=device, count=sum(counts.values()), often=often)


def slow_link(measured: RowRuns) -> Messages:
    """Report a device whose PCI Express link is narrower or slower than both ends could be."""
    part, device = DEVICES.get(measured.row.subsystem, ("", ""))
    link = measured.fact(part, "pcie")
    if not link:
        return
    is_narrow = link["current_width"] != link["max_width"]
    is_slow = link["current_speed"] != link["max_speed"]
    if is_narrow or is_slow:
        yield message("slow-link", device=measured.fact(part, device), **link)


def check_row(measured: RowRuns) -> list[Message]:
    """Return the messages of all checks, the heaviest first."""
    found: list[Message] = []
    for check in CHECKS:
        found += check(measured)
    return sorted(found, key=lambda each: ORDER.index(each.severity))


CHECKS: tuple[Callable[[RowRuns], Messages], ...] = (
    above_limit,
    never_reached_device,
    unflushed,
    core_checks.slow_core,
    core_checks.crowded,
    core_checks.waited,
    core_checks.overlap,
    core_checks.memory_load,
    core_checks.pool_in_cache,
    kind_of_stores,
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
