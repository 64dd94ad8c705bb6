"""Compare two choices, such as RS and RR, at all points that are otherwise equal.

The pairs of rows form *groups* that share the working set and the cache level. A difference is stated if
it holds at every point of a group: all repetitions of one choice are better than all of the other, the
medians (or means, by the layout) differ by more than 5 %, and either the difference is significant or the
ranges are far apart. A difference of points that were measured once or twice is not tested, and its
sentence says so. docs/method.md says how often a stated difference is false.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from peakmark.formatting import capitalised, listed, value_range
from peakmark.rows import schema
from peakmark.rows.labels import Labels
from peakmark.rows.placements import distance_of
from peakmark.rows.schema import may_be_one
from peakmark.tools.tables import Table

CHANCE = 0.05
"""Probability of a false finding: nothing differs in the campaign, but a sentence states a difference."""
LEAST_DIFFERENCE = 1.05
"""Factor between the values of two rows up to which they count as level."""
LEAST_TESTED = 3
"""Fewest repetitions of each choice for which a difference is tested."""
LEAST_GAPS = {1: 3.0, 2: 0.75}
"""Number of points in a group -> smallest gap between the ranges of the two choices, as a multiple of
the larger range, at which the choices differ.

With few repetitions, one or two points cannot reach a small p-value. Then a wide gap is required
(simulated: docs/method.md).
"""
WORKLOADS: Mapping[str, Sequence[tuple[str, str]]] = {
    "cpu": (("QP", "HP"), ("HP", "SP"), ("SP", "DP"), ("FP32", "DP")),
    "memory": (("RS", "RR"), ("WS", "WR"), ("RWS", "RWR"), ("RS", "WS")),
    "disk": (("RS", "RR"), ("WS", "WR"), ("RS", "WS"), ("RR", "WR")),
    "network": (("TCP", "UDP"), ("LAT-TCP", "LAT-UDP")),
    "mpi": (("BIRATE", "RATE"),),
    "gpu": (("FP32", "FP64"), ("TC-FP64", "FP64"), ("TC-FP8", "TC-FP16"), ("RWS", "RWR")),
}
"""Subsystem -> pairs of workloads that are compared."""
CERTAINTY = {1: "from as few as 1 run", 2: "from as few as 2 runs"}
"""Number of repetitions -> words on a difference that is not tested."""
TESTED_WORDS = "in every repetition"
"""Words on a difference that was tested. Sentences leave them out, because the report's method says so."""
PRINTED = "as printed"
"""Words on a difference of values that a report printed, without their repetitions."""
EQUAL = ["node", "workload", "variant", "cache_level", "block_bytes", "concurrency"]
"""Columns that are equal in the two rows of a pair, except the compared factor."""
CHOICES = ["topic", "first", "second", "working_set"]
"""Columns of a frame of pairs: the sentence's heading, the choices' names, the working set in words."""
POINT = {"of_workload": "for", "of_block": "at", "of_threads": "with"}
"""Column with a word for a part of a row's point -> preposition before such words."""
COMPARED = [
    "point", "instrument", "is_own", "is_comparable", "warnings", "unit", "n", "value", "min", "max", "band",
    *EQUAL, *POINT, "working_set", "printed_in", "loopback", "is_calm",
]  # fmt: skip
"""Columns of a table's rows that the pairs and their sentences use: all others are copied for each pair."""
INNER = {"Workloads": ("of_block", "of_threads"), "Block size": ("of_workload", "of_threads")}
"""Topic -> (column that a group of pairs shares, column that a part of the group also shares).

For topics that are not listed, these columns are ``of_workload`` and ``of_block``.
"""


# -- pairs of rows


def pairs_of_table(
    rows: pd.DataFrame, labels: Labels, compare: Sequence[Sequence[str]] = ()
) -> Iterator[pd.DataFrame]:
    """Yield the pairs of rows of each comparison in a table, in the order of the sentences.

    Args:
        rows: rows of one table that have a value, with the columns of ``add_words``, and with ``is_calm``:
            whether a row is neither wrong nor disturbed, so that it may be compared.
        labels: labels of the table.
        compare: pairs of workloads that are compared besides ``WORKLOADS``.
    """
    rows = add_speeds(rows[COMPARED])
    own = rows[rows["is_own"]]
    for topic, factor, first, second in choices_of(own, labels, compare):
        # Over loopback, netbench has both ends of one stream on two CPUs, and those of several streams on one.
        if factor == "concurrency" and labels.table.lower_is_better and own["loopback"].any():
            continue
        on = [name for name in EQUAL if name != factor]
        if factor == "block_bytes" and labels.table.lower_is_better:
            # The areas of LAT are chosen to be in different cache levels.
            on.remove("cache_level")
        pairs = paired(own[own[factor].eq(first)], own[own[factor].eq(second)], on)
        # Words that are equal in all pairs name the points. The first of the others names the two
        # choices, and all others are emptied below, so that they name no points.
        differing = [word for word in POINT if pairs[word].ne(pairs[f"{word}_other"]).any()]
        if not differing:
            continue
        word = differing[0]
        names = pairs[word].iloc[0], pairs[f"{word}_other"].iloc[0]
        if factor == "concurrency":
            names = labels.many(first), labels.many(second)
        # A layout may print two blocks as two workloads.
        heading = "Workloads" if word == "of_workload" else topic
        yield grouped(pairs.assign(**dict.fromkeys(differing, "")), heading, *names)
    yield from pairs_with_references(rows, labels.table)


def pairs_with_references(rows: pd.DataFrame, table: Table) -> Iterator[pd.DataFrame]:
    """Yield for each reference tool its rows in pairs with those of peakmark's kernel at the same points."""
    own = rows[rows["is_own"]]
    # A row with other settings than the kernel's (warning ``otherwise``) is no reference for it.
    is_compared = rows["is_comparable"] & ~rows["warnings"].str.contains(r"\botherwise\b")
    rows = rows.assign(is_calm=rows["is_calm"] & is_compared)
    for program in table.references:
        of_program = rows[rows["instrument"].eq(program.instrument)]
        if of_program.empty:
            continue
        pairs = paired(own, of_program, ["point"])
        yield grouped(pairs, "Reference", table.own.heading, program.heading)


def choices_of(
    own: pd.DataFrame, labels: Labels, compare: Sequence[Sequence[str]]
) -> Iterator[tuple[str, str, Any, Any]]:
    """Yield (topic, compared column, its first value, its second value) for each comparison.

    The compared values are pairs of workloads, neighbouring block sizes, neighbouring numbers of threads, and
    the most and the fewest threads. For blocks and threads, the first value is the larger one.

    Args:
        own: rows of peakmark's kernel.
        labels: labels of the table.
        compare: pairs of workloads that are compared besides ``WORKLOADS``.
    """
    for first, second in [*WORKLOADS[labels.table.subsystem], *compare]:
        if {first, second} <= set(own["workload"]):
            yield "Workloads", "workload", first, second
    for small, large in pairwise(sorted(own["block_bytes"].dropna().unique())):
        yield "Block size", "block_bytes", large, small
    counts = sorted(own["concurrency"].unique())
    pairs = [*pairwise(counts)]
    if len(counts) > 2:
        pairs.append((counts[0], counts[-1]))
    for fewer, more in pairs:
        yield f"{capitalised(labels.noun)}s", "concurrency", more, fewer


def add_words(rows: pd.DataFrame, labels: Labels) -> pd.DataFrame:
    """Add the words for the parts of each row's point, see ``POINT``, and for its working set."""
    lines = list(schema.lines(rows))
    return rows.assign(
        of_workload=[labels.workload(line) for line in lines],
        of_block=[labels.block(line) for line in lines],
        of_threads=[labels.threads(line) for line in lines],
        working_set=[labels.working_set(line) for line in lines],
    )


def add_speeds(rows: pd.DataFrame) -> pd.DataFrame:
    """Add ``slowest``, ``middle`` and ``fastest`` of each row: rates, or reciprocals of times."""
    is_time = rows["unit"].eq("s")
    return rows.assign(
        slowest=rows["min"].mask(is_time, 1 / rows["max"]),
        middle=rows["value"].mask(is_time, 1 / rows["value"]),
        fastest=rows["max"].mask(is_time, 1 / rows["min"]),
    )


def paired(first: pd.DataFrame, second: pd.DataFrame, on: Sequence[str]) -> pd.DataFrame:
    """Return the pairs of rows of two choices, and how far the ranges of their values are apart.

    The columns are those of the first choice, and these:

    - ``is_calm``: whether the first row may be compared. It may not if the bands (core-to-core times, see
      ``placements``) of the two rows show different placements of the CPUs.
    - ``n``: number of repetitions of the choice with fewer repetitions.
    - ``factor``: how many times as fast the first choice is.
    - ``gap``: (slowest of the first - fastest of the second) / larger range. It is positive only if
      every run of the first choice is faster than every run of the second.
    - ``gap_back``: the same with the choices exchanged.
    - ``arrangements``: logarithm of the number of ways to divide the values between the choices. If
      nothing differs, all ways are equally likely.
    - ``is_level``: whether all values of both choices differ by at most the factor ``LEAST_DIFFERENCE``.

    Args:
        first: rows of the first choice, with the columns of ``add_speeds``.
        second: rows of the second choice.
        on: columns that are equal in the two rows of a pair.
    """
    pairs = first.merge(second, on=list(on), suffixes=("", "_other"))
    pairs["is_calm"] &= may_be_one(pairs["band"], pairs["band_other"])
    # The larger of the ranges of the two choices.
    ranges = pairs["fastest"] - pairs["slowest"]
    larger = ranges.clip(lower=pairs["fastest_other"] - pairs["slowest_other"])
    counts = zip(pairs["n"], pairs["n_other"], strict=True)
    ways = [math.comb(n + n_other, n) for n, n_other in counts]
    # Over the values of both choices.
    slowest = pairs[["slowest", "slowest_other"]].min(axis=1)
    fastest = pairs[["fastest", "fastest_other"]].max(axis=1)
    return pairs.assign(
        n=pairs[["n", "n_other"]].min(axis=1),
        factor=pairs["middle"] / pairs["middle_other"],
        # 0/0: both choices have one and the same value.
        gap=((pairs["slowest"] - pairs["fastest_other"]) / larger).fillna(0.0),
        gap_back=((pairs["slowest_other"] - pairs["fastest"]) / larger).fillna(0.0),
        arrangements=np.log(np.array(ways, dtype=float)),
        is_level=fastest <= LEAST_DIFFERENCE * slowest,
    )


def grouped(pairs: pd.DataFrame, topic: str, first: str, second: str) -> pd.DataFrame:
    """Add the columns ``topic``, ``first``, ``second``, ``group`` and ``part`` to pairs of rows.

    Pairs of a group have equal nodes, working sets (``variant``) and cache levels. Their workload
    is equal too or, if workloads are compared, their block. Pairs of a part of a group are also
    equal in one more column (``INNER``).

    Args:
        pairs: pairs of one comparison, as ``paired`` returns them.
        topic: heading of their sentences.
        first: name of the first choice.
        second: name of the second choice.
    """
    shared, inner = INNER.get(topic, ("of_workload", "of_block"))
    group = pairs["node"]
    for name in ("variant", "cache_level", shared):
        group = group.str.cat(pairs[name], sep="/")
    return pairs.assign(topic=topic, first=first, second=second, group=group, part=pairs[inner])


def judged(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return the pairs of all tables with ``direction`` and ``certainty``.

    ``direction`` is 1 if the first choice is faster, -1 if the second is, 0 if they are level, and empty
    without a clear result. Each group of points (see ``grouped``) is judged as a whole. If a group has no
    clear result, each part of it is judged by itself. A pair with a row that is not calm is not judged.
    """
    key = ["table", *CHOICES, "group"]
    calm = pairs[pairs["is_calm"] & pairs["is_calm_other"]]
    groups = judge(calm, key, gaps=LEAST_GAPS)
    found = calm.join(groups[["direction", "certainty"]], on=key)
    is_open = found["direction"].isna()
    tested = int(groups["n"].ge(LEAST_TESTED).sum())
    # For a part of one or two points no gap is wide enough: only the p-value counts. The tests of the groups count
    # as tests too, so that the parts do not make false findings more frequent.
    no_gaps = dict.fromkeys(LEAST_GAPS, math.inf)
    parts = judge(calm[is_open], [*key, "part"], gaps=no_gaps, tested=tested)
    open_pairs = calm[is_open].join(parts[["direction", "certainty"]], on=[*key, "part"])
    return pd.concat([found[~is_open], open_pairs, pairs.drop(calm.index)]).sort_index()


def judge(
    pairs: pd.DataFrame, key: list[str], gaps: Mapping[int, float], tested: int = 0
) -> pd.DataFrame:
    """Return all groups of pairs with ``n``, ``direction`` and ``certainty``; the key is the index.

    ``direction`` is 1 if the first choice is faster, -1 if the second is. At every point of the
    group, the ranges of the two choices are then apart, and the values differ by more than
    ``LEAST_DIFFERENCE``. In addition, the gap between the ranges is large enough, or the p-value of
    a permutation test is at most ``CHANCE`` divided by the number of tested groups. Otherwise
    ``direction`` is 0 if all points are level (``is_level``), and NaN if not.

    A group with fewer than ``LEAST_TESTED`` repetitions is not tested: that the ranges are apart is
    enough, and ``certainty`` says so.

    Args:
        pairs: pairs of all tables.
        key: columns that a group shares.
        gaps: number of points -> smallest gap that suffices, see ``LEAST_GAPS``.
        tested: number of groups that were tested before, for the correction of ``CHANCE``.
    """
    groups = pairs.groupby(key, sort=False).agg(
        points=("point", "size"),
        n=("n", "min"),
        least=("factor", "min"),
        most=("factor", "max"),
        gap=("gap", "min"),
        gap_back=("gap_back", "min"),
        arrangements=("arrangements", "sum"),
        is_level=("is_level", "all"),
    )
    is_tested = groups["n"].ge(LEAST_TESTED)
    # Only two arrangements of the values separate the choices completely: one for each direction.
    # So p is 2 / (number of arrangements); as logarithms, because the product over many points is
    # huge.
    log_p = math.log(2) - groups["arrangements"]
    is_significant = log_p <= math.log(CHANCE / max(1, tested + is_tested.sum()))
    # With three points or more, any gap suffices.
    needed = groups["points"].map(gaps).fillna(0.0)
    # For each direction, the smallest gap and the smallest factor of the group decide. ``gap`` and
    # ``least`` are those of the first choice over the second, ``gap_back`` and 1 / ``most`` the
    # reverse (``paired``).
    is_faster = []
    for gap, factor in ((groups["gap"], groups["least"]), (groups["gap_back"], 1 / groups["most"])):
        is_sure = is_significant | gap.ge(needed) | ~is_tested
        is_faster.append(factor.gt(LEAST_DIFFERENCE) & gap.gt(0) & is_sure)
    direction = np.select([*is_faster, groups["is_level"]], [1.0, -1.0, 0.0], np.nan)
    certainty = groups["n"].map(CERTAINTY).fillna(TESTED_WORDS)
    return groups.assign(direction=direction, certainty=certainty)


# -- sentences


def sentences(table: Table, pairs: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield a line of ``findings`` for each comparison and result; groups with the same result share it.

    Args:
        table: table of the pairs.
        pairs: pairs of the table, as ``judged`` returns them.
    """
    # Where workloads are compared, ``of_workload`` is empty: the workloads are the choices.
    workloads = pairs[pairs["of_workload"].ne("")].drop_duplicates("of_workload")
    for _, every in pairs.groupby(CHOICES, sort=False):
        clear = every.dropna(subset="direction")
        for _, same in clear.groupby(["direction", "certainty"], sort=False):
            yield sentence(table, same, every, workloads)


def sentence(
    table: Table, pairs: pd.DataFrame, every: pd.DataFrame, workloads: pd.DataFrame
) -> dict[str, Any]:
    """Return the line of ``findings`` for pairs with the same result.

    Args:
        table: table of the pairs.
        pairs: pairs with the same result.
        every: all pairs with the same choices, whatever their result.
        workloads: one pair for each workload of the table.
    """
    pair = pairs.iloc[0]
    better, worse, factors = pair["first"], pair["second"], pairs["factor"]
    if pair["direction"] < 0:
        better, worse, factors = worse, better, 1 / factors
    where = covered_points(pairs, every, workloads)
    if pair["certainty"] != TESTED_WORDS:
        where += f", {pair['certainty']}"
    if pair["direction"] == 0:
        text = f"{better} and {worse} are level{where}"
    elif table.lower_is_better:
        text = f"{worse} {verb(worse, 'takes', 'take')} {times(factors)} as long as {better}{where}"
    else:
        text = f"{better} {verb(better, 'is', 'are')} {times(factors)} as fast as {worse}{where}"
    if pair["working_set"]:
        text = f"{pair['working_set']}, {text}"
    known = pd.concat([pairs["band"], pairs["band_other"]]).dropna()
    if placements := sorted({distance_of(band) for band in known}):
        text += f" ({listed(placements)}, where a remark says so)"
    return {
        "topic": pair["topic"],
        "better": better,
        "worse": worse,
        "factor_low": factors.min(),
        "factor_high": factors.max(),
        "certainty": pair["certainty"] if pair["direction"] else "level",
        "points": pairs["point"],
        "text": f"{capitalised(text)}.",
    }


def covered_points(pairs: pd.DataFrame, every: pd.DataFrame, workloads: pd.DataFrame) -> str:
    """Return the part of a sentence that says at which points it holds.

    Examples are `` at all 7 points`` and `` for RS at 64 KiB with 1 thread``.
    If ``every`` has only some of the table's workloads, they are named. Arguments: as for ``sentence``.
    """
    if len(pairs) == len(every) > 2:
        of_some = words_for(every.drop_duplicates("of_workload"), workloads, ["of_workload"])
        return f"{of_some} at all {len(every)} points"
    # One or two points are named in full: no pair is left from which they need to be distinguished.
    if len(every) <= 2:
        return words_for(pairs, every.head(0), [*POINT])
    return words_for(pairs, every, [*POINT])


def words_for(pairs: pd.DataFrame, every: pd.DataFrame, columns: Sequence[str]) -> str:
    """Return the words for some pairs, such as `` for RS, for WS at 64 KiB``; empty if they are all pairs.

    Args:
        pairs: the pairs to name.
        every: all pairs, from which the words distinguish ``pairs``.
        columns: columns of ``POINT`` that may be named.
    """
    if not columns or len(pairs) == len(every):
        return ""
    column, *inner = columns
    # Words of this column that the same words of the inner columns follow are listed together.
    names: dict[str, list[str]] = defaultdict(list)
    for word, of_word in pairs.groupby(column, sort=False):
        inner_words = words_for(of_word, every[every[column].eq(word)], inner)
        names[inner_words].append(str(word))
    texts = []
    for inner_words, words in names.items():
        text = ""
        # A word is empty if its column names the choices, or if the points have no such part.
        if any(words):
            # A word for threads may be ``on 8 cores``.
            text = " " if words[0].startswith("on ") else f" {POINT[column]} "
        texts.append(text + listed(words) + inner_words)
    return ",".join(texts)


def verb(subject: str, singular: str, plural_form: str) -> str:
    """Return the form of a verb for the name of a choice, which may be plural, such as ``2 threads``."""
    return plural_form if subject[:1].isdigit() and subject.endswith("s") else singular


def times(factors: pd.Series) -> str:
    """Return ``2.1 times`` or ``1.07 to 130 times``."""
    # ``.3g`` would write 999.5 as 1e+03.
    texts = [
        f"{factor:.3g}" if factor < 999.5 else f"{factor:.0f}"
        for factor in (factors.min(), factors.max())
    ]
    return f"{value_range(*texts)} times"
