"""The messages of a row: of its checks, of what is missing, of programs; and those that most rows share."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from peakmark import statistics
from peakmark.analysis import checks, comparability, comparisons
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


def shared(notes: Sequence[Message], usual: Mapping[str, float]) -> tuple[Message, ...]:
    """The notes of a row, of which those that are common are the whole campaign's.

    Args:
        notes: of a row.
        usual: how strong a disturbance usually is, by its code; a row that was disturbed in most
            repetitions and clearly more strongly keeps it.
    """

    def is_usual(note: Message) -> bool:
        clearly_worse = note.is_warning and _amount(note) > CLEARLY * usual[note.code]
        return not clearly_worse

    return tuple(
        replace(note, scope=Scope.CAMPAIGN) if note.code in usual and is_usual(note) else note
        for note in notes
    )


WHOLE_ROW = ("loopback",)  # notes that are not about one instrument
_SAID = re.compile(r"loopback\b|\d+ threads shared? \d+ CPUs")


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


def disagreements(row: Row) -> Messages:
    """References that differ from the own kernel by more than the band: a finding about both."""
    unequal_nodes = {mark.about for mark in setting_deviations(row)}
    compare = SUBSYSTEMS[row.table.subsystem].differs
    own_points = row.own.points if row.own else ()
    if row.table.subsystem == "disk" and any(run.known("huge_pages") for run in own_points):
        compare = f"buffers ({row.table.own.heading} has huge pages, which a disk fills in fewer pieces), files"
    for program, series in comparisons.references(row) if row.own else ():
        own, other = row.measured.centre, series.centre
        factor = max(own, other) / min(own, other)
        if factor > BAND and program.instrument not in unequal_nodes:
            headings = {"first": row.table.own.heading, "second": program.heading}
            yield message("disagreement", factor=factor, compare=compare, **headings)


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


def holes(results: Results, row: Row, planned: list[Cell]) -> Messages:
    """Why the own kernel's figure, or some of its repetitions, are missing."""
    if not row.missing:
        return
    refused = [str(record.data["reason"]) for record in results.refused if record.cell in planned]
    failed = [str(record.data["reason"]) for record in results.attempts if record.cell in planned]
    reason = message("because", reason=(refused or failed)[-1]) if refused or failed else ""
    about = row.table.own.instrument
    if row.own is None:
        yield message("not-measured", case="whole", about=about, reason=reason)
    else:
        yield message(
            "not-measured", about=about, missing=row.missing, planned=len(planned), reason=reason
        )


def wrong_cores(results: Results, planned: list[Cell]) -> Messages:
    """The core that computed something wrong, of each failed attempt of the row."""
    for record in results.attempts:
        why = record.data["context"].get("why") or {}
        if record.cell in planned and why.get("code") == "wrong-result":
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
    nodes = {row.key.node for table in tables.values() for row in table if _flush_doubted(row)}
    return {
        name: [_kept(row) if row.key.node in nodes else row for row in table]
        for name, table in tables.items()
    }


def _flush_doubted(row: Row) -> bool:
    return any(doubt.code == "flush" for doubt in row.specific_warnings)


def _kept(row: Row) -> Row:
    if row.table.subsystem != "disk" or row.own is None or _flush_doubted(row):
        return row
    doubt = replace(
        message("host-cache", Severity.UNSURE, about=row.table.own.instrument), scope=Scope.CAMPAIGN
    )
    return replace(row, warnings=(*row.warnings, doubt))


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
