"""Compute the frame ``warnings``, with all messages about rows, and their summary in ``rows``.

``add_warnings`` lists the steps. The messages of a point are ordered: missing values, then the checks of
each program, then comparisons of programs and remarks on the limit.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pandas as pd

from peakmark.catalogue import KERNELS, SUBSYSTEMS
from peakmark.messages import OF_ANOTHER, Message, Trust, message, words, worst
from peakmark.rows import checks, schema
from peakmark.rows.placements import distance_of
from peakmark.rows.point_limits import add_clocks, facts_of
from peakmark.rows.rows import Line, Messages, RowRuns, trust_of
from peakmark.statistics import median
from peakmark.storage.results import Results
from peakmark.tools.tables import BY_NAME, Table

DISAGREEMENT = 1.5
"""Ratio of the values of two programs at one point, larger / smaller, above which they disagree."""
FLUSH_S = 1e-3
"""Duration below which a flush wrote nothing to the medium, s."""
FLUSHED_BYTES = 1e8
"""Number of written bytes above which a flush that is shorter than ``FLUSH_S`` is reported."""
LEAST_CLOCK_SHARE = 0.9
"""Share of the highest clock known for the same work below which a row has a warning."""
COMPARED_SETTINGS = ("instruction set", "stores", "sync", "fill")
"""Titles of the settings in which other programs are compared with peakmark's kernel."""
FIXED_SETTINGS: Mapping[str, Mapping[str, str]] = {"hpl": {"instruction set": "the widest"}}
"""Program -> title of a setting -> its value, for settings that the configuration cannot change."""
WRONG = "wrong: "
"""Beginning of a note on a printed value that must not be used."""
WHOLE_POINT = ("loopback",)
"""Codes of warnings that are about all programs of a point, not about one."""


def add_warnings(
    rows: pd.DataFrame, runs: pd.DataFrame, results: Results
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return ``rows`` with a summary of each row's warnings, and the frame ``warnings``.

    Args:
        rows: frame from ``rows.build_rows``.
        runs: frame with the column ``kept``, from ``rows.build_rows``.
        results: records and facts of the campaign.
    """
    kept = runs[runs["kept"]].sort_values("repetition", kind="stable")
    rows = add_clocks(rows, kept, results)
    notes: dict[str, list[Message]] = {}
    for point in measured_points(rows, runs, results):
        notes[point.name] = messages_of_point(point)
    doubted = nodes_with_host_cache(kept, results)
    for row in schema.lines(rows[rows["is_own"]]):
        notes[row.point] += clock_below_best(row)
        # Operations on empty files write no data that a host could keep.
        is_data = row.subsystem == "disk" and row.table != "disk_metadata"
        if is_data and row.n and row.node in doubted:
            notes[row.point].append(message("flush", Trust.NO, about=row.instrument))
    return summarise_warnings(rows, notes), frame_of(notes)


# -- points


@dataclass(frozen=True)
class MeasuredPoint:
    """A point with the rows of all programs.

    Attributes:
        own_line: line of ``rows`` of peakmark's kernel, with or without values.
        measured: instrument -> its row and runs, sorted by name, for instruments with values.
        failures: lines of ``runs`` for failed attempts of peakmark's kernel.
        left_out: instrument -> its lines of ``runs`` above the limit, or in another placement.
    """

    own_line: Line
    measured: Mapping[str, RowRuns]
    failures: Sequence[Line]
    left_out: Mapping[str, Sequence[Line]]

    @property
    def name(self) -> str:
        """Return the point's name in the column ``point``."""
        return str(self.own_line.point)

    @cached_property
    def table(self) -> Table:
        """Return the table that shows the point."""
        return BY_NAME[self.own_line.table]

    @property
    def own(self) -> RowRuns | None:
        """Return the row of peakmark's kernel; None if it has no values."""
        return self.measured.get(self.own_line.instrument)


def measured_points(
    rows: pd.DataFrame, runs: pd.DataFrame, results: Results
) -> Iterator[MeasuredPoint]:
    """Yield all points in the order of ``rows``, with their kept runs.

    Lines take far more memory than their frame: those of about ``schema.PART`` runs are made at a time.
    """
    # Number of runs of each point, in the order of the rows. Their sum so far tells the part of a point.
    sizes = runs["point"].value_counts().reindex(rows["point"].unique(), fill_value=0)
    for _, part in sizes.groupby(sizes.cumsum() // schema.PART):
        of_rows, of_runs = rows["point"].isin(part.index), runs["point"].isin(part.index)
        yield from points_of(rows[of_rows], runs[of_runs], results)


def points_of(rows: pd.DataFrame, runs: pd.DataFrame, results: Results) -> Iterator[MeasuredPoint]:
    """Yield the points of these rows and runs, in the order of the rows."""
    runs_of = runs_by_row(runs[runs["kept"]].sort_values("repetition", kind="stable"))
    failures = runs_by_row(runs[runs["status"].eq("failed") & runs["table"].ne("")])
    # Undisturbed values that do not count: above the limit, or in another placement.
    is_valid = runs["table"].ne("") & runs["value"].notna() & runs["disturbed"].eq("")
    left_out = runs_by_row(runs[is_valid & ~runs["kept"]])
    own_lines: dict[str, Line] = {}
    measured: dict[str, dict[str, RowRuns]] = defaultdict(dict)
    for row in schema.lines(rows):
        if row.is_own:
            own_lines[row.point] = row
        if row.n:
            of_row = tuple(runs_of[row.point, row.instrument])
            # The interface of the first run that recorded one.
            link = next((run.link for run in of_row if run.link), "")
            facts = facts_of(row.node, row.limit_host or None, link, results)
            measured[row.point][row.instrument] = RowRuns(row, of_row, facts)
    for name, line in own_lines.items():
        by_name = dict(sorted(measured[name].items()))
        yield MeasuredPoint(
            own_line=line,
            measured=by_name,
            failures=failures[name, line.instrument],
            left_out={instrument: left_out[name, instrument] for instrument in by_name},
        )


def runs_by_row(runs: pd.DataFrame) -> dict[tuple[str, str], list[Line]]:
    """Return (point, instrument) -> its lines of ``runs``, as a defaultdict: rows without runs have an empty list."""
    of_rows: dict[tuple[str, str], list[Line]] = defaultdict(list)
    for run in schema.lines(runs):
        of_rows[run.point, run.instrument].append(run)
    return of_rows


# -- messages about a point


def messages_of_point(point: MeasuredPoint) -> list[Message]:
    """Return all messages about a point, except those that depend on other points."""
    return [
        *missing_values(point),
        *unequal_nodes(point),
        *above_limit(point),
        *check_messages(point),
        *row_placements(point),
        *disagreements(point),
        *small_solves(point),
        *setting_deviations(point),
        *notes_on_values(point),
        *limit_remarks(point),
    ]


def missing_values(point: MeasuredPoint) -> Messages:
    """Report missing values with their reason, and cores that computed wrong results."""
    row = point.own_line
    if row.missing:
        yield message(
            "not-measured",
            case="" if point.own else "whole",
            about=row.instrument,
            missing=row.missing,
            planned=row.planned,
            reason=words("because", reason=row.reason) if row.reason else "",
        )
    for failure in point.failures:
        if failure.wrong_core is not None:
            core = f"the core of CPU {failure.wrong_core} on {failure.host}"
            yield message("wrong-result", Trust.CARE, case="core", core=core)


def unequal_nodes(point: MeasuredPoint) -> Messages:
    """Report unequal nodes: the median over them is the value of no node.

    If only a reference has unequal nodes, it must not be compared with peakmark's kernel.
    """
    own = point.own.row.unequal_nodes if point.own else ""
    if own:
        yield message("hosts", Trust.NO, differ=own)
        return
    for instrument, measured in point.measured.items():
        if measured.row.unequal_nodes:
            differ = measured.row.unequal_nodes
            yield message("hosts", Trust.NO, about=instrument, differ=differ)


def above_limit(point: MeasuredPoint) -> Messages:
    """Report runs above the limit of their row, which were left out."""
    for instrument, measured in point.measured.items():
        runs = [run for run in point.left_out[instrument] if run.above_limit]
        # The case chooses the message's text.
        case = "left-out-bound" if measured.row.limit_kind == "at_most" else "left-out"
        trust = trust_of(len(runs), measured.row.n + len(runs))
        for run in runs:
            yield message(
                "above-limit",
                trust,
                case=case,
                about=instrument,
                share=run.share,
                number=run.repetition + 1,
            )


def row_placements(point: MeasuredPoint) -> Messages:
    """Report the placement of the CPUs in each row that has one; runs of other placements were left out."""
    for instrument, measured in point.measured.items():
        # Runs are left out for their placement, or because they are above the limit.
        others = any(not run.above_limit for run in point.left_out[instrument])
        distance = distance_of(measured.row.band)
        # Another run may have another placement, and with it another value.
        trust, case = Trust.OK, ""
        if others:
            # Rows of the CPU, and runs of several nodes, may have several placements, and then no distance.
            of_cpu = "cores" if measured.row.subsystem == "cpu" else "mixed"
            trust, case = Trust.CARE, "others" if distance else of_cpu
        if others or distance:
            yield message("placement", trust, case=case, about=instrument, distance=distance)


def check_messages(point: MeasuredPoint) -> Messages:
    """Report the warnings and notes of the checks.

    Notes are reported for peakmark's kernel alone.
    """
    for program in point.table.series:
        measured = point.measured.get(program.instrument)
        if measured is None:
            continue
        for note in checks.check_row(measured):
            is_of_point = note.code in WHOLE_POINT
            # A warning about the whole point is reported once, for the kernel.
            if measured.row.is_own or (note.is_warning and not is_of_point):
                yield replace(note, about="" if is_of_point else program.instrument)


def disagreements(point: MeasuredPoint) -> Messages:
    """Report references that disagree with peakmark's kernel.

    References with other settings are left out, as ``setting_deviations`` reports them. So are disturbed
    values: the disturbance explains a difference.
    """
    if point.own is None or point.own.is_disturbed:
        return
    deviating = {note.about for note in setting_deviations(point)}
    for program in point.table.references:
        measured = point.measured.get(program.instrument)
        if not measured or not measured.row.is_comparable or program.instrument in deviating:
            continue
        factor = max(measured.row.ratio, 1 / measured.row.ratio)
        if factor > DISAGREEMENT and not measured.is_disturbed:
            compare = SUBSYSTEMS[point.table.subsystem].differs
            yield message("disagreement", about=program.instrument, factor=factor, compare=compare)


def small_solves(point: MeasuredPoint) -> Messages:
    """Report values of HPL whose matrix was too small to show HPL's full rate."""
    for instrument, measured in point.measured.items():
        small = [run.run_seconds for run in measured.runs if run.too_small and run.run_seconds]
        if small:
            yield message("small-solve", Trust.NO, about=instrument, seconds=median(small))


def setting_deviations(point: MeasuredPoint) -> Messages:
    """Report references whose settings differ from the settings of peakmark's kernel.

    Values from a printed report are skipped: a report does not print all settings of its programs.
    """
    own = json.loads(point.own.row.settings) if point.own else {}
    for instrument, measured in point.measured.items():
        differ = deviations(own, instrument, json.loads(measured.row.settings))
        if differ and not measured.row.is_own and not measured.row.printed_in:
            yield message("otherwise", about=instrument, ways="; ".join(differ))


def deviations(own: Mapping[str, str], program: str, other: Mapping[str, str]) -> list[str]:
    """Return the settings in which a program differs from peakmark's kernel, as texts.

    Each text has the setting's title, the program's value, and the kernel's value. The text ``fill overwrite,
    not new`` says that the program overwrites a file, while the kernel writes a new one.

    Args:
        own: settings of peakmark's kernel.
        program: name of the other program.
        other: settings of the other program.
    """
    used = {**other, **FIXED_SETTINGS.get(program, {})}
    found = []
    for title in COMPARED_SETTINGS:
        # A setting of the kernel that is ``auto`` agrees with any value.
        wanted = own.get(title, "auto")
        if title in used and wanted not in ("auto", used[title]):
            found.append(f"{title} {used[title]}, not {wanted}")
    return found


def notes_on_values(point: MeasuredPoint) -> Messages:
    """Report the notes on values that a report printed, and the warnings of the parsers of references.

    A note that begins with ``WRONG`` forbids the use of a value.
    """
    for instrument, measured in point.measured.items():
        # Checks judge what peakmark's kernels warn of.
        if measured.row.is_own and not measured.row.printed_in:
            continue
        # The keys are the notes of all runs, each once, in their order.
        notes = dict[str, None]()
        for text in measured.texts("program_warnings"):
            notes.update(dict.fromkeys(json.loads(text)))
        for note in notes:
            text = note.removeprefix(WRONG)
            if not measured.row.printed_in:
                yield message("warned", Trust.CARE, about=instrument, note=text)
            elif text == note:
                yield message("note", about=instrument, note=text)
            else:
                yield message("note", Trust.NO, case="wrong", about=instrument, note=text)


def limit_remarks(point: MeasuredPoint) -> Messages:
    """Report remarks on the limit."""
    row = point.own_line
    for remark in json.loads(row.limit_remarks or "[]"):
        yield message("limit", remark=remark)


# -- messages that depend on other points


def clock_below_best(row: Line) -> Messages:
    """Report a clock that is clearly below the highest clock known for the same work."""
    if row.clock_share is not None and row.clock_share < LEAST_CLOCK_SHARE:
        yield message(
            "slowed-down",
            Trust.CARE,
            case="below-best",
            about=row.instrument,
            share=row.clock_share,
            clock=row.clock_hz,
            source=row.clock_source,
        )


def nodes_with_host_cache(kept: pd.DataFrame, results: Results) -> set[str]:
    """Return the virtual machines whose flushes took no time: the host kept the data in memory.

    A physical machine is never returned: a disk that flushes as fast has a cache that survives a
    loss of power. The median of a row's runs counts: a disturbance lengthens single flushes.
    """
    is_kernel = kept["instrument"].eq(KERNELS["disk"]) & kept["table"].eq("disk_throughput")
    writes = kept[is_kernel & kept["workload"].str.startswith("W")]
    of_rows = writes.groupby(["point", "node", "host"])[["flush_seconds", "work"]].median()
    is_fast = of_rows["flush_seconds"].lt(FLUSH_S) & of_rows["work"].gt(FLUSHED_BYTES)
    nodes = set()
    for _, node, host in of_rows.index[is_fast]:
        if (results.facts_for(node, host).get("cpu") or {}).get("virtualised"):
            nodes.add(node)
    return nodes


# -- frames


def summarise_warnings(rows: pd.DataFrame, notes: Mapping[str, Sequence[Message]]) -> pd.DataFrame:
    """Add to each row the trust in its value, and the codes of its warnings.

    ``wrong_codes`` are the codes of warnings that make the value unusable in the report's sentences.
    """
    trusts, codes, wrong = [], [], []
    columns = rows[["point", "instrument", "n"]]
    for point, instrument, n in columns.itertuples(index=False):
        of_row = [note for note in notes[point] if note.about in ("", instrument)]
        trusts.append(str(worst(of_row)) if n else "")
        codes.append(" ".join(dict.fromkeys(note.code for note in of_row)))
        of_wrong = {note.code for note in of_row if note.trust is Trust.NO}
        # Sentences may use a right value of another thing than the device, such as loopback.
        wrong.append(" ".join(sorted(of_wrong.difference(OF_ANOTHER))))
    return rows.assign(trust=trusts, warnings=codes, wrong_codes=wrong)


def frame_of(notes: Mapping[str, Sequence[Message]]) -> pd.DataFrame:
    """Return the messages of all points as the frame ``warnings``."""
    lines = []
    for point, of_point in notes.items():
        lines += [line_of(note, point) for note in of_point]
    return schema.typed("warnings", pd.DataFrame(lines))


def line_of(note: Message, point: str) -> dict[str, Any]:
    """Return the line of ``warnings`` for a message about a point."""
    return {
        "point": point,
        "about": note.about,
        "code": note.code,
        "trust": str(note.trust),
        "amount": note.amount,
        "subject": note.subject,
        "short": note.short,
        "text": note.fact,
        "remedy": note.remedy,
    }
