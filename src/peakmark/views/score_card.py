"""The score card: a line for each headline number of a campaign, with a verdict on whether to trust it.

The row of a headline is chosen by workload, cache level, largest block and number of threads, never by
its value or its warnings. ``build`` returns what the terminal, Markdown, JSON, PDF and HTML show.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pandas as pd

from peakmark import statistics
from peakmark.catalogue import HEADLINES, SUBSYSTEMS, Headline
from peakmark.formatting import percent, plural, quantity, size, typeset
from peakmark.messages import ORDER, Severity, WarningKind, words
from peakmark.rows import schema
from peakmark.rows.labels import Labels
from peakmark.rows.schema import CampaignFrames
from peakmark.tools.tables import BY_NAME

VARIES = 0.15
"""Distance of the lowest from the highest run, as a share of the value, from which on a number needs care."""
DIGITS = 3
"""Significant digits of the numbers on the card: repetitions differ in the third digit."""


class Trust(StrEnum):
    """Verdict on whether a reader may use a number."""

    OK = "ok"
    """No warning."""
    CARE = "care"
    """Another run may give another value."""
    NO = "no"
    """Not a value of the device, wrong, or not measured."""


UNITS = {
    "cpu": "OP/s",
    "memory_throughput": "B/s",
    "disk_throughput": "B/s",
    "network_throughput": "bit/s",
    "gpu": "OP/s",
    "gpu_throughput": "B/s",
    "gpu_link_throughput": "B/s",
}
"""Table of rates -> unit of its values on the card."""

Line = Any
"""A line of ``rows``, as ``schema.lines`` yields it."""


@dataclass(frozen=True)
class CardLine:
    """A line of the card. Values are in the SI unit of the row's table.

    Attributes:
        title: what was measured, such as ``Disk, 4 KiB random reads``.
        place: threads, processes or streams, such as ``2 threads``; for several nodes their number.
        point: name of the row's point.
        subsystem: subsystem of the row.
        value: median of ``runs``; None if nothing was measured.
        runs: values of the runs; for several nodes the value of each node.
        text: the value with its unit.
        share: share of the limit that the value reaches; None without a limit.
        share_text: the share in percent; empty without a limit.
        without_share: why there is no share, in a few words; empty if there is a share.
        run_shares: share of the limit that each of ``runs`` reaches; empty without a limit.
        reference: reference program with the best value at the same point; empty without a reference.
        reference_value: value of the reference.
        reference_share: share of the limit that the reference reaches.
        reference_text: name of the reference with its share of the limit, or with its value.
        trust: whether a reader may use the value.
        reason: why a reader may not use it, in at most six words.
    """

    title: str
    place: str
    point: str
    subsystem: str
    value: float | None
    runs: tuple[float, ...]
    text: str
    share: float | None
    share_text: str
    without_share: str
    run_shares: tuple[float, ...]
    reference: str
    reference_value: float | None
    reference_share: float | None
    reference_text: str
    trust: Trust
    reason: str


def build(frames: CampaignFrames) -> list[CardLine]:
    """Return the card's lines for all headlines that the campaign planned to measure."""
    lines = []
    for headline, rows in rows_of_headlines(frames):
        of_largest_class = rows[rows["node_class"].eq(rows["node_class"].min())]
        lines.append(line_of(frames, headline, list(schema.lines(of_largest_class))))
    return lines


# -- the rows of a headline


def rows_of_headlines(frames: CampaignFrames) -> Iterator[tuple[Headline, pd.DataFrame]]:
    """Yield each headline that the campaign planned to measure, with the headline's row on each node.

    A table of rates without any headline of ``HEADLINES`` gets a headline for its first workload.
    """
    planned = {}
    for headline in HEADLINES:
        rows = rows_of_headline(frames.rows, headline)
        if not rows.empty:
            planned[headline] = rows
    covered = {headline.table for headline in planned}
    for name in UNITS:
        if name not in covered and frames.rows["table"].eq(name).any():
            headline = headline_of(frames, name)
            planned[headline] = rows_of_headline(frames.rows, headline)
    for headline, rows in planned.items():
        chosen = choose(rows, headline, frames.nodes)
        if not chosen.empty:
            yield headline, chosen


def headline_of(frames: CampaignFrames, table: str) -> Headline:
    """Return a headline for the first workload of a table: ``Memory, sequential reads``."""
    rows = frames.rows[frames.rows["table"].eq(table) & frames.rows["is_own"]]
    workload = str(rows["workload"].iloc[0])
    what = words(f"workload {workload}")
    title = f"{SUBSYSTEMS[BY_NAME[table].subsystem].title}, {what}"
    return Headline(title, table, workload, UNITS[table])


def first_row(frames: CampaignFrames, subsystem: str) -> Line | None:
    """Return the row of a subsystem's first headline that was measured; None if none was.

    For several nodes, it is the row of the node nearest to their median.
    """
    for _, rows in rows_of_headlines(frames):
        measured = rows[rows["n"].gt(0) & rows["is_own"] & rows["subsystem"].eq(subsystem)]
        if not measured.empty:
            return middle_of(list(schema.lines(measured)))
    return None


def choose(rows: pd.DataFrame, headline: Headline, nodes: pd.DataFrame) -> pd.DataFrame:
    """Return one row of a headline for each node: the row with the largest block.

    For a rate, the row with the most threads is chosen, where threads are pinned one per core. For a time, it is the row with the fewest
    threads, so that no request waits for another. Only the first variant in the table is considered.
    """
    rows = rows[rows["variant"].eq(rows["variant"].head(1).squeeze())]
    if rows["block_bytes"].notna().any():
        rows = rows[rows["block_bytes"].eq(rows["block_bytes"].max())]
    cores = nodes["cores"].max()
    if SUBSYSTEMS[BY_NAME[headline.table].subsystem].pinned and rows["concurrency"].le(cores).any():
        rows = rows[rows["concurrency"].le(cores)]
    is_time = BY_NAME[headline.table].lower_is_better
    ordered = rows.sort_values("concurrency", ascending=is_time, kind="stable")
    return ordered.drop_duplicates("node").sort_index()


def rows_of_headline(rows: pd.DataFrame, headline: Headline) -> pd.DataFrame:
    """Return the rows that have the table, workload, cache level and program of a headline."""
    is_of_headline = rows["table"].eq(headline.table) & rows["workload"].eq(headline.workload)
    if headline.level:
        is_of_headline &= rows["cache_level"].eq(headline.level)
    if headline.instrument:
        return rows[is_of_headline & rows["instrument"].eq(headline.instrument)]
    return rows[is_of_headline & rows["is_own"]]


# -- a line


def line_of(frames: CampaignFrames, headline: Headline, rows: Sequence[Line]) -> CardLine:
    """Return the line of a headline from its row, or from the rows of several nodes.

    The value of several nodes is their median. The limit, the reference and the trust are those of the
    node nearest to the median.
    """
    measured = [row for row in rows if row.n]
    row = middle_of(measured) if measured else rows[0]
    if len(measured) > 1:
        runs = tuple(float(each.value) for each in measured)
    else:
        runs = values_of(frames.runs, row)
    value = statistics.median(runs) if runs else None
    shares: tuple[float, ...] = ()
    if row.limit is not None and row.efficiency is not None:
        if len(measured) > 1:
            # The limits of nodes differ by their clocks.
            shares = tuple(each.efficiency for each in measured if each.efficiency is not None)
        else:
            shares = shares_of(runs, row)
    reference = best_reference(frames.rows, row)
    share = statistics.median(shares) if shares else None
    trust, reason = judge(frames, row, measured)
    return CardLine(
        title=headline.title.format(block=size(row.block_bytes)),
        place=place_of(row, measured),
        point=row.point,
        subsystem=row.subsystem,
        value=value,
        runs=runs,
        text=amount(value, headline.unit),
        share=share,
        share_text="" if share is None else typeset(f"{percent(share)}%"),
        without_share=without_share(row, share),
        run_shares=shares,
        reference=reference.program if reference else "",
        reference_value=reference.value if reference else None,
        reference_share=reference.efficiency if reference else None,
        reference_text=reference_text(reference, headline.unit),
        trust=trust,
        reason=reason,
    )


def without_share(row: Line, share: float | None) -> str:
    """Return why a line has no share of the limit; empty if it has one or was not measured."""
    if share is not None or not row.n:
        return ""
    return "no limit known" if row.limit is None else "no share"


def middle_of(rows: Sequence[Line]) -> Line:
    """Return the row whose value is nearest to the median of all rows."""
    median = statistics.median([row.value for row in rows])
    return min(rows, key=lambda row: abs(row.value - median))


def values_of(runs: pd.DataFrame, row: Line) -> tuple[float, ...]:
    """Return the values of a row in the order of its repetitions."""
    is_of_row = runs["point"].eq(row.point) & runs["instrument"].eq(row.instrument)
    kept = runs[is_of_row & runs["kept"]].sort_values("repetition", kind="stable")
    return tuple(kept["value"].tolist())


def shares_of(values: Sequence[float], row: Line) -> tuple[float, ...]:
    """Return the share of the row's limit that each value reaches: for a time, limit / time."""
    if BY_NAME[row.table].lower_is_better:
        return tuple(row.limit / value for value in values)
    return tuple(value / row.limit for value in values)


def amount(value: float | None, unit: str) -> str:
    """Return a value with its unit, such as ``270 GFLOP/s``; a dash without a value."""
    if value is None:
        return "–"
    return typeset(quantity(value, unit, DIGITS))


def place_of(row: Line, measured: Sequence[Line]) -> str:
    """Return the number of threads and, for several nodes, of nodes: ``8 threads, 16 nodes``."""
    words = Labels.of(row).many(row.concurrency) if row.concurrency else row.concurrency_word
    if len(measured) < 2:
        return str(words)
    noun = "pair" if "+" in row.node else "node"
    return f"{words}, {plural(len(measured), noun)}"


def best_reference(rows: pd.DataFrame, row: Line) -> Line | None:
    """Return the best reference of a point that may be compared with peakmark's kernel."""
    if not row.is_own:
        return None
    others = rows[rows["point"].eq(row.point) & rows["is_comparable"] & ~rows["is_own"]]
    is_time = BY_NAME[row.table].lower_is_better
    ordered = others.sort_values("value", ascending=is_time, kind="stable")
    return next(schema.lines(ordered), None)


def reference_text(reference: Line | None, unit: str) -> str:
    """Return a reference with its share of the limit, or with its value if no limit is known."""
    if reference is None:
        return ""
    if reference.efficiency is None:
        return f"{reference.program} {amount(reference.value, unit)}"
    return typeset(f"{reference.program} {percent(reference.efficiency)}%")


# -- whether to trust it


def judge(frames: CampaignFrames, row: Line, measured: Sequence[Line]) -> tuple[Trust, str]:
    """Return whether a reader may use the value of a row, and the reason in a few words."""
    if not row.n:
        return Trust.NO, "not measured"
    notes = [note for note in notes_of(frames, row) if note.short]
    for note in notes:
        is_of_other = note.kind == WarningKind.NOT_DEVICE or note.code == "small-solve"
        if note.severity == Severity.WRONG or is_of_other:
            return Trust.NO, typeset(note.short)
    for note in notes:
        if note.severity != Severity.NOTE:
            return Trust.CARE, typeset(note.short)
    slow = sum(bool(each.is_slow) for each in measured)
    if slow:
        return Trust.CARE, f"{slow} of {plural(len(measured), 'node')} slow"
    if row.n == 1:
        return Trust.CARE, "measured once"
    # With six runs or more these are the ends of the interval of the median.
    if row.low is not None and row.high - row.low > VARIES * row.value:
        return Trust.CARE, typeset(f"varies {(row.high - row.low) / row.value:.0%}")
    return Trust.OK, ""


def notes_of(frames: CampaignFrames, row: Line) -> list[Line]:
    """Return the warnings on the value of a row, the most severe first."""
    warnings = frames.warnings
    is_of_row = warnings["point"].eq(row.point) & warnings["about"].isin(["", row.instrument])
    return sorted(schema.lines(warnings[is_of_row]), key=lambda note: ORDER.index(note.severity))
