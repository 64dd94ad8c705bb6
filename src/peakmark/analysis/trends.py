"""Where more threads stop to pay, and from which block size on: what the rows show, and that
nothing is shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from peakmark.analysis.label_formatter import LabelFormatter, noun
from peakmark.analysis.ranking import better, groups
from peakmark.analysis.row import Row
from peakmark.formatting import listed

NONE = "any"  # no block beats another


def scaling(labels: LabelFormatter, rows: Sequence[Row]) -> Iterator[str]:
    """Up to how many threads each workload gains; of a latency, from how many it grows."""
    for name, group in groups(rows, labels):
        outcomes: dict[str, tuple[list[str], list[float]]] = {}
        for block in sorted({row.key.block or 0 for row in group}):
            line = sorted(
                (row for row in group if (row.key.block or 0) == block),
                key=lambda row: row.key.concurrency,
            )
            if len(line) < 2 or not all(row.measured.summary.enough for row in line):
                continue
            outcome, factor = (
                (_grows(labels, line), None)
                if labels.table.lower_is_better
                else _gains(labels, line)
            )
            sizes, factors = outcomes.setdefault(outcome, ([], []))
            sizes.append(labels.block(line[0]))
            factors += [] if factor is None else [factor]
        parts = []
        for outcome, (sizes, factors) in outcomes.items():
            least = min(row.key.concurrency for row in group)
            how = (
                f": {_range(labels, factors)} times the rate of {labels.many(least)}"
                if factors
                else ""
            )
            parts.append(
                outcome + how + (f" ({', '.join(sizes)})" if len(outcomes) > 1 and sizes[0] else "")
            )
        if parts:
            yield f"{name}: {'; '.join(parts)}."


def _range(labels: LabelFormatter, values: Sequence[float]) -> str:
    low, high = labels.times(min(values)), labels.times(max(values))
    return low if low == high else f"{low} to {high}"


def _gains(labels: LabelFormatter, line: Sequence[Row]) -> tuple[str, float | None]:
    """Where scaling stops, by steps that are shown to be gains, whether it falls afterwards, and
    the factor gained.
    """
    first, stop = line[0], line[0]
    for row in line[1:]:
        if better(row, stop):
            stop = row
    falls = next(
        (row for row in line if row.key.concurrency > stop.key.concurrency and better(stop, row)),
        None,
    )
    if stop is first:
        if falls is None:
            return f"no gain from more than {labels.many(first.key.concurrency)} is shown", None
        return f"falls from {labels.many(falls.key.concurrency)} on", None
    text = f"gains up to {labels.many(stop.key.concurrency)}"
    if stop is line[-1]:
        text += ", the most that was measured"
    elif falls is not None:
        text += f", falls from {falls.key.concurrency} on"
    else:
        text += ", no further gain is shown"
    return text, stop.measured.summary.median / first.measured.summary.median


def _grows(labels: LabelFormatter, line: Sequence[Row]) -> str:
    first = line[0]
    later = next((row for row in line[1:] if better(first, row)), None)
    if later is not None:
        return f"grows from {labels.many(later.key.concurrency)} on"
    if better(line[-1], first):
        return f"shorter with {labels.many(line[-1].key.concurrency)} than with {first.key.concurrency}"
    return f"not shown to grow up to {labels.many(line[-1].key.concurrency)}"


def blocks(labels: LabelFormatter, rows: Sequence[Row]) -> Iterator[str]:
    """The smallest block that no other is shown to beat, by concurrency."""
    if labels.table.lower_is_better:
        return
    for name, group in groups(rows, labels):
        pays: dict[str, list[int]] = {}
        for concurrency in sorted({row.key.concurrency for row in group}):
            line = sorted(
                (row for row in group if row.key.concurrency == concurrency),
                key=lambda row: row.key.block or 0,
            )
            if len(line) < 2 or not all(row.measured.summary.enough for row in line):
                continue
            unbeaten = [row for row in line if not any(better(other, row) for other in line)]
            outcome = NONE if len(unbeaten) == len(line) else labels.block(unbeaten[0])
            pays.setdefault(outcome, []).append(concurrency)
        if list(pays) == [NONE]:
            yield f"{name}: no block size is shown to be faster than another."
        elif pays:
            parts = [
                outcome
                + (
                    f" with {listed([str(count) for count in counts])} {noun(labels.table)}{'s' if counts != [1] else ''}"
                    if len(pays) > 1
                    else ""
                )
                for outcome, counts in pays.items()
            ]
            yield f"{name}: the smallest block that no other is shown to beat is {', '.join(parts)}."
