"""Two campaigns row by row, with the text that says it."""

from __future__ import annotations

import math
import shlex
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from peakmark import statistics
from peakmark.analysis import comparability, datasets
from peakmark.analysis.datasets import ComparedPoint, Dataset, DatasetRow, describe
from peakmark.errors import ConfigError
from peakmark.formatting import duration, significant
from peakmark.messages import Message, message
from peakmark.resources import program
from peakmark.statistics import Change
from peakmark.tools.tables import BY_NAME, Table

CLAIMS = ("better", "worse")
DRIFTS = ("better or drift", "worse or drift")
VERDICTS = (*CLAIMS, *DRIFTS, "no difference shown", "cannot tell", "not alike")
UNKNOWN = Change(math.nan, math.nan, math.nan)
TOLERANCE = 0.03
"""By so much a row may differ without a verdict: campaigns of one machine at two times seldom
differ by less.
"""
IN_TURN = 0.01
"""The same for campaigns that were measured in turn, which share their time."""
TIMES = 1.5
"""From this factor on a ratio reads ``1.7 times faster``, below it ``12 % faster``."""
LEVEL = 0.5
"""Changes below so many per cent read ``level``."""
Rounds = Mapping[int, float]
"""Number of a repetition -> its value."""


@dataclass(frozen=True)
class Comparison:
    """One row on both sides.

    Attributes:
        rounds: the values of A and B by repetition; of campaigns that were measured in turn the
            ratios of the pairs, in place of A's.
        left_out: repetitions measured in turn that are no part of a pair.
        warnings: how the figure of A and that of B are in doubt: ``wrong``, ``unsure`` or nothing.
        differ: what was asked or recorded otherwise, by title.
        change: from A to B; above 0 is more, which may be worse.
        specific: the same without what the other rows of the table have in common.
        verdict: ``better`` and ``worse``: the difference is larger than the tolerance and than
            chance brings among all rows; at two times also from the other rows of the table.
            ``better or drift``, ``worse or drift``: the table moved alike between two times.
            ``cannot tell``: too few values. ``not alike``: something in ``differ`` matters.
    """

    point: ComparedPoint
    before: tuple[float, ...]
    after: tuple[float, ...]
    rounds: tuple[Rounds, Rounds]
    left_out: int = 0
    warnings: tuple[str, str] = ("", "")
    differ: Mapping[str, Message] = field(default_factory=dict)
    change: Change = UNKNOWN
    specific: Change = UNKNOWN
    verdict: str = "cannot tell"

    @property
    def table(self) -> Table:
        """The table to which the row belongs."""
        return BY_NAME[self.point.table]

    @property
    def ratio(self) -> float:
        """After / before, as the mean of the logarithms."""
        return math.exp(self.change.mean)


def in_turn(before: Dataset, after: Dataset) -> bool:
    """Whether the two campaigns were measured in turn, by what their plans say."""
    return bool(before.beside) and (before.beside, after.beside) == (after.name, before.name)


def is_apart(before: Dataset, after: Dataset) -> bool:
    """Whether one campaign was measured before the other, so that time may have made a difference;
    also where the times are not known.
    """
    if in_turn(before, after):
        return False
    first, second = before.starts, after.starts
    return not (
        first
        and second
        and second[0] <= statistics.median(first) <= second[-1]
        and first[0] <= statistics.median(second) <= first[-1]
    )


def compare(
    before: Dataset,
    after: Dataset,
    confidence: float = 0.95,
    tolerance: float | None = None,
    changed: Sequence[str] = (),
) -> tuple[list[Comparison], int, int]:
    """The rows of two datasets that both have, each with its verdict.

    Args:
        before: side A.
        after: side B.
        confidence: of the intervals; the false discovery rate over all rows is at most the rest.
        tolerance: the share by which a row may differ without a verdict; None for the usual one.
        changed: titles of facts that differ on purpose: they stop no verdict.

    Returns:
        The comparisons in the order of A, the number of rows that only ``before`` has, and
        of those that only ``after`` has.
    """
    one_node = len(before.nodes) == len(after.nodes) == 1
    old, new = (_named(side, one_node) for side in (before, after))
    turned, apart = in_turn(before, after), is_apart(before, after)
    matched = {
        point: _matched(point, old[point], new[point], turned, changed)
        for point in old
        if point in new
    }
    groups: dict[tuple[str, ...], list[Comparison]] = defaultdict(list)
    for point, row in matched.items():
        like = (point.table, point.percentile, point.variant, point.node, row.verdict)
        groups[like].append(row)
    for members in groups.values():
        first, second = (
            np.log(pd.DataFrame([row.rounds[side] for row in members], dtype=float).to_numpy())
            for side in (0, 1)
        )
        changes = specific = statistics.changes(first, second, confidence)
        if apart:
            specific = statistics.changes(*statistics.less_others(first, second), confidence)
        for row, change, other in zip(members, changes, specific, strict=True):
            matched[row.point] = replace(row, change=change, specific=other)
    judged = _judged([*matched.values()], usual_tolerance(before, after, tolerance), 1 - confidence)
    return judged, len(old.keys() - new.keys()), len(new.keys() - old.keys())


def usual_tolerance(before: Dataset, after: Dataset, tolerance: float | None) -> float:
    """The share by which a row may differ without a verdict."""
    usual = IN_TURN if in_turn(before, after) else TOLERANCE
    return usual if tolerance is None else tolerance


def _matched(
    point: ComparedPoint, old: DatasetRow, new: DatasetRow, turned: bool, changed: Sequence[str]
) -> Comparison:
    """A row without a verdict, unless the two sides are not alike."""
    differ = comparability.differences(old.settings, new.settings)
    before, after, left_out = old.values, new.values, 0
    rounds: tuple[Rounds, Rounds] = old.by_round, new.by_round
    if turned:
        pairs = datasets.pairs(old.turns, new.turns)
        left_out = max(len(before), len(after)) - len(pairs)
        before, after = zip(*pairs, strict=True) if pairs else (before, after)
        rounds = {number: other / value for number, (value, other) in enumerate(pairs)}, {}
    else:
        differ |= comparability.mixing(old.unequal_nodes, new.unequal_nodes)
    stops = not turned and not differ.keys() <= set(changed)
    return Comparison(
        point,
        before,
        after,
        rounds,
        left_out,
        (old.warning, new.warning),
        differ,
        verdict="not alike" if stops else "cannot tell",
    )


def _judged(rows: Sequence[Comparison], tolerance: float, level: float) -> list[Comparison]:
    """The rows with their verdicts, of which a share of ``level`` may be false."""
    judged = [row for row in rows if row.verdict == "cannot tell" and row.change.p >= 0]
    limit = math.log1p(tolerance)
    chances, specific = [], []
    for row in judged:
        both = (row.change, row.specific)
        sign = math.copysign(1.0, row.change.mean)
        chance, alone = (each.p if sign * each.mean > limit else 1.0 for each in both)
        chances.append(chance)
        specific.append(max(chance, alone))
    found = statistics.discoveries(chances, level)
    claimed = statistics.discoveries(specific, level)
    verdicts = {}
    for row, is_found, is_claimed in zip(judged, found, claimed, strict=True):
        worse = (row.change.mean > 0) == row.table.lower_is_better
        verdict = (CLAIMS if is_claimed else DRIFTS)[worse]
        verdicts[row.point] = verdict if is_found else "no difference shown"
    return [replace(row, verdict=verdicts.get(row.point, row.verdict)) for row in rows]


def _named(side: Dataset, one_node: bool) -> Mapping[ComparedPoint, DatasetRow]:
    """What a side has by the names of points: nodes do not matter where each side has one."""
    if not one_node:
        return side.entries
    return {replace(point, node=""): entry for point, entry in side.entries.items()}


def report(
    before: Dataset,
    after: Dataset,
    confidence: float = 0.95,
    tolerance: float | None = None,
    changed: Sequence[str] = (),
) -> tuple[str, Counter[str]]:
    """The comparison as text, and how often each verdict was given; arguments as for ``compare``.

    Raises:
        ConfigError: the two have no row in common, or a fact in ``changed`` does not differ.
    """
    rows, *only = compare(before, after, confidence, tolerance, changed)
    if not rows:
        raise ConfigError(
            f"{before.name} and {after.name} have no row in common: they measured other workloads, blocks or thread counts"
        )
    percent = round(100 * confidence, 6)
    width = max(len(describe(row.point)) for row in rows)
    lines = [each.text for each in _facts(before, after, rows, changed)]
    head = message("two-sides", first=before.name, second=after.name, percent=percent)
    lines += [*([""] if lines else []), head.text, ""]
    lines += [_line(row, width) for row in rows]
    counts = Counter(row.verdict for row in rows)
    lines += ["", "; ".join(f"{counts[each]} {each}" for each in VERDICTS if counts[each])]
    notes = _shifts(rows)
    if in_turn(before, after):
        notes.append(message("in-turn"))
    elif is_apart(before, after):
        notes.append(_apart(before, after))
    share = 100 * usual_tolerance(before, after, tolerance)
    notes.append(message("chance", percent=100 - percent, tolerance=share))
    sums = {
        "doubtful": sum(any(row.warnings) for row in rows),
        "too-few": counts["cannot tell"],
        "no-pair": sum(row.left_out for row in rows),
    }
    notes += [message(code, count=count) for code, count in sums.items() if count]
    if any(only):
        notes.append(message("not-compared", first=only[0], second=only[1]))
    return "\n".join([*lines, *(each.text for each in notes)]), counts


def _facts(
    before: Dataset, after: Dataset, rows: Sequence[Comparison], changed: Sequence[str]
) -> list[Message]:
    """What the two sides do not have alike: printed before anything else."""
    every = [each for row in rows for each in row.differ.items()]
    every += comparability.differences(before.machine, after.machine).items()
    names = {name for name, _ in every}
    if not names.issuperset(changed):
        known = ", ".join(sorted(names - {""})) or "none"
        raise ConfigError(
            f"--changed {', '.join(changed)}: each must be a fact that differs; these do: {known}"
        )
    differ = [row.differ.items() for row in rows if row.verdict == "not alike"]
    stops = Counter(fact for items in differ for name, fact in items if name not in changed)
    found = [
        message("stopped", fact=fact, rows=stops[fact]) if stops[fact] else fact
        for fact in dict.fromkeys(fact for _, fact in every)
    ]
    return [*found, message("on-purpose")] if stops else found


def _apart(before: Dataset, after: Dataset) -> Message:
    """That the two were measured at two times, and how to measure them at one."""
    first, second = (statistics.median(side.starts or [0.0]) for side in (before, after))
    time = duration(abs(second - first))
    if before.hosts.isdisjoint(after.hosts) and before.hosts:
        return message("apart", case="nodes", time=time)
    configs = shlex.join([before.config, after.config])
    command = f"{program('peakmark')} compare --interleave {configs}"
    return message("apart", time=time, command=command)


def _shifts(rows: Sequence[Comparison]) -> list[Message]:
    """By how much tables moved as a whole."""
    ratios: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in rows:
        if row.verdict in DRIFTS:
            ratios[row.point.table, row.verdict].append(row.ratio)
    found = []
    for (table, _), moved in ratios.items():
        change = speed_change(BY_NAME[table], statistics.median(moved))
        found.append(message("shift", table=table, rows=len(moved), change=change))
    return found


def _speed(table: Table, ratio: float) -> float:
    return 1 / ratio if table.lower_is_better else ratio


def speed_change(table: Table, ratio: float) -> Message:
    """A ratio as people say it."""
    speed = _speed(table, ratio)
    case = "faster" if speed > 1 else "slower"
    factor = max(speed, 1 / speed)
    if math.isnan(ratio):
        return message("no-change")
    if factor >= TIMES:
        return message("times", case=case, factor=factor)
    percent = 100 * abs(speed - 1)
    return message("percent", case=case if percent >= LEVEL else "level", percent=percent)


def _line(row: Comparison, width: int) -> str:
    """One row of the text: values, change with its interval, repetitions, verdict."""
    old, new = (
        significant(float(np.exp(np.log(values).mean())) * row.table.factor)
        for values in (row.before, row.after)
    )
    unit = row.table.shown or row.table.quantity
    change, interval = speed_change(row.table, row.ratio).text, ""
    if row.change.p >= 0:
        mean, half = row.change.mean, row.change.half
        ends = (_speed(row.table, math.exp(end)) for end in (mean - half, mean + half))
        low, high = sorted(100 * end - 100 for end in ends)
        interval = message("interval", low=low, high=high).text
    counts = f"n {len(row.before)}, {len(row.after)}"
    warned = zip("AB", row.warnings, strict=True)
    doubts = ", ".join(f"{side} {warning}" for side, warning in warned if warning)
    verdict = f"{row.verdict} ({doubts})" if doubts else row.verdict
    values = f"{old:>10} -> {new:>10} {unit:<8}"
    name = describe(row.point).ljust(width)
    return f"{name}  {values} {change:<17} {interval:<21} {counts:<9} {verdict}"
