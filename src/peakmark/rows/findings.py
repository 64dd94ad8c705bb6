"""Write findings: sentences on what the rows of a table show.

Two choices, such as RS and RR, are compared at points that are otherwise equal. These pairs form
*groups* that share the working set and the cache level. A sentence states a difference that holds at
every point of a group: all values of one choice are better than all of the other, the medians differ by
more than 5 %, and the difference is significant. If the points were measured once or twice, the sentence
gives the factor and says so. A group without a clear result has no sentence. docs/method.md says how
often a stated difference is false.

Sentences on causes and comparisons rest on undisturbed rows, or say how many of their rows are disturbed.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import attrgetter
from typing import Any, NamedTuple

import pandas as pd

from peakmark import statistics
from peakmark.catalogue import TOGETHER
from peakmark.formatting import capitalised, counted, listed, node_or_link, percent, plural
from peakmark.messages import message
from peakmark.rows import schema
from peakmark.rows.fleet import DELTA, MANY, typical_rows
from peakmark.rows.labels import Labels
from peakmark.tools.tables import BY_NAME, TABLES, Program, Table

CHANCE = 0.05
"""Probability of a false finding: nothing differs in the campaign, but a sentence states a difference."""
LEAST_DIFFERENCE = 1.05
"""Factor between two medians up to which they count as level."""
TESTED = 3
"""Fewest repetitions of each choice for which a difference is tested."""
GAPS = {1: 2.0, 2: 0.5}
"""Number of points in a group -> smallest gap between the ranges of the two choices, as a multiple of
the larger range, at which the choices differ.

One or two points cannot reach a small p-value, so a wide gap is required (simulated: docs/method.md).
"""
TWICE = 2.0
"""Smallest factor that sentences state as a multiple, such as *2.1 times*, instead of a percentage."""
FEW = 3
"""Workloads with at most this many rows get no sentence on their best and worst configuration."""
MOST = 1.05
"""Share of the limit above which a row is wrong."""
WORKLOADS: Mapping[str, Sequence[tuple[str, str]]] = {
    "cpu": (("QP", "HP"), ("HP", "SP"), ("SP", "DP"), ("FP32", "DP")),
    "memory": (("RS", "RR"), ("WS", "WR"), ("RWS", "RWR"), ("RS", "WS")),
    "disk": (("RS", "RR"), ("WS", "WR"), ("RS", "WS"), ("RR", "WR")),
    "network": (("TCP", "UDP"), ("LAT-TCP", "LAT-UDP")),
    "gpu": (("FP32", "FP64"), ("TC-FP64", "FP64"), ("TC-FP8", "TC-FP16"), ("RWS", "RWR")),
}
"""Subsystem -> pairs of workloads that are compared."""
NAMED = 8
"""Largest number of slow nodes that a sentence names."""

Line = Any
"""A line of ``rows``, as ``schema.lines`` yields it."""
Values = Mapping[tuple[str, str], Sequence[float]]
"""(point, instrument) -> the kept values, in the order of the repetitions."""


class Comparison(NamedTuple):
    """Two choices of one factor that are compared with each other.

    Attributes:
        topic: heading of the sentences.
        factor: column of ``rows`` that holds the choices.
        first: the first choice, as in the column.
        second: the second choice, as in the column.
        first_name: the first choice, as in sentences.
        second_name: the second choice, as in sentences.
    """

    topic: str
    factor: str
    first: Any
    second: Any
    first_name: str
    second_name: str


@dataclass(frozen=True)
class Pair:
    """Two rows that are compared: two choices at otherwise equal points, or a row and its reference.

    Attributes:
        point: name of the first row's point.
        label: text that distinguishes the point within its group, such as ``2 threads``.
        first: speeds of the first choice: rates, or reciprocals of times.
        second: speeds of the second choice.
        factor: speed of the first choice, as a multiple of the second one's.
    """

    point: str
    label: str
    first: Sequence[float]
    second: Sequence[float]
    factor: float

    @property
    def n(self) -> int:
        """Return the number of repetitions of the choice with fewer repetitions."""
        return min(len(self.first), len(self.second))

    @property
    def log_arrangements(self) -> float:
        """Return the logarithm of the number of ways to divide the values between the two choices.

        If nothing differs, all ways are equally likely. The logarithm avoids overflow in products.
        """
        both = len(self.first) + len(self.second)
        return math.log(math.comb(both, len(self.first)))

    def gap(self, direction: int) -> float:
        """Return the gap between the ranges as a multiple of the larger range; negative if they overlap.

        Args:
            direction: 1 if the first choice should be faster, -1 if the second choice should be.
        """
        fast, slow = (self.first, self.second) if direction > 0 else (self.second, self.first)
        gap = min(fast) - max(slow)
        larger = max(max(fast) - min(fast), max(slow) - min(slow))
        if larger == 0:
            return math.copysign(math.inf, gap) if gap else 0.0
        return gap / larger

    @property
    def is_level(self) -> bool:
        """Return whether all values of both choices differ by at most ``LEAST_DIFFERENCE``."""
        every = [*self.first, *self.second]
        return max(every) <= LEAST_DIFFERENCE * min(every)


@dataclass(frozen=True)
class Group:
    """Pairs of one comparison that share the columns in ``SHARED``.

    Attributes:
        topic: heading of the sentence.
        first: name of the first choice.
        second: name of the second choice.
        shared: what the points share, such as ``64 KiB``; empty if the group has all points.
        working_set: working set, as part of a sentence, such as ``in DRAM``.
        pairs: a pair for each point.
    """

    topic: str
    first: str
    second: str
    shared: str
    working_set: str
    pairs: Sequence[Pair]

    @property
    def n(self) -> int:
        """Return the smallest number of repetitions of a choice at any point."""
        return min(pair.n for pair in self.pairs)


@dataclass(frozen=True)
class Statement:
    """The result of a group: which choice is faster, or that both are level.

    Attributes:
        group: the group.
        direction: 1 if the first choice is faster, -1 if the second is, 0 if they are level.
        certainty: ``in every repetition``, ``measured once``, ``measured twice`` or ``level``.
    """

    group: Group
    direction: int
    certainty: str

    @property
    def factors(self) -> list[float]:
        """Return the speed of the faster choice as a multiple of the slower one's, at each point."""
        if self.direction < 0:
            return [1 / pair.factor for pair in self.group.pairs]
        return [pair.factor for pair in self.group.pairs]


def find(frames: schema.CampaignFrames) -> pd.DataFrame:
    """Return the frame ``findings`` of a campaign.

    Args:
        frames: frames of the campaign; all but ``findings`` are used.
    """
    frames = replace(frames, rows=add_disturbances(frames.rows, frames.warnings))
    rows_of_tables = {
        name: typical_rows(rows) for name, rows in frames.rows.groupby("table", sort=False)
    }
    values = values_of_rows(frames.runs)
    groups = {}
    for name, rows in rows_of_tables.items():
        groups[name] = list(groups_of(rows[rows["disturbances"].eq("")], values))
    # The probability of a false difference is divided among all tests of the campaign.
    tested = 0
    for groups_of_table in groups.values():
        tested += sum(group.n >= TESTED for group in groups_of_table)
    lines: list[dict[str, Any]] = []
    for usual in TABLES:
        if usual.name not in rows_of_tables:
            continue
        table = usual.fitted(rows_of_tables[usual.name]["value"].dropna())
        lines_of_table = list(schema.lines(rows_of_tables[table.name]))
        usable = [row for row in lines_of_table if is_usable(row)]
        own = [row for row in usable if row.is_own]
        labels = Labels(table)
        found = [
            *extremes(table, lines_of_table),
            *comparisons(table, groups[table.name], tested),
            *limit_shares(table, [row for row in usable if not row.disturbances]),
            *machine_sentences(own),
            *node_sentences(frames.rows[frames.rows["table"].eq(table.name)], labels),
            *link_sentences(frames, labels),
        ]
        lines += [{"table": table.name, **line} for line in found]
    return schema.typed("findings", pd.DataFrame(lines))


def add_disturbances(rows: pd.DataFrame, warnings: pd.DataFrame) -> pd.DataFrame:
    """Add the column ``disturbances``: codes of what may have changed the value of each row."""
    codes: dict[tuple[str, str], list[str]] = defaultdict(list)
    for warning in schema.lines(warnings[schema.is_disturbance(warnings)]):
        codes[warning.point, warning.about].append(warning.code)
    texts = []
    for point, instrument in rows[["point", "instrument"]].itertuples(index=False):
        texts.append(" ".join([*codes[point, ""], *codes[point, instrument]]))
    return rows.assign(disturbances=texts)


def values_of_rows(runs: pd.DataFrame) -> Values:
    """Return the kept values of each row, in the order of the repetitions."""
    kept = runs[runs["kept"]].sort_values("repetition", kind="stable")
    grouped = kept.groupby(["point", "instrument"], sort=False)["value"]
    return {row: values.tolist() for row, values in grouped}  # type: ignore[misc]


def is_usable(row: Line) -> bool:
    """Return whether a row may be compared with others: it has values, and none is wrong.

    A row above a limit from the site file is usable, because the limit itself may be wrong.
    """
    tolerated = {"above-limit"} if row.limit_origin == "site" else set()
    return bool(row.n) and set(row.wrong_codes.split()) <= tolerated


# -- groups


def groups_of(rows: pd.DataFrame, values: Values) -> Iterator[Group]:
    """Yield the groups of all comparisons of one table."""
    lines = [row for row in schema.lines(rows) if is_usable(row)]
    own = [row for row in lines if row.is_own]
    if not own:
        return
    table = BY_NAME[own[0].table]
    labels = Labels(table)
    for comparison in comparisons_of(own, labels):
        yield from groups_of_comparison(comparison, own, values, labels)
    for program in table.references:
        yield from reference_groups(lines, values, labels, program)


def comparisons_of(rows: Sequence[Line], labels: Labels) -> Iterator[Comparison]:
    """Yield the comparisons of workloads, of neighbouring block sizes, and of most and fewest threads."""
    table = labels.table
    for first, second in WORKLOADS[table.subsystem]:
        yield Comparison(
            topic="Workloads",
            factor="workload",
            first=first,
            second=second,
            first_name=table.workload_label(first),
            second_name=table.workload_label(second),
        )
    blocks = sorted({row.block_bytes for row in rows if row.block_bytes is not None})
    for small, large in pairwise(blocks):
        yield Comparison(
            topic="Block size",
            factor="block_bytes",
            first=large,
            second=small,
            first_name=size_name(rows, labels, large),
            second_name=size_name(rows, labels, small),
        )
    counts = sorted({row.concurrency for row in rows})
    if len(counts) > 1:
        most, fewest = counts[-1], counts[0]
        yield Comparison(
            topic=f"{capitalised(labels.noun)}s",
            factor="concurrency",
            first=most,
            second=fewest,
            first_name=labels.many(most),
            second_name=labels.many(fewest),
        )


def size_name(rows: Iterable[Line], labels: Labels, block: int) -> str:
    """Return the label of a block size."""
    return next(labels.block(row) for row in rows if row.block_bytes == block)


SHARED = {
    "workload": ("node", "variant", "cache_level", "block_bytes"),
    "block_bytes": ("node", "variant", "cache_level", "workload"),
    "concurrency": ("node", "variant", "cache_level", "workload"),
}
"""Compared factor -> columns that are equal at all points of a group."""


def groups_of_comparison(
    comparison: Comparison, rows: Sequence[Line], values: Values, labels: Labels
) -> Iterator[Group]:
    """Yield the groups of one comparison: pairs of rows that differ in the compared factor alone."""
    factor = comparison.factor
    keys = ("node", "workload", "variant", "cache_level", "block_bytes", "concurrency")
    place_of = attrgetter(*[key for key in keys if key != factor])
    first_at = {place_of(row): row for row in rows if getattr(row, factor) == comparison.first}
    second_at = {place_of(row): row for row in rows if getattr(row, factor) == comparison.second}
    shared_of = attrgetter(*SHARED[factor])
    members: dict[tuple[Any, ...], list[tuple[Line, Line]]] = defaultdict(list)
    for place, row in first_at.items():
        if place in second_at:
            members[shared_of(row)].append((row, second_at[place]))
    for matched in members.values():
        row = matched[0][0]
        yield Group(
            topic=comparison.topic,
            first=comparison.first_name,
            second=comparison.second_name,
            shared=labels.block(row) if factor == "workload" else labels.workload(row),
            working_set=labels.working_set(row),
            pairs=[pair_of(first, second, values, labels) for first, second in matched],
        )


def pair_of(row: Line, other: Line, values: Values, labels: Labels) -> Pair:
    """Return two rows as a ``Pair``; its factor is the ratio of their median speeds."""
    first = speeds(values[row.point, row.instrument], labels.table)
    second = speeds(values[other.point, other.instrument], labels.table)
    return Pair(
        point=row.point,
        label=labels.point(row, node=False),
        first=first,
        second=second,
        factor=statistics.median(first) / statistics.median(second),
    )


def speeds(values: Sequence[float], table: Table) -> list[float]:
    """Return rates as they are and the reciprocals of times, so that a higher number is better."""
    return [1 / value for value in values] if table.lower_is_better else list(values)


def reference_groups(
    rows: Sequence[Line], values: Values, labels: Labels, program: Program
) -> Iterator[Group]:
    """Yield the groups that compare peakmark's kernel with a reference, by workload and working set.

    The factor of a pair comes only from the rounds in which both programs ran: in another round the
    machine may have been slower or faster.
    """
    own = {row.point: row for row in rows if row.is_own}
    members: dict[tuple[str, ...], list[Pair]] = defaultdict(list)
    firsts: dict[tuple[str, ...], Line] = {}
    for row in rows:
        if row.instrument != program.instrument or not row.is_comparable or row.point not in own:
            continue
        if "otherwise" in row.warnings.split():
            continue
        # ``ratio`` is the kernel's value over the reference's: the median over their common rounds.
        factor = 1 / row.ratio if labels.table.lower_is_better else row.ratio
        pair = replace(pair_of(own[row.point], row, values, labels), factor=factor)
        key = (row.node, row.workload, row.variant, row.cache_level)
        members[key].append(pair)
        firsts.setdefault(key, row)
    for shared, pairs in members.items():
        row = firsts[shared]
        yield Group(
            topic="Reference",
            first=labels.table.own.heading,
            second=program.heading,
            shared=labels.workload(row),
            working_set=labels.working_set(row),
            pairs=pairs,
        )


# -- what groups show


def statement_of(group: Group, tested: int) -> Statement | None:
    """Return which choice is faster in a group, or that they are level; None without a clear result.

    Args:
        group: the group.
        tested: number of groups that are tested in the whole campaign.
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
    """Return whether a group shows that one choice is faster at every point.

    At each point the values of both choices must not overlap, and the medians must differ by more than
    ``LEAST_DIFFERENCE``. The difference must also be significant: either the p-value of a permutation
    test is at most ``CHANCE / tested``, or the gap between the ranges reaches ``GAPS``.

    Args:
        group: the group.
        direction: 1 to test the first choice, -1 to test the second.
        tested: number of groups that are tested in the whole campaign.
    """
    gaps = [pair.gap(direction) for pair in group.pairs]
    if min(gaps) <= 0:
        return False
    if any(pair.factor**direction <= LEAST_DIFFERENCE for pair in group.pairs):
        return False
    # Only two arrangements of the values separate the choices completely: one for each direction.
    log_p = math.log(2) - sum(pair.log_arrangements for pair in group.pairs)
    if log_p <= math.log(CHANCE / max(1, tested)):
        return True
    # With three points or more, any gap suffices.
    return min(gaps) >= GAPS.get(len(group.pairs), 0.0)


def comparisons(table: Table, groups: Iterable[Group], tested: int) -> Iterator[dict[str, Any]]:
    """Yield a sentence for each comparison and result; groups with the same result share a sentence."""
    merged: dict[tuple[Any, ...], list[Statement]] = defaultdict(list)
    totals: dict[tuple[Any, ...], int] = defaultdict(int)
    for group in groups:
        choices = (group.topic, group.first, group.second, group.working_set)
        totals[choices] += len(group.pairs)
        found = statement_of(group, tested)
        if found:
            merged[choices, found.direction, found.certainty].append(found)
    for (choices, _, _), statements in merged.items():
        yield sentence(table, statements, totals[choices])


def sentence(table: Table, statements: Sequence[Statement], total: int) -> dict[str, Any]:
    """Return the line of ``findings`` for several groups with the same result.

    Args:
        table: table of the groups.
        statements: statements with the same choices, direction and certainty.
        total: number of points that have both choices, with or without a clear result.
    """
    group, direction = statements[0].group, statements[0].direction
    certainty = statements[0].certainty
    better, worse = group.first, group.second
    if direction < 0:
        better, worse = worse, better
    factors: list[float] = []
    pairs: list[Pair] = []
    for statement in statements:
        factors += statement.factors
        pairs += statement.group.pairs
    where = covered_points(statements, len(pairs), total)
    prefix = f"{group.working_set}, " if group.working_set else ""
    confirmed = ""
    # The report's method says that other differences hold in every repetition.
    if group.n < TESTED:
        confirmed = f", {certainty}"
    if direction == 0:
        text = f"{better} and {worse} are level{where}"
    elif table.lower_is_better:
        text = f"{worse} {longer(worse, factors)} {better}{where}{confirmed}"
    elif group.topic == "Reference" and direction < 0:
        # Keep peakmark's kernel as the subject of the sentence.
        text = f"{worse} is {percents([1 - 1 / factor for factor in factors])} slower than {better}{where}{confirmed}"
    else:
        text = f"{better} {faster(better, factors)} {worse}{where}{confirmed}"
    text = prefix + text
    return {
        "topic": group.topic,
        "better": better,
        "worse": worse,
        "factor_low": min(factors),
        "factor_high": max(factors),
        "certainty": certainty,
        "points": json.dumps([pair.point for pair in pairs], ensure_ascii=False),
        "text": f"{capitalised(text)}.",
    }


def covered_points(statements: Sequence[Statement], points: int, total: int) -> str:
    """Return the part of a sentence that says at which points it holds.

    Examples are `` at all 7 points``, `` at 64 KiB and 1 MiB`` and `` at 2 of 7 points``.

    Args:
        statements: statements that the sentence merges.
        points: number of points of these statements.
        total: number of points that have both choices.
    """
    if points == total:
        return {1: "", 2: " at both points"}.get(total, f" at all {total} points")
    names = list(dict.fromkeys(each.group.shared for each in statements))
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
    """Return whether the name of a choice is plural, such as ``2 threads``."""
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
    """Return ``12 to 31``, or one number if both are equal."""
    return low if low == high else f"{low} to {high}"


# -- single rows


def extremes(table: Table, rows: Sequence[Line]) -> Iterator[dict[str, Any]]:
    """Yield a sentence on the best and worst configuration of each workload and working set.

    It leaves out wrong and disturbed rows, and gives their number.
    """
    labels = Labels(table)
    measured = [row for row in rows if row.is_own and row.n]
    by_workload: dict[str, list[Line]] = defaultdict(list)
    left_out = Counter[str]()
    for row in measured:
        name = labels.line(row, measured, block=False)
        if is_usable(row) and not row.disturbances:
            by_workload[name].append(row)
        else:
            left_out[name] += 1
    for name, group in by_workload.items():
        if len(group) <= FEW:
            continue
        ordered = sorted(group, key=lambda row: row.median)
        worst, best = ordered[0], ordered[-1]
        if table.lower_is_better:
            worst, best = best, worst
        text = (
            f"{name}: best {labels.quantity(best.median)} ({labels.place(best, group)}),"
            f" worst {labels.quantity(worst.median)} ({labels.place(worst, group)})"
        )
        if left_out[name]:
            text += f"; {plural(left_out[name], 'wrong or disturbed row')} left out"
        yield {
            "topic": "Best and worst",
            "better": labels.place(best, group),
            "worse": labels.place(worst, group),
            "points": json.dumps([best.point, worst.point], ensure_ascii=False),
            "text": f"{text}.",
        }


def limit_shares(table: Table, rows: Sequence[Line]) -> Iterator[dict[str, Any]]:
    """Yield a sentence for each program and cache level: lowest and highest share of the limit."""
    labels = Labels(table)
    for program in table.series:
        by_level: dict[str, list[Line]] = defaultdict(list)
        for row in rows:
            is_of_program = row.instrument == program.instrument
            is_judged = row.is_own or row.is_comparable
            if is_of_program and is_judged and row.efficiency is not None:
                by_level[row.cache_level].append(row)
        for level, members in by_level.items():
            possible = [row for row in members if row.efficiency <= MOST]
            if not possible:
                continue
            ordered = sorted(possible, key=lambda row: row.efficiency)
            low, high = ordered[0], ordered[-1]
            prefix = f"In {level}, " if level else ""
            reached = f"{percent(low.efficiency)} % of the limit"
            if len(ordered) > 1:
                reached = (
                    f"{percent(low.efficiency)} ({labels.point(low, variant=True)}) to"
                    f" {percent(high.efficiency)} % of the limit ({labels.point(high, variant=True)})"
                )
            yield {
                "topic": "Limit",
                "better": program.heading,
                "factor_low": low.efficiency,
                "factor_high": high.efficiency,
                "points": json.dumps([row.point for row in ordered], ensure_ascii=False),
                "text": f"{prefix}{program.heading} reaches {reached}.",
            }


def machine_sentences(rows: Sequence[Line]) -> Iterator[dict[str, Any]]:
    """Yield a sentence for each reason why the machine's limit is lower than its CPU would allow."""
    for text in dict.fromkeys(row.limit_finding for row in rows if row.limit_finding):
        reason = schema.message_of(json.loads(text))
        yield {"topic": "Machine", "points": "[]", "text": reason.full_sentence}


# -- nodes and links


def node_sentences(rows: pd.DataFrame, labels: Labels) -> Iterator[dict[str, Any]]:
    """Yield a sentence on the spread over the nodes of a table, and one on the slow nodes.

    A table with at most ``fleet.MANY`` nodes has neither, as the table shows them one by one.
    """
    single = rows[schema.is_usable(rows) & ~schema.is_pair(rows)]
    if single["node"].nunique() <= MANY:
        return
    calm = single[single["disturbances"].eq("")]
    values = calm.groupby(["node_class", "place"], sort=False)["value"]
    spread = (values.max() - values.min()) / values.median()
    spread = spread[values.size() > 1].sort_values(kind="stable")
    if len(spread):
        lines = {(row.node_class, row.place): row for row in schema.lines(single)}
        narrowest, widest = lines[spread.index[0]], lines[spread.index[-1]]
        text = f"The nodes spread by {percents([spread.iloc[0]])} in {label_of(narrowest, labels)}"
        if len(spread) > 1:
            text += f" to {percents([spread.iloc[-1]])} in {label_of(widest, labels)}"
        yield {"topic": "Nodes", "points": "[]", "text": f"{text}."}
    slow = single[single["is_slow"]]
    if slow.empty:
        return
    of_nodes = slow.groupby("node")["behind"].agg(["size", "max"])
    worst = of_nodes.sort_values("max", ascending=False, kind="stable")
    names = []
    for node, of_node in worst.iterrows():
        rows_of = plural(int(of_node["size"]), "row")
        names.append(f"{node} ({rows_of}, up to {percents([of_node['max']])})")
    text = f"Slower than their class: {counted(names, NAMED)}.{on_disturbed(slow)}"
    yield {"topic": "Apart", "points": "[]", "text": text}


def on_disturbed(rows: pd.DataFrame) -> str:
    """Return a sentence on the disturbed rows behind another sentence; empty if there is none."""
    count = int(rows["disturbances"].ne("").sum())
    if not count:
        return ""
    return f" Disturbed rows behind it: {count} of {len(rows)}."


def label_of(row: Line, labels: Labels) -> str:
    """Return the label of a row's point with the variant and without the node."""
    return labels.point(row, variant=True, node=False)


def link_sentences(frames: schema.CampaignFrames, labels: Labels) -> Iterator[dict[str, Any]]:
    """Yield a sentence on each slow node and pair of nodes.

    The sentence gives the numbers of the point at which it is furthest behind. If nothing is
    slow, one sentence says so.
    """
    name = labels.table.name
    rows = frames.rows[
        frames.rows["table"].eq(name) & schema.is_pair(frames.rows) & frames.rows["is_own"]
    ]
    measured = rows[rows["n"].gt(0) & rows["variant"].ne(TOGETHER)]
    if measured.empty:
        return
    points = measured["place"]
    line_at = dict(zip(points, schema.lines(measured), strict=True))
    slow = frames.fleet[frames.fleet["table"].eq(name)]
    ordered = slow.sort_values("behind", ascending=False, kind="stable")
    worst = ordered.drop_duplicates(["kind", "name"])
    rows_of_part = slow.groupby(["kind", "name"]).size()
    for part in schema.lines(worst):
        found = message(
            "slow-link",
            case=part.kind,
            name=node_or_link(part.name),
            behind=part.behind,
            low=part.behind_low,
            high=part.behind_high,
            pairs=part.pairs,
            row=labels.point(line_at[part.point], node=False),
            rows=int(rows_of_part[part.kind, part.name]),
            of=points.nunique(),
        )
        of_place = measured[points.eq(part.point)]
        text = f"{found.full_sentence}{on_disturbed(of_place)}"
        yield {"topic": "Links", "points": "[]", "text": text}
    if worst.empty:
        pairs = measured[points.eq(points.iloc[0])]["node"]
        nodes = set("+".join(pairs).split("+"))
        found = message("no-slow-link", nodes=len(nodes), links=len(pairs), beyond=DELTA)
        text = f"{found.full_sentence}{on_disturbed(measured)}"
        yield {"topic": "Links", "points": "[]", "text": text}
