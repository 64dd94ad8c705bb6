"""What the rows of a table say, in sentences: best and worst, threads, block size, reference,
limit, doubtful rows.

A sentence claims a difference only between rows that are ``apart``: both with six repetitions or
more, their 95 % intervals of the median disjoint (Hoefler and Belli 2015, rule 7). Otherwise it
repeats numbers, or says that nothing is shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

from peakmark import statistics
from peakmark.analysis import paired_comparison, ratios
from peakmark.analysis.label_formatter import LabelFormatter, Topic, noun, repeated
from peakmark.analysis.row import DEFAULT, Row, Series
from peakmark.config.layouts import LayoutTable
from peakmark.formatting import listed, percent, plural
from peakmark.messages import Severity


def apart(series: Series, other: Series) -> bool:
    """Whether two series are shown to differ: enough repetitions, and 95 % intervals of the median
    that do not touch.
    """
    first, second = series.summary, other.summary
    return first.enough and second.enough and (first.high < second.low or second.high < first.low)


def better(row: Row, other: Row) -> bool:
    """Whether the own value of the first row is shown to be better than that of the second."""
    first, second = row.measured.summary.median, other.measured.summary.median
    ahead = first < second if row.table.lower_is_better else first > second
    return ahead and apart(row.measured, other.measured)


def differ(rows: Sequence[Row], level: float = 0.05) -> bool:
    """Whether rows are shown to differ at all, by the test of Kruskal and Wallis.

    Among many equal rows the best and the worst one lie apart more often than two rows do: only
    where this test has seen a difference is one of them called best. False in at most ``level`` of
    groups of equal rows.
    """
    groups = [row.measured.values for row in rows]
    return len(groups) > 1 and statistics.kruskal_wallis(groups) <= level


def ratio(best: Row, worst: Row) -> float:
    """By what factor the median of the first row is better, 1 or more: as the tests are of medians,
    so are factors.
    """
    quotient = best.measured.summary.median / worst.measured.summary.median
    return 1 / quotient if best.table.lower_is_better else quotient


def groups(rows: Sequence[Row], labels: LabelFormatter) -> Iterator[tuple[str, list[Row]]]:
    """Rows that may be compared: of one node, variant and workload; each group with the name that
    it needs.
    """
    several = len({row.key.variant for row in rows}) > 1
    nodes = len({row.key.node for row in rows}) > 1
    grouped: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        # A layout may call one workload by two names, such as loads in a small and in a large area:
        # two groups then.
        grouped.setdefault((row.key.node, row.key.variant, labels.workload(row)), []).append(row)
    for (node, variant, workload), group in grouped.items():
        name = workload + (f" {variant}" if several and variant else "")
        yield name + (f" on {node}" if nodes else ""), group


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


MANY = 4  # more names than this are counted instead


@dataclass(frozen=True)
class Conclusion:
    """One sentence or two about a table, what they are about, and how that is headed."""

    topic: Topic
    heading: str
    text: str


def conclusions(rows: Sequence[Row], layout_table: LayoutTable | None = None) -> list[Conclusion]:
    """The findings of rows of one table, in a fixed order of topics; none where nothing was
    measured.

    They use the headings of the table, or those of ``sheet`` where a layout prints the rows in it.
    """
    measured = [row for row in rows if row.own is not None]
    if not measured:
        return []
    labels = LabelFormatter(measured[0].table, layout_table)
    right = _claimable(measured)
    all_points, over_all = paired_comparison.sentences(labels, right)
    by_topic = (
        (Topic.EXTREMES, _extremes(labels, right)),
        (Topic.THREADS, scaling(labels, right)),
        (Topic.BLOCKS, blocks(labels, right)),
        *((topic, [text]) for topic, text in all_points),
        (Topic.REFERENCE, _references(labels, right, over_all)),
        (Topic.DISAGREEMENT, _disagreements(labels, measured)),
        (Topic.LIMIT, _limits(labels, measured)),
        (
            Topic.MACHINE,
            dict.fromkeys(f"{row.limit.finding.text}." for row in rows if row.limit.finding),
        ),
        (Topic.DOUBT, _doubtful(labels, measured)),
        (Topic.FEW, _few(measured)),
    )
    return [
        Conclusion(topic, topic.heading(labels.table), text)
        for topic, texts in by_topic
        for text in texts
    ]


def _few(measured: Sequence[Row]) -> Iterator[str]:
    few = [row for row in measured if not row.measured.summary.enough]
    if few and len(measured) > 1:
        number = repeated(row.measured.summary.n for row in few)
        which = (
            "All rows have"
            if len(few) == len(measured)
            else f"{len(few)} of {len(measured)} rows have"
        )
        yield f"{which} {number}: too few repetitions to say of single ones which are faster; {statistics.ENOUGH} or more allow it."


def joint_conclusions(rows: Sequence[Row], layout_table: LayoutTable | None = None) -> list[str]:
    """What rows say that are printed in several tables: each workload's own says nothing of another
    workload.
    """
    right = _claimable([row for row in rows if row.own is not None])
    if not right:
        return []
    labels = LabelFormatter(right[0].table, layout_table)
    all_points, over_all = paired_comparison.sentences(labels, right)
    return [*(text for _, text in all_points), *_references(labels, right, over_all)]


def _claimable(measured: Sequence[Row]) -> list[Row]:
    """The rows that no claim is refused."""
    return [row for row in measured if row.level is not Severity.WRONG]


def _extremes(labels: LabelFormatter, rows: Sequence[Row]) -> Iterator[str]:
    """Best and worst of each workload whose rows have enough repetitions to tell; the table has the
    others' values.
    """

    def value(row: Row) -> str:
        return (
            f"{labels.quantity(row.measured.centre)}{'; unsure' if row.specific_warnings else ''}"
        )

    for name, group in groups(rows, labels):
        if len(group) < 2:
            continue
        if not all(row.measured.summary.enough for row in group):
            continue
        ordered = sorted(
            group, key=lambda row: row.measured.centre, reverse=not labels.table.lower_is_better
        )
        best, worst = ordered[0], ordered[-1]
        if not (differ(group) and better(best, worst)):
            yield f"{name}: no configuration is shown to be better than another ({value(best)} to {value(worst)})."
            continue
        text = f"{name}: best with {labels.place(best, group)} ({value(best)})"
        near = [row for row in ordered[1:] if not better(best, row)]
        if near:
            text += f", from which {_names(labels, near, group)} {'is' if len(near) == 1 else 'are'} not shown to differ"
        text += f"; worst with {labels.place(worst, group)} ({value(worst)}), a factor of {labels.times(ratio(best, worst))}."
        yield f"{text} {_reason(labels, best, worst, group)}".rstrip()


def _names(labels: LabelFormatter, rows: Sequence[Row], group: Sequence[Row]) -> str:
    if len(rows) > MANY:
        return f"{len(rows)} others"
    return " and ".join(labels.place(row, group) for row in rows)  # of which each may hold a comma


def _reason(labels: LabelFormatter, best: Row, worst: Row, group: Sequence[Row]) -> str:
    """Which of block size and concurrency makes the difference, each alone from the best row: what
    the numbers support.
    """
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
        return f"makes a factor of {labels.times(ratio(best, other))}"

    return (
        f"The block size alone, at {labels.many(best.key.concurrency)}, {effect(by_block)}; the number of"
        f" {noun(labels.table)}s alone, at {labels.block(best)}, {effect(by_threads)}."
    )


def _references(
    labels: LabelFormatter, rows: Sequence[Row], over_all: Mapping[str, str]
) -> Iterator[str]:
    """The own kernel against each reference, row by row; derived figures are no measurement and are
    left out. ``over_all``: what their rows say together.
    """
    for entry in ratios.references(labels.table):
        pairs = ratios.pairs(rows, entry.instrument)
        if not pairs:
            continue
        each = [quotient.value for *_, quotient in pairs]
        middle = labels.times(statistics.median(each))
        text = f"{labels.program(labels.table.own)} measured {middle} times what {labels.program(entry)} did"
        parts = [repeated(quotient.runs for *_, quotient in pairs)]
        if len(pairs) > 1:
            parts.insert(
                0,
                f"median of {len(pairs)} rows; from {labels.times(min(each))} to {labels.times(max(each))}",
            )
        parts += dict.fromkeys(
            known for row, *_ in pairs for known in ratios.differences(row, entry.instrument)
        )
        parts += _sign_conflicts(labels, pairs)
        text += f" ({'; '.join(parts)})"
        judged = [
            (row, theirs)
            for row, theirs, _ in pairs
            if row.measured.summary.enough and theirs.summary.enough
        ]
        if judged:
            distinct = [(row, theirs) for row, theirs in judged if apart(row.measured, theirs)]
            ahead = sum(
                (row.measured.summary.median < theirs.summary.median)
                == labels.table.lower_is_better
                for row, theirs in distinct
            )
            counts = {
                "better": ahead,
                "worse": len(distinct) - ahead,
                "neither": len(judged) - len(distinct),
            }
            shown = ", ".join(f"{word} in {count}" for word, count in counts.items() if count)
            text += f"; shown to be {shown} of {len(judged)} rows"
            text += " with enough repetitions" if len(judged) < len(pairs) else ""
        elif entry.instrument in over_all:
            text += f"; {over_all[entry.instrument]}"
        yield f"{text}."


def _limits(labels: LabelFormatter, rows: Sequence[Row]) -> Iterator[str]:
    """What share of the limit each program reaches, and how many rows are beyond it."""
    for entry in labels.table.series:
        if entry.instrument in ratios.NOT_ALIKE:
            continue
        shares = []
        for row in rows:
            series = row.series.get(entry.instrument)
            if series and series.efficiency is not None and ratios.is_measured(series):
                shares.append((series.efficiency, row))
        inside = [share for share in shares if share[0] <= DEFAULT.limit]
        if inside:
            ends = [choose(inside, key=itemgetter(0)) for choose in (min, max)]
            reached = " to ".join(
                f"{percent(share)} % ({labels.row(row)})" for share, row in ends[: len(inside)]
            )
            text = f"{labels.program(entry)} reaches {reached} of the limit"
            if len(inside) > 2:
                middle = statistics.median([share for share, _ in inside])
                text += f", {percent(middle)} % in the median of {len(inside)} rows"
            yield f"{text}."
        above = len(shares) - len(inside)
        if above:
            of = "" if entry is labels.table.own else f" of {labels.program(entry)}"
            rest = f"{above} row{' is' if above == 1 else 's are'} above the limit, which cannot be"
            yield f"{rest}: the limit or the figure{of} is wrong, as the notes say."


def _sign_conflicts(labels: LabelFormatter, pairs: Sequence[ratios.Pair]) -> Iterator[str]:
    """The rows whose printed figures say otherwise than their rounds who is ahead."""
    turned = [
        row
        for row, theirs, ratio in pairs
        if ratios.sign_conflicts(ratio, row.measured.centre / theirs.centre)
    ]
    if turned:
        where = (
            ", ".join(map(labels.row, turned))
            if len(turned) <= MANY
            else plural(len(turned), "row")
        )
        yield f"printed figures the other way round: {where}"


def _disagreements(labels: LabelFormatter, rows: Sequence[Row]) -> Iterator[str]:
    """Programs that say different things about one quantity: that says something about the
    measurement.
    """
    for entry in ratios.references(labels.table):
        pairs = ratios.pairs(rows, entry.instrument)
        factors = [(ratios.factor(row.measured, theirs), row) for row, theirs, _ in pairs]
        beyond = [pair for pair in factors if pair[0] > DEFAULT.band]
        if beyond:
            factor, row = max(beyond, key=lambda pair: pair[0])
            yield (
                f"{labels.program(labels.table.own)} and {labels.program(entry)} are more than a factor of"
                f" {labels.times(DEFAULT.band, 2)} apart in {len(beyond)} of {len(pairs)} rows, at most"
                f" {labels.times(factor)} ({labels.row(row)}): a finding about the measurement, not about"
                " the machine; the notes say what to look at."
            )


def _doubtful(labels: LabelFormatter, rows: Sequence[Row]) -> Iterator[str]:
    for level in (Severity.WRONG, Severity.UNSURE):
        doubtful = [row for row in rows if row.level is level]
        # Where all rows have the same word, their column says it.
        if doubtful and (level is Severity.WRONG or len(doubtful) < len(rows) or len(rows) == 1):
            names = (
                f" ({'; '.join(labels.row(row) for row in doubtful)})"
                if len(doubtful) <= MANY
                else ""
            )
            what = "used for no claim" if level is Severity.WRONG else "another run may well differ"
            is_are = "is" if len(doubtful) == 1 else "are"
            yield f"{len(doubtful)} of {len(rows)} rows {is_are} {level}{names}: {what}; the notes say why."
