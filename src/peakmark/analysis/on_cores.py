"""Checks of cores: their clock, their number, which of them the threads had."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from peakmark import statistics
from peakmark.analysis import disturbance
from peakmark.analysis.measured import DEFAULT, Measured, RunValue
from peakmark.catalogue import KERNELS, SUBSYSTEMS
from peakmark.limits import efficiency
from peakmark.messages import Message, Severity, Value, message

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
    if row.instrument != KERNELS["cpu"] or row.limit.kind in ("site", "unknown"):
        return
    share = efficiency(row.centre, row.limit)
    asked = {str(run.options.get("isa") or "auto") for run in row.runs}
    cores = row.fact("cpu", "cores")
    if (
        share is None
        or share >= DEFAULT.core
        or asked != {"auto"}
        or (cores and row.concurrency > cores)
    ):
        return
    named = (*waited(row), *crowded(row), *disturbance.find(row.noises, spare=row.spare_cpus))
    if named:
        return  # what took the time is known, and said
    yield message("slow-core", Severity.UNSURE, share=share)


def crowded(row: Measured) -> Iterator[Message]:
    """The kernel's paced calls tell when a core's pipes are not its own: their chain of known
    length does not bind then.

    Threads that share a core by request, or that waited for their CPUs, hold each other up: other
    notes say so.
    """
    runs = [
        run
        for run in row.runs
        if run.details.get("cpu_share", 1.0) >= DEFAULT.cpu and not _share_cores(run, row)
    ]
    held = [run.details["held_up"] for run in runs if run.details.get("held_up")]
    if held:
        cores = message("up-to-cores" if min(held) < max(held) else "of-cores", cores=max(held))
        often = disturbance.often(len(held), len(row.runs))
        yield message(
            "crowded-core", disturbance.weight(len(held), len(row.runs)), cores=cores, often=often
        )


def _share_cores(run: RunValue, row: Measured) -> bool:
    placed = run.context.get("placed") or {}
    return int(placed.get("cores", row.concurrency)) < row.concurrency


def waited(row: Measured) -> Iterator[Message]:
    """Threads that compute have no reason to wait: what they lost of their time went to others."""
    if not SUBSYSTEMS[row.subsystem].pinned:
        return
    shares = row.details("cpu_share")
    held = [share for share in shares if share < DEFAULT.cpu]
    if held:
        level = Severity.UNSURE if lost_time(row) else Severity.NOTE
        yield message(
            "waited", level, lost=1 - min(held), often=disturbance.often(len(held), len(shares))
        )


def lost_time(row: Measured) -> bool:
    """Whether the threads waited for their CPUs so long, and in so many repetitions, that it
    changes the figure.
    """
    shares = row.details("cpu_share")
    lost = sum(1 - share > disturbance.MATTERS for share in shares)
    return lost > 0 and disturbance.weight(lost, len(shares)) is Severity.UNSURE


def clock(row: Measured) -> Iterator[Message]:
    """Clocks that differ from one repetition to the next explain why values do, which are judged
    themselves: no doubt more.
    """
    pairs = [(run.known("clock_hz_before"), run.known("clock_hz_after")) for run in row.runs]
    known = [(float(before), float(after)) for before, after in pairs if before and after]
    changes = [after / before - 1 for before, after in known]
    moved = [change for change in changes if abs(change) > DEFAULT.clock]
    if moved:
        most = max(moved, key=abs)
        way = "moved" if min(moved) < 0 < max(moved) else "fell" if most < 0 else "rose"
        by = message("up-to" if len(known) > 1 else "exactly", share=abs(most))
        often = disturbance.often(len(moved), len(known))
        yield message(
            "clock-moved", disturbance.weight(len(moved), len(known)), way=way, most=by, often=often
        )
    means = [(before + after) / 2 for before, after in known]
    if not moved and means and max(means) / min(means) - 1 > DEFAULT.clock:
        yield message("clock-differs", more=max(means) / min(means) - 1)


def clock_lowered(row: Measured) -> Iterator[Message]:
    """Wide multiplications lower the clock of some cores, and only while they run."""
    seen = [
        [run.known(f"clock_hz_{when}") for when in ("before", "after", "loaded")]
        for run in row.runs
    ]
    pairs = [
        (float(during), (float(before) + float(after)) / 2)
        for before, after, during in seen
        if before and after and during
    ]
    if not pairs:
        return
    share = statistics.median([loaded / idle for loaded, idle in pairs])
    if share < 1 - DEFAULT.lowered:
        clock, nominal = statistics.median([loaded for loaded, _ in pairs]), nominal_of(row)
        below = message("under-nominal", nominal=nominal) if nominal and clock < nominal else ""
        yield message("clock-lowered", share=1 - share, clock=clock, below=below)


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
    if clock < (1 - DEFAULT.clock) * nominal:
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
