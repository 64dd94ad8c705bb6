"""Follow the headline row of each subsystem over campaigns, and find its change points.

An exact rank test compares the ``FAR`` campaigns before and after each place. In long series it also
compares the nearest ``NEAR`` campaigns, because a later campaign may have undone a change. A place
counts if its p-value, times the number of tests, is at most ``LEVEL``. The place that explains most of
the variance is a change point. The campaigns before and after it are then searched in the same way.
Otava (apache/otava) uses energy distances instead of ranks.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from peakmark import statistics
from peakmark.catalogue import SUBSYSTEMS
from peakmark.formatting import listing, natural, plural
from peakmark.rows import schema
from peakmark.rows.schema import CampaignFrames
from peakmark.tools.tables import BY_NAME
from peakmark.views import compare, score_card
from peakmark.views.datasets import KEY, FactsOfHosts, describe, threads_of

LEAST = 4
"""Fewest campaigns on each side of a change point; with fewer, the rank test cannot be significant."""
NEAR, FAR = 8, 26
"""Numbers of campaigns before and after a possible change point that are compared.

With weekly campaigns, 26 are half a year.
"""
LEVEL = 0.05
"""Largest share of unchanged rows in which a change point is found by chance."""
STEP = 0.01
"""Smallest change that is reported, as the logarithm of a ratio."""
FACTS = 8
"""Largest number of facts that are printed for a change."""
PLACE = [name for name in KEY if name not in ("node", "percentile")]
"""Columns that identify a row in all campaigns and on all nodes."""


@dataclass(frozen=True)
class PastCampaign:
    """A campaign with the rows that history may follow.

    Attributes:
        name: name of the campaign's folder.
        began: start of the first record, in seconds since 1970.
        facts: all facts of the machines, by title.
        rows: rows that can be the headline row of a subsystem, the headline row first. Columns:
            ``PLACE``, ``node``, ``low``, ``value`` and ``high`` in SI units, and ``facts`` by title.
    """

    name: str
    began: float
    facts: Mapping[str, str]
    rows: pd.DataFrame

    @property
    def time(self) -> datetime:
        """Return the start of the first record."""
        return datetime.fromtimestamp(self.began, UTC)


def past_campaign(name: str, frames: CampaignFrames) -> PastCampaign:
    """Return what history needs of a judged campaign."""
    hosts = sorted(set(frames.facts["host"]), key=natural)
    facts = FactsOfHosts(frames).machine() | {"nodes": listing(hosts)}
    began = frames.campaign["times"].get("began", 0.0)
    return PastCampaign(name, began, facts, headline_rows(frames))


def headline_rows(frames: CampaignFrames) -> pd.DataFrame:
    """Return the rows of each headline of the score card, first the row that the card shows."""
    lines = []
    for headline, chosen in score_card.rows_of_headlines(frames):
        others = score_card.rows_of_headline(frames.rows, headline)
        for row in schema.lines(pd.concat([chosen, others])):
            if row.n and row.is_own and is_trusted(row):
                lines.append(line_of(row))
    return pd.DataFrame(lines).drop_duplicates([*PLACE, "node"]) if lines else pd.DataFrame()


def is_trusted(row: Any) -> bool:
    """Return whether a row's value counts.

    A value above a limit from the site file counts, because the limit itself may be wrong.
    """
    is_above_stated_limit = row.wrong_codes == "above-limit" and row.limit_origin == "site"
    return bool(row.severity != "wrong" or is_above_stated_limit)


def line_of(row: Any) -> dict[str, Any]:
    """Return a row of peakmark's kernel for ``PastCampaign.rows``."""
    names = ("table", "instrument", "workload", "variant", "node", "low", "value", "high")
    line = {name: getattr(row, name) for name in names}
    facts = json.loads(row.settings or "{}") | json.loads(row.recorded or "{}")
    return line | {"block_bytes": row.block_bytes or 0, "threads": threads_of(row), "facts": facts}


# -- trends


@dataclass(frozen=True)
class ChangePoint:
    """A campaign from which on a row is faster or slower.

    Attributes:
        place: number of this campaign among those that have the row.
        p: p-value times the number of tests.
        speed: size of the change, in words.
        text: sentence with the row, the campaign, and the levels before and after.
        facts: sentences on recorded facts that changed.
    """

    place: int
    p: float
    speed: str
    text: str
    facts: Sequence[str]


@dataclass(frozen=True)
class Trend:
    """One row over the campaigns that have it, in the order of time.

    Attributes:
        row: a line with the columns of ``datasets.KEY``.
        campaigns: campaigns that have the row.
        values: lower end, median and upper end in each campaign, in SI units; for several nodes, the
            medians of these over the nodes.
        facts: facts of each campaign, by title.
    """

    row: Any
    campaigns: Sequence[PastCampaign]
    values: NDArray[np.float64]
    facts: Sequence[Mapping[str, str]]

    @property
    def label(self) -> str:
        """Return ``cpu cpubench DP xcores``."""
        return describe(self.row)

    def quantity(self, value: float) -> str:
        """Return a value in SI units as text."""
        return compare.in_units(value, BY_NAME[self.row.table].unit)

    @cached_property
    def changes(self) -> Sequence[ChangePoint]:
        """Return the change points, in the order of time."""
        medians = self.values[:, 1]
        found = [(0, 1.0), *change_points(medians), (len(medians), 1.0)]
        levels = []
        for (start, _), (end, _) in pairwise(found):
            levels.append(float(np.median(medians[start:end])))
        points = []
        for (place, p), (before, after) in zip(found[1:], pairwise(levels), strict=False):
            points.append(self._change(place, p, before, after))
        return points

    def _change(self, place: int, p: float, before: float, after: float) -> ChangePoint:
        """Return the change point at a place, between two levels."""
        # Compare the facts of one more campaign on each side, because the place may be off by one.
        last, first = self.facts[max(0, place - 2)], self.facts[place + 1]
        speed = compare.speed_change(BY_NAME[self.row.table], after / before)
        campaign = self.campaigns[place]
        text = (
            f"{self.label}: {speed} since {campaign.name} ({campaign.time:%F}),"
            f" from {self.quantity(before)} to {self.quantity(after)}"
        )
        facts = []
        for title, (earlier, later) in compare.differences(last, first).items():
            facts.append(f"{title}: {earlier}, then {later}")
        return ChangePoint(place, p, speed, text, facts)


def change_points(values: NDArray[np.float64]) -> Iterator[tuple[int, float]]:
    """Yield the place of the first value of each new level, and its p-value, in the order of time.

    Args:
        values: positive values of one row in the order of time.

    Source: Pettitt 1979 for one change point by ranks; Bonferroni's inequality over the tests.
    """
    count = len(values)
    reaches = (NEAR, FAR) if count >= 3 * NEAR else (FAR,)
    places = range(LEAST, count - LEAST + 1)
    logs = np.log(values) - np.log(values).mean()
    best, found, p_value = 0.0, 0, 1.0
    for place in places:
        for reach in reaches:
            before = values[max(0, place - reach) : place]
            after = values[place : place + reach]
            p = len(places) * len(reaches) * statistics.rank_test([(before, after)])
            explained = logs[:place].sum() ** 2 / (place * (count - place))
            if p <= LEVEL and explained > best:
                best, found, p_value = explained, place, p
    if not found:
        return
    earlier, later = values[:found], values[found:]
    if abs(np.log(np.median(later) / np.median(earlier))) > STEP:
        yield from change_points(earlier)
        yield found, p_value
        for place, p in change_points(later):
            yield found + place, p


def follow(campaigns: Sequence[PastCampaign], node: str = "") -> list[Trend]:
    """Return the trend of one row of each subsystem: the row that most campaigns have.

    If as many campaigns have several rows, it is the headline row of the newest campaign.

    Args:
        campaigns: campaigns in the order of time.
        node: node to follow; empty for the median of all nodes.
    """
    present: Counter[tuple[Any, ...]] = Counter()
    for campaign in reversed(campaigns):
        if len(campaign.rows):
            places = campaign.rows[PLACE].drop_duplicates()
            present.update(places.itertuples(index=False, name=None))
    chosen: dict[str, tuple[Any, ...]] = {}
    for place, _ in present.most_common():
        chosen.setdefault(BY_NAME[place[0]].subsystem, place)
    in_order = [chosen[subsystem] for subsystem in SUBSYSTEMS if subsystem in chosen]
    trends = [trend_of(campaigns, place, node) for place in in_order]
    return [trend for trend in trends if trend]


def trend_of(campaigns: Sequence[PastCampaign], place: tuple[Any, ...], node: str) -> Trend | None:
    """Return one row over the campaigns that have it on the node; None if no campaign has it."""
    wanted = pd.DataFrame([place], columns=PLACE)
    if node:
        wanted = wanted.assign(node=node)
    kept, values, facts = [], [], []
    for campaign in campaigns:
        if campaign.rows.empty:
            continue
        rows = campaign.rows.merge(wanted)
        if len(rows):
            kept.append(campaign)
            values.append(rows[["low", "value", "high"]].median().to_numpy(dtype=float))
            facts.append({**rows["facts"].iloc[0], **campaign.facts})
    if not kept:
        return None
    columns = dict(zip(PLACE, place, strict=True)) | {"node": node, "percentile": ""}
    row = next(pd.DataFrame([columns]).itertuples(index=False))
    return Trend(row, kept, np.array(values), facts)


# -- text and table


def report(campaigns: Sequence[PastCampaign], trends: Sequence[Trend]) -> str:
    """Return the trends as text: a line for each row, then the change points with their facts."""
    since, until = campaigns[0].time, campaigns[-1].time
    lines = [f"{plural(len(campaigns), 'campaign')}, {since:%F} to {until:%F}", ""]
    width = max(len(trend.label) for trend in trends)
    changed: list[str] = []
    for trend in trends:
        count = len(trend.values)
        state = plural(len(trend.changes), "change point")
        if count < 2 * LEAST:
            state = f"in {plural(count, 'campaign')}; a change point takes {2 * LEAST}"
        latest = trend.quantity(trend.values[-1, 1])
        lines.append(f"{trend.label:{width}}  {latest:>15}  {state}")
        for change in trend.changes:
            changed += ["", *lines_of_change(change)]
    rule = (
        f"Without any change, at most {LEVEL:.0%} of rows have a change point; it takes {LEAST}"
        f" campaigns on each side and a change of at least {STEP:.0%}."
    )
    return "\n".join([*lines, *changed, "", rule])


def lines_of_change(change: ChangePoint) -> list[str]:
    """Return a change point with the facts that changed there."""
    facts = list(change.facts[:FACTS]) or ["no recorded fact changed there"]
    if len(change.facts) > FACTS:
        facts.append(plural(len(change.facts) - FACTS, "more fact"))
    return [change.text, *(f"  {fact}" for fact in facts)]


def frame(trends: Sequence[Trend]) -> pd.DataFrame:
    """Return a line for each row and campaign, in SI units; change points have ``p`` and ``change``."""
    lines = []
    for trend in trends:
        changes = {change.place: change for change in trend.changes}
        for place, campaign in enumerate(trend.campaigns):
            low, median, high = trend.values[place]
            line: dict[str, Any] = {"campaign": campaign.name, "began": campaign.time.isoformat()}
            line |= trend.row._asdict() | {"unit": BY_NAME[trend.row.table].unit}
            line |= {"row": trend.label, "median": median, "low": low, "high": high}
            change = changes.get(place)
            if change:
                line |= {"p": change.p, "change": change.speed}
            lines.append(line)
    columns = ["campaign", "began", "row", *KEY, "unit", "median", "low", "high", "p", "change"]
    return pd.DataFrame(lines, columns=columns)
