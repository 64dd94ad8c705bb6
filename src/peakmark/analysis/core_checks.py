"""Checks of the cores that measured: their clock, their number, and what else ran on them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from peakmark import statistics
from peakmark.analysis.row import (
    Measured,
    Messages,
    ReachedClock,
    Row,
    RunValue,
    idle_clock,
    seen_clock,
)
from peakmark.catalogue import KERNELS
from peakmark.limits import Question
from peakmark.messages import Message, Severity, Value, message
from peakmark.run import noise
from peakmark.storage.facts import node_class
from peakmark.storage.results import Results

STEAL = 0.02
"""Share of the CPUs' time taken by the hypervisor that is told."""
HELD_BACK = 0.01
"""Share of the time for which a quota held threads back that is told."""
WAITED = 0.03
"""Share of the run in which a thread that computes may be without its CPU."""
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
THROTTLED = 0.9
"""Share of the best clock that was seen, below which the clock is a warning."""
BOOSTED = 2
"""Threads up to which a processor is to reach the highest clock of its datasheet, which is one of one
or two busy cores.
"""


def causes(row: Measured) -> list[tuple[RunValue, frozenset[str]]]:
    """Each repetition with the codes of what changed its figure, in the order of time."""
    cpus = row.fact("cpu", "threads")
    return [(run, causes_of(run, row.subsystem, row.concurrency, cpus)) for run in row.in_time]


def causes_of(run: RunValue, subsystem: str, threads: int, cpus: int | None) -> frozenset[str]:
    """Codes of what changed the figure of a repetition.

    Args:
        run: with its context and details.
        subsystem: of its row.
        threads: of its row.
        cpus: of the node; None where that is unknown.
    """
    spare = noise.spare_cpus(subsystem, threads, cpus)
    context = {**run.context, **run.details}
    found = noise.find(subsystem, context, run.details, spare)
    return frozenset([*found, *(["crowded-core"] if _held_up(run, threads) else [])])


def clean_runs(row: Measured) -> list[RunValue]:
    """The repetitions whose figure nothing changed, in the order of time, where the row's figure
    stands: they are more than half of all, and their median is within ``STANDS`` of it. Else none.
    """
    clean = [run for run, found in causes(row) if not found]
    if 2 * len(clean) <= len(row.runs):
        return []
    median = statistics.median([run.value for run in clean])
    return clean if abs(row.centre - median) < STANDS * median else []


def severity(row: Measured, code: str) -> Severity:
    """Of a disturbance: a doubt where it changed at least half of the repetitions; where no
    disturbance did, unless the figure stands.
    """
    counts = Counter(each for _, found in causes(row) for each in found)
    weights = {each: weight(count, len(row.runs)) for each, count in counts.items()}
    moved = Severity.UNSURE not in weights.values() and not clean_runs(row)
    return Severity.UNSURE if moved and code in weights else weights.get(code, Severity.NOTE)


def weight(disturbed: int, n: int) -> Severity:
    """Of what disturbed so many of ``n`` repetitions enough to change their figure."""
    return Severity.UNSURE if 2 * disturbed >= n else Severity.NOTE


def in_how_many(count: int, n: int, where: Value = "") -> Value:
    """In how many of ``n`` repetitions; nothing of a single one, of which there is nothing to
    count.
    """
    return message("often", where=where, count=count, n=n) if n > 1 else ""


def _repeated(
    row: Measured,
    code: str,
    amounts: Sequence[float],
    least: float = 0.0,
    level: Severity | None = None,
    where: Value | None = None,
) -> Messages:
    """A message where an amount is above ``least`` in repetitions: the most, and in how many.

    Args:
        row: with its repetitions.
        code: of a message with ``share`` and ``often``.
        amounts: of each repetition that tells one.
        least: that is worth a message.
        level: of the message, None for that of a disturbance.
        where: it went on meanwhile.
    """
    count = sum(amount > least for amount in amounts)
    if count:
        often = in_how_many(count, len(amounts), where or "")
        if not often and where is not None:
            often = message("meanwhile", where=where)
        yield message(code, level or severity(row, code), share=max(amounts), often=often)


def disturbed(row: Measured) -> Messages:
    """What else went on during the repetitions, on the nodes of servers too."""
    for where, noises in row.noises:
        during = [noise["during"] for noise in noises if noise.get("during")]
        others = [each["others"] for each in during]
        for found in _repeated(row, "other-load", others, noise.OTHERS, where=where):
            worst = max(during, key=lambda each: float(each["others"]))
            users = message("other-users", users=worst["users"]) if worst["users"] else ""
            busy = message("busy", busy=worst["busy"], users=users)
            seen = busy if worst["busy"] else message("hidden")
            yield replace(found, values=(*found.values, ("busy", seen)))
        steal = [each["steal"] or 0.0 for each in during]
        yield from _repeated(row, "steal", steal, STEAL, where=where)
        held = [(each.get("throttled_s") or 0.0) / each["seconds"] for each in during]
        yield from _repeated(row, "throttled", held, HELD_BACK, Severity.UNSURE, where)
        hot = [float(each.get("hot") or 0) for each in during]
        yield from _repeated(row, "hot", hot, level=Severity.UNSURE, where=where)


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
    if not any((*waited(row), *crowded(row), *disturbed(row))):
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
    if share_cores or 1 - run.details.get("cpu_share", 1.0) > WAITED:
        return 0
    return int(run.details.get("held_up") or 0)


def waited(row: Measured) -> Messages:
    """Threads that compute have no reason to wait: what they lost of their time went to others."""
    lost = [1 - share for share in row.details("cpu_share")] if row.is_pinned else []
    yield from _repeated(row, "waited", lost, WAITED)


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
    taken = [noise.memory_load(run.context, run.details) for run in row.runs]
    yield from _repeated(row, "memory-load", taken)


def clock(row: Measured) -> Messages:
    """Clocks that moved during a repetition."""
    pairs = [(run.known("clock_hz_before"), run.known("clock_hz_after")) for run in row.runs]
    changes = [after / before - 1 for before, after in pairs if before and after]
    moved = [change for change in changes if abs(change) > noise.MATTERS]
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
    if clock < (1 - noise.MATTERS) * nominal:
        share = row.limit.efficiency(row.centre) if row.limit.clock else None
        of_it = message("of-nominal", share=share * seen / nominal) if share else ""
        yield message("below-nominal", Severity.UNSURE, clock=clock, nominal=nominal, share=of_it)


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
    """More threads than the jobs of the row had CPUs, cores, or a quota for."""
    if not row.is_pinned:
        return
    jobs = [run.context["allowed"] for run in row.runs if run.context.get("allowed")]
    cpus = [len(run.context["cpus"]) for run in row.runs if run.context.get("cpus")]
    quotas, cores = ([job[name] for job in jobs if job[name]] for name in ("cpu_quota", "cores"))
    if row.concurrency > min(cpus, default=row.concurrency):
        yield message("oversubscribed", Severity.WRONG, threads=row.concurrency, cpus=min(cpus))
    elif row.concurrency > min(quotas, default=row.concurrency):
        yield message("cpu-quota", Severity.UNSURE, threads=row.concurrency, quota=min(quotas))
    elif row.concurrency > min(cores, default=row.concurrency):
        yield message("shared-cores", threads=row.concurrency, cores=min(cores))


class Work(NamedTuple):
    """What clocks must have in common to be compared: many cores and wide vectors lower them.

    Attributes:
        cpu: model and number of CPUs; empty where they are unknown.
    """

    cpu: str
    workload: str
    isa: str
    threads: int


class SeenClock(NamedTuple):
    """The clock of one work on one host."""

    work: Work
    hz: float


def with_clocks(results: Results, rows: Sequence[Row]) -> list[Row]:
    """Return CPU rows with the clock that they reached and the best that their CPU is known to reach: on
    equal nodes of the campaign, or by the datasheet.

    Clock and work per cycle are two figures: a share of the limit at the clock that a core had says
    nothing of how low that clock was.
    """
    seen = [_seen(results, row) for row in rows]
    hosts: dict[Work, dict[str, SeenClock]] = defaultdict(dict)
    for by_host in seen:
        for host, clock in by_host.items():
            hosts[clock.work][host] = clock

    def known(host: str, clock: SeenClock) -> Iterator[tuple[float, Message]]:
        """Other clocks of the same work, each with where it was seen."""
        for node, other in hosts[clock.work].items():
            if node != host and clock.work.cpu:
                yield other.hz, message("clock-of-node", best=other.hz, node=node)
        site = results.config.get("site_facts") or {}
        question = Question("cpu", "", "", None, 1, "rate", results.facts[host], site)
        boost = question.clocks.get("maximum")
        if boost and clock.work.threads <= BOOSTED:
            yield boost.hz, message("clock-of-datasheet", best=boost.hz)

    judged = list(rows)
    for place, (row, by_host) in enumerate(zip(rows, seen, strict=True)):
        if not by_host:
            continue
        hz = statistics.median([clock.hz for clock in by_host.values()])
        others = [each for host, clock in by_host.items() for each in known(host, clock)]
        best, source = max(others, key=lambda other: other[0], default=(None, ""))
        share = min(1.0, hz / best) if best else None
        warnings = row.warnings
        if share is not None and share < THROTTLED:
            low = message("clock-below-best", Severity.UNSURE, share=share, clock=hz, source=source)
            warnings = (*warnings, replace(low, about=row.table.own.instrument))
        judged[place] = replace(row, clock=ReachedClock(hz, share), warnings=warnings)
    return judged


def _seen(results: Results, row: Row) -> dict[str, SeenClock]:
    """Host -> the clock of a row on it, by the repetitions that nothing disturbed."""
    clean: dict[str, list[RunValue]] = defaultdict(list)
    for run in row.own.points if row.own else ():
        host = str(run.context["host"])
        cpus = ((results.facts.get(host) or {}).get("cpu") or {}).get("threads")
        causes = causes_of(run, row.table.subsystem, row.key.concurrency, cpus)
        if host in results.facts and seen_clock([run]) and not causes:
            clean[host].append(run)
    seen = {}
    for host, runs in clean.items():
        known = node_class(results.facts[host])
        isa = str(runs[0].details.get("isa") or "")
        work = Work(known.cpu if known else "", row.key.workload, isa, row.key.concurrency)
        hz = statistics.median([seen_clock([run]) or 0.0 for run in runs])
        seen[host] = SeenClock(work, hz)
    return seen
