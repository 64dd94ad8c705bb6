"""A comparison as text: first what the two sides did not have alike, then a line for each row, then
what chance does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from peakmark import statistics
from peakmark.analysis import comparability
from peakmark.analysis.compare import VERDICTS, Comparison, Verdict, compare, in_turn
from peakmark.analysis.datasets import Dataset, describe
from peakmark.errors import ConfigError
from peakmark.formatting import listed, plural, significant
from peakmark.messages import ORDER, merge, message


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
    lines += _chance(comparisons, confidence, turned)
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


def _chance(comparisons: Sequence[Comparison], confidence: float, turned: bool) -> list[str]:
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
