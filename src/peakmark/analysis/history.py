"""Campaigns over time: the headline row of each subsystem, and where it changed.

The campaigns before and after a place are compared by the exact rank test: the nearest ``FAR`` on
each side, and in long series the nearest ``NEAR`` too, as a change may have been undone. Of the
places whose p, times the number of tests, is at most ``LEVEL``, the one that explains most of the
variance is a change point; then both sides of it are searched. Otava (apache/otava) proceeds so with
energy distances.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import pairwise

import numpy as np
import pandas as pd
from msgspec import Struct
from numpy.typing import NDArray

from peakmark import slurm, statistics
from peakmark.analysis import Analysis, comparability, compare, datasets, verdict
from peakmark.analysis.datasets import ComparedPoint
from peakmark.analysis.label_formatter import LabelFormatter
from peakmark.catalogue import SUBSYSTEMS
from peakmark.messages import Message, message
from peakmark.tools.tables import BY_NAME, Table

LEAST = 4
"""Campaigns on each side of a change point: of fewer the rank test shows nothing."""
NEAR, FAR = 8, 26
LEVEL = 0.05
"""Of unchanged rows at most this share has a change point."""
STEP = 0.01
"""Smaller changes are not reported."""
FACTS = 8
"""Of a change so many facts are printed; those of the row come first."""


class HeadlineRow(Struct, frozen=True):
    """A row that can speak for its subsystem in one campaign.

    Attributes:
        point: without the node.
        facts: what was asked and recorded of it, by title.
        nodes: lower end of the interval, median and upper end on each node, in SI units.
    """

    point: ComparedPoint
    facts: dict[str, str]
    nodes: dict[str, tuple[float, float, float]]


class StoredCampaign(Struct, frozen=True):
    """What ``analysis.json`` keeps of a campaign for later ones.

    Attributes:
        began: when its first record was begun, in seconds of the clock.
        facts: all facts of its machines, by title.
        rows: those that can speak for a subsystem, the one that does first.
    """

    name: str
    began: float
    facts: dict[str, str]
    rows: list[HeadlineRow]

    @property
    def time(self) -> datetime:
        """When it was begun."""
        return datetime.fromtimestamp(self.began, UTC)


class StoredHistory(Struct, frozen=True):
    """``analysis.json`` without all else."""

    history: StoredCampaign


def summarise(analysis: Analysis) -> StoredCampaign:
    """What is kept of a campaign."""
    results, rows = analysis.results, analysis.rows
    kept: dict[ComparedPoint, HeadlineRow] = {}
    for subsystem in verdict.planned(rows):
        headline = verdict.headline(rows, subsystem)
        for row in filter(None, [headline, *verdict.candidates(rows, subsystem)]):
            if row.comparable:
                series, key = row.measured, row.key._replace(node="")
                point = datasets.point_of(row.table.name, row.table.own.instrument, key)
                facts = comparability.settings(series, key.workload)
                facts |= comparability.recorded(series, {})
                stored = kept.setdefault(point, HeadlineRow(point, facts, {}))
                ends = (series.summary.low, series.centre, series.summary.high)
                stored.nodes[row.key.node] = ends
    starts = [str(record.data["context"]["started"]) for record in results.records]
    began = min((datetime.fromisoformat(each).timestamp() for each in starts), default=0.0)
    facts = comparability.machine(results) | {"nodes": slurm.hostlist(results.facts)}
    return StoredCampaign(results.name, began, facts, [*kept.values()])


@dataclass(frozen=True)
class ChangePoint:
    """From one campaign on a row is faster or slower.

    Attributes:
        place: of the first campaign after it.
        p: times the number of tests.
        speed: by how much.
        text: what, since when, from which level to which.
        facts: what was recorded otherwise after it than before it.
    """

    place: int
    p: float
    speed: Message
    text: Message
    facts: Sequence[Message]


@dataclass(frozen=True)
class Trend:
    """One row over the campaigns that have it, in the order of time.

    Attributes:
        values: lower end, median and upper end in each campaign, in SI units; of several nodes the
            medians of theirs.
        facts: of each campaign, by title.
    """

    point: ComparedPoint
    campaigns: Sequence[StoredCampaign]
    values: NDArray[np.float64]
    facts: Sequence[dict[str, str]]

    @property
    def table(self) -> Table:
        """The table that has the row."""
        return BY_NAME[self.point.table]

    @property
    def label(self) -> str:
        """``cpu cpubench DP xcores``."""
        return datasets.describe(self.point)

    @cached_property
    def changes(self) -> Sequence[ChangePoint]:
        """In the order of time."""
        points = []
        quantity, medians = LabelFormatter(self.table).quantity, self.values[:, 1]
        found = [(0, 1.0), *change_points(medians), (len(medians), 1.0)]
        levels = [np.median(medians[start:end]) for (start, _), (end, _) in pairwise(found)]
        for (place, p), (before, after) in zip(found[1:], pairwise(levels), strict=False):
            # One campaign more on each side, as a place may be one off.
            last, first = self.facts[max(0, place - 2)], self.facts[place + 1]
            facts = comparability.differences(last, first).values()
            speed = compare.speed_change(self.table, float(after / before))
            text = message(
                "change-point",
                row=self.label,
                change=speed,
                campaign=self.campaigns[place].name,
                day=f"{self.campaigns[place].time:%F}",
                before=quantity(float(before)),
                after=quantity(float(after)),
            )
            changed = [replace(fact, code="changed-fact") for fact in facts]
            points.append(ChangePoint(place, p, speed, text, changed))
        return points


def change_points(values: NDArray[np.float64]) -> Iterator[tuple[int, float]]:
    """The place of the first value of each new level, with its p, in the order of the values.

    Args:
        values: of one row in the order of time, positive.

    Source: Pettitt 1979 for one change point by ranks; Bonferroni's inequality over the tests.
    """
    count = len(values)
    reaches = (NEAR, FAR) if count >= 3 * NEAR else (FAR,)
    tests = [(place, reach) for place in range(LEAST, count - LEAST + 1) for reach in reaches]
    logs = np.log(values) - np.log(values).mean()
    best, found, chance = 0.0, 0, 1.0
    for place, reach in tests:
        before = values[max(0, place - reach) : place]
        after = values[place : place + reach]
        p = len(tests) * statistics.rank_test([(before, after)])
        explained = logs[:place].sum() ** 2 / (place * (count - place))
        if p <= LEVEL and explained > best:
            best, found, chance = explained, place, p
    if not found:
        return
    earlier, later = values[:found], values[found:]
    if abs(np.log(np.median(later) / np.median(earlier))) > STEP:
        yield from change_points(earlier)
        yield found, chance
        yield from ((found + place, p) for place, p in change_points(later))


def follow(campaigns: Sequence[StoredCampaign], node: str = "") -> list[Trend]:
    """The row of each subsystem that most campaigns have; of several the newest headline.

    Args:
        campaigns: in the order of time.
        node: the only node to be followed; empty for the median of all.
    """
    present = Counter(row.point for campaign in campaigns[::-1] for row in campaign.rows)
    chosen: dict[str, ComparedPoint] = {}
    for point, _ in present.most_common():
        chosen.setdefault(BY_NAME[point.table].subsystem, point)
    trends = []
    for subsystem in filter(chosen.get, SUBSYSTEMS):
        point = chosen[subsystem]
        found = []
        for campaign in campaigns:
            for row in campaign.rows:
                nodes = [ends for name, ends in row.nodes.items() if node in ("", name)]
                if row.point == point and nodes:
                    found.append((campaign, np.median(nodes, axis=0), row.facts | campaign.facts))
        if found:
            kept, values, facts = zip(*found, strict=True)
            trends.append(Trend(replace(point, node=node), kept, np.array(values), facts))
    return trends


def report(campaigns: Sequence[StoredCampaign], trends: Sequence[Trend]) -> str:
    """The trends as text: a line for each, then its change points with the facts."""
    since, until = (f"{campaigns[place].time:%F}" for place in (0, -1))
    lines = [message("history", campaigns=len(campaigns), since=since, until=until).text, ""]
    width = max(len(trend.label) for trend in trends)
    changed: list[str] = []
    for trend in trends:
        count = len(trend.values)
        state = message("change-points", count=len(trend.changes))
        if count < 2 * LEAST:
            state = message("too-short", campaigns=count, least=2 * LEAST)
        latest = LabelFormatter(trend.table).quantity(trend.values[-1, 1])
        lines.append(f"{trend.label:{width}}  {latest:>15}  {state.text}")
        for change in trend.changes:
            facts = list(change.facts[:FACTS]) or [message("no-changed-fact")]
            if len(change.facts) > FACTS:
                facts.append(message("more-facts", count=len(change.facts) - FACTS))
            changed += ["", change.text.text, *(f"  {fact.text}" for fact in facts)]
    rule = message("change-point-rule", level=LEVEL, least=LEAST, step=STEP)
    return "\n".join([*lines, *changed, "", rule.full_sentence])


def frame(trends: Sequence[Trend]) -> pd.DataFrame:
    """A line for each row and campaign, in SI units; ``p`` where a change point is."""
    lines = []
    for trend in trends:
        p_values = {change.place: change.p for change in trend.changes}
        for place, campaign in enumerate(trend.campaigns):
            low, median, high = trend.values[place]
            line = {"campaign": campaign.name, "began": campaign.time.isoformat()}
            values = {"median": median, "low": low, "high": high, "p": p_values.get(place)}
            lines.append({**line, **asdict(trend.point), "unit": trend.table.unit, **values})
    return pd.DataFrame(lines)
