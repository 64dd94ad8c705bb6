"""Write findings: sentences on what the rows of a table show.

Sentences on causes and comparisons rest on undisturbed rows, or say how many of their rows are disturbed.

Two choices, such as RS and RR, are compared at points that are otherwise equal. These pairs of rows form
*groups* that share the working set and the cache level. A difference is stated if it holds at every
point of a group: all values of one choice are better than all of the other, the medians differ by more
than 5 %, and the difference is significant. If the points were measured once or twice, the factor is
stated with these words. docs/method.md says how often a stated difference is false.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from peakmark.catalogue import TOGETHER
from peakmark.formatting import (
    capitalised,
    counted,
    listed,
    node_or_link,
    percent,
    plural,
    size,
    value_range,
)
from peakmark.messages import message
from peakmark.rows import placements, schema
from peakmark.rows.fleet import DELTA, MANY, typical_rows
from peakmark.rows.labels import Labels
from peakmark.rows.point_limits import ABOVE
from peakmark.rows.runs import ROW
from peakmark.tools.tables import BY_NAME, TABLES, Program, Table

TWICE = 2.0
"""Smallest factor that sentences state as a multiple, such as *2.1 times*, instead of a percentage."""
FEW = 3
"""Workloads with at most this many rows get no sentence on their best and worst configuration."""
NAMED = 8
"""Largest number of slow nodes that a sentence names."""
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
WORKLOADS: Mapping[str, Sequence[tuple[str, str]]] = {
    "cpu": (("QP", "HP"), ("HP", "SP"), ("SP", "DP"), ("FP32", "DP")),
    "memory": (("RS", "RR"), ("WS", "WR"), ("RWS", "RWR"), ("RS", "WS")),
    "disk": (("RS", "RR"), ("WS", "WR"), ("RS", "WS"), ("RR", "WR")),
    "network": (("TCP", "UDP"), ("LAT-TCP", "LAT-UDP")),
    "gpu": (("FP32", "FP64"), ("TC-FP64", "FP64"), ("TC-FP8", "TC-FP16"), ("RWS", "RWR")),
}
"""Subsystem -> pairs of workloads that are compared."""
CERTAINTY = {1: "measured once", 2: "measured twice"}
"""Number of repetitions -> words on a difference that is not tested."""
EQUAL = ("node", "workload", "variant", "cache_level", "block_bytes", "concurrency")
"""Columns that are equal in the two rows of a pair, except the compared factor."""
CHOICES = ["topic", "first", "second", "working_set"]
"""Columns of a frame of pairs: the sentence's heading, the choices' names, the working set in words."""

Line = Any
"""A line of ``rows``, as ``schema.lines`` yields it."""


def find(frames: schema.CampaignFrames) -> pd.DataFrame:
    """Return the frame ``findings`` of a campaign.

    Args:
        frames: frames of the campaign; all but ``findings`` are used.
    """
    frames = replace(frames, rows=add_disturbances(frames.rows, frames.warnings))
    rows_of_tables = {
        name: typical_rows(rows) for name, rows in frames.rows.groupby("table", sort=False)
    }
    compared = compare(rows_of_tables, frames.runs)
    lines: list[dict[str, Any]] = []
    for usual in TABLES:
        if usual.name not in rows_of_tables:
            continue
        rows = rows_of_tables[usual.name]
        table = usual.fitted(rows["value"].dropna())
        labels = Labels(table)
        usable = rows[schema.is_right(rows)]
        found = [
            *extremes(labels, rows),
            *comparisons(table, compared.get(table.name, pd.DataFrame())),
            *limit_shares(labels, usable[usable["disturbances"].eq("")]),
            *machine_sentences(usable[usable["is_own"]]),
            *node_sentences(frames.rows[frames.rows["table"].eq(table.name)], labels),
            *link_sentences(frames, labels),
        ]
        # A finding on the machine, a node or a link names no points.
        lines += [{"table": table.name, "points": "[]", **line} for line in found]
    for note in placements.describe(frames):
        lines.append({"topic": "Placements", "text": note.full_sentence})
    return schema.typed("findings", pd.DataFrame(lines))


def compare(rows_of_tables: dict[Any, pd.DataFrame], runs: pd.DataFrame) -> dict[Any, pd.DataFrame]:
    """Return table -> its judged pairs. The probability of a false difference is that of all tables together."""
    speeds = speeds_of_rows(runs)
    pairs: list[dict[str, Any]] = []
    for name, rows in rows_of_tables.items():
        calm = rows[schema.is_right(rows) & rows["disturbances"].eq("")]
        if name not in BY_NAME or not calm["is_own"].any():
            continue
        lines = list(schema.lines(calm.drop(columns="n").join(speeds, on=ROW)))
        for pair in pairs_of_table(lines, Labels(BY_NAME[name])):
            pairs.append({"table": name, **pair})
    if not pairs:
        return {}
    return dict(list(judged(pd.DataFrame(pairs)).groupby("table", sort=False)))


def add_disturbances(rows: pd.DataFrame, warnings: pd.DataFrame) -> pd.DataFrame:
    """Add the column ``disturbances``: codes of the disturbances that may have changed a row's value."""
    codes: dict[tuple[str, str], list[str]] = defaultdict(list)
    for warning in schema.lines(warnings[schema.is_disturbance(warnings)]):
        codes[warning.point, warning.about].append(warning.code)
    texts = []
    for point, instrument in rows[["point", "instrument"]].itertuples(index=False):
        texts.append(" ".join([*codes[point, ""], *codes[point, instrument]]))
    return rows.assign(disturbances=texts)


# -- comparisons


def comparisons(table: Table, pairs: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield a sentence for each comparison and result; groups with the same result share a sentence.

    Args:
        table: table of the pairs.
        pairs: pairs of the table, as ``judged`` returns them.
    """
    if pairs.empty:
        return
    clear = pairs.dropna(subset="direction")
    for _, same in clear.groupby([*CHOICES, "direction", "certainty"], sort=False):
        yield sentence(table, same)


def sentence(table: Table, pairs: pd.DataFrame) -> dict[str, Any]:
    """Return the line of ``findings`` for pairs with the same choices, direction and certainty."""
    pair = pairs.iloc[0]
    better, worse, factors = pair["first"], pair["second"], pairs["factor"]
    if pair["direction"] < 0:
        better, worse, factors = worse, better, 1 / factors
    where = covered_points(pairs)
    # The report's method says that other differences hold in every repetition.
    if pair["certainty"] in CERTAINTY.values():
        where += f", {pair['certainty']}"
    if pair["direction"] == 0:
        text = f"{better} and {worse} are level{where}"
    elif table.lower_is_better:
        text = (
            f"{worse} {verb(worse, 'takes', 'take')} {by_how_much(factors, 'long')} {better}{where}"
        )
    elif pair["topic"] == "Reference" and pair["direction"] < 0:
        # Keep peakmark's kernel as the subject of the sentence.
        text = f"{worse} is {percents(1 - 1 / factors)} slower than {better}{where}"
    else:
        text = f"{better} {verb(better, 'is', 'are')} {by_how_much(factors, 'fast')} {worse}{where}"
    if pair["working_set"]:
        text = f"{pair['working_set']}, {text}"
    return {
        "topic": pair["topic"],
        "better": better,
        "worse": worse,
        "factor_low": factors.min(),
        "factor_high": factors.max(),
        "certainty": pair["certainty"],
        "points": json.dumps([*pairs["point"]], ensure_ascii=False),
        "text": f"{capitalised(text)}.",
    }


def covered_points(pairs: pd.DataFrame) -> str:
    """Return the part of a sentence that says at which points it holds.

    Examples are `` at all 7 points``, `` at 64 KiB and 1 MiB with 1 thread`` and `` at 2 of 7 points``.
    """
    total, topic = pairs["total"].iloc[0], pairs["topic"].iloc[0]
    names, threads = pairs["shared"].unique().tolist(), pairs["threads"].unique().tolist()
    if len(pairs) == total and total > 2:
        return f" at all {total} points"
    where = ""
    if all(names):
        preposition = "for" if topic != "Workloads" else "at"
        where = f" {preposition} {listed(names)}"
    elif len(pairs) < total:
        where = f" at {len(pairs)} of {total} points"
    if topic in ("Threads", "Streams"):
        return where
    preposition = "" if threads[0].startswith("on ") else "with "
    return f"{where} {preposition}{listed(threads)}"


def verb(subject: str, singular: str, plural_form: str) -> str:
    """Return the form of a verb for the name of a choice, which may be plural, such as ``2 threads``."""
    return plural_form if subject[:1].isdigit() and subject.endswith("s") else singular


def by_how_much(factors: pd.Series, adjective: str) -> str:
    """Return ``12 to 31 % faster than`` or ``2.1 times as fast as`` for the adjective ``fast``."""
    if factors.max() < TWICE:
        return f"{percents(factors - 1)} {adjective}er than"
    return f"{times(factors)} as {adjective} as"


def percents(shares: pd.Series) -> str:
    """Return ``12 %`` or ``12 to 31 %``."""
    low, high = f"{100 * min(shares):.0f}", f"{100 * max(shares):.0f}"
    return f"{value_range(low, high)} %"


def times(factors: pd.Series) -> str:
    """Return ``2.1 times`` or ``2.1 to 3.4 times``."""
    low, high = f"{min(factors):.2g}", f"{max(factors):.2g}"
    if max(factors) >= 100:
        low, high = f"{min(factors):.0f}", f"{max(factors):.0f}"
    return f"{value_range(low, high)} times"


# -- single rows


def extremes(labels: Labels, rows: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield a sentence on the best and worst configuration of each workload and working set.

    It leaves out wrong and disturbed rows, and gives their number.
    """
    measured = rows[rows["is_own"] & rows["n"].gt(0)]
    is_sound = schema.is_right(measured) & measured["disturbances"].eq("")
    lines = list(schema.lines(measured))
    sound: dict[str, list[Line]] = defaultdict(list)
    left_out: Counter[str] = Counter()
    for row, is_sound_row in zip(lines, is_sound, strict=True):
        name = labels.line(row, lines, block=False)
        if is_sound_row:
            sound[name].append(row)
        else:
            left_out[name] += 1
    for name, members in sound.items():
        if len(members) > FEW:
            yield best_and_worst(labels, name, members, left_out[name])


def best_and_worst(
    labels: Labels, name: str, rows: Sequence[Line], left_out: int
) -> dict[str, Any]:
    """Return the line of ``findings`` on the best and worst of the rows with one name.

    Args:
        labels: labels of the table.
        name: workload and working set of the rows.
        rows: the rows that are compared.
        left_out: number of wrong and disturbed rows with this name.
    """
    ordered = sorted(rows, key=lambda row: row.median)
    worst, best = ordered[0], ordered[-1]
    if labels.table.lower_is_better:
        worst, best = best, worst
    best_place, worst_place = labels.place(best, ordered), labels.place(worst, ordered)
    text = (
        f"{name}: best {labels.quantity(best.median)} ({best_place}),"
        f" worst {labels.quantity(worst.median)} ({worst_place})"
    )
    if left_out:
        text += f"; {plural(left_out, 'wrong or disturbed row')} left out"
    return {
        "topic": "Best and worst",
        "better": best_place,
        "worse": worst_place,
        "points": json.dumps([best.point, worst.point], ensure_ascii=False),
        "text": f"{text}.",
    }


def limit_shares(labels: Labels, rows: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield a sentence for each program and cache level: lowest and highest share of the limit."""
    is_judged = rows["is_own"] | rows["is_comparable"]
    possible = rows[is_judged & rows["efficiency"].le(ABOVE)]
    for program in labels.table.series:
        of_program = possible[possible["instrument"].eq(program.instrument)]
        for level, members in of_program.groupby("cache_level", sort=False):
            ordered = list(schema.lines(members.sort_values("efficiency", kind="stable")))
            low, high = ordered[0], ordered[-1]
            prefix = f"In {level!s}, " if level else ""
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


def machine_sentences(rows: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield a sentence for each reason why the machine's limit is lower than its CPU would allow."""
    for text in rows.loc[rows["limit_finding"].ne(""), "limit_finding"].unique():
        yield {"topic": "Machine", "text": f"{capitalised(text)}."}


# -- nodes and links


def node_sentences(rows: pd.DataFrame, labels: Labels) -> Iterator[dict[str, Any]]:
    """Yield a sentence on the spread over the nodes of a table, and one on the slow nodes.

    A table with at most ``fleet.MANY`` nodes has no such sentence, because it shows each node.
    """
    single = rows[schema.is_usable(rows) & ~schema.is_pair(rows)]
    if single["node"].nunique() <= MANY:
        return
    yield from spread_sentence(single, labels)
    slow = single[single["is_slow"]]
    if len(slow):
        yield {"topic": "Apart", "text": slow_nodes_sentence(slow)}


def spread_sentence(single: pd.DataFrame, labels: Labels) -> Iterator[dict[str, Any]]:
    """Yield a sentence on the narrowest and widest spread of the nodes of a class at one point."""
    calm = single[single["disturbances"].eq("")]
    values = calm.groupby(["node_class", "place"], sort=False)["value"]
    spread = (values.max() - values.min()) / values.median()
    spread = spread[values.size() > 1].sort_values(kind="stable")
    if len(spread):
        # A place is a point without its node: any row of a class at a place can name the place.
        lines = {(row.node_class, row.place): row for row in schema.lines(single)}
        narrowest, widest = lines[spread.index[0]], lines[spread.index[-1]]
        text = f"The nodes spread by {percents(spread.iloc[:1])} in {label_of(narrowest, labels)}"
        if len(spread) > 1:
            text += f" to {percents(spread.iloc[-1:])} in {label_of(widest, labels)}"
        yield {"topic": "Nodes", "text": f"{text}."}


def slow_nodes_sentence(slow: pd.DataFrame) -> str:
    """Return a sentence on the slow nodes, the slowest first, from their slow rows."""
    of_nodes = slow.groupby("node")["behind"].agg(["size", "max"])
    worst = of_nodes.sort_values("max", ascending=False, kind="stable")
    names = []
    for node, of_node in worst.iterrows():
        rows_of = plural(int(of_node["size"]), "row")
        names.append(f"{node} ({rows_of}, up to {100 * of_node['max']:.0f} %)")
    return f"Slower than their class: {counted(names, NAMED)}.{on_disturbed(slow)}"


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
        yield {"topic": "Links", "text": text}
    if worst.empty:
        pairs = measured[points.eq(points.iloc[0])]["node"]
        nodes = set("+".join(pairs).split("+"))
        found = message("no-slow-link", nodes=len(nodes), links=len(pairs), beyond=DELTA)
        text = f"{found.full_sentence}{on_disturbed(measured)}"
        yield {"topic": "Links", "text": text}


# -- differences: rows that differ in one factor


class Comparison(NamedTuple):
    """Two choices of one factor that are compared with each other.

    Attributes:
        topic: heading of the sentences.
        factor: column of ``rows`` that holds the choices.
        choices: the two choices, as in the column.
        names: the two choices, as in sentences.
    """

    topic: str
    factor: str
    choices: tuple[Any, Any]
    names: tuple[str, str]


def speeds_of_rows(runs: pd.DataFrame) -> pd.DataFrame:
    """Return ``n``, ``slowest``, ``middle`` and ``fastest`` of each row: rates, or reciprocals of times.

    Args:
        runs: frame ``runs``.
    """
    kept = runs[runs["kept"] & runs["value"].gt(0)]
    speed = kept["value"].where(kept["unit"].ne("s"), 1 / kept["value"])
    by_row = kept.assign(speed=speed).groupby(ROW)
    return by_row.agg(
        n=("speed", "size"),
        slowest=("speed", "min"),
        middle=("speed", "median"),
        fastest=("speed", "max"),
    )


def pairs_of_table(rows: Sequence[Line], labels: Labels) -> Iterator[dict[str, Any]]:
    """Yield the compared pairs of rows of a table, in the order of the sentences.

    Args:
        rows: rows of one table that may be compared, with the columns of ``speeds_of_rows``.
        labels: labels of the table.
    """
    own = [row for row in rows if row.is_own]
    for comparison in comparisons_of(own, labels):
        yield from pairs_of(comparison, own, labels)
    for program in labels.table.references:
        yield from pairs_with_reference(rows, labels, program)


def comparisons_of(own: Sequence[Line], labels: Labels) -> Iterator[Comparison]:
    """Yield the comparisons of workloads, of neighbouring block sizes, and of most and fewest threads."""
    table = labels.table
    for first, second in WORKLOADS[table.subsystem]:
        names = (table.workload_label(first), table.workload_label(second))
        yield Comparison("Workloads", "workload", (first, second), names)
    blocks = {row.block_bytes for row in own if row.block_bytes is not None}
    for small, large in pairwise(sorted(blocks)):
        names = (size(large), size(small))
        yield Comparison("Block size", "block_bytes", (large, small), names)
    counts = {row.concurrency for row in own}
    if len(counts) > 1:
        choices = (max(counts), min(counts))
        names = (labels.many(max(counts)), labels.many(min(counts)))
        yield Comparison(f"{capitalised(labels.noun)}s", "concurrency", choices, names)


def pairs_of(
    comparison: Comparison, own: Sequence[Line], labels: Labels
) -> Iterator[dict[str, Any]]:
    """Yield the pairs of rows that differ in the compared factor alone."""
    equal = [name for name in EQUAL if name != comparison.factor]
    first, second = comparison.choices
    others: dict[Any, list[Line]] = defaultdict(list)
    for row in own:
        if getattr(row, comparison.factor) == second:
            others[values_of(row, equal)].append(row)
    # A group shares the block if workloads are compared, else the workload.
    shared = "block_bytes" if comparison.factor == "workload" else "workload"
    for row in own:
        if getattr(row, comparison.factor) != first:
            continue
        for other in others[values_of(row, equal)]:
            yield {
                **pair_of(row, other, labels, shared),
                "topic": comparison.topic,
                "first": comparison.names[0],
                "second": comparison.names[1],
                "factor": row.middle / other.middle,
            }


def values_of(row: Line, columns: Sequence[str]) -> tuple[Any, ...]:
    """Return the values of some columns of a row."""
    return tuple(getattr(row, column) for column in columns)


def pairs_with_reference(
    rows: Sequence[Line], labels: Labels, program: Program
) -> Iterator[dict[str, Any]]:
    """Yield the pairs of peakmark's kernel and a reference."""
    own = {row.point: row for row in rows if row.is_own}
    for other in rows:
        # A row with other settings than the kernel's is no reference for it.
        is_compared = other.is_comparable and "otherwise" not in other.warnings.split()
        if other.instrument != program.instrument or other.point not in own or not is_compared:
            continue
        # ``ratio`` is the kernel's median over the reference's.
        yield {
            **pair_of(own[other.point], other, labels, "workload"),
            "topic": "Reference",
            "first": labels.table.own.heading,
            "second": program.heading,
            "factor": 1 / other.ratio if labels.table.lower_is_better else other.ratio,
        }


def pair_of(row: Line, other: Line, labels: Labels, shared: str) -> dict[str, Any]:
    """Return the gaps between the ranges of a pair of rows, its place in words, and its group.

    Args:
        row: row of the first choice.
        other: row of the second choice.
        labels: labels of the table.
        shared: column that a group shares, apart from node, variant and cache level.
    """
    label = labels.block if shared == "block_bytes" else labels.workload
    group = values_of(row, ("node", "variant", "cache_level", shared))
    return {
        **gaps_of(row, other),
        "point": row.point,
        "shared": label(row),
        "threads": labels.threads(row),
        "working_set": labels.working_set(row),
        "group": "/".join(map(str, group)),
    }


def gaps_of(row: Line, other: Line) -> dict[str, Any]:
    """Return how far the ranges of the two choices of a pair are apart.

    The columns are:

    - ``n``: number of repetitions of the choice with fewer repetitions.
    - ``gap``: gap between the ranges, as a multiple of the larger range, if the first choice is faster;
      negative if the ranges overlap.
    - ``gap_back``: the same if the second choice is faster.
    - ``arrangements``: logarithm of the number of ways to divide the values between the choices. If
      nothing differs, all ways are equally likely.
    - ``is_level``: whether all values of both choices differ by at most the factor ``LEAST_DIFFERENCE``.

    Args:
        row: row of the first choice, with ``n``, ``slowest`` and ``fastest``.
        other: row of the second choice.
    """
    larger = max(row.fastest - row.slowest, other.fastest - other.slowest)
    slowest, fastest = min(row.slowest, other.slowest), max(row.fastest, other.fastest)
    return {
        "n": min(row.n, other.n),
        "gap": multiple(row.slowest - other.fastest, larger),
        "gap_back": multiple(other.slowest - row.fastest, larger),
        "arrangements": math.log(math.comb(row.n + other.n, row.n)),
        "is_level": fastest <= LEAST_DIFFERENCE * slowest,
    }


def multiple(gap: float, largest_range: float) -> float:
    """Return a gap as a multiple of a range; infinite if every choice has a single value."""
    if largest_range:
        return gap / largest_range
    return math.copysign(math.inf, gap) if gap else 0.0


def judged(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return the pairs of all tables in the order of their groups, with ``direction`` and ``certainty``.

    ``direction`` is 1 if the first choice is faster, -1 if the second is, 0 if they are level, and empty
    without a clear result. ``total`` is the number of pairs that have the same choices.

    At each point of a group the values of both choices must not overlap, and the medians must differ by
    more than ``LEAST_DIFFERENCE``. The difference must also be significant: either the p-value of a
    permutation test is at most ``CHANCE`` divided by the number of tested groups, or the gap between the
    ranges reaches ``GAPS``.
    """
    key = ["table", *CHOICES, "group"]
    by_group = pairs.groupby(key, sort=False)
    groups = by_group.agg(
        points=("point", "size"),
        n=("n", "min"),
        least=("factor", "min"),
        most=("factor", "max"),
        gap=("gap", "min"),
        gap_back=("gap_back", "min"),
        arrangements=("arrangements", "sum"),
        is_level=("is_level", "all"),
    )
    is_tested = groups["n"].ge(TESTED)
    # Only two arrangements of the values separate the choices completely: one for each direction.
    log_p = math.log(2) - groups["arrangements"]
    is_significant = log_p <= math.log(CHANCE / max(1, is_tested.sum()))
    # With three points or more, any gap suffices.
    needed = groups["points"].map(GAPS).fillna(0.0)
    ways = []
    for gap, factor in ((groups["gap"], groups["least"]), (groups["gap_back"], 1 / groups["most"])):
        is_apart = gap.gt(0) & (is_significant | gap.ge(needed))
        ways.append(factor.gt(LEAST_DIFFERENCE) & (is_apart | ~is_tested))
    cases = [*ways, is_tested & groups["is_level"]]
    groups["direction"] = np.select(cases, [1.0, -1.0, 0.0], np.nan)
    certainty = groups["n"].map(CERTAINTY).fillna("in every repetition")
    groups["certainty"] = certainty.where(groups["direction"].ne(0), "level")
    total = pairs.groupby(["table", *CHOICES])["point"].transform("size")
    found = pairs.assign(total=total).join(groups[["direction", "certainty"]], on=key)
    return found.loc[by_group.ngroup().sort_values(kind="stable").index]
