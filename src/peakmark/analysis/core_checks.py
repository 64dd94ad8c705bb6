"""Checks of the cores that measured: their clock, their number, and what else ran on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from peakmark import disturbances, statistics
from peakmark.analysis.row import Measured, RunValue
from peakmark.catalogue import KERNELS, SUBSYSTEMS
from peakmark.limits import efficiency
from peakmark.messages import Message, Severity, Value, message

STEAL = 0.02
"""Share of the CPUs' time taken by the hypervisor that is told."""
CPU = 0.97
"""Least share of the run in which a thread that computes had its CPU."""
CORE = 0.75
"""Least share of a core's pipes that a kernel takes on a core of its own."""
OVERLAP = 0.95
"""Least share of the time in which all threads of a latency under load were at work."""
STANDS = 0.04
"""Share by which disturbed repetitions may move the figure of a row that is not in doubt: less than
a quiet machine spreads.
"""


def causes(row: Measured) -> list[frozenset[str]]:
    """Codes of what changed the figure of each repetition, in the order of time."""
    cpus = row.fact("cpu", "threads")
    return [causes_of(run, row.subsystem, row.concurrency, cpus) for run in row.in_time]


def causes_of(run: RunValue, subsystem: str, threads: int, cpus: int | None) -> frozenset[str]:
    """Codes of what changed the figure of a repetition.

    Args:
        run: with its context and details.
        subsystem: of its row.
        threads: of its row.
        cpus: of the node; None where that is unknown.
    """
    known = {**run.context, **run.details}
    spare = disturbances.spare_cpus(subsystem, threads, cpus)
    found = disturbances.find(subsystem, known, run.details, spare)
    if "waited" in found:  # then no CPU was free, however many the node has
        found = disturbances.find(subsystem, known, run.details)
    return frozenset([*found, *(["crowded-core"] if _held_up(run, threads) else [])])


def clean_runs(row: Measured) -> list[RunValue]:
    """The repetitions whose figure nothing changed, in the order of time."""
    return [run for run, found in zip(row.in_time, causes(row), strict=True) if not found]


def stands(row: Measured) -> bool:
    """Whether the row's figure is that of its clean repetitions: they are more than half of all, and
    their median is within ``STANDS`` of it.
    """
    clean = [run.value for run in clean_runs(row)]
    if 2 * len(clean) <= len(row.runs):
        return False
    median = statistics.median(clean)
    return abs(row.centre - median) < STANDS * median


def severity(row: Measured, code: str) -> Severity:
    """Of a disturbance: a doubt where it changed at least half of the repetitions; where no
    disturbance did, unless the figure stands.
    """
    counts = Counter(each for found in causes(row) for each in found)
    weights = {each: weight(count, len(row.runs)) for each, count in counts.items()}
    moved = Severity.UNSURE not in weights.values() and not stands(row)
    return Severity.UNSURE if moved and code in weights else weights.get(code, Severity.NOTE)


def weight(disturbed: int, n: int) -> Severity:
    """Of what disturbed so many of ``n`` repetitions enough to change their figure."""
    return Severity.UNSURE if 2 * disturbed >= n else Severity.NOTE


def noise_warnings(
    noises: Sequence[Mapping[str, Any]], level: Callable[[str], Severity], server: str = ""
) -> Iterator[Message]:
    """What the noise of a row's repetitions was, as records hold it.

    Args:
        noises: of its repetitions.
        level: of a disturbance by its code, see ``severity``.
        server: the host of the server, where it is that one's noise.
    """
    during = [noise["during"] for noise in noises if noise.get("during")]
    where = message("server", hosts=frozenset([server])) if server else ""
    yield from _others(during, len(noises), where, level("other-load"))
    yield from _steal(during, len(noises), where, level("steal"))
    yield from _held_back(during, len(noises), where)


def in_how_many(count: int, n: int, where: Value = "") -> Value:
    """In how many of ``n`` repetitions; nothing of a single one, of which there is nothing to
    count.
    """
    return message("often", where=where, count=count, n=n) if n > 1 else ""


def _meanwhile(count: int, n: int, where: Value) -> Value:
    return in_how_many(count, n, where) or message("meanwhile", where=where)


def _others(
    during: Sequence[Mapping[str, Any]], n: int, where: Value, level: Severity
) -> Iterator[Message]:
    disturbed = [noise for noise in during if noise["others"] > disturbances.OTHERS]
    if not disturbed:
        return
    worst = max(disturbed, key=lambda noise: float(noise["others"]))
    users = message("other-users", users=worst["users"]) if worst["users"] else ""
    yield message(
        "other-load",
        level,
        cpus=worst["others"],
        often=_meanwhile(len(disturbed), n, where),
        busy=message("busy", busy=worst["busy"], users=users)
        if worst["busy"]
        else message("hidden"),
    )


def _steal(
    during: Sequence[Mapping[str, Any]], n: int, where: Value, level: Severity
) -> Iterator[Message]:
    disturbed = [
        noise["steal"] for noise in during if noise["steal"] is not None and noise["steal"] > STEAL
    ]
    if disturbed:
        most, often = max(disturbed), _meanwhile(len(disturbed), n, where)
        yield message("steal", level, share=most, often=often)


def _held_back(during: Sequence[Mapping[str, Any]], n: int, where: Value) -> Iterator[Message]:
    held = [noise["throttled_s"] / noise["seconds"] for noise in during if noise.get("throttled_s")]
    if held and max(held) > 0.01:
        yield message(
            "throttled", Severity.UNSURE, share=max(held), often=_meanwhile(len(held), n, where)
        )
    hot = sum(bool(noise.get("hot")) for noise in during)
    if hot:
        yield message("hot", Severity.UNSURE, often=_meanwhile(hot, n, where))


WIDE = {"avx2", "avx512"}
"""Instruction sets under whose multiplications a core may run below its nominal clock, as designed.
"""
LOWEST = 0.4
"""Of the nominal clock, what no such design goes below: the lowest base clocks for AVX-512 are
about half of those on the box.
"""


def slow_core(row: Measured) -> Iterator[Message]:
    """Fewer operations a cycle than any kernel here does on its own core, and no reason for it in
    the record.
    """
    share = efficiency(row.centre, row.limit)
    if row.instrument != KERNELS["cpu"] or row.limit.origin == "site" or share is None:
        return
    chosen = any(run.options.get("isa") not in (None, "auto") for run in row.runs)
    cores = row.fact("cpu", "cores")
    if share >= CORE or chosen or (cores and row.concurrency > cores):
        return
    others = noise_warnings(row.noises, partial(severity, row))
    if not any((*waited(row), *crowded(row), *others)):
        yield message("slow-core", Severity.UNSURE, share=share)


def crowded(row: Measured) -> Iterator[Message]:
    """The kernel's paced calls tell when a core's pipes are not its own: their chain of known
    length does not bind then.

    Threads that share a core by request, or that waited for their CPUs, hold each other up: other
    notes say so.
    """
    held = [cores for run in row.runs if (cores := _held_up(run, row.concurrency))]
    if held:
        most = message("up-to-cores" if min(held) < max(held) else "of-cores", cores=max(held))
        often = in_how_many(len(held), len(row.runs))
        yield message("crowded-core", severity(row, "crowded-core"), cores=most, often=often)


def _held_up(run: RunValue, threads: int) -> int:
    """On how many cores somebody else held up threads that did not wait and share no core."""
    placed = run.context.get("placed") or {}
    share_cores = int(placed.get("cores", threads)) < threads
    if share_cores or run.details.get("cpu_share", 1.0) < CPU:
        return 0
    return int(run.details.get("held_up") or 0)


def waited(row: Measured) -> Iterator[Message]:
    """Threads that compute have no reason to wait: what they lost of their time went to others."""
    if not SUBSYSTEMS[row.subsystem].pinned:
        return
    shares = row.details("cpu_share")
    held = [share for share in shares if share < CPU]
    if held:
        lost, often = 1 - min(held), in_how_many(len(held), len(shares))
        yield message("waited", severity(row, "waited"), lost=lost, often=often)


def overlap(row: Measured) -> Iterator[Message]:
    """Latency under load: points at which not all threads were at work all the time."""
    if row.metric != "loaded_latency":
        return
    shares = [point[2] for run in row.runs for point in run.details["points"]]
    short = [share for share in shares if share < OVERLAP]
    if short:
        values = {"count": len(short), "total": len(shares), "least": min(short)}
        yield message("overlap", severity(row, "overlap"), **values)


def memory_load(row: Measured) -> Iterator[Message]:
    """The kernel reads DRAM before and after its work: what it lacks to the best went to others."""
    taken = [disturbances.memory_load(run.context, run.details) for run in row.runs]
    if any(taken):
        often = in_how_many(sum(share > 0 for share in taken), len(taken))
        yield message("memory-load", severity(row, "memory-load"), share=max(taken), often=often)


def clock(row: Measured) -> Iterator[Message]:
    """Clocks that differ from one repetition to the next explain why values do, which are judged
    themselves: no doubt more.
    """
    pairs = [(run.known("clock_hz_before"), run.known("clock_hz_after")) for run in row.runs]
    known = [(float(before), float(after)) for before, after in pairs if before and after]
    changes = [after / before - 1 for before, after in known]
    moved = [change for change in changes if abs(change) > disturbances.MATTERS]
    if moved:
        most = max(moved, key=abs)
        way = "moved" if min(moved) < 0 < max(moved) else "fell" if most < 0 else "rose"
        by = message("up-to" if len(known) > 1 else "exactly", share=abs(most))
        often = in_how_many(len(moved), len(known))
        yield message("clock-moved", severity(row, "clock-moved"), way=way, most=by, often=often)
    means = [(before + after) / 2 for before, after in known]
    if not moved and means and max(means) / min(means) - 1 > disturbances.MATTERS:
        yield message("clock-differs", more=max(means) / min(means) - 1)


def below_nominal(row: Measured) -> Iterator[Message]:
    """A limit at the clock that was seen makes a throttled node look perfect: that clock is judged
    too.

    Wide vectors have a nominal clock of their own, below the one on the box: under them the clock
    before and after tells.
    """
    nominal, clock = nominal_of(row), seen_clock(row.runs)
    if not SUBSYSTEMS[row.subsystem].pinned or not nominal or clock is None:
        return
    wide = {str(run.details.get("isa")) for run in row.runs} & WIDE
    idle = idle_clock(row.runs)
    if wide and idle is not None and clock >= LOWEST * nominal:
        clock = idle
    if clock < (1 - disturbances.MATTERS) * nominal:
        share, seen = efficiency(row.centre, row.limit), seen_clock(row.runs)
        of_it: Value = ""
        if share is not None and seen is not None and row.limit.clock:
            of_it = message("of-nominal", share=share * seen / nominal)
        yield message("below-nominal", Severity.UNSURE, clock=clock, nominal=nominal, share=of_it)


def nominal_of(row: Measured) -> float | None:
    """The clock on the box in Hz, by the site file or the machine."""
    return row.nominal_hz or (row.fact("cpu", "clock_hz") or {}).get("nominal")


def seen_clock(runs: Sequence[RunValue]) -> float | None:
    """Median of the clocks under the work of the runs that could tell it; if none could, of those
    before and after; Hz.
    """
    loaded = [float(clock) for run in runs if (clock := run.known("clock_hz_loaded"))]
    return statistics.median(loaded) if loaded else idle_clock(runs)


def idle_clock(runs: Sequence[RunValue]) -> float | None:
    """Median of the clocks before and after the work, without the work's own instructions; Hz."""
    names = ("clock_hz_before", "clock_hz_after")
    clocks = [float(clock) for run in runs for name in names if (clock := run.known(name))]
    return statistics.median(clocks) if clocks else None


def narrower(row: Measured) -> Iterator[Message]:
    """Plain arithmetic or narrow vectors, where they were asked for, beside a limit that only the
    widest ones reach.
    """
    asked = {str(run.options.get("isa") or "auto") for run in row.runs}
    if (
        row.instrument != KERNELS["cpu"]
        or row.limit.value is None
        or asked & {"auto", row.fact("cpu", "isa_best")}
    ):
        return
    names = (
        message("plain") if isa == "scalar" else message("instructions", isa=isa.upper())
        for isa in sorted(asked)
    )
    yield message("narrower", asked=tuple(names))


def placement(row: Measured) -> Iterator[Message]:
    """Repetitions that were given other cores measured other things."""
    placed = [run.context["placed"] for run in row.runs if run.context.get("placed")]
    kinds = sorted(
        {(place["cores"], place["sockets"], len(place["numa_nodes"])) for place in placed}
    )
    if SUBSYSTEMS[row.subsystem].pinned and len(kinds) > 1:
        each = (
            message("cores", cores=cores, sockets=sockets, nodes=nodes)
            for cores, sockets, nodes in kinds
        )
        yield message("placement-differs", Severity.UNSURE, placed=tuple(each))


def concurrency(row: Measured) -> Iterator[Message]:
    if not SUBSYSTEMS[row.subsystem].pinned:
        return
    given = (run.context.get("cpus") for run in row.runs)
    cpus = next((cpus for cpus in given if cpus), None) or row.fact("limits", "cpus_allowed")
    cores, quota = row.fact("limits", "physical_cores_allowed"), row.fact("limits", "cpu_quota")
    allowed = [run.context["allowed"] for run in row.runs if run.context.get("allowed")]
    if allowed:
        cores = min(job["cores"] for job in allowed)
        quota = min((job["cpu_quota"] for job in allowed if job["cpu_quota"]), default=None)
    if cpus and row.concurrency > len(cpus):
        yield message("oversubscribed", Severity.WRONG, threads=row.concurrency, cpus=len(cpus))
    elif quota and row.concurrency > quota:
        yield message("cpu-quota", Severity.UNSURE, threads=row.concurrency, quota=quota)
    elif cores and row.concurrency > cores:
        yield message("shared-cores", threads=row.concurrency, cores=cores)
