"""Two campaigns, or a campaign and published results, row by row, with the text that says it."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from peakmark import statistics
from peakmark.analysis import comparability, datasets
from peakmark.analysis.comparability import Mismatch
from peakmark.analysis.datasets import ComparedPoint, Dataset, DatasetRow, describe
from peakmark.errors import ConfigError
from peakmark.formatting import listed, natural, plural, significant
from peakmark.messages import ORDER, merge, message
from peakmark.tools.tables import BY_NAME, TABLES, Table

Verdict = Literal["better", "worse", "no difference shown", "cannot tell", "not alike"]
VERDICTS: tuple[Verdict, ...] = (
    "better",
    "worse",
    "no difference shown",
    "cannot tell",
    "not alike",
)
CLAIMS: tuple[Verdict, ...] = ("better", "worse")
TOLERANCE = 0.03
"""By so much a row may differ without a verdict: campaigns of one machine at two times seldom
differ by less.
"""
IN_TURN = 0.01
"""The same for campaigns that were measured in turn, which share their time."""


@dataclass(frozen=True)
class Judgement:
    """The ratio after / before with its interval, above 1 is more, which may be worse; and what
    follows from it.

    better, worse         the whole interval of the ratio lies beyond 1 by more than a tolerance,
                          and the ranks are as uneven as like and like would rarely be: intervals of
                          so few values alone are too bold
    no difference shown   not both; a difference that is smaller than the interval may be there
    cannot tell           too few values: even wholly apart they would not be rarer than chance
    not alike             something else was asked
    """

    ratio: float
    low: float
    high: float
    verdict: Verdict


@dataclass(frozen=True)
class Comparison:
    """One row on both sides.

    warnings   how the figure of A and that of B are in doubt: ``wrong``, ``unsure`` or nothing
    tolerance  the share by which the row may differ without a verdict
    pairs      before and after of each round, where both were measured in turn; empty where they
               were not
    left_out   how many repetitions are not among them
    differ     what was asked otherwise
    """

    point: ComparedPoint
    before: tuple[float, ...]
    after: tuple[float, ...]
    judged: Judgement
    warnings: tuple[str, str] = ("", "")
    tolerance: float = 0.0
    pairs: tuple[tuple[float, float], ...] = ()
    left_out: int = 0
    differ: tuple[Mismatch, ...] = ()

    @property
    def table(self) -> Table:
        """The table to which the row belongs."""
        return BY_NAME[self.point.table]

    @property
    def verdict(self) -> Verdict:
        """What became of the row."""
        return self.judged.verdict


def judge(
    before: Sequence[float],
    after: Sequence[float],
    lower_is_better: bool,
    confidence: float = 0.95,
    tolerance: float = 0.0,
) -> Judgement:
    """Of two samples, by the ratio of their medians."""
    interval = statistics.ratio_interval(before, after, confidence)
    if not statistics.can_differ(len(before), len(after), confidence):
        return Judgement(*interval, "cannot tell")
    if statistics.rank_test([(before, after)]) > 1 - confidence:
        return Judgement(*interval, "no difference shown")
    return _beyond(*interval, lower_is_better, tolerance)


def judge_pairs(
    pairs: Sequence[tuple[float, float]],
    lower_is_better: bool,
    confidence: float = 0.95,
    tolerance: float = 0.0,
) -> Judgement:
    """Of what was measured in turn: the interval is of the median of the pairs' own ratios, by
    order statistics.
    """
    if len(pairs) < 2:
        return Judgement(math.nan, math.nan, math.nan, "cannot tell")
    ratio, low, high, enough = datasets.pair_ratio(pairs, confidence)
    if not enough:
        return Judgement(ratio, low, high, "cannot tell")
    return _beyond(ratio, low, high, lower_is_better, tolerance)


def _beyond(
    ratio: float, low: float, high: float, lower_is_better: bool, tolerance: float
) -> Judgement:
    verdict: Verdict = "no difference shown"
    if low > 1 + tolerance or high < 1 - tolerance:
        verdict = "worse" if (low > 1) == lower_is_better else "better"
    return Judgement(ratio, low, high, verdict)


def in_turn(before: Dataset, after: Dataset) -> bool:
    """Whether the two campaigns were measured in turn, by what their plans say."""
    return bool(before.beside) and (before.beside, after.beside) == (after.name, before.name)


def drifts(before: Dataset, after: Dataset, level: float) -> float:
    """The share by which a table may have moved between two campaigns, by how tables moved within
    each.

    Each table of each side is one look at how far the machine moves in half a campaign. Between the
    campaigns it moves as in a walk by steps of chance, sqrt(2) times as far; Student's t of so few
    looks, divided among the tables, allows for how little they tell.
    """
    looks = [*before.drift.values(), *after.drift.values()]
    if not looks:
        return 0.0
    typical = math.sqrt(sum(look * look for look in looks) / len(looks))
    tables = max(1, len({*before.drift, *after.drift}))
    return math.expm1(
        statistics.student_quantile(level / tables, len(looks)) * math.sqrt(2) * typical
    )


def compare(
    before: Dataset,
    after: Dataset,
    confidence: float = 0.95,
    tolerance: float | None = None,
    repeat: Dataset | None = None,
) -> tuple[list[Comparison], int, int]:
    """(rows that both have in the order of the tables, rows that only ``before`` has, rows that
    only ``after`` has).

    A claim must hold by itself, see ``judge``, and stand among all rows that are judged: the false
    discovery rate over them is at most 1 - ``confidence``. ``repeat`` is a second campaign of what
    ``before`` measured: how far the two differ is the drift that a row may have without a verdict.
    Campaigns that were measured in turn are judged by pair: they have no drift between them, and
    what differs in what was asked is what is compared.
    """
    bare = before.bare or after.bare
    one_node = not bare and len(before.nodes) == len(after.nodes) == 1
    old, new = (_named(side, bare, one_node) for side in (before, after))
    shared = sorted(old.keys() & new.keys(), key=_place)
    if in_turn(before, after):
        moves = dict.fromkeys(shared, IN_TURN if tolerance is None else tolerance)
    else:
        drift = {} if repeat is None else _between(before, repeat)
        moved = max(
            TOLERANCE if tolerance is None else tolerance, drifts(before, after, 1 - confidence)
        )
        moves = {point: max(moved, drift.get(point.table, 0.0)) for point in shared}
    comparisons = [
        _compared(before, after, point, old[point], new[point], confidence, moves[point])
        for point in shared
    ]
    return (
        _standing(comparisons, confidence),
        len(old.keys() - new.keys()),
        len(new.keys() - old.keys()),
    )


def _compared(
    before: Dataset,
    after: Dataset,
    point: ComparedPoint,
    old: DatasetRow,
    new: DatasetRow,
    confidence: float,
    allowed: float,
) -> Comparison:
    """A row of two campaigns: measured at different times, or in turn, when of a round that has one
    half only nothing is judged.
    """
    lower, left_out = BY_NAME[point.table].lower_is_better, 0
    pairs: tuple[tuple[float, float], ...] = ()
    values, others = old.values, new.values
    differ = comparability.differences(old.settings, new.settings)
    if in_turn(before, after):
        pairs = tuple(datasets.pairs(old.turns, new.turns))
        judged = judge_pairs(pairs, lower, confidence, allowed)
        left_out = max(len(values), len(others)) - len(pairs)
        values, others = zip(*pairs, strict=True) if pairs else (values, others)
    else:
        differ += comparability.mixing(old.unequal_nodes, new.unequal_nodes)
        judged = judge(values, others, lower, confidence, allowed)
        judged = replace(judged, verdict="not alike") if differ else judged
    return Comparison(
        point,
        values,
        others,
        judged,
        (old.warning, new.warning),
        allowed,
        pairs,
        left_out,
        tuple(differ),
    )


def _named(side: Dataset, bare: bool, one_node: bool) -> dict[ComparedPoint, DatasetRow]:
    """What a side has by the names of points in the comparison: nodes do not matter where each side
    has one.
    """
    if one_node:
        return {replace(point, node=""): entry for point, entry in side.entries.items()}
    if bare and not side.bare:
        return {name: side.entries[point] for name, point in datasets.bare_points(side).items()}
    return dict(side.entries)


def _between(before: Dataset, repeat: Dataset) -> dict[str, float]:
    """By table, the share by which 19 of 20 rows differ at most between a campaign and its repeat."""
    shares: dict[str, list[float]] = {}
    for point, entry in before.entries.items():
        if point in repeat.entries:
            ratio = statistics.median(repeat.entries[point].values) / statistics.median(
                entry.values
            )
            shares.setdefault(point.table, []).append(abs(math.log(ratio)))
    return {
        table: sorted(of_table)[math.ceil(0.95 * len(of_table)) - 1]
        for table, of_table in shares.items()
    }


def _standing(comparisons: Sequence[Comparison], confidence: float) -> list[Comparison]:
    """The comparisons, without the claims that chance would bring among so many rows."""
    judged = [
        place
        for place, row in enumerate(comparisons)
        if row.verdict not in ("cannot tell", "not alike")
    ]
    chances = [
        _chance(comparisons[place]) if comparisons[place].verdict in CLAIMS else 1.0
        for place in judged
    ]
    stands = dict(zip(judged, statistics.discoveries(chances, 1 - confidence), strict=True))
    return [
        replace(row, judged=replace(row.judged, verdict="no difference shown"))
        if row.verdict in CLAIMS and not stands[place]
        else row
        for place, row in enumerate(comparisons)
    ]


def _chance(comparison: Comparison) -> float:
    return (
        datasets.pair_p_value(comparison.pairs)
        if comparison.pairs
        else statistics.welch(comparison.before, comparison.after)
    )


def _place(point: ComparedPoint) -> tuple[object, ...]:
    table = BY_NAME[point.table]
    instruments = [series.instrument for series in table.series]
    # A word mostly means more threads than any number beside it.
    count = sys.maxsize if point.word else point.concurrency
    return (
        TABLES.index(table),
        natural(point.node),
        instruments.index(point.instrument),
        *table.order(point.workload, point.variant, count, point.block),
        point.word,
    )


def report(
    before: Dataset,
    after: Dataset,
    confidence: float = 0.95,
    tolerance: float | None = None,
    repeat: Dataset | None = None,
) -> tuple[str, Counter[Verdict]]:
    """The comparison as text, and how often each verdict was given.

    Errors: ConfigError when the two have no row in common.
    """
    comparisons, only_before, only_after = compare(before, after, confidence, tolerance, repeat)
    if not comparisons:
        raise ConfigError(
            f"{before.name} and {after.name} have no row in common: they measured other workloads, blocks or thread counts"
        )
    counts: Counter[Verdict] = Counter(comparison.verdict for comparison in comparisons)
    width = max(len(describe(comparison.point)) for comparison in comparisons)
    lines = _first(before, after, comparisons)
    turned = in_turn(before, after)
    what = "measured in turn, median of the rounds' ratios" if turned else "ratio of medians"
    how = "order statistics" if turned else "bootstrap"
    lines += [
        f"A {before.name}   B {after.name}   {what} B / A, {confidence:.0%} interval ({how})",
        "",
    ]
    remarked = _remarked(before, after, comparisons)
    for row, comparison in enumerate(comparisons):
        marks = [str(number) for number, rows in enumerate(remarked.values(), 1) if row in rows]
        lines.append(_line(comparison, width) + (f" [{', '.join(marks)}]" if marks else ""))
    given = [
        f"{counts[verdict]} {verdict}"
        for verdict in VERDICTS
        if counts[verdict] or verdict != "not alike"
    ]
    lines += ["", "; ".join(given)]
    lines += _chance_lines(comparisons, confidence, turned)
    doubtful = sum(any(comparison.warnings) for comparison in comparisons)
    if doubtful:
        which = "row is" if doubtful == 1 else "rows are"
        lines.append(
            f"{doubtful} {which} wrong or unsure: see the notes in the reports before believing a verdict"
        )
    lines += [
        f"[{number}] {side} notes on {plural(len(rows), 'row')}: {text}"
        for number, ((side, text), rows) in enumerate(remarked.items(), 1)
    ]
    if counts["cannot tell"]:
        lines.append(
            f"cannot tell: too few values; {statistics.ENOUGH} repetitions on both sides are enough"
        )
    left_out = sum(comparison.left_out for comparison in comparisons)
    if left_out:
        lines.append(
            f"{plural(left_out, 'repetition')} left out: measured without the other side right beside"
        )
    if only_before or only_after:
        lines.append(
            f"not compared: {plural(only_before, 'row')} that only A has, {plural(only_after, 'row')} that only B has"
        )
    return "\n".join(lines), counts


def _first(before: Dataset, after: Dataset, comparisons: Sequence[Comparison]) -> list[str]:
    """What the two sides did not have alike: said before anything else."""
    asked = comparability.summary([comparison.differ for comparison in comparisons])
    if (
        len(before.nodes) == len(after.nodes) == 1
        and before.nodes != after.nodes
        and not (before.bare or after.bare)
    ):
        asked.append(str(comparability.Difference("node", before.nodes[0], after.nodes[0])))
    differ = [*asked, *map(str, comparability.differences(before.machine, after.machine))]
    return [f"not the same on both sides: {'; '.join(differ)}", ""] if differ else []


def _remarked(
    before: Dataset, after: Dataset, comparisons: Sequence[Comparison]
) -> dict[tuple[str, str], list[int]]:
    """(A or B, what published results note on values) -> the places of the rows that have it:
    footnotes, in the order of the rows; notes that differ in their numbers alone are one.
    """
    remarks = [
        (row, name, message("remark", remark=text))
        for row, comparison in enumerate(comparisons)
        for name, side in (("A", before), ("B", after))
        for text in (side.entries[comparison.point].remarks if side.bare else ())
    ]
    merged = merge(remark for _, _, remark in remarks)
    rows: dict[tuple[str, str], list[int]] = {}
    for row, name, remark in remarks:
        rows.setdefault((name, merged[remark].message.fact), []).append(row)
    return rows


def _chance_lines(comparisons: Sequence[Comparison], confidence: float, turned: bool) -> list[str]:
    judged = sum(
        comparison.verdict not in ("cannot tell", "not alike") for comparison in comparisons
    )
    if not judged:
        return []
    lines = [
        f"{judged} rows were judged together: if nothing had changed, chance alone would call any of them better or worse in"
        f" {significant(100 * (1 - confidence), 2)} % of comparisons"
    ]
    if turned:
        lines.append(
            "both were measured in turn, round by round: what the machine did meanwhile is in both and cancels out"
        )
    allowed = sorted({comparison.tolerance for comparison in comparisons})
    more = (
        f" to {allowed[-1]:.1%}, by table, as far as rows drift meanwhile"
        if len(allowed) > 1
        else ""
    )
    return [*lines, f"differences below {allowed[0]:.1%}{more} get no verdict (--tolerance)"]


def _line(comparison: Comparison, width: int) -> str:
    old, new = (
        statistics.median(values) * comparison.table.factor
        for values in (comparison.before, comparison.after)
    )
    unit = comparison.table.shown or comparison.table.quantity
    judged = comparison.judged
    interval = (
        f"{judged.low:.3f} to {judged.high:.3f}"
        if min(len(comparison.before), len(comparison.after)) > 1
        else "no interval"
    )
    values = f"{significant(old):>10} -> {significant(new):>10} {unit:<8}"
    counts = f"n {len(comparison.before)}, {len(comparison.after)}"
    doubtful = f" ({_doubtful(comparison.warnings)})" if any(comparison.warnings) else ""
    return f"{describe(comparison.point):<{width}}  {values} {judged.ratio:7.3f} ({interval})  {counts}  {judged.verdict}{doubtful}"


def _doubtful(warnings: tuple[str, str]) -> str:
    """``unsure: A and B``, ``wrong: A; unsure: B``."""
    by_level = {
        level: [side for side, warning in zip("AB", warnings, strict=True) if warning == level]
        for level in ORDER
    }
    return "; ".join(
        f"{level}: {listed(datasets)}" for level, datasets in by_level.items() if datasets
    )
