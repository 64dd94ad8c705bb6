"""The messages of a row: of its checks, of what is missing, of programs; and those that most rows share."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from peakmark import statistics
from peakmark.analysis import checks, comparability, comparisons, core_checks
from peakmark.analysis.row import Measured, Messages, Row, Rows
from peakmark.catalogue import SUBSYSTEMS
from peakmark.cell import Cell
from peakmark.formatting import size
from peakmark.limits import Question
from peakmark.messages import Message, Scope, Severity, message
from peakmark.storage.results import Results

BAND = 1.5
"""Factor between two programs for the same quantity that is told."""
MOSTLY = 0.5
"""What this share of the rows show that can show it is a property of the machine or the time: said
once.
"""
AT_LEAST = 4
"""So many rows at least; of fewer, each is marked by itself."""
DISTURBANCES = ("steal", "other-load", "waited", "crowded-core", "clock-moved", "memory-load")
SHARED = (*DISTURBANCES, "few", "short-runs")
"""Codes of what can hold for a whole campaign."""
CLEARLY = 2.0
"""A row that was disturbed so many times as strongly as the campaign's others is marked itself."""


def widespread(rows: Sequence[Row]) -> dict[str, float]:
    """The codes that most measured rows have in common, with how strong each usually is.

    A code is counted among the rows that can show it: half of the rows with a clock are many,
    however many rows have none. A disturbance counts where it casts doubt, as in most repetitions
    of a row.
    """
    counted = [
        [note for note in row.warnings if note.is_warning or note.code not in DISTURBANCES]
        for row in rows
    ]
    having = Counter(code for notes in counted for code in {note.code for note in notes})
    able = Counter(code for row in rows for code in shown_by(row))
    common = [code for code in SHARED if having[code] >= max(AT_LEAST, MOSTLY * able[code])]
    amounts = {
        code: [_amount(note) for notes in counted for note in notes if note.code == code]
        for code in common
    }
    return {code: statistics.median(each) if each else 0.0 for code, each in amounts.items()}


def _amount(note: Message) -> float:
    """How strong a disturbance was; 0 where nothing tells."""
    amount = dict(note.values).get("share")
    return float(amount) if isinstance(amount, int | float) else 0.0


def shared(row: Row, usual: Mapping[str, float]) -> Row:
    """The row, of whose notes those that are common are the whole campaign's.

    Args:
        row: any.
        usual: how strong a disturbance usually is, by its code; a row that was disturbed in most
            repetitions and clearly more strongly keeps it.
    """

    def is_usual(note: Message) -> bool:
        clearly_worse = note.is_warning and _amount(note) > CLEARLY * usual[note.code]
        return not clearly_worse

    notes = (
        replace(note, scope=Scope.CAMPAIGN) if note.code in usual and is_usual(note) else note
        for note in row.warnings
    )
    return replace(row, warnings=tuple(notes))


WHOLE_ROW = ("loopback",)  # notes that are not about one instrument
_SAID = re.compile(r"loopback\b|\d+ threads shared? \d+ CPUs")


def of_row(
    results: Results, row: Row, question: Question, planned: Sequence[Cell]
) -> tuple[Message, ...]:
    """All warnings of a row.

    Args:
        results: of the campaign.
        row: without warnings.
        question: to which its limit is the answer.
        planned: cells of the own kernel that belong to the row.
    """
    return (
        *holes(results, row, planned),
        *hosts(row),
        *above_limit(row, question.clock_hz),
        *checked(row, question),
        *disagreements(row),
        *filled(row),
        *setting_deviations(row),
        *other_streams(row),
        *of_programs_and_limit(row),
    )


def checked(row: Row, question: Question) -> Messages:
    """What the checks say: all about the own kernel, of a reference only the doubts."""
    table, key = row.table, row.key
    nominal = question.clocks.get("nominal")
    for entry in table.series:
        series = row.series.get(entry.instrument)
        if series is None:
            continue
        measured = Measured(
            subsystem=table.subsystem,
            instrument=entry.instrument,
            workload=key.workload,
            variant=key.variant,
            block=key.block,
            concurrency=key.concurrency,
            metric=table.metric,
            runs=series.points,
            summary=series.summary,
            centre=series.centre,
            limit=row.limit,
            facts=question.facts,
            nominal_hz=nominal.hz if nominal else None,
        )
        for mark in checks.check_row(measured):
            if mark.is_warning or entry is table.own:
                yield mark if mark.code in WHOLE_ROW else replace(mark, about=entry.instrument)


def above_limit(row: Row, clock_hz: float | None) -> Messages:
    """Repetitions that no measurement of the row can reach.

    Args:
        row: with its limit.
        clock_hz: at which the limit holds.
    """
    case = "bound" if row.limit.kind == "at_most" else ""
    for about, series in row.series.items():
        level = core_checks.weight(len(series.above), series.summary.n + len(series.above))
        for point in series.above:
            values = {"share": point.share(row.limit, clock_hz), "number": point.repetition + 1}
            yield message("run-above-limit", level, case=case, about=about, **values)


def disagreements(row: Row) -> Messages:
    """References that differ from the own kernel by more than the band: a finding about both."""
    if row.own is None:
        return
    deviating = {mark.about for mark in setting_deviations(row)}
    compare = SUBSYSTEMS[row.table.subsystem].differs
    if row.table.subsystem == "disk" and any(run.known("huge_pages") for run in row.own.points):
        compare = f"buffers ({row.table.own.heading} has huge pages, which a disk fills in fewer pieces), files"
    for program, series in comparisons.references(row):
        low, high = sorted((row.own.centre, series.centre))
        if high > BAND * low and program.instrument not in deviating:
            headings = {"first": row.table.own.heading, "second": program.heading}
            yield message("disagreement", factor=high / low, compare=compare, **headings)


NEEDED = {
    "clock_hz_before": {"clock-moved"},
    "held_up": {"crowded-core"},
    "probe_before": {"memory-load"},
    "noise": {"steal", "other-load"},
}
"""What a record must have -> the codes that it cannot show without."""


def shown_by(row: Row) -> frozenset[str]:
    """The codes of ``SHARED`` that the records of the row's own kernel can show."""
    codes = set(SHARED)
    runs = row.measured.points
    for name, lost in NEEDED.items():
        if all(run.known(name) is None for run in runs):
            codes -= lost
    # Threads that leave cores to others give way to nobody; those that take all of them meet
    # whatever else there is.
    cores = max(
        (run.known("allowed") or {}).get("cores") or len(run.known("cpus") or ()) for run in runs
    )
    if row.key.concurrency < cores or not any(run.known("cpu_share") is not None for run in runs):
        codes -= {"waited"}
    return frozenset(codes)


def holes(results: Results, row: Row, planned: Sequence[Cell]) -> Messages:
    """Why the own kernel's figure, or some of its repetitions, are missing, and the core that computed
    something wrong, of each failed attempt.
    """
    failed = [record.data for record in results.attempts if record.cell in planned]
    if row.missing:
        refused = [record.data for record in results.refused if record.cell in planned]
        reasons = [str(data["reason"]) for data in refused or failed]
        yield message(
            "not-measured",
            case="" if row.own else "whole",
            about=row.table.own.instrument,
            missing=row.missing,
            planned=len(planned),
            reason=message("because", reason=reasons[-1]) if reasons else "",
        )
    for data in failed:
        why = data["context"].get("why") or {}
        if why.get("code") == "wrong-result":
            core = {name: why["values"][name] for name in ("host", "core")}
            yield message("wrong-core", Severity.UNSURE, **core)


def filled(row: Row) -> Messages:
    """A reference whose build takes no such block, and the one that was run for it."""
    called = {series.instrument: series.heading for series in row.table.series}
    for name, series in row.series.items():
        if series.instead_of:
            other = called.get(series.instead_of, series.instead_of)
            yield message("filled", about=name, other=other, size=size(row.key.block))


def setting_deviations(row: Row) -> Messages:
    """References that compute or write in another way than the own kernel was asked to in the same
    row.
    """
    own = comparability.settings(row.own, row.key.workload) if row.own else {}
    for name, series in row.series.items():
        differ = comparability.otherwise(
            own, name, comparability.settings(series, row.key.workload)
        )
        if name != row.table.own.instrument and differ:
            yield message("otherwise", about=name, ways="; ".join(differ))


def kept_by_host(tables: Rows) -> dict[str, list[Row]]:
    """The rows, of which those of a disk say so where its host keeps data in memory, as the flush
    of its large writes tells: that memory may answer its reads as well, and no figure of such a
    disk is without doubt. It is said once.
    """
    nodes = {row.key.node for table in tables.values() for row in table if _is_flush_doubted(row)}

    def kept(row: Row) -> Row:
        is_of_disk = row.table.subsystem == "disk" and row.key.node in nodes and row.own is not None
        if not is_of_disk or _is_flush_doubted(row):
            return row
        doubt = message("host-cache", Severity.UNSURE, about=row.table.own.instrument)
        return replace(row, warnings=(*row.warnings, replace(doubt, scope=Scope.CAMPAIGN)))

    return {name: [kept(row) for row in table] for name, table in tables.items()}


def _is_flush_doubted(row: Row) -> bool:
    return any(doubt.code == "flush" for doubt in row.specific_warnings)


def other_streams(row: Row) -> Messages:
    """Echoes of another number of streams than the row's own: the fewest there are stand beside
    every row without.
    """
    ping = row.series.get("ping")
    streams = {point.record.cell.concurrency for point in ping.points} if ping else set()
    if streams and streams != {row.key.concurrency}:
        yield message(
            "ping-streams", about="ping", echoes=min(streams), streams=row.key.concurrency
        )


def of_programs_and_limit(row: Row) -> Messages:
    """Warnings of the programs, derived figures, remarks on the limit."""
    for name, entry in row.series.items():
        counts = Counter(
            warning
            for point in entry.points
            for warning in dict.fromkeys(point.record.data["warnings"])
        )
        for warning, count in counts.items():
            if _SAID.match(warning) and row.table.subsystem != "disk":
                continue  # the checks say it too, with what to do about it
            often = (
                message("runs", count=count, n=entry.summary.n) if count < entry.summary.n else ""
            )
            yield message("warning", about=name, warning=warning, often=often)
        if any(point.details.get("estimate") for point in entry.points):
            yield message("derived", about=name)
    for remark in row.limit.remarks:
        yield message("limit", remark=remark)
    if row.limit.finding:
        yield message("machine", remark=row.limit.finding)
    if len(row.endpoints) > 1:
        yield message(
            "pairs", pairs=tuple(f"{client} → {server}" for client, server in row.endpoints)
        )


def hosts(row: Row) -> Messages:
    """Nodes that are not equal: the figure is of none of them, and a reference's is not to be
    compared with the own one.
    """
    own = row.unequal_nodes.get(row.table.own.instrument)
    for about, differ in {"": own}.items() if own else row.unequal_nodes.items():
        yield message("hosts", Severity.WRONG, about=about, differ=differ)
