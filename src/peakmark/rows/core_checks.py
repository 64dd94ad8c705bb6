"""Checks of the cores that measured: their clock, their number, and what else ran on them.

A check yields messages about one row; it never changes or removes a value.
"""

from __future__ import annotations

import json
from dataclasses import replace

from peakmark.catalogue import KERNELS, POOLS
from peakmark.formatting import format_size
from peakmark.messages import Severity, Value, message
from peakmark.rows.row_runs import Messages, RowRuns, in_how_many
from peakmark.rows.runs import WAITED
from peakmark.run import noise
from peakmark.statistics import median

STEAL = 0.02
"""Share of the CPUs' time that a hypervisor may take without a message."""
HELD_BACK = 0.01
"""Share of the time for which a quota may hold threads back without a message."""
CORE = 0.75
"""Least share of a core's pipes that a kernel takes on a core of its own (docs/method.md)."""
OVERLAP = 0.95
"""Least share of the time in which all threads of a latency under load must be at work."""
POOL = 4.0
"""Least multiple of the last cache that a pool must be, so that most accesses go to DRAM."""
WIDE = ("avx2", "avx512")
"""Instruction sets whose multiplications may run below the nominal clock, as designed."""
LOWEST_DESIGNED = 0.4
"""Share of the nominal clock that no such design goes below.

The lowest base clocks for AVX-512 are about half of those on the box.
"""


def disturbed(measured: RowRuns) -> Messages:
    """Report what else went on during the runs, on the nodes of servers too."""
    for noise_of_host in measured.noises:
        runs, where = noise_of_host.told, noise_of_host.where
        others = [run["others"] for run in runs]
        for found in measured.repeated("other-load", others, noise.OTHERS, where=where):
            worst = max(runs, key=lambda run: float(run["others"]))
            busy = message("hidden")
            if worst["busy"]:
                users = message("other-users", users=worst["users"]) if worst["users"] else ""
                busy = message("busy", busy=worst["busy"], users=users)
            yield replace(found, values=(*found.values, ("busy", busy)))
        steal = [run["steal"] or 0.0 for run in runs]
        yield from measured.repeated("steal", steal, STEAL, where=where)
        held_back = [(run["throttled_seconds"] or 0.0) / run["seconds"] for run in runs]
        yield from measured.repeated("throttled", held_back, HELD_BACK, Severity.UNSURE, where)
        hot = [float(run["hot"] or 0) for run in runs]
        yield from measured.repeated("hot", hot, severity=Severity.UNSURE, where=where)


def slow_core(measured: RowRuns) -> Messages:
    """Report fewer operations a cycle than any kernel here does on its own core, without a reason."""
    row = measured.row
    share = row.efficiency
    if row.instrument != KERNELS["cpu"] or row.limit_origin == "site" or share is None:
        return
    is_chosen = any(run.chosen_isa not in ("", "auto") for run in measured.runs)
    cores = measured.fact("cpu", "cores")
    if share >= CORE or is_chosen or (cores and row.concurrency > cores):
        return
    reasons = [*waited(measured), *crowded(measured), *disturbed(measured)]
    if not reasons:
        yield message("slow-core", Severity.UNSURE, share=share)


def crowded(measured: RowRuns) -> Messages:
    """Report cores whose pipes were not the kernel's own, as its paced calls tell.

    The chain of known length of these calls does not bind then. Threads that share a core by
    request, or that waited for their CPUs, hold each other up: other messages say so.
    """
    held = [run.held_up_cores for run in measured.runs if run.held_up_cores]
    if held:
        most = message("of-cores", cores=max(held))
        if min(held) < max(held):
            most = message("up-to-cores", cores=max(held))
        often = in_how_many(len(held), len(measured.runs))
        severity = measured.severity_of("crowded-core")
        yield message("crowded-core", severity, cores=most, often=often)


def waited(measured: RowRuns) -> Messages:
    """Report threads that had no CPU for part of the time, though they only compute."""
    if measured.is_pinned:
        lost = [1 - share for share in measured.known("cpu_share")]
        yield from measured.repeated("waited", lost, WAITED)


def overlap(measured: RowRuns) -> Messages:
    """Report points of a latency under load at which not all threads were at work all the time."""
    if measured.row.table != "memory_loaded_latency":
        return
    shares = []
    for text in measured.told("points"):
        shares += [point[2] for point in json.loads(text)]
    short = [share for share in shares if share < OVERLAP]
    if short:
        values = {"count": len(short), "total": len(shares), "least": min(short)}
        yield message("overlap", measured.severity_of("overlap"), **values)


def memory_load(measured: RowRuns) -> Messages:
    """Report DRAM that was read more slowly than at its best before or after a run."""
    yield from measured.repeated("memory-load", measured.known("memory_load"))


def clock(measured: RowRuns) -> Messages:
    """Report clocks that moved during a run."""
    changes = []
    for run in measured.runs:
        if run.clock_before_hz and run.clock_after_hz:
            changes.append(run.clock_after_hz / run.clock_before_hz - 1)
    moved = [change for change in changes if abs(change) > noise.MATTERS]
    if not moved:
        return
    most = max(moved, key=abs)
    way = "fell" if most < 0 else "rose"
    if min(moved) < 0 < max(moved):
        way = "moved"
    by = message("exactly", share=abs(most))
    if len(changes) > 1:
        by = message("up-to", share=abs(most))
    often = in_how_many(len(moved), len(changes))
    severity = measured.severity_of("clock-moved")
    yield message("clock-moved", severity, way=way, most=by, often=often)


def below_nominal(measured: RowRuns) -> Messages:
    """Report a clock below the nominal one: a limit at the observed clock hides a throttled node.

    Wide vectors have a nominal clock of their own, below the one on the box: under them the clock
    before and after the work tells.
    """
    row, seen = measured.row, seen_clock(measured)
    nominal = row.nominal_hz or (measured.fact("cpu", "clock_hz") or {}).get("nominal")
    if not (measured.is_pinned and nominal and seen):
        return
    judged = seen
    has_wide = any(isa in WIDE for isa in measured.told("isa"))
    # Below that no design goes: then the clock under wide vectors itself is judged.
    if has_wide and seen >= LOWEST_DESIGNED * nominal:
        judged = idle_clock(measured) or seen
    if judged < (1 - noise.MATTERS) * nominal:
        # The efficiency is that at the observed clock; scaled, it is that at the nominal one.
        of_nominal: Value = ""
        if row.limit_clock and row.efficiency:
            of_nominal = message("of-nominal", share=row.efficiency * seen / nominal)
        yield message(
            "below-nominal", Severity.UNSURE, clock=judged, nominal=nominal, share=of_nominal
        )


def seen_clock(measured: RowRuns) -> float | None:
    """Return the median clock under the work, where no run tells it that before and after, Hz."""
    clocks = [clock for clock in measured.known("clock_work_hz") if clock]
    return median(clocks) if clocks else idle_clock(measured)


def idle_clock(measured: RowRuns) -> float | None:
    """Return the median of the clocks before and after the work, Hz; None where no run tells it."""
    ends = [*measured.known("clock_before_hz"), *measured.known("clock_after_hz")]
    clocks = [clock for clock in ends if clock]
    return median(clocks) if clocks else None


def narrower(measured: RowRuns) -> Messages:
    """Report plain arithmetic or narrow vectors that were asked for, beside a limit of the widest."""
    isa = measured.runs[0].chosen_isa or "auto"
    is_widest = isa in ("auto", measured.fact("cpu", "isa_best"))
    row = measured.row
    if row.instrument == KERNELS["cpu"] and row.limit is not None and not is_widest:
        instructions = message("instructions", isa=isa.upper())
        if isa == "scalar":
            instructions = message("plain")
        yield message("narrower", asked=(instructions,))


def placement(measured: RowRuns) -> Messages:
    """Report repetitions that were given other cores: they measured other things."""
    kinds = set()
    for run in measured.runs:
        if run.placed_cores is not None:
            nodes = json.loads(run.placed_numa_nodes or "[]")
            kinds.add((run.placed_cores, run.placed_sockets, len(nodes)))
    if not measured.is_pinned or len(kinds) < 2:
        return
    each = []
    for cores, sockets, nodes in sorted(kinds):
        each.append(message("cores", cores=cores, sockets=sockets, nodes=nodes))
    yield message("placement-differs", Severity.UNSURE, placed=tuple(each))


def concurrency(measured: RowRuns) -> Messages:
    """Report more threads than the jobs of the row had CPUs, cores, or a quota for."""
    if not measured.is_pinned:
        return
    threads = measured.row.concurrency
    cpus = min([count for count in measured.known("job_cpus") if count], default=threads)
    quota = min([share for share in measured.known("cpu_quota") if share], default=threads)
    cores = min([count for count in measured.known("allowed_cores") if count], default=threads)
    if threads > cpus:
        yield message("oversubscribed", Severity.WRONG, threads=threads, cpus=cpus)
    elif threads > quota:
        yield message("cpu-quota", Severity.UNSURE, threads=threads, quota=quota)
    elif threads > cores:
        yield message("shared-cores", threads=threads, cores=cores)


def pool_in_cache(measured: RowRuns) -> Messages:
    """Report pools that are less than ``POOL`` times the last cache, and so measure the cache."""
    row = measured.row
    every = measured.fact("cpu", "caches") or ()
    caches = [cache for cache in every if cache["type"] != "instruction"]
    pools = [size for size in measured.known("working_set_bytes") if size]
    is_pool = row.variant in POOLS or row.table == "memory_loaded_latency"
    if not (is_pool and caches and pools):
        return
    last = max(caches, key=lambda cache: int(cache["level"]))
    # Where the placement is not known, each thread reaches one cache.
    of_node = last["size"] * min(last["count"], row.concurrency)
    held = max(measured.known("placed_cache_bytes"), default=of_node)
    if min(pools) < POOL * held:
        sizes = {"pool": min(pools), "held": held, "needed": POOL * held}
        texts = {name: format_size(int(size)) for name, size in sizes.items()}
        level = str(last["level"])
        yield message("pool-in-cache", Severity.WRONG, times=POOL, level=level, **texts)
