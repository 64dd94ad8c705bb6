"""Campaigns over time: the headline row of each subsystem, and where it changed.

All campaigns before and after a place are compared by the exact rank test, and so are the nearest
``NEAR``: a change that was undone is in both sides. Of the places whose p, times the number of
tests, is at most ``LEVEL``, the one that explains most of the variance is a change point; then both
sides of it are searched. Otava (apache/otava) proceeds so with energy distances.
"""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, cached_property, partial
from itertools import pairwise

import numpy as np
import pandas as pd
from msgspec import Struct

from peakmark import slurm, statistics
from peakmark.analysis import comparability, compare, datasets, fleet, verdict
from peakmark.analysis.analysis import Analysis
from peakmark.analysis.datasets import ComparedPoint
from peakmark.analysis.label_formatter import LabelFormatter
from peakmark.analysis.row import Row
from peakmark.catalogue import SUBSYSTEMS
from peakmark.formatting import listed
from peakmark.messages import Message, message
from peakmark.tools.tables import BY_NAME, Table

LEAST = 4
"""Campaigns on each side of a change point: of fewer the rank test shows nothing."""
LEVEL = 0.05
"""Of unchanged rows at most this share has a change point."""
NEAR = 8
"""Campaigns on each side of a place that are also compared without the others."""
STEP = 0.01
"""Smaller changes are not reported."""
FACTS = 8
"""Of a change so many facts are printed; those that matter to the row come first."""


class HeadlineRow(Struct, frozen=True):
    """A row that can speak for its subsystem in one campaign.

    Attributes:
        point: without the node.
        is_headline: whether it does in this campaign.
        facts: what was asked and recorded, by title.
        nodes: lower end of the interval, median and upper end of each node, in SI units.
    """

    point: ComparedPoint
    is_headline: bool
    facts: dict[str, str]
    nodes: dict[str, tuple[float, float, float]]


class StoredCampaign(Struct, frozen=True):
    """What ``analysis.json`` keeps of a campaign for later ones.

    Attributes:
        name: of the campaign.
        began: when its first record was begun, in seconds of the clock.
        facts: all facts of its machines, by title.
        rows: those that can speak for a subsystem.
        slow: node that is slow -> the resources in which it is.
    """

    name: str
    began: float
    facts: dict[str, str]
    rows: list[HeadlineRow]
    slow: dict[str, list[str]]

    @property
    def day(self) -> str:
        """The day on which it was begun: ``2026-03-02``."""
        return datetime.fromtimestamp(self.began, UTC).date().isoformat()


def summarise(analysis: Analysis) -> StoredCampaign:
    """What is kept of a campaign."""
    results, rows = analysis.results, analysis.rows
    facts = cache(partial(comparability.facts, results))
    stored = []
    for subsystem in verdict.planned(rows):
        best = verdict.headline(rows, subsystem)
        by_point: dict[ComparedPoint, list[Row]] = {}
        for row in verdict.candidates(rows, subsystem):
            if row.comparable:
                by_point.setdefault(_point(row), []).append(row)
        for point, members in by_point.items():
            series = members[0].measured
            ends = ("host", "server_host")
            points = [each for row in members for each in row.measured.points]
            hosts = frozenset(each.context.get(end) for each in points for end in ends)
            known = comparability.settings(series, point.workload)
            known |= comparability.recorded(series, facts(hosts))
            nodes = {row.key.node: _ends(row) for row in members}
            is_headline = best is not None and point == _point(best)
            stored.append(HeadlineRow(point, is_headline, known, nodes))
    starts = [str(record.data["context"]["started"]) for record in results.records]
    began = min((datetime.fromisoformat(each).timestamp() for each in starts), default=0.0)
    machine = comparability.machine(results) | {"nodes": slurm.hostlist(results.facts)}
    slow: dict[str, list[str]] = {}
    for entry in fleet.slow_nodes(rows):
        if entry.mostly:
            slow.setdefault(entry.node, []).append(SUBSYSTEMS[entry.subsystem].resource)
    return StoredCampaign(results.name, began, machine, stored, slow)


def drain_commands(campaign: StoredCampaign) -> list[str]:
    """What drains the slow nodes, to be pasted: a line for all that are slow in the same."""
    by_resources: dict[str, list[str]] = {}
    for node, resources in campaign.slow.items():
        by_resources.setdefault(listed(resources), []).append(node)
    update = ["scontrol", "update", "state=drain"]
    return [
        shlex.join(
            [
                *update,
                f"nodename={slurm.hostlist(nodes)}",
                f"reason=peakmark {campaign.name}: slow {slow}",
            ]
        )
        for slow, nodes in by_resources.items()
    ]


def _point(row: Row) -> ComparedPoint:
    key = row.key._replace(node="")
    return datasets.point_of(row.table.name, row.table.own.instrument, key)


def _ends(row: Row) -> tuple[float, float, float]:
    series = row.measured
    return series.summary.low, series.centre, series.summary.high


@dataclass(frozen=True)
class ChangePoint:
    """From one campaign on a row is faster or slower.

    Attributes:
        place: of the first campaign after it.
        p: times the number of tests.
        before: median of the campaigns before it, back to an earlier change point, in SI units.
        after: median of those after it, up to a later one.
        facts: what was recorded otherwise after it than before it.
    """

    place: int
    p: float
    before: float
    after: float
    facts: tuple[Message, ...]


@dataclass(frozen=True)
class Trend:
    """One row over the campaigns that have it.

    Attributes:
        campaigns: in the order of time.
        values: lower end, median and upper end in each of them, in SI units; of several nodes the
            median of their medians.
        facts: of each of them, by title.
    """

    point: ComparedPoint
    campaigns: Sequence[StoredCampaign]
    values: Sequence[tuple[float, float, float]]
    facts: Sequence[dict[str, str]]

    @property
    def table(self) -> Table:
        """The table that has the row."""
        return BY_NAME[self.point.table]

    @property
    def label(self) -> str:
        """``cpu cpubench DP xcores``."""
        return datasets.describe(self.point)

    @property
    def state(self) -> str:
        """How many change points it has, or why it can have none."""
        count = len(self.values)
        if count < 2 * LEAST:
            return message("too-short", campaigns=count, least=2 * LEAST).text
        return message("change-points", count=len(self.changes)).text

    @cached_property
    def changes(self) -> list[ChangePoint]:
        """In the order of time."""
        medians = [median for _, median, _ in self.values]
        found = list(change_points(medians))
        ends = [0, *(place for place, _ in found), len(medians)]
        levels = [statistics.median(medians[first:last]) for first, last in pairwise(ends)]
        return [
            ChangePoint(place, p, before, after, tuple(self._facts_changed(place)))
            for (place, p), (before, after) in zip(found, pairwise(levels), strict=True)
        ]

    def speed_change(self, change: ChangePoint) -> Message:
        """``4.2 % slower``."""
        return compare.speed_change(self.table, change.after / change.before)

    def _facts_changed(self, place: int) -> Iterator[Message]:
        """Facts that changed there or one campaign off, as a place may be one off."""
        window = range(max(0, place - 2), min(len(self.facts), place + 2))
        before, after = self.facts[window[0]], self.facts[window[-1]]
        for name in comparability.differences(before, after):
            since = next(each for each in window if self.facts[each].get(name) == after[name])
            campaign = self.campaigns[since].name
            texts = {"before": before[name], "after": after[name]}
            yield message("changed-fact", name=name, **texts, campaign=campaign)


def change_points(values: Sequence[float]) -> Iterator[tuple[int, float]]:
    """The place of the first value of each new level, with its p, in the order of the values.

    Args:
        values: of one row in the order of time, positive.

    Source: Pettitt 1979 for one change point by ranks; Bonferroni's inequality over the tests.
    """
    if len(values) < 2 * LEAST:
        return
    count = len(values)
    places = np.arange(LEAST, count - LEAST + 1)
    spans = [(max(0, place - NEAR), min(count, place + NEAR)) for place in places]
    tests = len(places) + sum(span != (0, count) for span in spans)
    near = [
        statistics.rank_test([(values[first:place], values[place:last])])
        for place, (first, last) in zip(places, spans, strict=True)
    ]
    p_values = tests * np.minimum(near, statistics.rank_tests_of_places(values, LEAST))
    logs = np.log(values)
    steps = logs.cumsum()[places - 1] - places * logs.mean()
    explained = np.where(p_values <= LEVEL, steps**2 / (places * (count - places)), -1)
    place = int(places[explained.argmax()])
    p = float(p_values[explained.argmax()])
    before, after = values[:place], values[place:]
    ratio = statistics.median(after) / statistics.median(before)
    if p > LEVEL or abs(math.log(ratio)) < math.log1p(STEP):
        return
    yield from change_points(before)
    yield place, p
    yield from ((place + later, chance) for later, chance in change_points(after))


def follow(campaigns: Sequence[StoredCampaign], node: str = "") -> list[Trend]:
    """The row of each subsystem that most campaigns have, of those that most name as headline.

    Args:
        campaigns: in the order of time.
        node: the only node to be followed; empty for the median of all.
    """
    present = Counter(row.point for campaign in campaigns for row in campaign.rows)
    named = Counter(row.point for campaign in campaigns for row in campaign.rows if row.is_headline)
    chosen: dict[str, ComparedPoint] = {}
    for point in sorted(present, key=lambda each: (present[each], named[each])):
        chosen[BY_NAME[point.table].subsystem] = point
    trends = [_trend(chosen[name], campaigns, node) for name in SUBSYSTEMS if name in chosen]
    return [trend for trend in trends if trend.campaigns]


def _trend(point: ComparedPoint, campaigns: Sequence[StoredCampaign], node: str) -> Trend:
    """The row in the campaigns that have it, of the node."""
    kept, values, facts = [], [], []
    for campaign in campaigns:
        for row in campaign.rows:
            nodes = [ends for name, ends in row.nodes.items() if node in ("", name)]
            if row.point == point and nodes:
                kept.append(campaign)
                values.append(_of_nodes(nodes))
                # Those that matter to the row come first.
                facts.append(row.facts | campaign.facts | row.facts)
    return Trend(point, kept, values, facts)


def _of_nodes(nodes: Sequence[tuple[float, float, float]]) -> tuple[float, float, float]:
    """The median of several nodes with its interval over the nodes."""
    if len(nodes) == 1:
        return nodes[0]
    medians = [median for _, median, _ in nodes]
    interval = statistics.median_interval(medians)
    return interval.low, statistics.median(medians), interval.high


def report(campaigns: Sequence[StoredCampaign], trends: Sequence[Trend]) -> str:
    """The trends as text: a line for each, then its change points with the facts."""
    days = {"since": campaigns[0].day, "until": campaigns[-1].day}
    lines = [message("history", campaigns=len(campaigns), **days).text, ""]
    width = max(len(trend.label) for trend in trends)
    changed = []
    for trend in trends:
        quantity = LabelFormatter(trend.table).quantity
        lines.append(f"{trend.label:{width}}  {quantity(trend.values[-1][1]):>15}  {trend.state}")
        for change in trend.changes:
            campaign = trend.campaigns[change.place]
            found = message(
                "change-point",
                row=trend.label,
                change=trend.speed_change(change),
                campaign=campaign.name,
                day=campaign.day,
                before=quantity(change.before),
                after=quantity(change.after),
            )
            facts = change.facts[:FACTS] or (message("no-changed-fact"),)
            changed += ["", found.text, *(f"  {fact.text}" for fact in facts)]
            if len(change.facts) > FACTS:
                changed.append(f"  {message('more-facts', count=len(change.facts) - FACTS).text}")
    rule = message("change-point-rule", level=LEVEL, least=LEAST, step=STEP)
    return "\n".join([*lines, *changed, "", rule.full_sentence])


def frame(trends: Sequence[Trend]) -> pd.DataFrame:
    """A line for each row and campaign, in SI units; ``p`` where a change point is."""
    lines = []
    for trend in trends:
        p_values = {change.place: change.p for change in trend.changes}
        point = trend.point
        for place, (campaign, (low, median, high)) in enumerate(
            zip(trend.campaigns, trend.values, strict=True)
        ):
            lines.append(
                {
                    "campaign": campaign.name,
                    "began": datetime.fromtimestamp(campaign.began, UTC).isoformat(),
                    "table": point.table,
                    "instrument": point.instrument,
                    "workload": point.workload,
                    "variant": point.variant,
                    "block": point.block or None,
                    "concurrency": point.concurrency or None,
                    "asked": point.word,
                    "unit": trend.table.unit,
                    "median": median,
                    "low": low,
                    "high": high,
                    "p": p_values.get(place),
                }
            )
    return pd.DataFrame(lines)
