"""Make ``warnings``: all messages about rows, and what they come to in ``rows``.

``add_warnings`` lists the steps. What is missing comes first, then what the checks say about each
program, then how programs and limits compare.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pandas as pd

from peakmark.catalogue import SUBSYSTEMS
from peakmark.formatting import size
from peakmark.messages import Message, Scope, Severity, WarningKind, message, worst
from peakmark.rows import checks, schema
from peakmark.rows.clocks import add_clocks
from peakmark.rows.point_limits import messages_of
from peakmark.rows.row_runs import Line, Messages, RowRuns, severity_of
from peakmark.rows.settings import deviations
from peakmark.statistics import median
from peakmark.storage.results import Results
from peakmark.tools.tables import BY_NAME, Table

DISAGREEMENT = 1.5
"""Factor between the values of two programs from which on they disagree."""
THROTTLED = 0.9
"""Share of the best clock of such work below which the clock is a warning."""
MOSTLY = 0.5
"""Share of the rows that can show a warning from which on it is stated once for the campaign."""
AT_LEAST = 4
"""Fewest rows of which a warning is stated once for the campaign."""
DISTURBANCES = ("steal", "other-load", "waited", "crowded-core", "clock-moved", "memory-load")
"""Codes of what disturbs runs."""
SHARED = (*DISTURBANCES, "few", "short-runs")
"""Codes of what can hold for a whole campaign."""
CLEARLY_WORSE = 2.0
"""Multiple of the campaign's usual disturbance from which on a row keeps a warning of its own."""
WHOLE_ROW = ("loopback",)
"""Codes of checks that are about the point, not about one program."""
HAS_CHECK = re.compile(r"loopback\b|\d+ threads shared? \d+ CPUs")
"""Warnings of programs that a check reports too, with what to do about it. No check does for disks."""


def add_warnings(
    rows: pd.DataFrame, runs: pd.DataFrame, results: Results
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return ``rows`` with a summary of the warnings on each, and the frame ``warnings``.

    Args:
        rows: see ``rows.build_rows``.
        runs: with the mark ``kept``.
        results: the campaign.
    """
    kept = runs[runs["kept"]].sort_values("repetition", kind="stable")
    rows = add_clocks(rows, kept, results)
    points = measured_points(rows, runs, results)
    notes = {point.name: messages_of_point(point) for point in points}
    for point in points:
        notes[point.name] += clock_below_best(point)
    doubted = {point.node for point in points if is_flush_doubted(notes[point.name], point)}
    for point in points:
        notes[point.name] += host_cache(notes[point.name], point, doubted)
    usual = widespread(points, notes)
    for point in points:
        if point.own:
            notes[point.name] = [for_campaign(note, usual) for note in notes[point.name]]
    return summarise_warnings(rows, notes), frame_of(notes)


# -- points


@dataclass(frozen=True)
class MeasuredPoint:
    """A point with the rows of all programs.

    Attributes:
        own_line: the line of peakmark's kernel, also where it measured nothing.
        measured: instrument -> its row, in the order of the instruments' names; none without runs.
        failures: lines of ``runs`` of failed attempts of peakmark's kernel.
        runs_above: instrument -> its lines of ``runs`` above the limit.
    """

    own_line: Line
    measured: Mapping[str, RowRuns]
    failures: Sequence[Line]
    runs_above: Mapping[str, Sequence[Line]]

    @property
    def name(self) -> str:
        """Return the point's name in the column ``point``."""
        return str(self.own_line.point)

    @property
    def node(self) -> str:
        """Return the node, or the pair, as planned."""
        return str(self.own_line.node)

    @cached_property
    def table(self) -> Table:
        """Return the table that shows the point."""
        return BY_NAME[self.own_line.table]

    @property
    def own(self) -> RowRuns | None:
        """Return the row of peakmark's kernel, None where it measured nothing."""
        return self.measured.get(self.own_line.instrument)


def measured_points(
    rows: pd.DataFrame, runs: pd.DataFrame, results: Results
) -> list[MeasuredPoint]:
    """Return all points in the order of ``rows``, with the runs that count."""
    kept = runs[runs["kept"]].sort_values("repetition", kind="stable")
    runs_of: dict[tuple[str, str], list[Line]] = defaultdict(list)
    for run in schema.lines(kept):
        runs_of[run.point, run.instrument].append(run)
    failures: dict[str, list[Line]] = defaultdict(list)
    failed = runs[runs["status"].eq("failed") & runs["table"].ne("")]
    for run in schema.lines(failed):
        failures[run.point].append(run)
    above: dict[str, dict[str, list[Line]]] = defaultdict(lambda: defaultdict(list))
    for run in schema.lines(runs[runs["above_limit"]]):
        above[run.point][run.instrument].append(run)
    own_lines: dict[str, Line] = {}
    measured: dict[str, dict[str, RowRuns]] = defaultdict(dict)
    for row in schema.lines(rows):
        if row.is_own:
            own_lines[row.point] = row
        if row.n:
            of_row = tuple(runs_of[row.point, row.instrument])
            facts = facts_of(row, of_row, results)
            measured[row.point][row.instrument] = RowRuns(row, of_row, facts)
    points = []
    for name, line in own_lines.items():
        by_name = dict(sorted(measured[name].items()))
        points.append(MeasuredPoint(line, by_name, failures[name], above[name]))
    return points


def facts_of(row: Line, runs: Sequence[Line], results: Results) -> Mapping[str, Any]:
    """Return the facts of the machine that the limit was made of, with the interface measured."""
    facts = results.facts_for(row.node, row.limit_host or None)
    for run in runs:
        if run.link:
            return {**facts, "network": json.loads(run.link)}
    return facts


# -- messages about a point


def messages_of_point(point: MeasuredPoint) -> list[Message]:
    """Return all messages about a point, but for those that depend on other points."""
    return [
        *holes(point),
        *unequal_nodes(point),
        *above_limit(point),
        *checked(point),
        *disagreements(point),
        *filled(point),
        *setting_deviations(point),
        *other_streams(point),
        *of_programs(point),
        *of_limit(point),
    ]


def holes(point: MeasuredPoint) -> Messages:
    """Report why values are missing, and cores that computed something wrong."""
    row = point.own_line
    if row.missing:
        yield message(
            "not-measured",
            case="" if point.own else "whole",
            about=row.instrument,
            missing=row.missing,
            planned=row.planned,
            reason=message("because", reason=row.reason) if row.reason else "",
        )
    for failure in point.failures:
        if failure.wrong_core is not None:
            core = failure.wrong_core
            yield message("wrong-core", Severity.UNSURE, host=failure.host, core=core)


def unequal_nodes(point: MeasuredPoint) -> Messages:
    """Report nodes that are not equal: the value is of none of them.

    A reference's value is not to be compared with peakmark's then.
    """
    own = point.own.row.unequal_nodes if point.own else ""
    if own:
        yield message("hosts", Severity.WRONG, differ=own)
        return
    for instrument, measured in point.measured.items():
        if measured.row.unequal_nodes:
            differ = measured.row.unequal_nodes
            yield message("hosts", Severity.WRONG, about=instrument, differ=differ)


def above_limit(point: MeasuredPoint) -> Messages:
    """Report runs that no measurement of the row can reach."""
    for instrument, measured in point.measured.items():
        runs = point.runs_above.get(instrument, ())
        case = "bound" if measured.row.limit_kind == "at_most" else ""
        severity = severity_of(len(runs), measured.row.n + len(runs))
        for run in runs:
            values = {"share": run.share, "number": run.repetition + 1}
            yield message("run-above-limit", severity, case=case, about=instrument, **values)


def checked(point: MeasuredPoint) -> Messages:
    """Report what the checks say: all about peakmark's kernel, of a reference only the doubts."""
    for program in point.table.series:
        measured = point.measured.get(program.instrument)
        if measured is None:
            continue
        for note in checks.check_row(measured):
            if note.is_warning or measured.row.is_own:
                about = "" if note.code in WHOLE_ROW else program.instrument
                yield replace(note, about=about)


def disagreements(point: MeasuredPoint) -> Messages:
    """Report references that disagree with peakmark's kernel.

    Of those that had other settings, ``setting_deviations`` says so.
    """
    if point.own is None:
        return
    deviating = {note.about for note in setting_deviations(point)}
    causes = likely_causes(point, point.own)
    for program in point.table.references:
        measured = point.measured.get(program.instrument)
        if not measured or not measured.row.is_comparable or program.instrument in deviating:
            continue
        low, high = sorted((point.own.row.value, measured.row.value))
        if high > DISAGREEMENT * low:
            names = {"first": point.table.own.heading, "second": program.heading}
            yield message("disagreement", factor=high / low, compare=causes, **names)


def likely_causes(point: MeasuredPoint, own: RowRuns) -> str:
    """Return what two programs that disagree may do differently: *buffers, files*."""
    if point.table.subsystem == "disk" and any(own.known("huge_pages")):
        heading = point.table.own.heading
        return f"buffers ({heading} has huge pages, which a disk fills in fewer pieces), files"
    return SUBSYSTEMS[point.table.subsystem].differs


def filled(point: MeasuredPoint) -> Messages:
    """Report a reference whose build takes no such block, and the one that was run for it."""
    headings = {program.instrument: program.heading for program in point.table.series}
    for instrument, measured in point.measured.items():
        other = measured.row.instead_of
        if other:
            block = size(measured.row.block_bytes)
            yield message("filled", about=instrument, other=headings.get(other, other), size=block)


def setting_deviations(point: MeasuredPoint) -> Messages:
    """Report references that compute or write otherwise than peakmark's kernel was asked to."""
    own = json.loads(point.own.row.settings) if point.own else {}
    for instrument, measured in point.measured.items():
        differ = deviations(own, instrument, json.loads(measured.row.settings))
        if differ and not measured.row.is_own:
            yield message("otherwise", about=instrument, ways="; ".join(differ))


def other_streams(point: MeasuredPoint) -> Messages:
    """Report echoes of another number of streams than the row's own."""
    ping = point.measured.get("ping")
    streams = {run.measured_concurrency for run in ping.runs} if ping else set()
    wanted = point.own_line.concurrency
    if streams and streams != {wanted}:
        yield message("ping-streams", about="ping", echoes=min(streams), streams=wanted)


def of_programs(point: MeasuredPoint) -> Messages:
    """Report what programs warned of, and values that a program estimated instead of measuring."""
    for instrument, measured in point.measured.items():
        runs_with: Counter[str] = Counter()
        for text in measured.texts("program_warnings"):
            once_a_run = dict.fromkeys(json.loads(text))
            runs_with.update(once_a_run.keys())
        n = measured.row.n
        for warning, count in runs_with.items():
            if HAS_CHECK.match(warning) and point.table.subsystem != "disk":
                continue
            often = message("runs", count=count, n=n) if count < n else ""
            yield message("warning", about=instrument, warning=warning, often=often)
        if any(measured.known("estimated")):
            yield message("derived", about=instrument)


def of_limit(point: MeasuredPoint) -> Messages:
    """Report what must be known about the limit, and pairs of nodes."""
    row = point.own_line
    for remark in messages_of(row.limit_remarks):
        yield message("limit", remark=remark)
    if row.limit_finding:
        finding = schema.message_of(json.loads(row.limit_finding))
        yield message("machine", remark=finding)
    ends = zip(row.clients.split("; "), row.servers.split("; "), strict=True)
    pairs = tuple(f"{client} → {server}" for client, server in ends if client != server)
    if len(pairs) > 1:
        yield message("pairs", pairs=pairs)


# -- messages that depend on other points


def clock_below_best(point: MeasuredPoint) -> Iterator[Message]:
    """Report a clock that is clearly below the best that is known of such work."""
    row = point.own_line
    if row.clock_share is not None and row.clock_share < THROTTLED:
        source = schema.message_of(json.loads(row.clock_source))
        yield message(
            "clock-below-best",
            Severity.UNSURE,
            about=row.instrument,
            share=row.clock_share,
            clock=row.clock_hz,
            source=source,
        )


def is_flush_doubted(notes: Sequence[Message], point: MeasuredPoint) -> bool:
    """Return whether the flush of a point tells that a host keeps the data in its memory."""
    own = (point.own_line.instrument, "")
    return any(note.code == "flush" and note.is_warning and note.about in own for note in notes)


def host_cache(
    notes: Sequence[Message], point: MeasuredPoint, doubted: set[str]
) -> Iterator[Message]:
    """Report rows of a disk whose host keeps data in memory, as the flush of other rows tells.

    That memory may answer reads as well. It is stated once for the campaign.
    """
    is_of_disk = point.table.subsystem == "disk" and point.node in doubted and point.own is not None
    if is_of_disk and not is_flush_doubted(notes, point):
        doubt = message("host-cache", Severity.UNSURE, about=point.own_line.instrument)
        yield replace(doubt, scope=Scope.CAMPAIGN)


def widespread(
    points: Sequence[MeasuredPoint], notes: Mapping[str, Sequence[Message]]
) -> dict[str, float]:
    """Return the codes that most measured rows have in common, with how strong each usually is.

    A code is counted among the rows that can show it. A disturbance counts where it is a doubt.
    """
    having: Counter[str] = Counter()
    able: Counter[str] = Counter()
    amounts: dict[str, list[float]] = defaultdict(list)
    for point in points:
        if point.own is None:
            continue
        able.update(codes_that_can_show(point.own))
        counted = [
            note for note in notes[point.name] if note.is_warning or note.code not in DISTURBANCES
        ]
        having.update({note.code for note in counted})
        for note in counted:
            amounts[note.code].append(amount_of(note))
    common = [code for code in SHARED if having[code] >= max(AT_LEAST, MOSTLY * able[code])]
    return {code: median(amounts[code] or [0.0]) for code in common}


TELLING = {
    "clock_before_hz": {"clock-moved"},
    "held_up_known": {"crowded-core"},
    "probe_before": {"memory-load"},
    "noise_known": {"steal", "other-load"},
}
"""Column of ``runs`` -> codes that cannot be seen where no run has it."""


def codes_that_can_show(own: RowRuns) -> set[str]:
    """Return the codes of ``SHARED`` that the runs of peakmark's kernel could have shown.

    Any other code is absent because nobody looked, not because nothing happened.
    """
    codes = set(SHARED)
    for column, seen in TELLING.items():
        if not any(own.known(column)):
            codes -= seen
    # With fewer threads than cores no thread has to wait, so its absence says nothing.
    cores = [run.allowed_cores or run.job_cpus or 0 for run in own.runs]
    if own.row.concurrency < max(cores) or not own.known("cpu_share"):
        codes -= {"waited"}
    return codes


def amount_of(note: Message) -> float:
    """Return how strong a disturbance was; 0 where nothing tells."""
    amount = dict(note.values).get("share")
    return float(amount) if isinstance(amount, int | float) else 0.0


def for_campaign(note: Message, usual: Mapping[str, float]) -> Message:
    """Return a message that is stated once for the campaign, where it is a common one.

    Args:
        note: about a row.
        usual: code -> how strong the disturbance usually is; a row that was disturbed clearly more
            strongly keeps its own.
    """
    if note.code not in usual:
        return note
    is_clearly_worse = note.is_warning and amount_of(note) > CLEARLY_WORSE * usual[note.code]
    return note if is_clearly_worse else replace(note, scope=Scope.CAMPAIGN)


# -- frames


def summarise_warnings(rows: pd.DataFrame, notes: Mapping[str, Sequence[Message]]) -> pd.DataFrame:
    """Add the heaviest severity of the warnings on each row, their kinds, and their codes.

    ``wrong_codes`` are those of the warnings that say that the value is wrong.
    """
    severities, kinds, codes, wrong = [], [], [], []
    for point, instrument in rows[["point", "instrument"]].itertuples(index=False):
        of_row = [note for note in notes[point] if note.about in ("", instrument)]
        severities.append(str(worst(of_row) or ""))
        kinds.append(", ".join(kinds_of(of_row)))
        codes.append(" ".join(dict.fromkeys(note.code for note in of_row)))
        of_wrong = {note.code for note in of_row if note.severity is Severity.WRONG}
        wrong.append(" ".join(sorted(of_wrong)))
    return rows.assign(severity=severities, warning_kinds=kinds, warnings=codes, wrong_codes=wrong)


def kinds_of(notes: Sequence[Message]) -> list[str]:
    """Return ``wrong``, then the kinds of warnings; what the whole campaign shares is left out."""
    named = {note.kind for note in notes if note.is_named and not note.is_shared}
    kinds = [str(kind) for kind in WarningKind if kind in named]
    if worst(notes) is Severity.WRONG:
        kinds.insert(0, "wrong")
    return kinds


def frame_of(notes: Mapping[str, Sequence[Message]]) -> pd.DataFrame:
    """Return all messages as ``warnings``."""
    lines = []
    for point, of_point in notes.items():
        lines += [schema.line_of_message(note, point) for note in of_point]
    return schema.typed("warnings", pd.DataFrame(lines))
