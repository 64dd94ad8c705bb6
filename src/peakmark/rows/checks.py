"""Check a row for values that physics forbids or that noise makes doubtful.

A check yields messages; it never changes or removes a value. ``CHECKS`` lists all checks.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from statistics import median_high
from typing import Any

from peakmark import data, statistics
from peakmark.catalogue import KERNELS, POOLS
from peakmark.formatting import format_size
from peakmark.messages import ORDER, Message, Trust, message, words
from peakmark.rows.point_limits import ABOVE
from peakmark.rows.rows import MOST, Line, Messages, RowRuns, in_how_many
from peakmark.rows.runs import WAITED
from peakmark.statistics import ENOUGH, median
from peakmark.storage import activity

LOSS = 0.01
"""Largest share of lost UDP datagrams that is not reported. RFC 2544 defines throughput without loss."""
HEAVY_LOSS = 0.1
"""Share of lost datagrams above which the measured rate depends on the sender's rate."""
MOST_LOSS = 0.5
"""Share of lost datagrams above which a rate is wrong: more data is lost than arrives."""
LEAST_DEVICE_SHARE = 0.9
"""Smallest share of the requested bytes that the disk must move; below it, memory served the rest."""
NEAR_LIMIT = 0.7
"""Share of a cgroup's limit above which the run measures the limit rather than the disk."""
RESOLVED = 2.5
"""Largest distance from the median that rounding explains, in steps of the last printed digit: two
steps, and half a step of tolerance.
"""
QUIET_CV = 0.05
"""Coefficient of variation of a quiet machine's values, and largest relative drift that is not reported
(docs/method.md).
"""
DRIFT_P = 0.015
"""Largest p-value of a trend over time that is reported."""
SLOW_GPU = 0.03
"""A GPU is reported if it is slower than the usual GPU of its node by more than this share."""
HPL_THRESHOLD = 16.0
"""Limit of the scaled residual above which HPL itself reports a failed run."""
STEAL = 0.02
"""Largest share of the CPUs' time that a hypervisor may take without a warning."""
HELD_BACK = 0.01
"""Largest share of the time for which a quota may hold threads back without a warning."""
LEAST_POOL = 4.0
"""Smallest pool, as a multiple of the last-level cache, whose accesses mostly go to DRAM."""
WIDE = ("avx2", "avx512")
"""Instruction sets with wide vectors, whose multiplications may run below the nominal clock by design."""
LOWEST_DESIGNED = 0.4
"""Lowest clock under wide vectors that can be by design, as a share of the nominal clock.

The lowest base clocks for AVX-512 are about half the nominal clock.
"""
RAM_FILE_SYSTEMS = ("tmpfs", "ramfs", "devtmpfs", "hugetlbfs")


def above_limit(measured: RowRuns) -> Messages:
    """Report a value that is above the limit or bound of its row, or a run that is just above it."""
    row = measured.row
    if row.share is None:
        return
    if row.share <= MOST:
        # Up to ``MOST``, measurement error explains the share. A run above ``ABOVE`` still calls
        # for care: the limit may be too low.
        # The printed share of a reference rests on the clock of peakmark's kernel.
        most = max(*measured.values_of("share"), row.efficiency or 0.0)
        if most > ABOVE:
            yield message("above-limit", Trust.CARE, case="run", share=most)
        return
    # The case chooses the message's text.
    case = ""
    if row.limit_kind == "at_most":
        case = "bound"
    elif row.limit_clock == "nominal":
        case = "nominal"
    elif row.subsystem == "disk":
        case = "disk"
    elif row.subsystem == "memory" and row.variant in POOLS:
        case = "pool"
    yield message("above-limit", Trust.NO, case=case, share=row.share)


def residual(measured: RowRuns) -> Messages:
    """Report a residual of HPL that is too large for a valid solution."""
    residuals = measured.values_of("residual")
    if residuals and max(residuals) >= HPL_THRESHOLD:
        yield message(
            "wrong-result",
            Trust.NO,
            case="residual",
            residual=max(residuals),
            allowed=HPL_THRESHOLD,
        )


def scatter(measured: RowRuns) -> Messages:
    """Report a drift over time, and a spread that no quiet machine shows.

    If the undisturbed runs confirm the row's value (``RowRuns.clean_runs``), only these are judged. A
    spread of less than ``RESOLVED`` steps of the program's resolution is not reported.
    """
    runs = measured.clean_runs or measured.in_time
    values = [run.value for run in runs]
    step = max(measured.values_of("resolution"), default=0.0)
    middle = statistics.median(values)
    farthest = max(abs(value - middle) for value in values)
    if farthest < RESOLVED * step:
        return
    trend = drift_of(values)
    if trend is not None:
        yield message("spread", Trust.CARE, case="drift", more=trend.relative, p=trend.p)
    if is_wide(values):
        yield message("spread", Trust.CARE, spread=(max(values) - min(values)) / middle)


@cache
def largest_quiet_cv(n: int) -> float:
    """Return the coefficient of variation that 2 % of the rows with ``n`` runs exceed on a quiet machine.

    ``n`` is at least 2. The values of a quiet machine are taken as normal, with the true coefficient
    ``QUIET_CV``. Their sample variance is distributed as chi-squared with n - 1 degrees of freedom.
    """
    from scipy import special  # not scipy.stats, which takes longer to import than these checks

    # The quantile 0.98 of chi-squared with n - 1 degrees of freedom.
    quantile = 2 * float(special.gammaincinv((n - 1) / 2, 0.98))
    return QUIET_CV * math.sqrt(quantile / (n - 1))


def is_wide(values: Sequence[float]) -> bool:
    """Return whether the values spread more than on a quiet machine."""
    summary = statistics.summarise(values)
    return summary.cv is not None and summary.cv > largest_quiet_cv(summary.n)


def drift_of(values: Sequence[float]) -> statistics.Drift | None:
    """Return the trend of values in order of time; None unless it is significant and above ``QUIET_CV``."""
    trend = statistics.drift(values)
    if trend is None or trend.p > DRIFT_P or abs(trend.relative) <= QUIET_CV:
        return None
    return trend


def few(measured: RowRuns) -> Messages:
    """Report that a row has a single run, whose spread is not known."""
    row = measured.row
    # A report may have printed one number without its runs, so more repetitions cannot be asked for.
    if row.n == 1 and row.printed_in:
        yield message("few", Trust.CARE, case="printed")
    elif row.n == 1:
        yield message("few", Trust.CARE, enough=ENOUGH)


def losses(measured: RowRuns) -> Messages:
    """Report lost UDP datagrams, or lost round trips of UDP."""
    row = measured.row
    if row.workload not in ("UDP", "LAT-UDP"):
        return
    share = max(lost_share(run) for run in measured.runs)
    if share <= LOSS:
        return
    if row.workload == "LAT-UDP":
        yield message("udp-loss", Trust.CARE, case="round-trips", share=share)
        return
    trust = Trust.OK
    if share > MOST_LOSS:
        trust = Trust.NO
    elif share > HEAVY_LOSS:
        trust = Trust.CARE
    where = ""
    overruns = measured.values_of("overrun")
    if overruns:
        where = words("receiver-full", dropped=max(overruns))
    yield message("udp-loss", trust, share=share, where=where)


def lost_share(run: Line) -> float:
    """Return the share of lost datagrams, or of lost round trips, in a run."""
    if run.loss:
        return float(run.loss)
    # Without the number of sent datagrams, add up the lost and the completed round trips.
    lost = run.lost or 0
    sent = run.sent or lost + (run.round_trips or 0)
    return float(lost / sent) if lost else 0.0


def path(measured: RowRuns) -> Messages:
    """Report a rate limit that someone set on the network path, and a path through loopback or veth."""
    shapes = sorted(set(measured.texts("shaping")))
    if shapes:
        yield message("rate-limit", Trust.NO, case="network", shapes="; ".join(shapes))
    if measured.row.subsystem == "network" and any(measured.values_of("loopback")):
        yield message("loopback", Trust.NO)
    if any('"driver": "veth"' in link for link in measured.texts("link")):
        yield message("loopback", Trust.CARE, case="veth")


def never_reached_device(measured: RowRuns) -> Messages:
    """Report disk rows whose data came from memory: a RAM file system, or the page cache."""
    if measured.row.subsystem != "disk":
        return
    names = [measured.fact("storage", "filesystem"), *measured.texts("filesystem")]
    ram = [name for name in names if name in RAM_FILE_SYSTEMS]
    # Share of each run's bytes (``work``) that the device moved. Memory served the rest.
    shares = []
    for run in measured.runs:
        if run.device_bytes is not None and run.work:
            shares.append(run.device_bytes / run.work)
    if ram:
        yield message("cached", Trust.NO, case="memory", file_system=ram[0])
    elif shares and min(shares) < LEAST_DEVICE_SHARE:
        yield message("cached", Trust.NO, share=min(shares))
    # Writes that wait for the device after each record reach it through the page cache too.
    elif "no" in measured.texts("direct") and '"sync": "each"' not in measured.row.settings:
        yield message("cached", Trust.NO, case="buffered")


def limited_disk(measured: RowRuns) -> Messages:
    """Report a cgroup's I/O limit if the value is near it. A limit far above the value is harmless."""
    row = measured.row
    if row.table == "disk_metadata":
        return
    limits = json.loads(measured.runs[0].io_limits or "{}")
    way = "write" if row.workload.startswith("W") else "read"
    block = row.block_bytes or 1
    # Operations per second, which are the value of an IOPS row.
    operations = row.value
    if row.table == "disk_throughput":  # its value is in B/s
        operations /= block
    elif row.table == "disk_latency":  # each thread waits for one operation at a time
        operations = row.concurrency / row.value
    # Unit of the message -> rate of the row in B/s or 1/s, name of its limit, factor from the limit to the unit.
    # Operations times block is the rate in bytes, for all three tables.
    rates = {"MB/s": (operations * block, "bps", 1e-6), "IOPS": (operations, "iops", 1.0)}
    for unit, (used, name, factor) in rates.items():
        limit = limits.get(f"{way}_{name}")
        if limit and used > NEAR_LIMIT * limit:
            rate = words(unit, rate=limit * factor)
            yield message("rate-limit", Trust.NO, case="disk", way=way, rate=rate)


def counters(measured: RowRuns) -> Messages:
    """Report the counters of ``counters.csv`` that increased during the runs, on each node."""
    # Counter -> its warning (code, case, trust). A counter without subsystems matters to rows of all.
    warning_of = {}
    for line in data.table("counters"):
        subsystems = line["subsystem"].split()
        if not subsystems or measured.row.subsystem in subsystems:
            warning_of[line["counter"]] = (line["code"], line["case"], line["trust"])
    for noise_of_host in measured.noises:
        # (warning, device) -> number of the run -> events in it. Counters with the same warning are added up.
        events: dict[tuple[Any, str], Counter[int]] = defaultdict(Counter)
        for number, run in enumerate(noise_of_host.runs):
            # A name is device and counter, such as ``eth0 rx_errors``.
            for name, count in run["counters"].items():
                device, _, counter = name.partition(" ")
                if counter in warning_of:
                    events[warning_of[counter], device][number] += count
        for (warning, device), by_run in events.items():
            code, case, trust = warning
            often = in_how_many(len(by_run), len(noise_of_host.runs), noise_of_host.where)
            count = sum(by_run.values())
            yield message(code, Trust(trust), case=case, device=device, count=count, often=often)


def slow_gpu(measured: RowRuns) -> Messages:
    """Report GPUs that were slower in every repetition than the usual GPU of their model on the node.

    The usual GPU is the one in the middle; of an even number, the faster of the two in the middle.
    """
    if measured.row.subsystem != "gpu" or measured.row.concurrency < 2:
        return
    is_time = measured.row.unit == "s"
    gpus = {gpu["index"]: gpu for gpu in measured.fact("gpu", "gpus") or ()}
    # Number of a GPU -> share by which it was slower than the usual one, in each repetition.
    behind: dict[int, list[float]] = defaultdict(list)
    for text in measured.texts("points"):
        # Model -> number of a GPU -> its speed in this repetition. A text lists [number, value, clock] of each GPU.
        speeds_of_model: dict[str, dict[int, float]] = defaultdict(dict)
        for index, value, _ in json.loads(text):
            number = int(index)
            model = gpus.get(number, {}).get("name", "GPU")
            speeds_of_model[model][number] = 1 / value if is_time else value
        for speeds in speeds_of_model.values():
            usual = median_high(speeds.values())
            for number, speed in speeds.items():
                behind[number].append(1 - speed / usual)
    for number, shares in behind.items():
        if min(shares) > SLOW_GPU:
            gpu = gpus.get(number, {})
            pci = gpu.get("pci", "unknown")
            yield message(
                "slow-gpu",
                Trust.CARE,
                gpu=f"GPU {number} ({gpu.get('name', 'GPU')}, {pci})",
                pci=pci,
                behind=statistics.median(shares),
            )


# -- cores and clocks


def disturbed(measured: RowRuns) -> Messages:
    """Report other programs, stolen time, quotas and heat during the runs, on each node."""
    for noise_of_host in measured.noises:
        runs, where = noise_of_host.long_runs, noise_of_host.where
        # CPUs that other programs used, and the share of the CPUs' time that the hypervisor took.
        # Of short runs, the counters of the kernel may add up to more CPUs than there are.
        cpus = measured.fact("cpu", "threads") or math.inf
        others = [min(run["others"], cpus) for run in runs]
        busy = busy_processes(runs)
        yield from measured.repeated(
            "other-load", others, least=activity.OTHERS, where=where, busy=busy
        )
        steal = [run["steal"] or 0.0 for run in runs]
        yield from measured.repeated("steal", steal, least=STEAL, where=where)
        # Linux adds up the throttled times of all CPUs: they may exceed the time of the run.
        held_back = [min(1.0, (run["throttled_seconds"] or 0.0) / run["seconds"]) for run in runs]
        yield from measured.repeated(
            "cpu-quota",
            held_back,
            least=HELD_BACK,
            trust=Trust.CARE,
            where=where,
            case="throttled",
        )
        hot = [float(run["hot"] or 0) for run in runs]
        yield from measured.repeated("slowed-down", hot, trust=Trust.CARE, where=where, case="hot")


def busy_processes(runs: Sequence[Mapping[str, Any]]) -> str:
    """Name the busy processes of the run that other programs disturbed most.

    If none was seen, the words say that the processes were short-lived or hidden.
    """
    # Without runs there is no worst one, and no busy process to name.
    worst = max(runs, key=lambda run: float(run["others"]), default={"busy": 0})
    if not worst["busy"]:
        return words("hidden")
    users = words("other-users", users=worst["users"]) if worst["users"] else ""
    return words("busy", busy=worst["busy"], users=users)


def neighbours(measured: RowRuns) -> Messages:
    """Report what others took from a run: execution pipes of a core, or bandwidth of DRAM.

    The kernel times calls that are bound by a dependency chain of known length. If a call lasts longer
    than its chain, another program on the same core (SMT sibling) used the pipes. The kernel also reads
    DRAM before and after the work. If that is slower than usual, others used the memory.
    """
    if any("neighbours" in run.causes for run in measured.runs):
        yield message("neighbours", measured.trust_of("neighbours"))


def waited(measured: RowRuns) -> Messages:
    """Report threads that waited for their CPU, although they only compute."""
    if measured.is_pinned:
        lost = [1 - share for share in measured.values_of("cpu_share")]
        yield from measured.repeated("waited", lost, least=WAITED)


def clock(measured: RowRuns) -> Messages:
    """Report a clock that was higher or lower after a run than before it.

    Who waits for its CPU reads a low clock. The clock during the work counts more than those around it.
    """
    changes = []
    for run in measured.runs:
        before, after = run.clock_before_hz, run.clock_after_hz
        if not (before and after) or (run.cpu_share or 1) < 1 - WAITED:
            continue
        if (run.clock_work_hz or 0) <= (1 - activity.MATTERS) * max(before, after):
            changes.append(after / before - 1)
    largest = max(changes, key=abs, default=0.0)
    if abs(largest) <= activity.MATTERS:
        return
    way = "fell" if largest < 0 else "rose"
    # How often it moved this way.
    count = sum(change / largest > 0 and abs(change) > activity.MATTERS for change in changes)
    often = in_how_many(count, len(measured.runs))
    trust = measured.trust_of("clock-moved")
    yield message("clock-moved", trust, way=way, share=abs(largest), often=often)


def below_nominal(measured: RowRuns) -> Messages:
    """Report a clock below the nominal clock.

    The efficiency does not show a low clock, because the limit is computed at the observed clock.

    Wide vectors may run below the nominal clock by design. For wide vectors, the clock before and after
    the work is judged instead.
    """
    row, seen = measured.row, seen_clock(measured)
    nominal = row.nominal_hz or (measured.fact("cpu", "clock_hz") or {}).get("nominal")
    if not (measured.is_pinned and nominal and seen):
        return
    judged = seen
    has_wide = any(isa in WIDE for isa in measured.texts("isa"))
    # A clock below LOWEST_DESIGNED is judged for wide vectors too: no CPU is designed for it.
    if has_wide and seen >= LOWEST_DESIGNED * nominal:
        judged = idle_clock(measured) or seen
    if judged < (1 - activity.MATTERS) * nominal:
        yield message(
            "slowed-down", Trust.CARE, case="below-nominal", clock=judged, nominal=nominal
        )


def seen_clock(measured: RowRuns) -> float | None:
    """Return the median clock in Hz during the work.

    If no run recorded it, use the clocks before and after the work.
    """
    clocks = [clock for clock in measured.values_of("clock_work_hz") if clock]
    return median(clocks) if clocks else idle_clock(measured)


def idle_clock(measured: RowRuns) -> float | None:
    """Return the median of the clocks before and after the work, Hz; None if no run has one."""
    every = [*measured.values_of("clock_before_hz"), *measured.values_of("clock_after_hz")]
    clocks = [clock for clock in every if clock]
    return median(clocks) if clocks else None


def narrower(measured: RowRuns) -> Messages:
    """Report that the configuration asks for narrower vectors than the limit assumes, or for no vectors."""
    isa = measured.runs[0].chosen_isa or "auto"
    is_widest = isa in ("auto", measured.fact("cpu", "isa_best"))
    row = measured.row
    if row.instrument == KERNELS["cpu"] and row.limit is not None and not is_widest:
        asked = "plain arithmetic" if isa == "scalar" else f"{isa.upper()} instructions"
        yield message("narrower", asked=asked)


def placement(measured: RowRuns) -> Messages:
    """Report repetitions that ran on unequal numbers of cores, sockets or NUMA nodes."""
    placements = set()
    for run in measured.runs:
        if run.placed_cores is not None:
            nodes = json.loads(run.placed_numa_nodes or "[]")
            placements.add((run.placed_cores, run.placed_sockets, len(nodes)))
    if not measured.is_pinned or len(placements) < 2:
        return
    placed = []
    for cores, sockets, nodes in sorted(placements):
        placed.append(words("cores", cores=cores, sockets=sockets, nodes=nodes))
    yield message("placement-differs", Trust.CARE, placed=tuple(placed))


def concurrency(measured: RowRuns) -> Messages:
    """Report a row with more threads than CPUs, or than CPUs that the quota grants.

    If the jobs of the repetitions had different numbers of CPUs, the smallest number counts.
    """
    if not measured.is_pinned:
        return
    threads = measured.row.concurrency
    cpus = min([count for count in measured.values_of("job_cpus") if count], default=threads)
    quota = min([share for share in measured.values_of("cpu_quota") if share], default=threads)
    if threads > cpus:
        yield message("oversubscribed", Trust.NO, threads=threads, cpus=cpus)
    elif threads > quota:
        yield message("cpu-quota", Trust.NO, threads=threads, quota=quota)


def pool_in_cache(measured: RowRuns) -> Messages:
    """Report pools smaller than ``LEAST_POOL`` times the last-level cache, which measure the cache instead."""
    row = measured.row
    all_caches = measured.fact("cpu", "caches") or ()
    caches = [cache for cache in all_caches if cache["type"] != "instruction"]
    pools = [size for size in measured.values_of("working_set_bytes") if size]
    is_pool = row.variant in POOLS or row.table == "memory_loaded_latency"
    if not (is_pool and caches and pools):
        return
    last = max(caches, key=lambda cache: int(cache["level"]))
    # Bytes of the last-level caches that the threads reach. If their placement is not known, each thread is assumed
    # to have its own cache.
    assumed = last["size"] * min(last["count"], row.concurrency)
    held = max(measured.values_of("placed_cache_bytes"), default=assumed)
    smallest, needed = min(pools), LEAST_POOL * held
    if smallest < needed:
        yield message(
            "cached",
            Trust.NO,
            case="pool",
            pool=format_size(int(smallest)),
            times=LEAST_POOL,
            level=str(last["level"]),
            held=format_size(int(held)),
            needed=format_size(int(needed)),
        )


# -- all checks


def check_row(measured: RowRuns) -> list[Message]:
    """Return the messages of all checks, those of least trust first."""
    found: list[Message] = []
    for check in CHECKS:
        found += check(measured)
    return sorted(found, key=lambda each: ORDER.index(each.trust))


CHECKS: tuple[Callable[[RowRuns], Messages], ...] = (
    above_limit,
    never_reached_device,
    neighbours,
    waited,
    pool_in_cache,
    clock,
    below_nominal,
    narrower,
    placement,
    losses,
    limited_disk,
    residual,
    counters,
    slow_gpu,
    concurrency,
    scatter,
    disturbed,
    few,
    path,
)
