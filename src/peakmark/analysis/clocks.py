"""Clock and work per cycle are two figures: a share of the limit at the clock that a core had says
nothing of how low that clock was.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from peakmark import statistics
from peakmark.analysis import core_checks
from peakmark.analysis.row import ReachedClock, Row, RunValue
from peakmark.limits import Question
from peakmark.messages import Message, Severity, message
from peakmark.storage.facts import (
    SeenClock,
    Work,
    node_class,
    read_earlier_clocks,
    write_clocks,
)
from peakmark.storage.results import Results

THROTTLED = 0.9
"""Share of the best clock that was seen, below which the clock is a warning."""
BOOSTED = 2
"""Threads up to which a processor is to reach the highest clock of its datasheet, which is one of one
or two busy cores.
"""


def with_clocks(results: Results, rows: Sequence[Row]) -> list[Row]:
    """CPU rows with the clock that they reached and the best that their CPU is known to reach: on this
    host before, on equal nodes of the campaign, or by the datasheet.
    """
    seen = [_seen(results, row) for row in rows]
    hosts: dict[Work, dict[str, SeenClock]] = defaultdict(dict)
    for by_host in seen:
        for host, clock in by_host.items():
            hosts[clock.work][host] = clock
    measured = {host for by_host in seen for host in by_host}
    earlier = read_earlier_clocks(results.directory, measured)

    def known(host: str, clock: SeenClock) -> Iterator[tuple[float, Message]]:
        """Other clocks of the same work, each with where it was seen."""
        for node, other in hosts[clock.work].items():
            if node != host and clock.work.cpu:
                yield other.hz, message("clock-of-node", best=other.hz, node=node)
        before = earlier[host].get(clock.work)
        if before:
            yield before.hz, message("clock-of-day", best=before.hz, node=host, day=before.day)
        site = results.config.get("site_facts") or {}
        question = Question("cpu", "", "", None, 1, "rate", results.facts[host], site)
        boost = question.clocks.get("maximum")
        if boost and clock.work.threads <= BOOSTED:
            yield boost.hz, message("clock-of-datasheet", best=boost.hz)

    def with_clock(row: Row, by_host: Mapping[str, SeenClock]) -> Row:
        if not by_host:
            return row
        hz = statistics.median([clock.hz for clock in by_host.values()])
        others = [each for host, clock in by_host.items() for each in known(host, clock)]
        best, source = max(others, key=lambda other: other[0], default=(None, None))
        reached = ReachedClock(hz, best, source)
        return replace(row, clock=reached, warnings=(*row.warnings, *_warnings(row, reached)))

    return [with_clock(row, by_host) for row, by_host in zip(rows, seen, strict=True)]


def remember(results: Results, rows: Sequence[Row]) -> None:
    """Store what clocks the hosts of CPU rows reached. Errors: OSError."""
    by_host: dict[str, list[SeenClock]] = defaultdict(list)
    for row in rows:
        for host, clock in _seen(results, row).items():
            by_host[host].append(clock)
    write_clocks(results.directory, by_host)


def _seen(results: Results, row: Row) -> dict[str, SeenClock]:
    """Host -> the clock of a row on it, by the repetitions that nothing disturbed."""
    runs: dict[tuple[str, str], list[RunValue]] = defaultdict(list)
    for run in row.own.points if row.own else ():
        host = str(run.context["host"])
        facts = results.facts.get(host)
        cpus = (facts.get("cpu") or {}).get("threads") if facts else None
        causes = core_checks.causes_of(run, row.table.subsystem, row.key.concurrency, cpus)
        if facts and not causes and core_checks.seen_clock([run]):
            runs[host, str(run.details.get("isa") or "")].append(run)
    seen = {}
    for (host, isa), alike in runs.items():
        known = node_class(results.facts[host])
        work = Work(known.cpu if known else "", row.key.workload, isa, row.key.concurrency)
        hz = statistics.median([core_checks.seen_clock([run]) or 0.0 for run in alike])
        seen[host] = SeenClock(work, hz, str(alike[0].context["started"])[:10])
    return seen


def _warnings(row: Row, clock: ReachedClock) -> Iterator[Message]:
    share = clock.share
    if share is not None and share < THROTTLED and clock.source:
        yield message(
            "clock-below-best",
            Severity.UNSURE,
            about=row.table.own.instrument,
            share=share,
            clock=clock.hz,
            source=clock.source,
        )
