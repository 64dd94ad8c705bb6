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
from peakmark.analysis import paired_comparison, ratios, trends
from peakmark.analysis.label_formatter import LabelFormatter, Topic, noun, repeated
from peakmark.analysis.measured import DEFAULT
from peakmark.analysis.ranking import apart, better, differ, groups, ratio
from peakmark.analysis.row import Row
from peakmark.config.layouts import LayoutTable
from peakmark.formatting import percent, plural
from peakmark.messages import Severity

MANY = 4  # more names than this are counted instead


@dataclass(frozen=True)
class Conclusion:
    """One sentence or two about a table, what they are about, and how that is headed."""

    topic: Topic
    heading: str
    text: str


def of(
    rows: Sequence[Row], mark: str = ".", layout_table: LayoutTable | None = None
) -> list[Conclusion]:
    """The findings of rows of one table, in a fixed order of topics; none where nothing was
    measured.

    They use the headings of the table, or those of ``sheet`` where a layout prints the rows in it.
    """
    measured = [row for row in rows if row.own is not None]
    if not measured:
        return []
    labels = LabelFormatter(measured[0].table, mark, layout_table)
    right = _claimable(measured)
    all_points, over_all = paired_comparison.sentences(labels, right)
    by_topic = (
        (Topic.EXTREMES, _extremes(labels, right)),
        (Topic.THREADS, trends.scaling(labels, right)),
        (Topic.BLOCKS, trends.blocks(labels, right)),
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


def together(
    rows: Sequence[Row], mark: str = ".", layout_table: LayoutTable | None = None
) -> list[str]:
    """What rows say that are printed in several tables: each workload's own says nothing of another
    workload.
    """
    right = _claimable([row for row in rows if row.own is not None])
    if not right:
        return []
    labels = LabelFormatter(right[0].table, mark, layout_table)
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
                f"{percent(share, labels.mark)} % ({labels.row(row)})"
                for share, row in ends[: len(inside)]
            )
            text = f"{labels.program(entry)} reaches {reached} of the limit"
            if len(inside) > 2:
                middle = statistics.median([share for share, _ in inside])
                text += f", {percent(middle, labels.mark)} % in the median of {len(inside)} rows"
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
