"""Check the cores that measured a row: their clock, their number, and what else ran on them.

A check yields messages about one row; it never changes or removes a value.
"""

from __future__ import annotations

import json

from peakmark.catalogue import KERNELS, POOLS
from peakmark.formatting import format_size
from peakmark.messages import Trust, message, words
from peakmark.rows.row_runs import Messages, RowRuns, in_how_many
from peakmark.rows.runs import WAITED
from peakmark.run import noise
from peakmark.statistics import median

STEAL = 0.02
"""Largest share of the CPUs' time that a hypervisor may take without a warning."""
HELD_BACK = 0.01
"""Largest share of the time for which a quota may hold threads back without a warning."""
POOL = 4.0
"""Smallest pool, as a multiple of the last-level cache, whose accesses mostly go to DRAM."""
WIDE = ("avx2", "avx512")
"""Instruction sets whose multiplications may run below the nominal clock by design."""
LOWEST_DESIGNED = 0.4
"""Lowest clock under wide vectors that can be by design, as a share of the nominal clock.

The lowest base clocks for AVX-512 are about half the nominal clock.
"""


def disturbed(measured: RowRuns) -> Messages:
    """Report other programs, stolen time, quotas and heat during the runs, on each node."""
    for noise_of_host in measured.noises:
        runs, where = noise_of_host.long_runs, noise_of_host.where
        others = [run["others"] for run in runs]
        busy = words("hidden")
        worst = max(runs, key=lambda run: float(run["others"]), default={"busy": 0})
        if worst["busy"]:
            users = words("other-users", users=worst["users"]) if worst["users"] else ""
            busy = words("busy", busy=worst["busy"], users=users)
        yield from measured.repeated(
            "other-load", others, least=noise.OTHERS, where=where, busy=busy
        )
        steal = [run["steal"] or 0.0 for run in runs]
        yield from measured.repeated("steal", steal, least=STEAL, where=where)
        held_back = [(run["throttled_seconds"] or 0.0) / run["seconds"] for run in runs]
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


def inferred(measured: RowRuns) -> Messages:
    """Report what others took within a placement: the pipes of a core, or bandwidth of DRAM.

    The kernel times calls that are bound by a dependency chain of known length. If a call lasts longer
    than its chain, another program on the same core (SMT sibling) used the pipes. DRAM is read before and
    after the work.
    """
    causes = " ".join(run.causes for run in measured.runs).split()
    if "crowded-core" in causes:
        yield message("crowded-core", measured.trust_of("crowded-core"))
    if "memory-load" in causes:
        share = max(measured.values_of("memory_load"))
        yield message("memory-load", measured.trust_of("memory-load"), share=share)


def waited(measured: RowRuns) -> Messages:
    """Report threads that waited for their CPU, although they only compute."""
    if measured.is_pinned:
        lost = [1 - share for share in measured.values_of("cpu_share")]
        yield from measured.repeated("waited", lost, least=WAITED)


def clock(measured: RowRuns) -> Messages:
    """Report a clock that was higher or lower after a run than before it."""
    changes = []
    for run in measured.runs:
        if run.clock_before_hz and run.clock_after_hz:
            changes.append(run.clock_after_hz / run.clock_before_hz - 1)
    large = [change for change in changes if abs(change) > noise.MATTERS]
    if not large:
        return
    largest = max(large, key=abs)
    way = "fell" if largest < 0 else "rose"
    if min(large) < 0 < max(large):
        way = "moved"
    by = f"{abs(largest):.0%}"
    if len(changes) > 1:
        by = f"up to {by}"
    often = in_how_many(len(large), len(changes))
    trust = measured.trust_of("clock-moved")
    yield message("clock-moved", trust, way=way, most=by, share=abs(largest), often=often)


def below_nominal(measured: RowRuns) -> Messages:
    """Report a clock below the nominal clock, which a limit at the observed clock would hide.

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
    if judged < (1 - noise.MATTERS) * nominal:
        # Scale the efficiency at the observed clock to the efficiency at the nominal clock.
        of_nominal = ""
        if row.limit_clock and row.efficiency:
            of_nominal = words("of-nominal", share=row.efficiency * seen / nominal)
        values = {"clock": judged, "nominal": nominal, "share": of_nominal}
        yield message("clock-low", Trust.CARE, case="nominal", **values)


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
        instructions = words("instructions", isa=isa.upper())
        if isa == "scalar":
            instructions = words("plain")
        yield message("narrower", asked=(instructions,))


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
    """Report a row with more threads than the CPUs or the CPU quota of its smallest job."""
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
    """Report pools smaller than ``POOL`` times the last-level cache, which measure the cache instead."""
    row = measured.row
    all_caches = measured.fact("cpu", "caches") or ()
    caches = [cache for cache in all_caches if cache["type"] != "instruction"]
    pools = [size for size in measured.values_of("working_set_bytes") if size]
    is_pool = row.variant in POOLS or row.table == "memory_loaded_latency"
    if not (is_pool and caches and pools):
        return
    last = max(caches, key=lambda cache: int(cache["level"]))
    # If the placement is not known, each thread is assumed to have its own last-level cache.
    assumed = last["size"] * min(last["count"], row.concurrency)
    held = max(measured.values_of("placed_cache_bytes"), default=assumed)
    if min(pools) < POOL * held:
        sizes = {"pool": min(pools), "held": held, "needed": POOL * held}
        texts = {name: format_size(int(size)) for name, size in sizes.items()}
        level = str(last["level"])
        yield message("pool-in-cache", Trust.NO, times=POOL, level=level, **texts)
