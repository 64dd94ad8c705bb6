"""Checks of the cores that measured: their clock, their number, and what else ran on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from peakmark import disturbances, statistics
from peakmark.analysis.row import Details, Measured, Messages, RunValue
from peakmark.catalogue import KERNELS
from peakmark.messages import Severity, Value, message

STEAL = 0.02
"""Share of the CPUs' time taken by the hypervisor that is told."""
HELD_BACK = 0.01
"""Share of the time for which a quota held threads back that is told."""
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
WIDE = ("avx2", "avx512")
"""Instruction sets under whose multiplications a core may run below its nominal clock, as designed.
"""
LOWEST = 0.4
"""Of the nominal clock, what no such design goes below: the lowest base clocks for AVX-512 are
about half of those on the box.
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


def in_how_many(count: int, n: int, where: Value = "") -> Value:
    """In how many of ``n`` repetitions; nothing of a single one, of which there is nothing to
    count.
    """
    return message("often", where=where, count=count, n=n) if n > 1 else ""


def disturbed(row: Measured) -> Messages:
    """What else went on during the repetitions, on the nodes of servers too."""
    yield from _noise(row, row.noises, "")
    for host, noises in row.server_noises.items():
        yield from _noise(row, noises, message("server", hosts=frozenset([host])))


def _noise(row: Measured, noises: Sequence[Details], where: Value) -> Messages:
    during = [noise["during"] for noise in noises if noise.get("during")]

    def often(count: int) -> Value:
        return in_how_many(count, len(noises), where) or message("meanwhile", where=where)

    busy = [each for each in during if each["others"] > disturbances.OTHERS]
    if busy:
        worst = max(busy, key=lambda each: float(each["others"]))
        users = message("other-users", users=worst["users"]) if worst["users"] else ""
        seen = message("busy", busy=worst["busy"], users=users) if worst["busy"] else None
        level, count = severity(row, "other-load"), often(len(busy))
        values = {"cpus": worst["others"], "often": count, "busy": seen or message("hidden")}
        yield message("other-load", level, **values)
    stolen = [each["steal"] for each in during if (each["steal"] or 0.0) > STEAL]
    if stolen:
        yield message("steal", severity(row, "steal"), share=max(stolen), often=often(len(stolen)))
    held = [each["throttled_s"] / each["seconds"] for each in during if each.get("throttled_s")]
    if max(held, default=0.0) > HELD_BACK:
        yield message("throttled", Severity.UNSURE, share=max(held), often=often(len(held)))
    hot = sum(bool(each.get("hot")) for each in during)
    if hot:
        yield message("hot", Severity.UNSURE, often=often(hot))


def slow_core(row: Measured) -> Messages:
    """Fewer operations a cycle than any kernel here does on its own core, and no reason for it in
    the record.
    """
    share = row.limit.efficiency(row.centre)
    if row.instrument != KERNELS["cpu"] or row.limit.origin == "site" or share is None:
        return
    is_chosen = any(run.options.get("isa") not in (None, "auto") for run in row.runs)
    cores = row.fact("cpu", "cores")
    if share >= CORE or is_chosen or (cores and row.concurrency > cores):
        return
    if not any((*waited(row), *crowded(row), *_noise(row, row.noises, ""))):
        yield message("slow-core", Severity.UNSURE, share=share)


def crowded(row: Measured) -> Messages:
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


def waited(row: Measured) -> Messages:
    """Threads that compute have no reason to wait: what they lost of their time went to others."""
    shares = row.details("cpu_share") if row.is_pinned else []
    held = [share for share in shares if share < CPU]
    if held:
        lost, often = 1 - min(held), in_how_many(len(held), len(shares))
        yield message("waited", severity(row, "waited"), lost=lost, often=often)


def overlap(row: Measured) -> Messages:
    """Latency under load: points at which not all threads were at work all the time."""
    if row.metric != "loaded_latency":
        return
    shares = [point[2] for run in row.runs for point in run.details["points"]]
    short = [share for share in shares if share < OVERLAP]
    if short:
        values = {"count": len(short), "total": len(shares), "least": min(short)}
        yield message("overlap", severity(row, "overlap"), **values)


def memory_load(row: Measured) -> Messages:
    """The kernel reads DRAM before and after its work: what it lacks to the best went to others."""
    taken = [disturbances.memory_load(run.context, run.details) for run in row.runs]
    if any(taken):
        often = in_how_many(sum(share > 0 for share in taken), len(taken))
        yield message("memory-load", severity(row, "memory-load"), share=max(taken), often=often)


def clock(row: Measured) -> Messages:
    """Clocks that moved during a repetition."""
    pairs = [(run.known("clock_hz_before"), run.known("clock_hz_after")) for run in row.runs]
    changes = [after / before - 1 for before, after in pairs if before and after]
    moved = [change for change in changes if abs(change) > disturbances.MATTERS]
    if moved:
        most = max(moved, key=abs)
        way = "moved" if min(moved) < 0 < max(moved) else "fell" if most < 0 else "rose"
        by = message("up-to" if len(changes) > 1 else "exactly", share=abs(most))
        often = in_how_many(len(moved), len(changes))
        yield message("clock-moved", severity(row, "clock-moved"), way=way, most=by, often=often)


def below_nominal(row: Measured) -> Messages:
    """A limit at the clock that was seen makes a throttled node look perfect: that clock is judged
    too.

    Wide vectors have a nominal clock of their own, below the one on the box: under them the clock
    before and after tells.
    """
    nominal = row.nominal_hz or (row.fact("cpu", "clock_hz") or {}).get("nominal")
    seen = seen_clock(row.runs)
    if not (row.is_pinned and nominal and seen):
        return
    wide = any(run.details.get("isa") in WIDE for run in row.runs) and seen >= LOWEST * nominal
    clock = (idle_clock(row.runs) if wide else None) or seen
    if clock < (1 - disturbances.MATTERS) * nominal:
        share = row.limit.efficiency(row.centre) if row.limit.clock else None
        of_it = message("of-nominal", share=share * seen / nominal) if share else ""
        yield message("below-nominal", Severity.UNSURE, clock=clock, nominal=nominal, share=of_it)


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


def narrower(row: Measured) -> Messages:
    """Plain arithmetic or narrow vectors, where they were asked for, beside a limit that only the
    widest ones reach.
    """
    isa = row.runs[0].options.get("isa") or "auto"
    is_widest = isa in ("auto", row.fact("cpu", "isa_best"))
    if row.instrument == KERNELS["cpu"] and row.limit.value is not None and not is_widest:
        vectors = message("instructions", isa=isa.upper())
        yield message("narrower", asked=(message("plain") if isa == "scalar" else vectors,))


def placement(row: Measured) -> Messages:
    """Repetitions that were given other cores measured other things."""
    kinds = {(at["cores"], at["sockets"], len(at["numa_nodes"])) for at in row.placed}
    if row.is_pinned and len(kinds) > 1:
        each = (
            message("cores", cores=cores, sockets=sockets, nodes=nodes)
            for cores, sockets, nodes in sorted(kinds)
        )
        yield message("placement-differs", Severity.UNSURE, placed=tuple(each))


def concurrency(row: Measured) -> Messages:
    """More threads than the jobs had CPUs, or else what the first job on the host had."""
    if not row.is_pinned:
        return
    cpus = next((run.context["cpus"] for run in row.runs if run.context.get("cpus")), None)
    cpus = cpus or row.fact("limits", "cpus_allowed") or ()
    first = {
        "cores": row.fact("limits", "physical_cores_allowed"),
        "cpu_quota": row.fact("limits", "cpu_quota"),
    }
    jobs = [run.context["allowed"] for run in row.runs if run.context.get("allowed")] or [first]
    cores = min((job["cores"] for job in jobs if job["cores"]), default=row.concurrency)
    quota = min((job["cpu_quota"] for job in jobs if job["cpu_quota"]), default=row.concurrency)
    if cpus and row.concurrency > len(cpus):
        yield message("oversubscribed", Severity.WRONG, threads=row.concurrency, cpus=len(cpus))
    elif row.concurrency > quota:
        yield message("cpu-quota", Severity.UNSURE, threads=row.concurrency, quota=quota)
    elif row.concurrency > cores:
        yield message("shared-cores", threads=row.concurrency, cores=cores)
