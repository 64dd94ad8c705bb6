"""Describe the state of a campaign from its plan, its records and, on a cluster, one call of squeue.

The module also estimates the progress of this process's run, and makes the report and the summary at its
end.
"""

from __future__ import annotations

import math
import os
import re
import shlex
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from peakmark import data, files, slurm
from peakmark.catalogue import SUBSYSTEMS
from peakmark.cell import Cell
from peakmark.errors import RecordError, is_coloured
from peakmark.plan import jobs
from peakmark.resources import program
from peakmark.run.job import NODES, output_path
from peakmark.slurm.queue import current_cell
from peakmark.storage import records
from peakmark.storage.record_types import Record
from peakmark.storage.results import Results

if TYPE_CHECKING:
    from peakmark.views.rendering import ReportContent

# States of a cell, in the order of the columns of ``peakmark status``.
STATES = ("done", "running", "pending", "failed", "damaged", "outdated", "missing")
UNFIT = {
    records.DAMAGED: "damaged",
    records.OTHER_OPTIONS: "outdated",
}
"""State of a record that does not count -> state of its cell."""
LATER_RULES = ("rows", "tables", "report")
"""Rules that run after all cells are measured. Each has a log with the rule's name."""


@dataclass(frozen=True)
class Failure:
    """The newest failed attempt of a cell.

    Attributes:
        shared: the reason without the job's number, so that many cells can have equal reasons.
        job_log: log of the job, if Slurm ended the job.
    """

    cell: Cell
    host: str
    reason: str
    shared: str
    attempt: Path
    job_log: Path | None = None

    def logs(self, campaign: Results) -> list[Path]:
        """Return the logs that exist and are not empty."""
        paths = [campaign.directory / "logs" / f"{self.cell.id}.log"]
        if self.job_log:
            paths.append(self.job_log)
        return filled(paths)


def filled(paths: Iterable[Path]) -> list[Path]:
    """Return the files that exist and are not empty."""
    return [path for path in paths if path.is_file() and path.stat().st_size]


@dataclass(frozen=True)
class Standing:
    """The state of one cell.

    Attributes:
        job: Slurm's job that measures the cell, while it is running or pending.
        failure: the newest failed attempt, if there is one.
        reason: why the cell's record does not count; otherwise empty.
        record: the cell's record, if it counts.
    """

    cell: Cell
    state: str
    job: slurm.Job | None = None
    failure: Failure | None = None
    reason: str = ""
    record: Record | None = None


Ending = Literal["", "failed", "interrupted"]
"""How the run of this process has ended; empty outside a run."""


def describe(campaign: Results, only_failed: bool = False, ending: Ending = "") -> str:
    """Return the state of a campaign as text.

    The text has counts by subsystem, the jobs, and every failed cell with reason, log and
    command.

    Args:
        campaign: the campaign.
        only_failed: whether to leave out the counts and the jobs.
        ending: how the run that prints this has ended.
    """
    queue, trouble = _queue(campaign)
    standings = look(campaign, queue)
    missing = [one for one in standings if one.state != "done"]
    reasons = _failures(missing)
    others = [one.cell.id for one in missing if one.state != "failed"]
    unfit = [one.reason for one in standings if one.reason]
    unfit += campaign.damaged_facts.values()
    running, pending = _jobs(queue, standings)
    states, counts = _counts(standings)
    return data.rendered(
        "status.txt.j2",
        campaign=campaign,
        command=command,
        peakmark=program("peakmark"),
        only_failed=only_failed,
        ending=ending,
        total=len(standings),
        missing=len(missing),
        states=states,
        counts=counts,
        running=running,
        pending=pending,
        trouble=trouble,
        unfit=unfit,
        impossible=_impossible(standings),
        failed=sum(map(len, reasons.values())),
        reasons=reasons,
        others=others,
        full=files.full(campaign.directory),
        logs=filled(campaign.directory / "logs" / f"{rule}.log" for rule in LATER_RULES),
    )


def _failures(standings: Iterable[Standing]) -> dict[str, list[Failure]]:
    """Return reason (``Failure.shared``) -> the failures with this reason, of failed cells."""
    by_reason: dict[str, list[Failure]] = {}
    for one in standings:
        if one.failure and one.state == "failed":
            by_reason.setdefault(one.failure.shared, []).append(one.failure)
    return by_reason


def _jobs(
    queue: Iterable[slurm.Job], standings: Iterable[Standing]
) -> tuple[list[tuple[slurm.Job, list[str]]], list[tuple[str, int]]]:
    """Return two lists: running jobs, and reasons for waiting.

    The first list has (running job, cells that it measures now). The second list has (reason for
    waiting, number of pending jobs with this reason).
    """
    cells_of = defaultdict[str, list[str]](list)
    for one in standings:
        if one.job:
            # A pending job gets an empty list, which shows that it belongs to this campaign.
            cells = cells_of[one.job.number]
            if one.state == "running":
                cells.append(one.cell.id)
    running = []
    pending = Counter[str]()
    for job in queue:
        if job.number in cells_of and job.state == "PENDING":
            pending[job.reason] += 1
        elif job.number in cells_of:
            running.append((job, cells_of[job.number]))
    return running, pending.most_common()


def collect_report(campaign: Path, *, keep: bool = True) -> ReportContent:
    """Draw the figures of a campaign, and return the content of its report.

    The campaign's folder stays unchanged without ``keep``, or if it cannot be written to.

    Raises:
        RecordError: the folder holds no campaign, or a record is damaged.
        ConfigError: a text of the author cannot be used.
    """
    from peakmark.rows import build  # not for ``peakmark status``
    from peakmark.views import figures, rendering

    keep = keep and os.access(campaign, os.W_OK)
    frames = build.load(campaign, keep=keep)
    with tempfile.TemporaryDirectory(prefix="peakmark-figures-") as temporary:
        folder = Path(temporary)
        if keep:
            folder = campaign / figures.FOLDER
            folder.mkdir(exist_ok=True)
        figures.draw_figures(frames, folder)
        return rendering.collect(frames, campaign, folder)


def print_summary(directory: Path) -> None:
    """Print page one, the folder of the results, the impossible cells, and the next commands.

    Raises:
        RecordError: there is no campaign.
    """
    from peakmark.rows import build  # not for ``peakmark status``
    from peakmark.views import score_card

    frames = build.load(directory, keep=False)
    page = score_card.build(frames)
    print(score_card.terminal(page, is_coloured=is_coloured()))
    results = data.rendered(
        "summary.txt.j2",
        folder=directory,
        page=page,
        run=run_command(directory, on_cluster=frames.campaign["on_cluster"]),
        peakmark=program("peakmark"),
        **score_card.results_of(frames, directory),
    )
    print(f"\n{results}", flush=True)


def _impossible(standings: Iterable[Standing]) -> dict[str, list[str]]:
    """Return reason -> cells that this machine cannot measure; the most frequent reason comes first."""
    reasons = defaultdict[str, list[str]](list)
    for one in standings:
        if one.record and one.record.status == "unavailable":
            reasons[str(one.record.reason)].append(one.cell.id)
    return dict(sorted(reasons.items(), key=lambda entry: -len(entry[1])))


def look(campaign: Results, queue: Iterable[slurm.Job] = ()) -> list[Standing]:
    """Return the state of every cell of the plan.

    A record decides first, then a job in Slurm's queue, then a failed attempt. A job is named after its
    only cell or after its group of cells. Of a group, only the cell named in the job's file ``.now`` runs.
    """
    # The comment of a job begins with its name.
    by_name = {job.comment.partition(" ")[0]: job for job in queue}
    # Each job with several cells writes the id of the cell that it measures now into a file.
    measured_now = {current_cell(path) for path in (campaign.directory / NODES).glob("*.now")}

    def standing(cell: Cell) -> Standing:
        """Return the state of one cell."""
        finding = campaign.findings[cell.id]
        if finding.state == records.GOOD:
            return Standing(cell, "done", record=finding.data)
        # The job measures only this cell, or a group of cells. If the cell is in no group, ``jobs``
        # gives None, and no job has this name.
        single = by_name.get(f"{campaign.name}/{cell.id}")
        job = single or by_name.get(f"{campaign.name}/{NODES}/{campaign.jobs.get(cell.id)}")
        if job is None and finding.state in UNFIT:
            return Standing(cell, UNFIT[finding.state], reason=finding.sentence)
        failure = last_failure(campaign, cell)
        if job is None:
            state = "failed" if failure else "missing"
        elif job.state != "PENDING" and (single is not None or cell.id in measured_now):
            state = "running"
        else:
            state = "pending"
        return Standing(cell, state, job, failure)

    return [standing(cell) for cell in campaign.cells]


def last_failure(campaign: Results, cell: Cell) -> Failure | None:
    """Return the newest failed attempt of a cell; None if there is none."""
    paths = list(records.attempts(campaign.directory, cell))
    if not paths:
        return None
    path = paths[-1]
    try:
        record = records.read(path)
    except RecordError as error:
        return Failure(cell, "unknown", str(error), str(error), path)
    context, reason = record.context, str(record.reason)
    job_log = None
    if context.job_log:
        job_log = Path(context.job_log)
    # Without the number of the job, the reasons of many cells are equal.
    shared = re.sub(r"\bjob \d+", "job", reason)
    return Failure(cell, context.host, reason, shared, path, job_log)


def command(campaign: Results, cell: Cell | None = None) -> str:
    """Return the command that measures one cell or, by default, all missing cells.

    Users paste it into a shell in the folder that contains ``results``.
    """
    cluster = campaign.plan.cluster
    line = run_command(campaign.directory, on_cluster=bool(cluster))
    # Another scheduler than Slurm runs the jobs: the user adds the options of its executor.
    if cluster and cluster.get("partition") == "":
        line = f"snakemake --configfile {shlex.quote(str(campaign.directory / 'config.json'))}"
    if cell is None:
        return line
    path = campaign.record_path(cell)
    if name := campaign.jobs.get(cell.id):
        path = output_path(campaign.directory, name)
    return f"{line} -- {shlex.quote(str(path))}"


def run_command(directory: Path, *, on_cluster: bool) -> str:
    """Return the command that measures the missing cells of the campaign in a folder."""
    option = " --slurm" if on_cluster else ""
    config = shlex.quote(str(directory / "config.json"))
    return f"{program('peakmark')} run {config}{option}"


def _queue(campaign: Results) -> tuple[list[slurm.Job], str | None]:
    """Return this user's jobs that were submitted from this checkout, and the error if Slurm fails."""
    # An empty partition means that another scheduler runs the jobs, which peakmark cannot ask.
    cluster = campaign.plan.cluster
    if not cluster or cluster.get("partition") == "":
        return [], None
    folder = campaign.directory.resolve().parents[1]  # the checkout, which contains results/NAME
    try:
        return [job for job in slurm.jobs() if jobs.is_from(job.comment, folder)], None
    except slurm.SlurmError as error:
        return [], str(error)


def _counts(standings: Sequence[Standing]) -> tuple[list[str], dict[str, list[int]]]:
    """Return the states that occur, and the number of cells in each of them, by subsystem."""
    counts = Counter((one.cell.subsystem, one.state) for one in standings)
    occurring = {state for _, state in counts}
    states = [state for state in STATES if state in occurring]
    lines = {}
    for name in SUBSYSTEMS:
        line = [counts[name, state] for state in states]
        if any(line):
            lines[name] = line
    return states, lines


# -- of the run of this process

PACE_WEIGHT_JOBS = 10
"""Number of ended jobs from which on their pace counts more than the expected times."""


class Progress:
    """The expected time of the jobs that have not ended.

    Snakefile, executor and logger plugin share one instance in one process.

    The time left is the expected time of these jobs, corrected by the pace of the ended jobs. The more
    jobs have ended, the more their pace counts, because a few slow cells at the start show little.
    """

    def __init__(self) -> None:
        self.expect({})

    def expect(self, seconds: Mapping[str, float]) -> None:
        """Set the jobs that the run may start: output of each job -> its expected seconds."""
        self._remaining = dict(seconds)  # without the jobs that have ended
        self._started: float | None = None
        self._expected_of_ended = 0.0
        self._ended = 0

    def start(self) -> None:
        """Start the clock when the first job measures: the wait before predicts nothing."""
        if self._started is None:
            self._started = time.monotonic()

    def finish(self, output: str) -> None:
        """Remove an ended job, named by its output file, from the jobs that are still to come."""
        seconds = self._remaining.pop(output, None)
        if seconds is not None:
            self._expected_of_ended += seconds
            self._ended += 1

    def seconds_left(self, since: float) -> float | None:
        """Return the seconds left; None before any job has ended.

        Args:
            since: time at which the first job was handed over, from ``time.monotonic``. It counts
                only until ``start`` was called.
        """
        elapsed = time.monotonic() - (self._started or since)
        if not self._expected_of_ended or not elapsed:
            return None
        # The pace is the time since the first job measured, divided by the time that was expected
        # of the ended jobs. It accounts for the number of jobs that run at once. It has more weight
        # the more jobs have ended, because the first jobs may not be typical.
        weight = self._ended / (self._ended + PACE_WEIGHT_JOBS)
        return math.fsum(self._remaining.values()) * math.pow(
            elapsed / self._expected_of_ended, weight
        )


progress = Progress()
"""The progress of this process's run."""
