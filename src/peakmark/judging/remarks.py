"""The remarks on a row, each with its weight: what checks find, why something is missing, what programs said."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from peakmark.catalogue.subsystems import SUBSYSTEMS
from peakmark.cell import Cell
from peakmark.formatting import natural, plural, size
from peakmark.judging import alike, checks, notes, ratios
from peakmark.judging.measured import Measured, Run
from peakmark.judging.notes import Level, Note
from peakmark.judging.row import Row
from peakmark.planning import adaptive
from peakmark.storage.results import Results

WHOLE_ROW = ("loopback",)  # notes that are not about one instrument
NAMED = 4
"""So many hosts are named; of more the table of runs tells them."""
_SAID = re.compile(r"loopback\b|\d+ threads shared? \d+ CPUs")


def checked(row: Row, facts: Mapping[str, Any], nominal_hz: float | None = None) -> Iterator[Note]:
    """What the checks say: all about the own kernel, of a reference only the doubts."""
    table, key = row.table, row.key
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
            unit=table.unit,
            runs=[
                Run(point.value, point.details, point.record.data["context"], point.record.cell.options)
                for point in series.points
            ],
            summary=series.summary,
            centre=series.centre,
            limit=row.limit,
            facts=facts,
            nominal_hz=nominal_hz,
        )
        for note in checks.check_row(measured):
            if note.doubt or entry is table.own:
                whole = note.code in WHOLE_ROW
                yield note if whole else replace(note, about=entry.instrument)
    # An echo is answered by the kernel: that it differs from a round trip of programs says nothing about either.
    unlike = {note.about for note in done_otherwise(row)}
    headings = {
        one.instrument: one.heading for one in table.series if one.instrument not in {*ratios.NOT_ALIKE, *unlike}
    }
    theirs = {name: row.series[name] for name in headings if name in row.series}
    centres = {
        name: series.centre
        for name, series in theirs.items()
        if (row.own is None or ratios.met(row.own, series)) and ratios.is_measured(series)
    }
    compare = SUBSYSTEMS[table.subsystem].differs
    if table.subsystem == "disk" and row.own and any(point.details.get("huge_pages") for point in row.own.points):
        compare = f"buffers ({table.own.heading} has huge pages, which a disk fills in fewer pieces), files"
    known = [name for name in centres if row.own and name != table.own.instrument and ratios.differences(row, name)]
    yield from checks.check_agreement(
        centres, own=table.own.instrument, compare=compare, headings=headings, explained=known
    )


def shown_by(row: Row) -> frozenset[str]:
    """The codes of ``notes.SHARED`` that the records of the row's own kernel can show."""
    found = set(notes.SHARED)
    runs = [Run(point.value, point.details, point.record.data["context"]) for point in row.measured.points]
    if not any((run.known("noise") or {}).get("during") for run in runs):
        found -= {"steal", "other-load"}
    if not any(run.known("clock_hz_before") for run in runs):
        found -= {"clock-moved", "clock-differs"}
    if not any(run.known("held_up") is not None for run in runs):
        found -= {"crowded-core"}
    # Threads that leave cores to others give way to nobody; those that take all of them meet whatever else there is.
    cores = max((run.known("allowed") or {}).get("cores") or len(run.known("cpus") or ()) for run in runs)
    if row.key.concurrency < cores or not any(run.known("cpu_share") is not None for run in runs):
        found -= {"waited"}
    return frozenset(found)


def holes(results: Results, row: Row, planned: list[Cell]) -> Iterator[Note]:
    """Why the own kernel's figure, or some of its repetitions, are missing."""
    if not row.missing:
        return
    refused = [str(record.data["reason"]) for record in results.refused if record.cell in planned]
    failed = [str(record.data["reason"]) for record in results.attempts if record.cell in planned]
    reason = f": {(refused or failed)[-1]}" if refused or failed else ""
    total = "not measured" if row.own is None else f"{row.missing} of {len(planned)} not measured"
    yield Note("not-measured", f"{total}{reason}", Level.NOTE, row.table.own.instrument)


def unsure(results: Results, row: Row) -> Iterator[Note]:
    """Series that were repeated up to their limit without becoming as sure as was asked."""
    for entry in row.table.series:
        points = row.series[entry.instrument].points if entry.instrument in row.series else ()
        decision = results.decisions.get(points[0].record.cell.row) if points else None
        text = adaptive.shortfall(decision) if decision else None
        if text:
            yield Note("shortfall", text, Level.NOTE, entry.instrument)


def filled(row: Row) -> Iterator[Note]:
    """A reference whose build takes no such block, and the one that was run for it."""
    called = {series.instrument: series.heading for series in row.table.series}
    for name, series in row.series.items():
        if series.instead_of:
            other = called.get(series.instead_of, series.instead_of)
            text = f"run in place of {other}, whose build takes no record of {size(row.key.block)}"
            yield Note("filled", text, Level.NOTE, name)


def done_otherwise(row: Row) -> Iterator[Note]:
    """References that compute or write in another way than the own kernel was asked to in the same row."""
    own = alike.terms(row.own, row.key.workload) if row.own else {}
    for name, series in row.series.items():
        differ = alike.otherwise(own, name, alike.terms(series, row.key.workload))
        if name != row.table.own.instrument and differ:
            yield Note("otherwise", f"not done alike ({'; '.join(differ)})", Level.NOTE, name)


def kept_by_host(tables: Mapping[str, Sequence[Row]]) -> dict[str, list[Row]]:
    """The rows, of which those of a disk say so where its host keeps data in memory, as the flush of its large writes tells:
    that memory may answer its reads as well, and no figure of such a disk is without doubt. It is said once.
    """
    nodes = {row.key.node for table in tables.values() for row in table if _flush_doubted(row)}
    return {name: [_kept(row) if row.key.node in nodes else row for row in table] for name, table in tables.items()}


def _flush_doubted(row: Row) -> bool:
    return any(note.code == "flush" for note in row.doubts)


def _kept(row: Row) -> Row:
    if row.table.subsystem != "disk" or row.own is None or _flush_doubted(row):
        return row
    text = (
        "the disk's host may keep its data in memory, as short flushes suggest: compare with the disk's datasheet, or use files"
        " larger than that memory"
    )
    note = Note("host-cache", text, Level.UNSURE, row.table.own.instrument, whole=True)
    return replace(row, marks=(*row.marks, note))


def other_streams(row: Row) -> Iterator[Note]:
    """Echoes of another number of streams than the row's own: the fewest there are stand beside every row without."""
    ping = row.series.get("ping")
    streams = {point.record.cell.concurrency for point in ping.points} if ping else set()
    if streams and streams != {row.key.concurrency}:
        many = row.key.concurrency
        text = f"echoes of {plural(min(streams), 'stream')} stand beside {plural(many, 'stream')} here"
        yield Note("ping-streams", text, Level.NOTE, "ping")


def of_programs_and_limit(row: Row) -> Iterator[Note]:
    """Warnings of the programs, derived figures, remarks on the limit."""
    for name, entry in row.series.items():
        counts = Counter(warning for point in entry.points for warning in dict.fromkeys(point.record.data["warnings"]))
        for warning, count in counts.items():
            if _SAID.match(warning) and row.table.subsystem != "disk":
                continue  # the checks say it too, with what to do about it
            often = f" ({count} of {entry.summary.n} runs)" if count < entry.summary.n else ""
            yield Note("warning", f"{warning}{often}", Level.NOTE, name)
        if any(point.details.get("estimate") for point in entry.points):
            yield Note("derived", "derived from other figures, not measured", Level.NOTE, name)
    if row.limit.note:
        yield Note("limit", f"theoretical value: {row.limit.note}", Level.NOTE)
    if row.limit.finding:
        yield Note("machine", row.limit.finding, Level.NOTE)
    if len(row.ends) > 1:
        pairs = ", ".join(f"{client} → {server}" for client, server in row.ends)
        yield Note("pairs", f"measured between different pairs of nodes, client → server: {pairs}", Level.NOTE)


def hosts(row: Row) -> Iterator[Note]:
    """Several hosts in one row: a doubt where they have no limit in common. Of equal ones it is said, and nothing is claimed."""
    names = sorted({name for entry in row.series.values() for name in entry.hosts}, key=natural)
    if len(names) > 1:
        named = f" ({', '.join(names)})" if len(names) <= NAMED else ""
        text = f"measured on {len(names)} different hosts{named}"
        text += ", and nothing is claimed of a row that mixes them: name the nodes (nodes:)" if row.mixed else ""
        yield Note("hosts", text, Level.UNSURE if row.unlike else Level.NOTE)
