"""A comparison as text: first what the two sides did not have alike, then a line for each row, then what chance does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from peakmark import statistics
from peakmark.errors import ConfigError
from peakmark.formatting import plural, significant
from peakmark.judging import alike
from peakmark.judging.compare import VERDICTS, Comparison, Verdict, compare, in_turn
from peakmark.judging.merging import merge
from peakmark.judging.notes import note
from peakmark.judging.phrases import Told
from peakmark.judging.sides import Side, describe


def report(
    before: Side,
    after: Side,
    confidence: float = 0.95,
    tolerance: float | None = None,
    repeat: Side | None = None,
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
    lines += [f"A {before.name}   B {after.name}   {what} B / A, {confidence:.0%} interval ({how})", ""]
    remarked = _remarked(before, after, comparisons)
    lines += [_line(comparison, width) + _marks(remarked, comparison) for comparison in comparisons]
    lines += [
        "",
        "; ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict] or verdict != "not alike"),
    ]
    lines += _chance(comparisons, confidence, turned)
    doubtful = sum(bool(comparison.doubtful) for comparison in comparisons)
    if doubtful:
        which = "row is" if doubtful == 1 else "rows are"
        lines.append(f"{doubtful} {which} wrong or unsure: see the notes in the reports before believing a verdict")
    lines += [
        f"[{number}] {side} notes on {plural(count, 'row')}: {text}"
        for number, ((side, text), count) in enumerate(((key, len(ones)) for key, ones in remarked.items()), 1)
    ]
    if counts["cannot tell"]:
        lines.append(f"cannot tell: too few values; {statistics.ENOUGH} repetitions on both sides are enough")
    lines += _left_out(comparisons)
    if only_before or only_after:
        lines.append(
            f"not compared: {plural(only_before, 'row')} that only A has, {plural(only_after, 'row')} that only B has"
        )
    return "\n".join(lines), counts


def _first(before: Side, after: Side, comparisons: Sequence[Comparison]) -> list[str]:
    """What the two sides did not have alike: said before anything else."""
    asked = alike.summary([comparison.differ for comparison in comparisons])
    if len(before.nodes) == len(after.nodes) == 1 and before.nodes != after.nodes and not (before.bare or after.bare):
        asked.append(f"node: A has {before.nodes[0]}, B has {after.nodes[0]}")
    differ = [*asked, *alike.differences(before.machine, after.machine)]
    return [f"not the same on both sides: {'; '.join(differ)}", ""] if differ else []


def _remarked(before: Side, after: Side, comparisons: Sequence[Comparison]) -> dict[tuple[str, str], list[Comparison]]:
    """(A or B, what published results note on values) -> the rows that have it: footnotes, in the order of the rows; notes
    that differ in their numbers alone are one.
    """
    remarks = [
        (comparison, name, note("remark", remark=Told(text)))
        for comparison in comparisons
        for name, side in (("A", before), ("B", after))
        for text in side.remarks.get(comparison.point, ())
    ]
    merged = merge(remark for _, _, remark in remarks)
    notes: dict[tuple[str, str], list[Comparison]] = {}
    for comparison, name, remark in remarks:
        notes.setdefault((name, merged[remark].words.fact), []).append(comparison)
    return notes


def _marks(remarked: Mapping[tuple[str, str], Sequence[Comparison]], comparison: Comparison) -> str:
    """`` [1, 3]``: the footnotes of a row."""
    numbers = [
        str(number) for number, ones in enumerate(remarked.values(), 1) if any(comparison is other for other in ones)
    ]
    return f" [{', '.join(numbers)}]" if numbers else ""


def _left_out(comparisons: Sequence[Comparison]) -> list[str]:
    """How many repetitions have no other half that was measured right before or after them."""
    count = sum(comparison.left_out for comparison in comparisons)
    return [f"{plural(count, 'repetition')} left out: measured without the other side right beside"] if count else []


def _chance(comparisons: Sequence[Comparison], confidence: float, turned: bool) -> list[str]:
    judged = sum(comparison.verdict not in ("cannot tell", "not alike") for comparison in comparisons)
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
    more = f" to {allowed[-1]:.1%}, by table, as far as rows drift meanwhile" if len(allowed) > 1 else ""
    return [*lines, f"differences below {allowed[0]:.1%}{more} get no verdict (--tolerance)"]


def _line(comparison: Comparison, width: int) -> str:
    old, new = (statistics.median(values) * comparison.table.factor for values in (comparison.before, comparison.after))
    unit = comparison.table.shown or comparison.table.quantity
    interval = (
        f"{comparison.low:.3f} to {comparison.high:.3f}"
        if min(len(comparison.before), len(comparison.after)) > 1
        else "no interval"
    )
    values = f"{significant(old):>10} -> {significant(new):>10} {unit:<8}"
    counts = f"n {len(comparison.before)}, {len(comparison.after)}"
    return (
        f"{describe(comparison.point):<{width}}  {values} {comparison.ratio:7.3f} ({interval})  {counts}  {comparison.verdict}"
        + (f" ({comparison.doubtful})" if comparison.doubtful else "")
    )
