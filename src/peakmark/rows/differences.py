"""Compare rows that differ in one factor, and state which choice is faster.

Two choices, such as RS and RR, are compared at points that are otherwise equal. These pairs of rows form
*groups* that share the working set and the cache level. A difference is stated if it holds at every
point of a group: all values of one choice are better than all of the other, the medians differ by more
than 5 %, and the difference is significant. If the points were measured once or twice, the factor is
stated with these words. docs/method.md says how often a stated difference is false.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from peakmark.formatting import capitalised, size
from peakmark.rows import schema
from peakmark.rows.labels import Labels
from peakmark.rows.runs import ROW
from peakmark.tools.tables import Program

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
"""Number of repetitions -> what is said of a difference that is not tested."""
EQUAL = ("node", "workload", "variant", "cache_level", "block_bytes", "concurrency")
"""Columns that are equal in the two rows of a pair, except the compared factor."""
CHOICES = ["topic", "first", "second", "working_set"]
"""Columns of pairs: heading of the sentence, names of the choices, and the working set in words."""


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


def pairs_of_table(rows: pd.DataFrame, speeds: pd.DataFrame, labels: Labels) -> pd.DataFrame:
    """Return the compared pairs of rows of a table, in the order of the sentences.

    Args:
        rows: rows of one table that may be compared.
        speeds: see ``speeds_of_rows``.
        labels: labels of the table.
    """
    known = rows.drop(columns="n").join(speeds, on=ROW)
    own = known[known["is_own"]]
    frames = [pairs_of(each, own, labels) for each in comparisons_of(own, labels)]
    for program in labels.table.references:
        frames.append(pairs_with_reference(known, labels, program))
    frames = [frame for frame in frames if len(frame)]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()


def comparisons_of(own: pd.DataFrame, labels: Labels) -> Iterator[Comparison]:
    """Yield the comparisons of workloads, of neighbouring block sizes, and of most and fewest threads."""
    table = labels.table
    for first, second in WORKLOADS[table.subsystem]:
        names = (table.workload_label(first), table.workload_label(second))
        yield Comparison("Workloads", "workload", (first, second), names)
    for small, large in pairwise(sorted(own["block_bytes"].dropna().unique())):
        names = (size(int(large)), size(int(small)))
        yield Comparison("Block size", "block_bytes", (large, small), names)
    counts = own["concurrency"]
    if counts.nunique() > 1:
        choices = (counts.max(), counts.min())
        names = (labels.many(int(counts.max())), labels.many(int(counts.min())))
        yield Comparison(f"{capitalised(labels.noun)}s", "concurrency", choices, names)


def pairs_of(comparison: Comparison, own: pd.DataFrame, labels: Labels) -> pd.DataFrame:
    """Return the pairs of rows that differ in the compared factor alone, with the columns of a pair."""
    factor = comparison.factor
    first, second = (own[own[factor].eq(choice)] for choice in comparison.choices)
    keys = [name for name in EQUAL if name != factor]
    pairs = first.merge(second, on=keys, suffixes=("", "_other"))
    # A group shares the block if workloads are compared, else the workload.
    shared = "block_bytes" if factor == "workload" else "workload"
    return described(pairs, labels, shared).assign(
        topic=comparison.topic,
        first=comparison.names[0],
        second=comparison.names[1],
        factor=pairs["middle"] / pairs["middle_other"],
    )


def pairs_with_reference(rows: pd.DataFrame, labels: Labels, program: Program) -> pd.DataFrame:
    """Return the pairs of peakmark's kernel and a reference, with the columns of a pair.

    The factor comes only from the rounds in which both programs ran: in another round the machine may
    have been slower or faster.
    """
    is_compared = rows["instrument"].eq(program.instrument) & rows["is_comparable"]
    # A row with other settings than the kernel's is no reference for it.
    is_compared &= ~rows["warnings"].str.split().map(lambda codes: "otherwise" in codes)
    own = rows[rows["is_own"]]
    pairs = rows[is_compared].merge(own, on="point", suffixes=("_other", ""))
    # ``ratio`` is the kernel's value over the reference's: the median over their common rounds.
    ratio = pairs["ratio_other"]
    return described(pairs, labels, "workload").assign(
        topic="Reference",
        first=labels.table.own.heading,
        second=program.heading,
        factor=1 / ratio if labels.table.lower_is_better else ratio,
    )


def described(pairs: pd.DataFrame, labels: Labels, shared: str) -> pd.DataFrame:
    """Return the gaps between the ranges of pairs, and the place of each pair in words.

    Args:
        pairs: columns of the first row, and with ``_other`` those of the second.
        labels: labels of the table.
        shared: column that a group shares, apart from node, variant and cache level.
    """
    of_group = pairs.groupby(["node", "variant", "cache_level", shared], sort=False, dropna=False)
    label = labels.block if shared == "block_bytes" else labels.workload
    places = []
    for line in schema.lines(pairs):
        places.append((line.point, label(line), labels.working_set(line)))
    named = pd.DataFrame(places, columns=["point", "shared", "working_set"], index=pairs.index)
    return gaps_of(pairs).join(named).assign(group=of_group.ngroup())


def gaps_of(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return how far the ranges of the two choices of each pair are apart.

    The columns are:

    - ``n``: number of repetitions of the choice with fewer repetitions.
    - ``gap``: gap between the ranges, as a multiple of the larger range, if the first choice is faster;
      negative if the ranges overlap.
    - ``gap_back``: the same if the second choice is faster.
    - ``arrangements``: logarithm of the number of ways to divide the values between the choices. If
      nothing differs, all ways are equally likely.
    - ``is_level``: whether all values of both choices differ by at most ``LEAST_DIFFERENCE``.

    Args:
        pairs: columns ``n``, ``slowest`` and ``fastest``, and the same with ``_other``.
    """
    first, second = pairs["n"], pairs["n_other"]
    ranges = pd.DataFrame(
        {
            "first": pairs["fastest"] - pairs["slowest"],
            "second": pairs["fastest_other"] - pairs["slowest_other"],
        }
    )
    larger = ranges.max(axis=1)
    slowest = pairs[["slowest", "slowest_other"]].min(axis=1)
    fastest = pairs[["fastest", "fastest_other"]].max(axis=1)
    counts = zip(first, second, strict=True)
    return pd.DataFrame(
        {
            "n": first.where(first.le(second), second),
            "gap": ((pairs["slowest"] - pairs["fastest_other"]) / larger).fillna(0.0),
            "gap_back": ((pairs["slowest_other"] - pairs["fastest"]) / larger).fillna(0.0),
            "arrangements": [
                math.log(math.comb(int(one + other), int(one))) for one, other in counts
            ],
            "is_level": fastest.le(LEAST_DIFFERENCE * slowest),
        }
    )


def judged(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return the pairs of all tables in the order of their groups, with ``direction`` and ``certainty``.

    ``direction`` is 1 if the first choice is faster, -1 if the second is, 0 if they are level, and empty
    without a clear result. ``total`` is the number of pairs that have the same choices.

    At each point of a group the values of both choices must not overlap, and the medians must differ by
    more than ``LEAST_DIFFERENCE``. The difference must also be significant: either the p-value of a
    permutation test is at most ``CHANCE`` divided by the number of tested groups, or the gap between the
    ranges reaches ``GAPS``.
    """
    by_group = pairs.groupby(["table", *CHOICES, "group"], sort=False)
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
    number = by_group.ngroup()
    found = groups[["direction", "certainty"]].iloc[number].set_index(pairs.index)
    total = pairs.groupby(["table", *CHOICES])["point"].transform("size")
    judged_pairs = pairs.assign(
        direction=found["direction"], certainty=found["certainty"], total=total
    )
    return judged_pairs.loc[number.sort_values(kind="stable").index]
