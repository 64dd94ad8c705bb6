"""How far a campaign has come, from its plan, its records and, on a cluster, one call of squeue; the
progress of the run of this process, and its summary when it has ended.
"""

from __future__ import annotations

import math
import re
import shlex
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from peakmark import data, files, slurm
from peakmark.catalogue import SUBSYSTEMS
from peakmark.cell import Cell
from peakmark.errors import RecordError
from peakmark.formatting import natural
from peakmark.plan import jobs
from peakmark.resources import program
from peakmark.run.job import NODES, output_path
from peakmark.slurm.queue import present_cell
from peakmark.storage import records
from peakmark.storage.results import Results

STATES = ("done", "running", "pending", "failed", "damaged", "unreadable", "outdated", "missing")
UNFIT = {
    records.DAMAGED: "damaged",
    records.CLOSED: "unreadable",
    records.OTHER: "outdated",
}
"""Records that do not count, and the state of such a cell."""
AHEAD_S = 10.0
"""Seconds by which a file may be newer than this machine's clock: file servers have their own."""


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

    def logs(self, campaign: Results) -> list[Path]:
        """The logs that there are, and that hold something."""
        paths = (campaign.directory / "logs" / f"{self.cell.id}.log", self.job_log)
        return [path for path in paths if path and path.is_file() and path.stat().st_size]


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


Ending = Literal["", "failed", "interrupted"]
"""How the run of this process has ended; empty outside of a run."""


def describe(campaign: Results, only_failed: bool = False, ending: Ending = "") -> str:
    """Return counts by subsystem and node, jobs, then every cell that has failed, with reason, log
    and command.

    Args:
        campaign: the campaign.
        only_failed: only what it lacks.
        ending: how the run has ended that prints this.
    """
    queue, trouble = _queue(campaign)
    standings = look(campaign, queue)
    missing = [one for one in standings if one.state != "done"]
    cells_of = defaultdict[str, list[str]](list)
    for one in standings:
        if one.job:
            cells_of[one.job.number] += [one.cell.id] if one.state == "running" else []
    jobs = [job for job in queue if job.number in cells_of]
    failed = [one.failure for one in missing if one.failure and one.state == "failed"]
    by_reason = defaultdict[str, list[Failure]](list)
    for failure in failed:
        by_reason[failure.shared].append(failure)
    return _rendered(
        "status.txt.j2",
        campaign,
        only_failed=only_failed,
        ending=ending,
        total=len(standings),
        missing=len(missing),
        counts=list(_counts(campaign, standings, missing)),
        running=[(job, cells_of[job.number]) for job in jobs if job.state != "PENDING"],
        pending=Counter(job.reason for job in jobs if job.state == "PENDING").most_common(),
        trouble=trouble,
        unfit=[
            *filter(None, (one.reason for one in standings)),
            *campaign.damaged_facts.values(),
            *campaign.unreadable_facts.values(),
        ],
        impossible=_impossible((one.cell, one.record) for one in standings if one.record),
        failed=len(failed),
        reasons=by_reason,
        others=[one.cell.id for one in missing if one.state != "failed"],
        full=files.full(campaign.directory),
        ahead=_from_the_future(campaign) if ending == "failed" and not missing else None,
        logs=[path for path in _logs(campaign) if path.is_file() and path.stat().st_size],
    )


def _logs(campaign: Results) -> list[Path]:
    """Return where the rules behind the cells write what they have to say."""
    return [
        campaign.directory / "logs" / f"{rule}.log"
        for rule in ("rows", "tables", "figures", "report")
    ]


def _from_the_future(campaign: Results) -> tuple[Path, float] | None:
    """Return the newest file of the records and how many seconds it is ahead of the clock; None where
    it is not, beyond ``AHEAD_S``. Snakemake fails where an output is older than its inputs.
    """
    cells = (campaign.directory / "cells").rglob("*.json")
    times = {path: path.stat().st_mtime for path in (campaign.directory / "plan.json", *cells)}
    newest = max(times, key=lambda path: times[path])
    ahead = times[newest] - time.time()
    return (newest, ahead) if ahead > AHEAD_S else None


def summary(directory: Path) -> str:
    """Where the results of a run are: report and tables, the most telling numbers with their
    warnings, cells that are not possible, and commands that can be pasted.

    Raises:
        RecordError: there is no campaign.
    """
    from peakmark.rows import build  # not for ``peakmark status``
    from peakmark.views.summary import summarise

    frames = build.load(directory, keep=False)
    return data.rendered(
        "summary.txt.j2",
        folder=directory,
        run=run_command(directory, on_cluster=frames.campaign["on_cluster"]),
        peakmark=program("peakmark"),
        **summarise(frames, directory),
    )


def _impossible(records_of: Iterable[tuple[Cell, Mapping[str, Any]]]) -> dict[str, list[str]]:
    """Reason -> cells that this machine cannot measure, the reason of most first."""
    reasons = defaultdict[str, list[str]](list)
    for cell, record in records_of:
        if record["status"] == "unavailable":
            reasons[record["reason"]].append(cell.id)
    return dict(sorted(reasons.items(), key=lambda entry: -len(entry[1])))


def look(campaign: Results, queue: Iterable[slurm.Job] = ()) -> list[Standing]:
    """The state of every cell of the plan."""
    by_name = {job.comment.partition(" ")[0]: job for job in queue}
    present = {present_cell(path) for path in (campaign.directory / NODES).glob("*.now")}

    def standing(cell: Cell) -> Standing:
        finding = campaign.findings[cell.id]
        if finding.state == records.GOOD:
            return Standing(cell, "done", record=finding.data)
        single = by_name.get(f"{campaign.name}/{cell.id}")
        job = single or by_name.get(f"{campaign.name}/{NODES}/{campaign.jobs.get(cell.id)}")
        if job is None and finding.state in UNFIT:
            return Standing(cell, UNFIT[finding.state], reason=finding.sentence)
        failure = last_failure(campaign, cell)
        if job is None:
            return Standing(cell, "failed" if failure else "missing", failure=failure)
        running = job.state != "PENDING" and (single is not None or cell.id in present)
        return Standing(cell, "running" if running else "pending", job, failure)

    return [standing(cell) for cell in campaign.cells]


def last_failure(campaign: Results, cell: Cell) -> Failure | None:
    """The newest failed attempt, None when there was none."""
    paths = list(records.attempts(campaign.directory, cell))
    if not paths:
        return None
    path = paths[-1]
    try:
        record = records.read(path)
    except RecordError as error:
        return Failure(cell, "unknown", str(error), str(error), path)
    context, reason = record["context"], str(record["reason"])
    log = (context.get("slurm") or {}).get("log")
    # Which job it was is no reason of its own.
    shared = re.sub(r"\bjob \d+", "job", reason)
    return Failure(cell, str(context["host"]), reason, shared, path, Path(log) if log else None)


def command(campaign: Results, cell: Cell | None = None) -> str:
    """Command that measures this cell alone, or all that is missing, to be pasted into a shell in
    the folder of ``results``.
    """
    target = ""
    if cell:
        name = campaign.jobs.get(cell.id)
        path = output_path(campaign.directory, name) if name else campaign.record_path(cell)
        target = f" -- {shlex.quote(str(path))}"
    on_cluster = bool(campaign.plan.get("cluster"))
    return f"{run_command(campaign.directory, on_cluster=on_cluster)}{target}"


def run_command(directory: Path, *, on_cluster: bool) -> str:
    """Return the command that measures what is missing of a campaign, by its folder."""
    option = " --slurm" if on_cluster else ""
    config = shlex.quote(str(directory / "config.json"))
    return f"{program('peakmark')} run {config}{option}"


def _queue(campaign: Results) -> tuple[list[slurm.Job], str | None]:
    """My jobs that were submitted from this checkout, and why they cannot be known."""
    if not campaign.plan.get("cluster"):
        return [], None
    mark = f" {jobs.checkout(campaign.directory.resolve().parents[1])}."
    try:
        return [job for job in slurm.jobs() if mark in job.comment], None
    except slurm.SlurmError as error:
        return [], str(error)


def _counts(
    campaign: Results, standings: Sequence[Standing], missing: Sequence[Standing]
) -> Iterator[tuple[str, list[str], dict[str, list[int]]]]:
    """Title, states that occur, and their counts by name: of subsystems and, on a cluster, nodes."""
    by_subsystem = Counter((one.cell.subsystem, one.state) for one in standings)
    groups: list[tuple[str, Iterable[str], Counter[tuple[str, str]]]] = [
        ("subsystem", SUBSYSTEMS, by_subsystem)
    ]
    if campaign.plan.get("cluster"):
        by_node = Counter((one.node, one.state) for one in missing)
        groups.append(("node", sorted({node for node, _ in by_node}, key=natural), by_node))
    for title, names, counts in groups:
        occurring = {state for _, state in counts}
        states = [state for state in STATES if state in occurring]
        lines = {name: [counts[name, state] for state in states] for name in names}
        if states:
            yield title, states, {name: line for name, line in lines.items() if any(line)}


def _rendered(name: str, campaign: Results, **values: Any) -> str:
    commands = {"command": command, "peakmark": program("peakmark")}
    return data.rendered(name, campaign=campaign, **values, **commands)


# -- of the run of this process

KNOWN = 10
"""So many measured cells count as much as the estimate: a few move the time left little."""


class Progress:
    """How far the jobs of a run are, and how long the rest takes. Snakefile, executor and logger
    plugin live in the same process; the executor's thread and that of Snakemake's log call it.

    The time left is the expected one, corrected by the pace of the cells behind. The more cells are
    behind, the more their pace counts against the estimate: a few slow ones at the start say little.

    ``listener`` is called when a job of several cells has come further.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.listener: Callable[[], None] | None = None
        self._started: float | None = None
        self.expect({})

    def expect(self, jobs: Mapping[str, Mapping[str, float]]) -> None:
        """Set the jobs that the run may start.

        Args:
            jobs: output of each job -> cells that it will measure, in running order, with their
                expected seconds.
        """
        self._jobs = jobs
        self._behind = Counter[str]()
        self._spent = 0.0
        self._expected = math.fsum(s for cells in jobs.values() for s in cells.values())
        self.in_cells = any(len(cells) > 1 for cells in jobs.values())

    def start(self) -> None:
        """Jobs measure now: how long they waited is no measure of what is left."""
        self._started = time.monotonic() if self._started is None else self._started

    def reached(self, output: Path, cell: str) -> None:
        """The job that makes ``output`` measures this cell now."""
        cells = list(self._jobs.get(str(output), ()))
        if cell in cells:
            self._pass(str(output), cells.index(cell))

    def finish(self, output: str) -> None:
        """The job has ended, however it did: nothing of it is ahead any more."""
        self._pass(output, len(self._jobs.get(output, ())))

    def _pass(self, output: str, count: int) -> None:
        """So many cells of a job are behind; of a job that begins again, those that were stay so."""
        with self.lock:
            behind = self._behind[output]
            if count > behind:
                self._spent += sum([*self._jobs[output].values()][behind:count])
                self._behind[output] = count
                if self.listener is not None and self.in_cells:
                    self.listener()

    def cells(self) -> tuple[int, int]:
        """How many cells are behind, and how many there are."""
        return self._behind.total(), sum(map(len, self._jobs.values()))

    def seconds_left(self, since: float) -> float | None:
        """Seconds left; None before any cell has ended.

        Args:
            since: when the first job was handed over, by ``time.monotonic``.
        """
        with self.lock:
            elapsed = time.monotonic() - (since if self._started is None else self._started)
            if not self._spent or not elapsed:
                return None
            behind = self._behind.total()
            ahead = max(self._expected - self._spent, 0.0)
            return ahead * math.pow(elapsed / self._spent, behind / (behind + KNOWN))


progress = Progress()
"""The progress of this process's run."""
