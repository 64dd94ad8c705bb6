"""Checks of cores: their clock, their number, which of them the threads had."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from peakmark import statistics
from peakmark.catalogue.subsystems import SUBSYSTEMS
from peakmark.catalogue.workloads import KERNELS
from peakmark.formatting import listed
from peakmark.judging import disturbance
from peakmark.judging.measured import Measured, Run, Thresholds
from peakmark.judging.notes import Level, Note
from peakmark.limits import efficiency
from peakmark.units import quantity

WIDE = {"avx2", "avx512"}
"""Instruction sets under whose multiplications a core may run below its nominal clock, as designed."""
LOWEST = 0.4
"""Of the nominal clock, what no such design goes below: the lowest base clocks for AVX-512 are about half of those on the box."""


def slow_core(row: Measured, thresholds: Thresholds) -> Iterator[Note]:
    """Fewer operations a cycle than any kernel here does on its own core, and no reason for it in the record."""
    if row.instrument != KERNELS["cpu"] or row.limit.kind in ("site", "unknown"):
        return
    share = efficiency(row.centre, row.limit)
    asked = {str(run.options.get("isa") or "auto") for run in row.runs}
    cores = row.fact("cpu", "cores")
    if share is None or share >= thresholds.core or asked != {"auto"} or (cores and row.concurrency > cores):
        return
    if (
        any(waited(row, thresholds))
        or any(crowded(row, thresholds))
        or any(disturbance.find(row.noises, thresholds.others, thresholds.steal, spare=row.spare_cpus))
    ):
        return  # what took the time is known, and said
    text = (
        f"the cores did {share:.0%} of the operations that their pipes allow at the clock they had: somebody else may be at"
        " work on the other hardware thread of a core, which no counter here shows; repeat at another time or alone"
    )
    yield Note("slow-core", text, Level.UNSURE)


def crowded(row: Measured, thresholds: Thresholds) -> Iterator[Note]:
    """The kernel's paced calls tell when a core's pipes are not its own: their chain of known length does not bind then.

    Threads that share a core by request, or that waited for their CPUs, hold each other up: other notes say so.
    """
    runs = [
        run for run in row.runs if run.details.get("cpu_share", 1.0) >= thresholds.cpu and not _share_cores(run, row)
    ]
    held = [run.details["held_up"] for run in runs if run.details.get("held_up")]
    if held:
        cores = f"{'up to ' if min(held) < max(held) else ''}{max(held)} core{'s' if max(held) > 1 else ''}"
        text = (
            f"something else used the pipes of {cores}{often(len(held), len(row.runs))}, though the threads had their CPUs (a"
            " neighbour on a core's other hardware thread, on a virtual machine perhaps another guest): repeat at another time,"
            " or alone on the host"
        )
        yield Note("crowded-core", text, disturbance.weight(len(held), len(row.runs)))


def _share_cores(run: Run, row: Measured) -> bool:
    placed = run.context.get("placed") or {}
    return int(placed.get("cores", row.concurrency)) < row.concurrency


def waited(row: Measured, thresholds: Thresholds) -> Iterator[Note]:
    """Threads that compute have no reason to wait: what they lost of their time went to others."""
    if not SUBSYSTEMS[row.subsystem].pinned:
        return
    shares = row.details("cpu_share")
    held = [share for share in shares if share < thresholds.cpu]
    if held:
        text = (
            f"threads lost up to {1 - min(held):.1%} of their CPUs' time{often(len(held), len(shares))} to other programs,"
            " the kernel or the hypervisor: have the node to yourself (sbatch --exclusive), and repeat"
        )
        yield Note("waited", text, Level.UNSURE if lost_time(row) else Level.NOTE)


def lost_time(row: Measured) -> bool:
    """Whether the threads waited for their CPUs so long, and in so many repetitions, that it changes the figure."""
    shares = row.details("cpu_share")
    lost = sum(1 - share > disturbance.MATTERS for share in shares)
    return lost > 0 and disturbance.weight(lost, len(shares)) is Level.UNSURE


def often(count: int, n: int) -> str:
    """With a blank before it."""
    return f" in {count} of {n} repetitions" if n > 1 else ""


def clock(row: Measured, thresholds: Thresholds) -> Iterator[Note]:
    """Clocks that differ from one repetition to the next explain why values do, which are judged themselves: no doubt more."""
    pairs = [(run.known("clock_hz_before"), run.known("clock_hz_after")) for run in row.runs]
    known = [(float(before), float(after)) for before, after in pairs if before and after]
    remedy = "fix the clock (governor performance, no other load) or repeat when the node is cool and idle"
    changes = [after / before - 1 for before, after in known]
    moved = [change for change in changes if abs(change) > thresholds.clock]
    if moved:
        most = max(moved, key=abs)
        way = "moved" if min(moved) < 0 < max(moved) else "fell" if most < 0 else "rose"
        by = "up to " if len(known) > 1 else ""
        text = f"the clock {way} by {by}{abs(most):.0%} during a run{often(len(moved), len(known))}: {remedy}"
        yield Note("clock-moved", text, disturbance.weight(len(moved), len(known)))
    means = [(one + other) / 2 for one, other in known]
    if not moved and means and max(means) / min(means) - 1 > thresholds.clock:
        text = f"the clock of one repetition was {max(means) / min(means) - 1:.0%} above that of another: {remedy}"
        yield Note("clock-differs", text, Level.NOTE)


def clock_lowered(row: Measured, thresholds: Thresholds) -> Iterator[Note]:
    """Wide multiplications lower the clock of some cores, and only while they run."""
    seen = [[run.known(f"clock_hz_{when}") for when in ("before", "after", "loaded")] for run in row.runs]
    pairs = [(float(loaded), (float(one) + float(two)) / 2) for one, two, loaded in seen if one and two and loaded]
    if not pairs:
        return
    share = statistics.median([loaded / idle for loaded, idle in pairs])
    if share < 1 - thresholds.lowered:
        clock, nominal = statistics.median([loaded for loaded, _ in pairs]), nominal_of(row)
        below = f", below the nominal {quantity(nominal, 'Hz', 3)}" if nominal and clock < nominal else ""
        text = f"the work itself lowers the clock by {1 - share:.1%}, to {quantity(clock, 'Hz', 3)}{below}: the limit takes this lower one"
        yield Note("clock-lowered", text, Level.NOTE)


def below_nominal(row: Measured, thresholds: Thresholds) -> Iterator[Note]:
    """A limit at the clock that was seen makes a throttled node look perfect: that clock is judged too.

    Wide vectors have a nominal clock of their own, below the one on the box: under them the clock before and after tells.
    """
    nominal, clock = nominal_of(row), seen_clock(row.runs)
    if not SUBSYSTEMS[row.subsystem].pinned or not nominal or clock is None:
        return
    wide = {str(run.details.get("isa")) for run in row.runs} & WIDE
    idle = idle_clock(row.runs)
    if wide and idle is not None and clock >= LOWEST * nominal:
        clock = idle
    if clock < (1 - thresholds.clock) * nominal:
        text = (
            f"the cores ran at {quantity(clock, 'Hz', 3)}, below their nominal {quantity(nominal, 'Hz', 3)}: heat, a power"
            " limit or the governor held them back, and the limit above is that of the lower clock"
            f"{_share_at(row, nominal)}; see cpupower frequency-info, and the node's cooling and power settings"
        )
        yield Note("below-nominal", text, Level.UNSURE)


def _share_at(row: Measured, nominal: float) -> str:
    share, clock = efficiency(row.centre, row.limit), seen_clock(row.runs)
    if share is None or clock is None or " clock" not in row.limit.formula:
        return ""
    return f" ({share * clock / nominal:.0%} of it at the nominal clock)"


def nominal_of(row: Measured) -> float | None:
    """The clock on the box in Hz, by the site file or the machine."""
    return row.nominal_hz or (row.fact("cpu", "clock_hz") or {}).get("nominal")


def seen_clock(runs: Sequence[Run]) -> float | None:
    """Median of the clocks under the work of the runs that could tell it; if none could, of those before and after; Hz."""
    loaded = [float(clock) for run in runs if (clock := run.known("clock_hz_loaded"))]
    return statistics.median(loaded) if loaded else idle_clock(runs)


def idle_clock(runs: Sequence[Run]) -> float | None:
    """Median of the clocks before and after the work, without the work's own instructions; Hz."""
    names = ("clock_hz_before", "clock_hz_after")
    found = [float(clock) for run in runs for name in names if (clock := run.known(name))]
    return statistics.median(found) if found else None


def narrower(row: Measured, _: Thresholds) -> Iterator[Note]:
    """Plain arithmetic or narrow vectors, where they were asked for, beside a limit that only the widest ones reach."""
    asked = {str(run.options.get("isa") or "auto") for run in row.runs}
    if row.instrument != KERNELS["cpu"] or row.limit.value is None or asked & {"auto", row.fact("cpu", "isa_best")}:
        return
    named = " and ".join(
        "plain arithmetic" if isa == "scalar" else f"{isa.upper()} instructions" for isa in sorted(asked)
    )
    text = (
        f"{named} as asked, beside the limit of the processor's widest multiply-add, which they cannot reach: the share is"
        " that of the program's instructions, not of the node; without isa in its grid the kernel takes the widest"
    )
    yield Note("narrower", text, Level.NOTE)


def placement(row: Measured, _: Thresholds) -> Iterator[Note]:
    """Repetitions that were given other cores measured other things."""
    placed = [run.context["placed"] for run in row.runs if run.context.get("placed")]
    seen = sorted({(one["cores"], one["sockets"], len(one["numa_nodes"])) for one in placed})
    if SUBSYSTEMS[row.subsystem].pinned and len(seen) > 1:
        words = listed([f"{c} cores of {s} sockets and {n} NUMA nodes" for c, s, n in seen])
        text = (
            f"repetitions ran on {words}: they are not alike; give every job of the row the same CPUs, or whole nodes"
        )
        yield Note("placement-differs", text, Level.UNSURE)


def concurrency(row: Measured, _: Thresholds) -> Iterator[Note]:
    if not SUBSYSTEMS[row.subsystem].pinned:
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
