"""What the rows of a table say, in few and exact sentences.

Two choices are compared in *groups*: points that are equal but for the compared factor and share
working set and cache level. A difference is stated of a group where, at every point, all values of
one side lie beyond all of the other's and the medians differ by more than 5 %, and chance is ruled
out (``is_shown``). Groups of points that were measured once or twice state their factor, marked so.
Nothing is stated of a group that shows nothing. docs/method.md says how often a stated difference is
false.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from typing import Any

import pandas as pd

from peakmark import statistics
from peakmark.formatting import counted, listed, percent, plural
from peakmark.messages import message
from peakmark.rows import schema
from peakmark.rows.fleet import DELTA, MANY, is_pair, typical_rows
from peakmark.rows.fleet import is_usable as usable_nodes
from peakmark.rows.labels import Labels
from peakmark.rows.shapes import shape_sentences
from peakmark.tools.tables import BY_NAME, TABLES, Program, Table

LEAST_DIFFERENCE = 1.05
"""Factor between two medians up to which they are no difference, or level."""
CHANCE = 0.05
"""Probability of any false difference in an unchanged campaign."""
TESTED = 3
"""Fewest repetitions of each side with which a difference can be stated as certain."""
GAPS = {1: 2.0, 2: 0.5}
"""Number of points of a group -> gap between the two ranges, as a multiple of the larger range, that
makes up for a larger probability (simulated: docs/method.md).
"""
TWICE = 2.0
"""Factor from which on a rate is so many *times* another; below, it is faster by a percentage."""
FEW = 3
"""Rows up to which a workload needs no sentence on its best and worst configuration."""
MOST = 1.05
"""Share of the limit above which a row is wrong."""
WORKLOADS: Mapping[str, Sequence[tuple[str, str]]] = {
    "cpu": (("QP", "HP"), ("HP", "SP"), ("SP", "DP"), ("FP32", "DP")),
    "memory": (("RS", "RR"), ("WS", "WR"), ("RWS", "RWR"), ("RS", "WS")),
    "disk": (("RS", "RR"), ("WS", "WR"), ("RS", "WS"), ("RR", "WR")),
    "network": (("TCP", "UDP"), ("LAT-TCP", "LAT-UDP")),
}
"""Subsystem -> workloads that readers compare."""
NAMED = 8
"""Number of slow nodes that are named."""

Line = Any
"""A line of ``rows``, as ``schema.lines`` yields it."""


@dataclass(frozen=True)
class Pair:
    """Two rows at one point, or a row and its reference.

    Attributes:
        point: name of the first row's point.
        label: what tells the point from others of its group, such as ``2 threads``.
        first: values of the first choice as speeds, so that a high one is good.
        second: those of the second.
        factor: how many times as fast the first choice is.
    """

    point: str
    label: str
    first: Sequence[float]
    second: Sequence[float]
    factor: float

    @property
    def n(self) -> int:
        """Repetitions of the side that has fewer."""
        return min(len(self.first), len(self.second))

    @property
    def log_arrangements(self) -> float:
        """Logarithm of the number of ways in which the values could be divided between the sides."""
        both = len(self.first) + len(self.second)
        return math.log(math.comb(both, len(self.first)))

    def gap(self, direction: int) -> float:
        """Return the gap between the ranges as a multiple of the larger range; negative if they overlap.

        Args:
            direction: 1 where the first choice should be faster, -1 where the second.
        """
        fast, slow = (self.first, self.second) if direction > 0 else (self.second, self.first)
        gap = min(fast) - max(slow)
        larger = max(max(fast) - min(fast), max(slow) - min(slow))
        if larger == 0:
            return math.copysign(math.inf, gap) if gap else 0.0
        return gap / larger

    @property
    def is_level(self) -> bool:
        """Return whether all values of both sides lie within ``LEAST_DIFFERENCE`` of each other."""
        every = [*self.first, *self.second]
        return max(every) <= LEAST_DIFFERENCE * min(every)


@dataclass(frozen=True)
class Group:
    """Points of one comparison that share all but what labels them.

    Attributes:
        topic: heading of the sentence.
        first: name of the first choice.
        second: that of the second.
        where: what the points share, such as ``64 KiB``; empty for all points.
        place: working set, as part of a sentence, such as ``in DRAM``.
        pairs: the points.
    """

    topic: str
    first: str
    second: str
    where: str
    place: str
    pairs: Sequence[Pair]

    @property
    def n(self) -> int:
        """Repetitions of the side and point that has the fewest."""
        return min(pair.n for pair in self.pairs)


@dataclass(frozen=True)
class Statement:
    """What a group shows.

    Attributes:
        group: the points.
        direction: 1 where the first choice is faster, -1 where the second, 0 where both are level.
        certainty: ``in every repetition``, ``measured once``, ``measured twice`` or ``level``.
    """

    group: Group
    direction: int
    certainty: str

    @property
    def factors(self) -> list[float]:
        """Return how many times as fast the faster choice is, at each point."""
        if self.direction < 0:
            return [1 / pair.factor for pair in self.group.pairs]
        return [pair.factor for pair in self.group.pairs]


def find(frames: schema.CampaignFrames) -> pd.DataFrame:
    """Return ``findings`` of a judged campaign.

    Args:
        frames: with ``runs``, ``rows`` and ``fleet``.
    """
    of_tables = {
        name: typical_rows(rows) for name, rows in frames.rows.groupby("table", sort=False)
    }
    values = values_of_rows(frames.runs)
    groups = {name: list(groups_of(rows, values)) for name, rows in of_tables.items()}
    tested = 0
    for of_table in groups.values():
        tested += sum(group.n >= TESTED for group in of_table)
    lines: list[dict[str, Any]] = []
    for usual in TABLES:
        if usual.name not in of_tables:
            continue
        table = usual.fitted(of_tables[usual.name]["value"].dropna())
        rows = list(schema.lines(of_tables[table.name]))
        own = [row for row in rows if row.is_own and is_usable(row)]
        labels = Labels(table)
        found = [
            *extremes(table, own),
            *shape_sentences(table, own, frames.runs),
            *comparisons(table, groups[table.name], tested),
            *limit_shares(table, [row for row in rows if is_usable(row)]),
            *machine(own),
            *nodes_of(frames.rows[frames.rows["table"].eq(table.name)], labels),
            *links_of(frames, labels),
        ]
        lines += [{"table": table.name, **line} for line in found]
    return schema.typed("findings", pd.DataFrame(lines))


def values_of_rows(runs: pd.DataFrame) -> dict[tuple[str, str], list[float]]:
    """Return point and instrument -> the values that count, in the order of the repetitions."""
    kept = runs[runs["kept"]].sort_values("repetition", kind="stable")
    grouped = kept.groupby(["point", "instrument"], sort=False)["value"]
    return {row: values.tolist() for row, values in grouped}  # type: ignore[misc]


def is_usable(row: Line) -> bool:
    """Return whether a row may stand beside others.

    A value above a limit that the site file states is right where the limit is doubtful.
    """
    doubtful = {"above-limit"} if row.limit_origin == "site" else set()
    return bool(row.n) and set(row.wrong_codes.split()) <= doubtful


# -- groups


def groups_of(
    rows: pd.DataFrame, values: Mapping[tuple[str, str], Sequence[float]]
) -> Iterator[Group]:
    """Yield the groups of all comparisons of one table."""
    lines = [row for row in schema.lines(rows) if is_usable(row)]
    own = [row for row in lines if row.is_own]
    if not own:
        return
    table = BY_NAME[own[0].table]
    labels = Labels(table)
    for first, second in WORKLOADS[table.subsystem]:
        names = labels.table.workload_label(first), labels.table.workload_label(second)
        yield from groups(own, values, labels, "Workloads", "workload", (first, second), names)
    blocks = sorted({row.block_bytes for row in own if row.block_bytes is not None})
    for small, large in pairwise(blocks):
        names = size_name(own, labels, large), size_name(own, labels, small)
        yield from groups(own, values, labels, "Block size", "block_bytes", (large, small), names)
    counts = sorted({row.concurrency for row in own})
    if len(counts) > 1:
        most, fewest = counts[-1], counts[0]
        names = labels.many(most), labels.many(fewest)
        topic = f"{labels.noun.title()}s"
        yield from groups(own, values, labels, topic, "concurrency", (most, fewest), names)
    for program in table.references:
        yield from reference_groups(lines, values, labels, program)


def size_name(rows: Iterable[Line], labels: Labels, block: int) -> str:
    """Return a block as the labels write it."""
    return next(labels.block(row) for row in rows if row.block_bytes == block)


SHARED = {
    "workload": ("node", "variant", "cache_level", "block_bytes"),
    "block_bytes": ("node", "variant", "cache_level", "workload"),
    "concurrency": ("node", "variant", "cache_level", "workload"),
}
"""Compared factor -> what the points of a group share."""


def groups(
    rows: Sequence[Line],
    values: Mapping[tuple[str, str], Sequence[float]],
    labels: Labels,
    topic: str,
    factor: str,
    choices: tuple[Any, Any],
    names: tuple[str, str],
) -> Iterator[Group]:
    """Yield the groups of points that have both choices of a factor."""
    keys = ("node", "workload", "variant", "cache_level", "block_bytes", "concurrency")
    others = [key for key in keys if key != factor]
    place_of = attrgetter(*others)
    first_choice = {place_of(row): row for row in rows if getattr(row, factor) == choices[0]}
    second_choice = {place_of(row): row for row in rows if getattr(row, factor) == choices[1]}
    shared_of = attrgetter(*SHARED[factor])
    members: dict[tuple[Any, ...], list[tuple[Line, Line]]] = defaultdict(list)
    for place, row in first_choice.items():
        if place in second_choice:
            members[shared_of(row)].append((row, second_choice[place]))
    for both in members.values():
        row = both[0][0]
        where = labels.block(row) if factor == "workload" else labels.workload(row)
        pairs = [pair_of(first, second, values, labels) for first, second in both]
        yield Group(topic, *names, where, labels.working_set(row), pairs)


def pair_of(
    row: Line, other: Line, values: Mapping[tuple[str, str], Sequence[float]], labels: Labels
) -> Pair:
    """Return two rows at one point."""
    first = speeds(values[row.point, row.instrument], labels.table)
    second = speeds(values[other.point, other.instrument], labels.table)
    factor = statistics.median(first) / statistics.median(second)
    label = labels.point(row, node=False)
    return Pair(row.point, label, first, second, factor)


def speeds(values: Sequence[float], table: Table) -> list[float]:
    """Return values so that a high one is good: of a time its reciprocal."""
    return [1 / value for value in values] if table.lower_is_better else list(values)


def reference_groups(
    rows: Sequence[Line],
    values: Mapping[tuple[str, str], Sequence[float]],
    labels: Labels,
    program: Program,
) -> Iterator[Group]:
    """Yield the points that a reference has measured too, by workload, working set and cache level.

    A pair's factor is the median over rounds in which both ran: medians of different rounds could
    come from different machines.
    """
    own = {row.point: row for row in rows if row.is_own}
    members: dict[tuple[str, ...], list[Pair]] = defaultdict(list)
    firsts: dict[tuple[str, ...], Line] = {}
    for row in rows:
        if row.instrument != program.instrument or not row.is_comparable or row.point not in own:
            continue
        pair = pair_of(own[row.point], row, values, labels)
        factor = 1 / row.ratio if labels.table.lower_is_better else row.ratio
        shared = (row.node, row.workload, row.variant, row.cache_level)
        members[shared].append(Pair(pair.point, pair.label, pair.first, pair.second, factor))
        firsts.setdefault(shared, row)
    heading = labels.table.own.heading
    for place_of_pairs, pairs in members.items():
        row = firsts[place_of_pairs]
        where, place = labels.workload(row), labels.working_set(row)
        yield Group("Reference", heading, program.heading, where, place, pairs)


# -- what groups show


def statement_of(group: Group, tested: int) -> Statement | None:
    """Return what a group shows, None where it shows nothing.

    Args:
        group: its points.
        tested: number of groups of the campaign that are tested.
    """
    if group.n < TESTED:
        certainty = "measured once" if group.n == 1 else "measured twice"
        for direction in (1, -1):
            if all(pair.factor**direction > LEAST_DIFFERENCE for pair in group.pairs):
                return Statement(group, direction, certainty)
        return None
    for direction in (1, -1):
        if is_shown(group, direction, tested):
            return Statement(group, direction, "in every repetition")
    if all(pair.is_level for pair in group.pairs):
        return Statement(group, 0, "level")
    return None


def is_shown(group: Group, direction: int, tested: int) -> bool:
    """Return whether one choice is shown to be faster at every point of a group.

    All its values must lie beyond all of the other's, and the medians must differ by more than
    ``LEAST_DIFFERENCE``. Chance is ruled out where so clear a division has at most the probability
    ``CHANCE / tested``, or where the gap between the ranges is large enough (``GAPS``).
    """
    gaps = [pair.gap(direction) for pair in group.pairs]
    if min(gaps) <= 0:
        return False
    if any(pair.factor**direction <= LEAST_DIFFERENCE for pair in group.pairs):
        return False
    log_p = math.log(2) - sum(pair.log_arrangements for pair in group.pairs)
    if log_p <= math.log(CHANCE / max(1, tested)):
        return True
    return min(gaps) >= GAPS.get(len(group.pairs), 0.0)


def comparisons(table: Table, groups: Iterable[Group], tested: int) -> Iterator[dict[str, Any]]:
    """Yield a sentence for each pair of choices and what its groups show."""
    merged: dict[tuple[Any, ...], list[Statement]] = defaultdict(list)
    totals: dict[tuple[Any, ...], int] = defaultdict(int)
    for group in groups:
        pair = (group.topic, group.first, group.second, group.place)
        totals[pair] += len(group.pairs)
        found = statement_of(group, tested)
        if found:
            merged[pair, found.direction, found.certainty].append(found)
    for (pair, direction, certainty), statements in merged.items():
        yield sentence(table, statements, direction, certainty, totals[pair])


def sentence(
    table: Table, statements: Sequence[Statement], direction: int, certainty: str, total: int
) -> dict[str, Any]:
    """Return the line of several groups of which the same is said.

    Args:
        table: of the groups.
        statements: of one pair of choices.
        direction: of all of them.
        certainty: of all of them.
        total: number of points that have both choices.
    """
    group = statements[0].group
    better, worse = group.first, group.second
    if direction < 0:
        better, worse = worse, better
    factors: list[float] = []
    pairs: list[Pair] = []
    for statement in statements:
        factors += statement.factors
        pairs += statement.group.pairs
    where = where_of(statements, len(pairs), total)
    place = f"{group.place}, ".removeprefix(", ")
    if direction == 0:
        text = f"{better} and {worse} are level{where}"
    elif table.lower_is_better:
        text = f"{worse} {longer(worse, factors)} {better}{where}, {certainty}"
    elif group.topic == "Reference" and direction < 0:
        # Peakmark's kernel stays the subject.
        text = f"{worse} is {percents([1 - 1 / factor for factor in factors])} slower than {better}{where}, {certainty}"
    else:
        text = f"{better} {faster(better, factors)} {worse}{where}, {certainty}"
    text = place + text
    return {
        "topic": group.topic,
        "better": better,
        "worse": worse,
        "factor_low": min(factors),
        "factor_high": max(factors),
        "certainty": certainty,
        "points": json.dumps([pair.point for pair in pairs], ensure_ascii=False),
        "text": f"{text[:1].upper()}{text[1:]}.",
    }


def where_of(statements: Sequence[Statement], points: int, total: int) -> str:
    """Return `` at all 7 points``, `` at 64 KiB and 1 MiB``, `` at 2 of 7 points``."""
    if points == total:
        return {1: "", 2: " at both points"}.get(total, f" at all {total} points")
    names = list(dict.fromkeys(each.group.where for each in statements))
    if all(names):
        preposition = "for" if statements[0].group.topic != "Workloads" else "at"
        return f" {preposition} {listed(names)}"
    return f" at {points} of {total} points"


def faster(subject: str, factors: Sequence[float]) -> str:
    """Return ``is 12 to 31 % faster than``, ``are 2.1 times as fast as``."""
    verb = "are" if is_plural(subject) else "is"
    if max(factors) < TWICE:
        return f"{verb} {percents([factor - 1 for factor in factors])} faster than"
    return f"{verb} {times(factors)} as fast as"


def longer(subject: str, factors: Sequence[float]) -> str:
    """Return ``takes 12 to 31 % longer than``, ``take 2.1 times as long as``."""
    verb = "take" if is_plural(subject) else "takes"
    if max(factors) < TWICE:
        return f"{verb} {percents([factor - 1 for factor in factors])} longer than"
    return f"{verb} {times(factors)} as long as"


def is_plural(subject: str) -> bool:
    """Return whether a choice is several things, such as ``2 threads``."""
    return subject[:1].isdigit() and subject.endswith("s")


def percents(shares: Sequence[float]) -> str:
    """Return ``12 %`` or ``12 to 31 %``."""
    low, high = f"{100 * min(shares):.0f}", f"{100 * max(shares):.0f}"
    return f"{value_range(low, high)} %"


def times(factors: Sequence[float]) -> str:
    """Return ``2.1 times`` or ``2.1 to 3.4 times``."""
    low, high = f"{min(factors):.2g}", f"{max(factors):.2g}"
    if max(factors) >= 100:
        low, high = f"{min(factors):.0f}", f"{max(factors):.0f}"
    return f"{value_range(low, high)} times"


def value_range(low: str, high: str) -> str:
    """Return two ends as ``12 to 31``, or as one number where they are equal."""
    return low if low == high else f"{low} to {high}"


# -- single rows


def extremes(table: Table, rows: Sequence[Line]) -> Iterator[dict[str, Any]]:
    """Yield the best and the worst configuration of each workload and working set."""
    labels = Labels(table)
    by_workload: dict[str, list[Line]] = defaultdict(list)
    for row in rows:
        by_workload[labels.line(row, rows, block=False)].append(row)
    for name, group in by_workload.items():
        if len(group) <= FEW:
            continue
        ordered = sorted(group, key=lambda row: row.median)
        worst, best = ordered[0], ordered[-1]
        if table.lower_is_better:
            worst, best = best, worst
        text = (
            f"{name}: best {labels.quantity(best.median)} ({labels.place(best, group)}),"
            f" worst {labels.quantity(worst.median)} ({labels.place(worst, group)})."
        )
        yield {
            "topic": "Best and worst",
            "better": labels.place(best, group),
            "worse": labels.place(worst, group),
            "points": json.dumps([best.point, worst.point], ensure_ascii=False),
            "text": text,
        }


def limit_shares(table: Table, rows: Sequence[Line]) -> Iterator[dict[str, Any]]:
    """Yield what share of the limit each program reaches, over all rows of one cache level."""
    labels = Labels(table)
    for program in table.series:
        by_level: dict[str, list[Line]] = defaultdict(list)
        for row in rows:
            is_of_program = row.instrument == program.instrument
            is_reference = row.is_own or row.is_comparable
            if is_of_program and is_reference and row.efficiency is not None:
                by_level[row.cache_level].append(row)
        for level, members in by_level.items():
            inside = sorted(members, key=lambda row: row.efficiency)
            inside = [row for row in inside if row.efficiency <= MOST]
            if not inside:
                continue
            low, high = inside[0], inside[-1]
            where = f"In {level}, " if level else ""
            reached = f"{percent(low.efficiency)} % of the limit"
            if len(inside) > 1:
                reached = (
                    f"{percent(low.efficiency)} ({labels.point(low, variant=True)}) to"
                    f" {percent(high.efficiency)} % of the limit ({labels.point(high, variant=True)})"
                )
            yield {
                "topic": "Limit",
                "better": program.heading,
                "factor_low": low.efficiency,
                "factor_high": high.efficiency,
                "points": json.dumps([row.point for row in inside], ensure_ascii=False),
                "text": f"{where}{program.heading} reaches {reached}.",
            }


def machine(rows: Sequence[Line]) -> Iterator[dict[str, Any]]:
    """Yield what keeps the limit of a machine below what its CPU could have, each once."""
    for text in dict.fromkeys(row.limit_finding for row in rows if row.limit_finding):
        said = schema.message_of(json.loads(text))
        yield {"topic": "Machine", "points": "[]", "text": said.full_sentence}


# -- nodes and links


def nodes_of(rows: pd.DataFrame, labels: Labels) -> Iterator[dict[str, Any]]:
    """Yield how far many nodes spread in the points of one table, and which are slow."""
    single = rows[usable_nodes(rows) & ~is_pair(rows)]
    if single["node"].nunique() <= MANY:
        return
    points = single.groupby(["node_class", "place"], sort=False)["value"]
    spread = (points.max() - points.min()) / points.median()
    spread = spread[points.size() > 1].sort_values(kind="stable")
    if spread.empty:
        return
    lines = {(row.node_class, row.place): row for row in schema.lines(single)}
    low, high = spread.index[0], spread.index[-1]
    text = f"The nodes spread by {percents([spread.iloc[0]])} in {named(lines[low], labels)}"
    if len(spread) > 1:
        text += f" to {percents([spread.iloc[-1]])} in {named(lines[high], labels)}"
    yield {"topic": "Nodes", "points": "[]", "text": f"{text}."}
    slow = single[single["is_slow"]].groupby("node")["behind"].agg(["size", "max"])
    if slow.empty:
        return
    worst = slow.sort_values("max", ascending=False, kind="stable")
    names = []
    for node, of_node in worst.iterrows():
        rows_of = plural(int(of_node["size"]), "row")
        names.append(f"{node} ({rows_of}, up to {percents([of_node['max']])})")
    text = f"Slower than their class: {counted(names, NAMED)}."
    yield {"topic": "Apart", "points": "[]", "text": text}


def named(row: Line, labels: Labels) -> str:
    """Return a point without its node."""
    return labels.point(row, variant=True, node=False)


def links_of(frames: schema.CampaignFrames, labels: Labels) -> Iterator[dict[str, Any]]:
    """Yield what slows pairs of nodes down, each once, by the point in which it is furthest behind."""
    name = labels.table.name
    rows = frames.rows[frames.rows["table"].eq(name) & is_pair(frames.rows) & frames.rows["is_own"]]
    measured = rows[rows["n"].gt(0)]
    if measured.empty:
        return
    points = measured["place"]
    lines = dict(zip(points, schema.lines(measured), strict=True))
    slow = frames.fleet[frames.fleet["table"].eq(name)]
    ordered = slow.sort_values(["confirmed", "behind"], ascending=False, kind="stable")
    worst = ordered.drop_duplicates(["kind", "name"])
    often = slow.groupby(["kind", "name"]).size()
    for part in schema.lines(worst):
        said = message(
            "slow-link",
            case=part.kind if part.confirmed else "suspect",
            name=part.name.replace("+", " → "),
            behind=part.behind,
            low=part.behind_low,
            high=part.behind_high,
            pairs=part.pairs,
            row=labels.point(lines[part.point], node=False),
            rows=int(often[part.kind, part.name]),
            of=points.nunique(),
        )
        yield {"topic": "Links", "points": "[]", "text": said.full_sentence}
    if worst.empty:
        pairs = measured[points.eq(points.iloc[0])]["node"]
        nodes = set("+".join(pairs).split("+"))
        said = message("no-slow-link", nodes=len(nodes), links=len(pairs), beyond=DELTA)
        yield {"topic": "Links", "points": "[]", "text": said.full_sentence}
