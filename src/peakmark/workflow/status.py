"""How far a campaign has come, from its plan, its records and, on a cluster, one call of squeue; and
the summary of a run that has ended.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peakmark import files, slurm
from peakmark.catalogue import SUBSYSTEMS
from peakmark.cell import Cell
from peakmark.errors import RecordError
from peakmark.formatting import natural, plural
from peakmark.messages import message
from peakmark.plan import jobs
from peakmark.resources import program
from peakmark.run.job import NODES, output_path
from peakmark.slurm import failures
from peakmark.slurm.queue import present_cell
from peakmark.storage import records
from peakmark.storage.results import Results

STATES = ("done", "running", "pending", "failed", "damaged", "outdated", "missing", "spared")
COMMON = 4
"""So many failures with one reason are listed together."""
NAMED = 3
"""So many cells of one reason are named."""
UNFIT = {records.DAMAGED: "damaged", records.OTHER: "outdated"}
"""Records that do not count, and the state of such a cell."""


@dataclass(frozen=True)
class Failure:
    """The newest failed attempt of a cell.

    Attributes:
        shared: the reason without the number of the job, which many cells may share.
        job_log: what Slurm wrote of a job that it ended.
    """

    cell: Cell
    host: str
    reason: str
    shared: str
    attempt: Path
    job_log: Path | None = None


@dataclass(frozen=True)
class Standing:
    """The state of one cell.

    Attributes:
        job: set while it is running or pending.
        failure: set when an attempt has failed.
        reason: why a record does not count.
        record: one that does.
    """

    cell: Cell
    state: str
    job: slurm.Job | None = None
    failure: Failure | None = None
    reason: str = ""
    record: Mapping[str, Any] | None = None

    @property
    def node(self) -> str:
        if self.job and self.job.nodes:
            return self.job.nodes
        return self.failure.host if self.failure and self.state == "failed" else self.cell.node


@dataclass(frozen=True)
class Description:
    """How far a campaign has come as text, and whether every cell is measured that is needed."""

    text: str
    complete: bool


def describe(
    campaign: Results, only_failed: bool = False, interrupted: bool = False
) -> Description:
    """Counts by subsystem and node, jobs, then every cell that has failed, with reason, log and
    command.

    Args:
        campaign: the campaign.
        only_failed: only what it lacks, as a run prints that has failed.
        interrupted: that run was ended by Ctrl-C.
    """
    queue, trouble = _queue(campaign)
    standings = look(campaign, queue)
    missing = [standing for standing in standings if standing.state not in ("done", "spared")]
    lines = [] if only_failed else _counts_and_jobs(campaign, standings, missing, queue)
    if trouble and missing and not only_failed:
        lines.append(f"running and pending jobs are not known: {trouble}")
    reasons = [standing.reason for standing in standings if standing.reason]
    reasons += campaign.damaged_facts.values()
    lines += [f"does not count: {reason}" for reason in reasons]
    lines += impossible(
        (standing.cell, standing.record) for standing in standings if standing.record is not None
    )
    failed = [standing for standing in missing if standing.state == "failed"]
    if failed:
        lines.append(f"{len(failed)} failed; the next run measures them again:")
        lines += _failures(campaign, [one.failure for one in failed if one.failure is not None])
    others = [standing.cell.id for standing in missing if standing.state != "failed"]
    if only_failed and others:
        cells = plural(len(others), "more cell" if failed else "cell")
        are, them = ("is", "it") if len(others) == 1 else ("are", "them")
        lines.append(f"{cells} {are} not measured; the next run goes on with {them}:")
        lines += [f"  {name}" for name in others]
    if not missing:
        lines.append(_end(campaign, only_failed, interrupted))
    elif full := files.full(campaign.directory):
        lines.append(full)
    if only_failed and missing:
        partial = f"{program('peakmark')} report --partial {shlex.quote(str(campaign.directory))}"
        lines.append(f"the report without them: {partial}")
    return Description("\n".join(lines), complete=not missing)


def summary(directory: Path) -> str:
    """Where the results of a run are: report and tables, the most telling numbers with their
    warnings, cells that are not possible, and commands that can be pasted.

    Raises:
        RecordError: there is no campaign.
    """
    from peakmark.analysis import analysis, verdict  # not for ``peakmark status``

    results = Results.read(directory)
    lines = [""]
    for name, file in (("report", "report.pdf"), ("page", "report.html"), ("tables", "tables")):
        if (directory / file).exists():
            lines.append(f"{name:<7} {directory / file}")
    lines.append("")
    for entry in verdict.verdicts(analysis.build_rows(results)):
        lines.append(f"  {entry.title:<8} {entry.text.full_sentence}")
        lines += [f"           {entry.caution}"] if entry.caution else []
    again = sum(bool(record.data.get("disturbed")) for record in results.records)
    lines += ["", message("measured-again", count=again).text] if again else []
    lines += impossible((record.cell, record.data) for record in results.records)
    bundle = f"{program('peakmark')} bundle {shlex.quote(str(directory))}"
    lines += [
        "",
        f"to measure what is missing    {command(results)}",
        f"to keep all of it in one file {bundle}",
    ]
    return "\n".join(lines)


def impossible(records_of: Iterable[tuple[Cell, Mapping[str, Any]]]) -> list[str]:
    """Cells that this machine cannot measure: a line that counts them, then two for each reason."""
    reasons: dict[str, list[str]] = {}
    for cell, record in records_of:
        if record["status"] == "unavailable":
            reasons.setdefault(str(record["reason"]), []).append(cell.id)
    if not reasons:
        return []
    stays = plural(
        sum(map(len, reasons.values())),
        "cell is not possible here and stays empty",
        "cells are not possible here and stay empty",
    )
    lines = [f"{stays}:"]
    for reason, names in sorted(reasons.items(), key=lambda entry: -len(entry[1])):
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        lines += [f"  {', '.join(names[:NAMED])}{more}", f"    {reason}"]
    return lines


def look(campaign: Results, queue: Iterable[slurm.Job] = ()) -> list[Standing]:
    """The state of every cell of the plan."""
    by_name = {job.comment.partition(" ")[0]: job for job in queue}
    present = {present_cell(path) for path in (campaign.directory / NODES).glob("*.now")}

    def standing(cell: Cell) -> Standing:
        finding = campaign.findings[cell.id]
        if finding.state == records.GOOD:
            return Standing(cell, "done", record=finding.data)
        if cell.id in campaign.spared:
            return Standing(cell, "spared")
        single = by_name.get(f"{campaign.name}/{cell.id}")
        job = single or by_name.get(f"{campaign.name}/{NODES}/{campaign.jobs.get(cell.id)}")
        if job is None and finding.state in UNFIT:
            return Standing(cell, UNFIT[finding.state], reason=finding.sentence)
        failure = last_failure(campaign, cell)
        if job is None:
            return Standing(cell, "failed" if failure else "missing", failure=failure)
        running = job.state != "PENDING" and (single is not None or cell.id in present)
        return Standing(cell, "running" if running else "pending", job, failure)

    return [standing(cell) for cell in campaign.planned]


def last_failure(campaign: Results, cell: Cell) -> Failure | None:
    """The newest failed attempt, None when there was none."""
    *_, path = (None, *records.attempts(campaign.directory, cell))
    if path is None:
        return None
    try:
        record = records.read(path)
    except RecordError as error:
        return Failure(cell, "unknown", str(error), str(error), path)
    context, reason = record["context"], str(record["reason"])
    log = (context.get("slurm") or {}).get("log")
    known = failures.read_reason(record)
    shared = known.text if known else reason
    return Failure(cell, str(context["host"]), reason, shared, path, Path(log) if log else None)


def command(campaign: Results, cell: Cell | None = None) -> str:
    """Command that measures this cell alone, or all that is missing, to be pasted into a shell in
    the folder of ``results``.
    """
    option = " --slurm" if campaign.plan.get("cluster") else ""
    target = ""
    if cell:
        name = campaign.jobs.get(cell.id)
        path = output_path(campaign.directory, name) if name else campaign.record_path(cell)
        target = f" -- {shlex.quote(str(path))}"
    config = shlex.quote(str(campaign.directory / "config.json"))
    return f"{program('peakmark')} run {config}{option}{target}"


def _queue(campaign: Results) -> tuple[list[slurm.Job], str | None]:
    """My jobs that were submitted from this checkout, and why they cannot be known."""
    if not campaign.plan.get("cluster"):
        return [], None
    mark = f" {jobs.checkout(campaign.directory.resolve().parents[1])}."
    try:
        return [job for job in slurm.jobs() if mark in job.comment], None
    except slurm.SlurmError as error:
        return [], str(error)


def _counts_and_jobs(
    campaign: Results,
    standings: Sequence[Standing],
    missing: Sequence[Standing],
    queue: Sequence[slurm.Job],
) -> list[str]:
    """Counts by subsystem and node, running jobs with their cells, pending ones by Slurm's reason."""
    spared = sum(standing.state == "spared" for standing in standings)
    total = len(standings) - spared
    more = f"; {spared} spared, as their rows are sure enough or cannot be made so"
    cells = f"{total - len(missing)} of {plural(total, 'cell')} done{more if spared else ''}"
    lines = [f"{campaign.directory}: {cells}"]
    lines += _counts("subsystem", SUBSYSTEMS, standings, lambda standing: standing.cell.subsystem)
    if campaign.plan.get("cluster"):
        nodes = sorted({standing.node for standing in missing}, key=natural)
        lines += _counts("node", nodes, missing, lambda standing: standing.node)
    numbers = {standing.job.number for standing in standings if standing.job}
    queue = [job for job in queue if job.number in numbers]
    for job in (job for job in queue if job.state != "PENDING"):
        running = (one for one in standings if one.job == job and one.state == "running")
        about = f"{job.number:<8} {job.state.lower():<10} {job.nodes:<14} {job.elapsed:>9}"
        lines.append(f"  job {about}  {', '.join(one.cell.id for one in running)}")
    reasons = Counter(job.reason for job in queue if job.state == "PENDING")
    for reason, count in reasons.most_common():
        lines.append(f"  {plural(count, 'job')} pending: {reason}")
    return lines


def _counts(
    title: str,
    names: Iterable[str],
    standings: Sequence[Standing],
    group: Callable[[Standing], str],
) -> list[str]:
    """A small table: a line per name, a column per state that occurs."""
    counts = Counter((group(standing), standing.state) for standing in standings)
    states = [state for state in STATES if any(state == known for _, known in counts)]
    lines = []
    for name in names:
        numbers = [counts[name, state] for state in states]
        if any(numbers):
            lines.append(f"  {name:<12}" + "".join(f"{number:>9}" for number in numbers))
    heading = f"  {title:<12}" + "".join(f"{state:>9}" for state in states)
    return [heading, *lines] if lines else []


def _failures(campaign: Results, failed: Iterable[Failure]) -> list[str]:
    """Every cell that has failed; a reason that many share stands there once."""
    groups: dict[str, list[Failure]] = {}
    for failure in failed:
        groups.setdefault(failure.shared, []).append(failure)
    lines = []
    for reason, members in groups.items():
        if len(members) < COMMON:
            for failure in members:
                lines += [f"  {failure.cell.id}", f"    {failure.host}: {failure.reason}"]
                lines += _evidence(campaign, failure)
            continue
        nodes = sorted({failure.host for failure in members}, key=natural)
        lines.append(f"  {len(members)} cells, {', '.join(nodes)}: {reason}")
        lines += [f"    {failure.cell.id}" for failure in members]
        lines += _evidence(campaign, members[0])
    return lines


def _evidence(campaign: Results, failure: Failure) -> list[str]:
    """Attempt and logs of a failed cell, and the command that measures it again."""
    lines = [f"    attempt  {failure.attempt}"]
    for path in (campaign.directory / "logs" / f"{failure.cell.id}.log", failure.job_log):
        if path is not None and path.is_file() and path.stat().st_size:
            lines.append(f"    log      {path}")
    return [*lines, f"    again    {command(campaign, failure.cell)}"]


def _end(campaign: Results, only_failed: bool, interrupted: bool) -> str:
    """The last line where every cell is measured."""
    if not only_failed:
        return "complete"
    if interrupted:
        return (
            f"interrupted; every cell is measured. To finish tables and report: {command(campaign)}"
        )
    return "every cell is measured: it is tables, figures or report that failed, and their log says why"
