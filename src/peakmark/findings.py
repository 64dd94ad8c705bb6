"""What the rows of a table say, in sentences: best and worst, threads, block size, reference, limit, doubtful rows.

A sentence claims a difference only between rows that are ``apart``: both with six repetitions or more, their 95 % intervals
of the median disjoint (Hoefler and Belli 2015, rule 7). Otherwise it repeats numbers, or says that nothing is shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from peakmark import statistics
from peakmark.checks import DEFAULT
from peakmark.formatting import percent, significant, size
from peakmark.layout import Table
from peakmark.rows import Row, Series
from peakmark.verdict import noun, quantity

MANY = 4  # more names than this are counted instead
NONE = "any"  # no block beats another
# An echo is answered by the kernel, without waking a program: no reference for a round trip of programs.
NOT_ALIKE = ("ping",)


@dataclass(frozen=True)
class Finding:
    """One sentence or two about a table, and what they are about."""

    topic: str
    text: str


def of(rows: Sequence[Row], mark: str = ".") -> list[Finding]:
    """The findings of rows of one table, in a fixed order of topics; none where nothing was measured."""
    measured = [row for row in rows if row.own is not None]
    if not measured:
        return []
    table = measured[0].table
    found = [
        *_extremes(table, measured, mark),
        *(
            Finding("Threads" if noun(table) == "thread" else "Streams", text)
            for text in _scaling(table, measured, mark)
        ),
        *(Finding("Block size", text) for text in _blocks(table, measured)),
        *(Finding("Reference", text) for text in _references(table, measured, mark)),
        *(Finding("Disagreement", text) for text in _disagreements(table, measured, mark)),
        *(Finding("Limit", text) for text in _limits(table, measured, mark)),
        *(Finding("Doubtful rows", text) for text in _doubtful(measured)),
    ]
    few = [row for row in measured if not row.measured.summary.enough]
    if few and len(measured) > 1:
        counts = sorted({row.measured.summary.n for row in few})
        number = f"n = {counts[0]}" if len(counts) == 1 else f"n = {counts[0]} to {counts[-1]}"
        which = "All rows have" if len(few) == len(measured) else f"{len(few)} of {len(measured)} rows have"
        text = f"{which} {number}: too few repetitions to say which of them are faster; {statistics.ENOUGH} or more allow it."
        found.append(Finding("Not claimed", text))
    return found


def apart(one: Series, other: Series) -> bool:
    """Whether two series are shown to differ: enough repetitions, and 95 % intervals of the median that do not touch."""
    first, second = one.summary, other.summary
    return first.enough and second.enough and (first.high < second.low or second.high < first.low)


def better(one: Row, other: Row) -> bool:
    """Whether the own value of the first row is shown to be better than that of the second."""
    first, second = one.measured.summary.median, other.measured.summary.median
    ahead = first < second if one.table.lower_is_better else first > second
    return ahead and apart(one.measured, other.measured)


def _groups(rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Rows that may be compared: of one node, variant and workload; each group with the name that it needs."""

    several = len({row.key.variant for row in rows}) > 1
    nodes = len({row.key.node for row in rows}) > 1
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.key.node, row.key.variant, row.key.workload), []).append(row)
    for (node, variant, workload), group in groups.items():
        name = group[0].table.workload_label(workload) + (f" {variant}" if several and variant else "")
        yield name + (f" on {node}" if nodes else ""), group


def _many(table: Table, count: int) -> str:
    """``1 thread``, ``8 streams``."""
    return f"{count} {noun(table)}{'' if count == 1 else 's'}"


def _place(row: Row, group: Sequence[Row]) -> str:
    """What makes this row in its group: ``16 MiB, 8 threads``; what is the same in all is not said."""
    parts = []
    if len({one.key.block for one in group}) > 1:
        parts.append(size(row.key.block))
    if len({one.key.concurrency for one in group}) > 1 or not parts:
        parts.append(_many(row.table, row.key.concurrency))
    return ", ".join(parts)


def _extremes(table: Table, rows: Sequence[Row], mark: str) -> Iterator[Finding]:
    """Best and worst of each workload where they are shown to differ, else the highest and lowest value as they are."""

    def value(row: Row) -> str:
        return f"{quantity(table, row.measured.centre, mark)}{'; doubtful' if row.doubts else ''}"

    for name, group in _groups(rows):
        if len(group) < 2:
            continue
        ordered = sorted(group, key=lambda row: row.measured.centre, reverse=not table.lower_is_better)
        best, worst = ordered[0], ordered[-1]
        if not all(row.measured.summary.enough for row in group):
            low, high = (best, worst) if table.lower_is_better else (worst, best)
            yield Finding(
                "Highest and lowest",
                f"{name}: {_place(high, group)} ({value(high)}) and {_place(low, group)} ({value(low)}).",
            )
            continue
        if not better(best, worst):
            text = f"{name}: no configuration is shown to be better than another ({value(best)} to {value(worst)})."
            yield Finding("Best and worst", text)
            continue
        text = f"{name}: best with {_place(best, group)} ({value(best)})"
        beside = [row for row in ordered[1:] if not better(best, row)]
        if beside:
            text += f", from which {_names(beside, group)} {'is' if len(beside) == 1 else 'are'} not shown to differ"
        ratio = significant(_ratio(best, worst), 3, mark)
        text += f"; worst with {_place(worst, group)} ({value(worst)}), a factor of {ratio}."
        reason = _reason(best, worst, group, mark)
        yield Finding("Best and worst", f"{text} {reason}" if reason else text)


def _names(rows: Sequence[Row], group: Sequence[Row]) -> str:
    if len(rows) > MANY:
        return f"{len(rows)} others"
    return " and ".join(_place(row, group) for row in rows)


def _ratio(best: Row, worst: Row) -> float:
    ratio = best.measured.centre / worst.measured.centre
    return 1 / ratio if best.table.lower_is_better else ratio


def _reason(best: Row, worst: Row, group: Sequence[Row], mark: str) -> str:
    """Which of block size and concurrency makes the difference, each alone from the best row: what the numbers support."""
    if best.key.block == worst.key.block:
        return ""  # one of the two differs: nothing is to be told apart
    if best.key.concurrency == worst.key.concurrency:
        return "The two differ in the block size alone."
    at = {(row.key.block, row.key.concurrency): row for row in group}
    by_block = at.get((worst.key.block, best.key.concurrency))
    by_threads = at.get((best.key.block, worst.key.concurrency))
    if by_block is None or by_threads is None:
        return ""

    def effect(other: Row) -> str:
        if not better(best, other):
            return "makes no difference that is shown"
        return f"makes a factor of {significant(_ratio(best, other), 3, mark)}"

    return (
        f"The block size alone, at {_many(best.table, best.key.concurrency)}, {effect(by_block)}; the number of"
        f" {noun(best.table)}s alone, at {size(best.key.block)}, {effect(by_threads)}."
    )


def _scaling(table: Table, rows: Sequence[Row], mark: str) -> Iterator[str]:
    """Up to how many threads each workload gains; of a latency, from how many it grows."""
    for name, group in _groups(rows):
        outcomes: dict[str, tuple[list[str], list[float]]] = {}
        blocks = sorted({row.key.block or 0 for row in group})
        for block in blocks:
            line = sorted((row for row in group if (row.key.block or 0) == block), key=lambda row: row.key.concurrency)
            if len(line) < 2 or not all(row.measured.summary.enough for row in line):
                continue
            outcome, factor = (_grows(line), None) if table.lower_is_better else _gains(line)
            sizes, factors = outcomes.setdefault(outcome, ([], []))
            sizes.append(size(block or None))
            factors += [] if factor is None else [factor]
        parts = []
        for outcome, (sizes, factors) in outcomes.items():
            least = min(row.key.concurrency for row in group)
            how = f", {_range(factors, mark)} × {_many(table, least)}" if factors else ""
            parts.append(outcome + how + (f" ({', '.join(sizes)})" if len(outcomes) > 1 and sizes[0] else ""))
        if parts:
            yield f"{name}: {'; '.join(parts)}."


def _range(values: Sequence[float], mark: str) -> str:
    low, high = significant(min(values), 3, mark), significant(max(values), 3, mark)
    return low if low == high else f"{low} to {high}"


def _gains(line: Sequence[Row]) -> tuple[str, float | None]:
    """Where scaling stops, by steps that are shown to be gains, whether it falls afterwards, and the factor gained."""
    table, first, stop = line[0].table, line[0], line[0]
    for row in line[1:]:
        if better(row, stop):
            stop = row
    falls = next((row for row in line if row.key.concurrency > stop.key.concurrency and better(stop, row)), None)
    if stop is first:
        if falls is None:
            return f"no gain from more than {_many(table, first.key.concurrency)} is shown", None
        return f"falls from {_many(table, falls.key.concurrency)} on", None
    text = f"gains up to {_many(table, stop.key.concurrency)}"
    if stop is line[-1]:
        text += ", the most that was measured"
    elif falls is not None:
        text += f", falls from {falls.key.concurrency} on"
    else:
        text += ", no further gain is shown"
    return text, stop.measured.centre / first.measured.centre


def _grows(line: Sequence[Row]) -> str:
    table, first = line[0].table, line[0]
    later = next((row for row in line[1:] if better(first, row)), None)
    if later is not None:
        return f"grows from {_many(table, later.key.concurrency)} on"
    if better(line[-1], first):
        return f"shorter with {_many(table, line[-1].key.concurrency)} than with {first.key.concurrency}"
    return f"not shown to grow up to {_many(table, line[-1].key.concurrency)}"


def _blocks(table: Table, rows: Sequence[Row]) -> Iterator[str]:
    """The smallest block that no other is shown to beat, by concurrency."""
    if table.lower_is_better:
        return
    for name, group in _groups(rows):
        pays: dict[str, list[int]] = {}
        for concurrency in sorted({row.key.concurrency for row in group}):
            line = sorted(
                (row for row in group if row.key.concurrency == concurrency), key=lambda row: row.key.block or 0
            )
            if len(line) < 2 or not all(row.measured.summary.enough for row in line):
                continue
            unbeaten = [row for row in line if not any(better(other, row) for other in line)]
            outcome = NONE if len(unbeaten) == len(line) else size(unbeaten[0].key.block)
            pays.setdefault(outcome, []).append(concurrency)
        if list(pays) == [NONE]:
            yield f"{name}: no block size is shown to be faster than another."
        elif pays:
            parts = [
                outcome
                + (f" with {_listed(counts)} {noun(table)}{'s' if counts != [1] else ''}" if len(pays) > 1 else "")
                for outcome, counts in pays.items()
            ]
            yield f"{name}: the smallest block that no other is shown to beat is {', '.join(parts)}."


def _listed(counts: Sequence[int]) -> str:
    texts = [str(count) for count in counts]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"


def _references(table: Table, rows: Sequence[Row], mark: str) -> Iterator[str]:
    """The own kernel against each reference, row by row; derived figures are no measurement and are left out."""
    for entry in table.references:
        if entry.instrument in NOT_ALIKE:
            continue
        pairs = [
            (row, row.series[entry.instrument])
            for row in rows
            if entry.instrument in row.series and not _derived(row.series[entry.instrument])
        ]
        if not pairs:
            continue
        ratios = [row.measured.centre / theirs.centre for row, theirs in pairs]
        middle = significant(statistics.median(ratios), 3, mark)
        text = f"{table.own.heading} measured {middle} times what {entry.heading} did"
        if len(pairs) > 1:
            low, high = (significant(value, 3, mark) for value in (min(ratios), max(ratios)))
            text += f" (median of {len(pairs)} rows; from {low} to {high})"
        judged = [(row, theirs) for row, theirs in pairs if row.measured.summary.enough and theirs.summary.enough]
        if judged:
            distinct = [(row, theirs) for row, theirs in judged if apart(row.measured, theirs)]
            ahead = sum(
                (row.measured.summary.median < theirs.summary.median) == table.lower_is_better
                for row, theirs in distinct
            )
            counts = {"better": ahead, "worse": len(distinct) - ahead, "neither": len(judged) - len(distinct)}
            shown = ", ".join(f"{word} in {count}" for word, count in counts.items() if count)
            text += f"; shown to be {shown} of {len(judged)} rows"
            text += " with enough repetitions" if len(judged) < len(pairs) else ""
        yield f"{text}."


def _disagreements(table: Table, rows: Sequence[Row], mark: str) -> Iterator[str]:
    """Programs that say different things about one quantity: that says something about the measurement."""
    for entry in table.references:
        if entry.instrument in NOT_ALIKE:
            continue
        pairs = [(row, row.measured.centre / row.series[entry.instrument].centre) for row in rows
                 if entry.instrument in row.series]  # fmt: skip
        factors = [(max(ratio, 1 / ratio), row) for row, ratio in pairs]
        beyond = [pair for pair in factors if pair[0] > DEFAULT.band]
        if beyond:
            factor, row = max(beyond, key=lambda pair: pair[0])
            yield (
                f"{table.own.heading} and {entry.heading} are more than a factor of {significant(DEFAULT.band, 2, mark)}"
                f" apart in {len(beyond)} of {len(pairs)} rows, at most {significant(factor, 3, mark)} ({_row(row)}): a"
                " finding about the measurement, not about the machine; the notes say what to look at."
            )


def _derived(series: Series) -> bool:
    return any(point.details.get("estimate") or point.details.get("derived") for point in series.points)


def _limits(table: Table, rows: Sequence[Row], mark: str) -> Iterator[str]:
    known = [(row, row.measured.efficiency) for row in rows if row.measured.efficiency is not None]
    shares = [(share, row) for row, share in known if share is not None]
    if not shares:
        return
    inside = sorted([(share, row) for share, row in shares if share <= DEFAULT.limit], key=lambda pair: pair[0])
    if inside:
        (low, lowest), (high, highest) = inside[0], inside[-1]
        text = f"{table.own.heading} reaches {percent(low, mark)} %"
        if len(inside) > 1:
            text += f" ({_row(lowest)}) to {percent(high, mark)} % ({_row(highest)})"
        yield f"{text} of the limit."
    above = len(shares) - len(inside)
    if above:
        rest = f"{above} row{' is' if above == 1 else 's are'} above the limit, which cannot be"
        yield f"{rest}: the limit or the figure is wrong, as the notes say."


def _doubtful(rows: Sequence[Row]) -> Iterator[str]:
    doubtful = [row for row in rows if row.doubts]
    if doubtful:
        names = f" ({'; '.join(_row(row) for row in doubtful)})" if len(doubtful) <= MANY else ""
        yield f"{len(doubtful)} of {len(rows)} rows{names}: the notes say why."


def _row(row: Row) -> str:
    """``RR psync of 4 KiB, 8 threads`` without what is empty."""
    block = f" of {size(row.key.block)}" if row.key.block else ""
    variant = f" {row.key.variant}" if row.table.variant and row.key.variant not in ("", "psync") else ""
    node = f" on {row.key.node}" if row.key.node != "any" else ""
    return (
        f"{row.table.workload_label(row.key.workload)}{variant}{block}, {_many(row.table, row.key.concurrency)}{node}"
    )
