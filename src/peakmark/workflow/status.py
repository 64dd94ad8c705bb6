"""How far a campaign has come: from its plan, its records and, on a cluster, one call of squeue."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peakmark import files, slurm
from peakmark.catalogue import SUBSYSTEMS
from peakmark.cell import Cell
from peakmark.errors import RecordError
from peakmark.formatting import natural, plural
from peakmark.plan import jobs
from peakmark.resources import program, snakemake
from peakmark.run.job import NODES, output_path
from peakmark.storage import attempts, integrity, records
from peakmark.storage.results import Results
from peakmark.workflow import current_cell, failures

STATES = ("done", "running", "pending", "failed", "damaged", "outdated", "missing", "spared")
ALIKE = 4
"""So many failures with one reason are told together."""
NAMED = 3
"""So many cells of one reason are named."""
UNFIT = {integrity.DAMAGED: "damaged", integrity.OTHER: "outdated"}
"""Records that do not count, and what such a cell is called here."""


@dataclass(frozen=True)
class Failure:
    """The newest failed attempt of a cell.

    shared   the reason without the number of the job, which many cells may share
    job_log  where Slurm wrote of a job that it ended
    """

    host: str
    reason: str
    shared: str
    attempt: Path
    job_log: Path | None = None


@dataclass(frozen=True)
class Standing:
    """Where one cell stands. ``job`` is set while it is running or pending, ``failure`` when an
    attempt has failed.

    ``reason`` says why a record that is there does not count; ``record`` is one that does.
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
    """How far a campaign has come, in words, and whether every cell is measured that is needed."""

    text: str
    complete: bool


def describe(
    campaign: Results, only_failed: bool = False, interrupted: bool = False
) -> Description:
    """Counts by subsystem and node, jobs, then every cell that has failed, with reason, log and
    command.

    Args:
        campaign: the campaign.
        only_failed: what a run that has ended badly says: only what it lacks.
        interrupted: that run was ended by Ctrl-C.
    """
    queue, trouble = _queue(campaign)
    standings = look(campaign, queue)
    missing = [standing for standing in standings if standing.state not in ("done", "spared")]
    lines = []
    if not only_failed:
        spared = sum(standing.state == "spared" for standing in standings)
        done = len(standings) - spared - len(missing)
        more = (
            f"; {spared} spared, as their rows are sure enough or cannot be made so"
            if spared
            else ""
        )
        lines.append(
            f"{campaign.directory}: {done} of {plural(len(standings) - spared, 'cell')} done{more}"
        )
        lines += _counts(
            "subsystem", SUBSYSTEMS, standings, lambda standing: standing.cell.subsystem
        )
        if campaign.plan.get("cluster"):
            nodes = sorted({standing.node for standing in missing}, key=natural)
            lines += _counts("node", nodes, missing, lambda standing: standing.node)
        lines += _jobs(queue, standings)
        if trouble and missing:
            lines.append(f"running and pending jobs are not known: {trouble}")
    lines += [f"does not count: {standing.reason}" for standing in standings if standing.reason]
    lines += [f"does not count: {reason}" for reason in campaign.damaged_facts.values()]
    lines += impossible(
        (standing.cell, standing.record) for standing in standings if standing.record is not None
    )
    failed = {
        standing.cell: standing.failure
        for standing in standings
        if standing.state == "failed" and standing.failure is not None
    }
    if failed:
        lines.append(f"{len(failed)} failed; the next run measures them again:")
        lines += _failures(campaign, failed)
    if only_failed and (rest := [standing for standing in missing if standing.state != "failed"]):
        what = plural(len(rest), "more cell" if failed else "cell")
        are, them = ("is", "it") if len(rest) == 1 else ("are", "them")
        lines.append(f"{what} {are} not measured; the next run goes on with {them}:")
        lines += [f"  {standing.cell.id}" for standing in rest]
    elif not missing and only_failed and interrupted:
        lines.append(
            f"interrupted; every cell is measured. To finish tables and report: {command(campaign)}"
        )
    elif not missing and only_failed:
        lines.append(
            "every cell is measured: it is tables, figures or report that failed, and their log says why"
        )
    elif not missing:
        lines.append("complete")
    if missing and (full := files.full(campaign.directory)):
        lines.append(full)
    if only_failed and missing:
        partial = f"{program('peakmark')} report --partial {shlex.quote(str(campaign.directory))}"
        lines.append(f"the report without them: {partial}")
    return Description("\n".join(lines), complete=not missing)


def impossible(records_of: Iterable[tuple[Cell, Mapping[str, Any]]]) -> list[str]:
    """Of cells with their records those that this machine cannot measure: final, but said at the
    end of every run. A line that counts them, then two for each reason.
    """
    reasons: dict[str, list[str]] = {}
    for cell, record in records_of:
        if record["status"] == "unavailable":
            reasons.setdefault(str(record["reason"]), []).append(cell.id)
    total = sum(map(len, reasons.values()))
    stays = plural(
        total,
        "cell is not possible here and stays empty",
        "cells are not possible here and stay empty",
    )
    lines = [f"{stays}:"] if total else []
    for reason, ids in sorted(reasons.items(), key=lambda entry: -len(entry[1])):
        more = f" and {len(ids) - NAMED} more" if len(ids) > NAMED else ""
        lines += [f"  {', '.join(ids[:NAMED])}{more}", f"    {reason}"]
    return lines


def look(campaign: Results, queue: Iterable[slurm.Job] = ()) -> list[Standing]:
    """Every cell of the plan and where it stands."""
    by_name = {job.comment.partition(" ")[0]: job for job in queue}
    current = {current_cell.read(path) for path in (campaign.directory / NODES).glob("*.now")}

    def standing(cell: Cell) -> Standing:
        record = campaign.findings[cell.id]
        if record.state == integrity.GOOD:
            return Standing(cell, "done", record=record.data)
        if cell.id in campaign.spared:
            return Standing(cell, "spared")
        own = by_name.get(f"{campaign.name}/{cell.id}")
        job = own or by_name.get(f"{campaign.name}/{NODES}/{campaign.jobs.get(cell.id)}")
        if job is None and record.state in UNFIT:
            return Standing(cell, UNFIT[record.state], reason=record.sentence)
        failure = last_failure(campaign, cell)
        if job is None:
            return Standing(cell, "failed" if failure else "missing", failure=failure)
        running = job.state != "PENDING" and (own is not None or cell.id in current)
        return Standing(cell, "running" if running else "pending", job, failure)

    return [standing(cell) for cell in campaign.planned]


def last_failure(campaign: Results, cell: Cell) -> Failure | None:
    """The newest failed attempt, None when there was none."""
    *_, path = (None, *attempts.paths(campaign.directory, cell))
    if path is None:
        return None
    try:
        record = records.read(path)
    except RecordError as error:
        return Failure("unknown", str(error), str(error), path)
    context, reason = record["context"], str(record["reason"])
    log = (context.get("slurm") or {}).get("log")
    known = failures.read_reason(record)
    shared = known.text if known else reason
    return Failure(str(context["host"]), reason, shared, path, Path(log) if log else None)


def _queue(campaign: Results) -> tuple[list[slurm.Job], str | None]:
    """My jobs that were submitted from this checkout, and why they cannot be known."""
    if not campaign.plan.get("cluster"):
        return [], None
    try:
        mark = f" {jobs.checkout(campaign.directory.resolve().parents[1])}."
        return [job for job in slurm.jobs() if mark in job.comment], None
    except slurm.SlurmError as error:
        return [], str(error)


def _counts(title: str, names: Iterable[str], standings: list[Standing], of: Any) -> list[str]:
    """A small table: a line per name, a column per state that occurs."""
    states = [state for state in STATES if any(standing.state == state for standing in standings)]
    lines = []
    for name in names:
        counts = Counter(standing.state for standing in standings if of(standing) == name)
        if counts:
            lines.append(f"  {name:<12}" + "".join(f"{counts[state]:>9}" for state in states))
    return [f"  {title:<12}" + "".join(f"{state:>9}" for state in states), *lines] if lines else []


def _jobs(queue: list[slurm.Job], standings: list[Standing]) -> list[str]:
    """Running jobs with their cells; pending ones counted by Slurm's reason."""
    mine = {standing.job.number for standing in standings if standing.job}
    lines = []
    for job in queue:
        if job.number in mine and job.state != "PENDING":
            cells = [
                standing.cell.id
                for standing in standings
                if standing.job == job and standing.state == "running"
            ]
            about = f"{job.number:<8} {job.state.lower():<10} {job.nodes:<14} {job.elapsed:>9}"
            lines.append(f"  job {about}  {', '.join(cells)}")
    reasons = Counter(job.reason for job in queue if job.number in mine and job.state == "PENDING")
    lines += [
        f"  {plural(count, 'job')} pending: {reason}" for reason, count in reasons.most_common()
    ]
    return lines


def _failures(campaign: Results, failed: Mapping[Cell, Failure]) -> list[str]:
    """Every cell that has failed; where many give the same reason, it is told once."""
    groups: dict[str, list[Cell]] = {}
    for cell, failure in failed.items():
        groups.setdefault(failure.shared, []).append(cell)
    lines = []
    for reason, cells in groups.items():
        each = [_failure(campaign, cell, failed[cell]) for cell in cells]
        if len(cells) < ALIKE:
            lines += [line for about in each for line in about]
            continue
        nodes = sorted({failed[cell].host for cell in cells}, key=natural)
        lines += [
            f"  {len(cells)} cells, {', '.join(nodes)}: {reason}",
            *(f"    {cell.id}" for cell in cells),
        ]
        lines += each[0][2:]
    return lines


def _failure(campaign: Results, cell: Cell, failure: Failure) -> list[str]:
    logs = [
        path
        for path in (campaign.directory / "logs" / f"{cell.id}.log", failure.job_log)
        if path is not None
    ]
    return [
        f"  {cell.id}",
        f"    {failure.host}: {failure.reason}",
        f"    attempt  {failure.attempt}",
        *(f"    log      {path}" for path in logs if path.is_file() and path.stat().st_size),
        f"    again    {command(campaign, cell)}",
    ]


def command(campaign: Results, cell: Cell | None = None) -> str:
    """What measures this cell alone, or all that is missing, to be pasted into a shell in the
    checkout.
    """
    name = campaign.jobs.get(cell.id) if cell else None
    target = (
        output_path(campaign.directory, name)
        if name
        else campaign.record_path(cell)
        if cell
        else None
    )
    first, *more = snakemake("slurm" if campaign.plan.get("cluster") else "local").partition(" ")
    # The target comes first: --configfile would take it for one more file.
    wanted = f" {shlex.quote(str(target))}" if target else ""
    return f"{first}{wanted}{''.join(more)} --configfile {shlex.quote(str(campaign.directory / 'config.json'))}"
