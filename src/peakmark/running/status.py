"""How far a campaign has come: from its plan, its records and, on a cluster, one call of squeue."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peakmark import files, slurm
from peakmark.catalogue.subsystems import SUBSYSTEMS
from peakmark.cell import Cell
from peakmark.errors import RecordError
from peakmark.formatting import natural, plural
from peakmark.measuring.job import NODES, output_path
from peakmark.planning import jobs
from peakmark.resources import program, snakemake
from peakmark.running import impossible, present
from peakmark.storage import attempts, facts, integrity, records
from peakmark.storage.results import Results

STATES = ("done", "running", "pending", "failed", "damaged", "outdated", "missing", "spared")
ALIKE = 4
"""So many failures with one reason are told together."""
_NUMBER = re.compile(r"\bjob [0-9]+")
UNFIT = {integrity.DAMAGED: "damaged", integrity.OTHER: "outdated"}
"""Records that do not count, and what such a cell is called here."""


@dataclass(frozen=True)
class Failure:
    """The newest failed attempt of a cell. ``job_log``: where Slurm wrote of a job that it ended."""

    host: str
    reason: str
    attempt: Path
    job_log: Path | None = None


@dataclass(frozen=True)
class Standing:
    """Where one cell stands. ``job`` is set while it is running or pending, ``failure`` when an attempt has failed.

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


def describe(campaign: Results, only_failed: bool = False) -> Description:
    """Counts by subsystem and node, jobs, then every cell that has failed, with reason, log and command."""
    queue, trouble = _queue(campaign)
    standings = look(campaign, queue)
    missing = [one for one in standings if one.state not in ("done", "spared")]
    lines = []
    if not only_failed:
        spared = sum(one.state == "spared" for one in standings)
        done = len(standings) - spared - len(missing)
        more = f"; {spared} spared, as their rows are sure enough or cannot be made so" if spared else ""
        lines.append(f"{campaign.directory}: {done} of {plural(len(standings) - spared, 'cell')} done{more}")
        lines += _counts("subsystem", SUBSYSTEMS, standings, lambda one: one.cell.subsystem)
        if campaign.plan.get("cluster"):
            nodes = sorted({one.node for one in missing}, key=natural)
            lines += _counts("node", nodes, missing, lambda one: one.node)
        lines += _jobs(queue, standings)
        if trouble and missing:
            lines.append(f"running and pending jobs are not known: {trouble}")
    lines += [f"does not count: {one.reason}" for one in standings if one.reason]
    lines += [f"does not count: {reason}" for reason in facts.damaged(campaign.directory).values()]
    lines += impossible.lines((one.cell, one.record) for one in standings if one.record is not None)
    failed = [one for one in standings if one.state == "failed"]
    if failed:
        lines.append(f"{len(failed)} failed; the next run measures them again:")
        lines += _failures(campaign, failed)
    if only_failed and (rest := [one for one in missing if one.state != "failed"]):
        what = plural(len(rest), "more cell" if failed else "cell")
        are, them = ("is", "it") if len(rest) == 1 else ("are", "them")
        lines.append(f"{what} {are} not measured; the next run goes on with {them}:")
        lines += [f"  {one.cell.id}" for one in rest]
    elif not missing:
        # The run that asks only for what failed has ended badly, whatever is measured.
        all_there = "every cell is measured: it is tables, figures or report that failed, and their log says why"
        lines.append(all_there if only_failed else "complete")
    full = files.full(campaign.directory) if missing else None
    if full:
        lines.append(full)
    if only_failed and missing:
        lines.append(
            f"the report without them: {program('peakmark')} report --partial {shlex.quote(str(campaign.directory))}"
        )
    return Description("\n".join(lines), complete=not missing)


def look(campaign: Results, queue: Iterable[slurm.Job] = ()) -> list[Standing]:
    """Every cell of the plan and where it stands."""
    by_name = {job.comment.partition(" ")[0]: job for job in queue}
    name = str(campaign.plan["campaign"])
    names = {cell["id"]: cell["job"] for cell in campaign.plan["cells"] if "job" in cell}
    current = _current(campaign)
    found = []
    for cell in campaign.planned:
        own = by_name.get(f"{name}/{cell.id}")
        its_node = by_name.get(f"{name}/{NODES}/{names.get(cell.id)}")
        record = integrity.look(campaign.record_path(cell), cell)
        if record.state == integrity.GOOD:
            found.append(Standing(cell, "done", record=record.data))
            continue
        if cell.id in campaign.spared:
            found.append(Standing(cell, "spared"))
            continue
        failure = last_failure(campaign, cell)
        job = own or its_node
        if job is None and record.state in UNFIT:
            found.append(Standing(cell, UNFIT[record.state], None, None, record.reason))
        elif job is None:
            found.append(Standing(cell, "failed" if failure else "missing", None, failure))
        else:
            running = job.state != "PENDING" and (own is not None or cell.id in current)
            found.append(Standing(cell, "running" if running else "pending", job, failure))
    return found


def last_failure(campaign: Results, cell: Cell) -> Failure | None:
    """The newest failed attempt, None when there was none."""
    found = list(attempts.paths(campaign.directory, cell))
    if not found:
        return None
    try:
        record = records.read(found[-1])
    except RecordError as error:
        return Failure("unknown", str(error), found[-1])
    context = record["context"]
    log = (context.get("slurm") or {}).get("log")
    return Failure(str(context["host"]), str(record["reason"]), found[-1], Path(log) if log else None)


def _queue(campaign: Results) -> tuple[list[slurm.Job], str | None]:
    """My jobs that were submitted from this checkout, and why they cannot be known."""
    if not campaign.plan.get("cluster"):
        return [], None
    try:
        mark = f" {jobs.checkout(campaign.directory.resolve().parents[1])}."
        return [job for job in slurm.jobs() if mark in job.comment], None
    except slurm.SlurmError as error:
        return [], str(error)


def _current(campaign: Results) -> set[str]:
    """Cells that jobs of whole nodes are measuring just now."""
    named = map(present.read, (campaign.directory / NODES).glob("*.now"))
    return {cell for cell in named if cell is not None}


def _counts(title: str, names: Iterable[str], standings: list[Standing], of: Any) -> list[str]:
    """A small table: a line per name, a column per state that occurs."""
    states = [state for state in STATES if any(one.state == state for one in standings)]
    lines = []
    for name in names:
        counts = Counter(one.state for one in standings if of(one) == name)
        if counts:
            lines.append(f"  {name:<12}" + "".join(f"{counts[state]:>9}" for state in states))
    return [f"  {title:<12}" + "".join(f"{state:>9}" for state in states), *lines] if lines else []


def _jobs(queue: list[slurm.Job], standings: list[Standing]) -> list[str]:
    """Running jobs with their cells; pending ones counted by Slurm's reason."""
    mine = {one.job.number for one in standings if one.job}
    lines = []
    for job in queue:
        if job.number in mine and job.state != "PENDING":
            cells = [one.cell.id for one in standings if one.job == job and one.state == "running"]
            lines.append(
                f"  job {job.number:<8} {job.state.lower():<10} {job.nodes:<14} {job.elapsed:>9}  {', '.join(cells)}"
            )
    reasons = Counter(job.reason for job in queue if job.number in mine and job.state == "PENDING")
    lines += [f"  {plural(count, 'job')} pending: {reason}" for reason, count in reasons.most_common()]
    return lines


def _failures(campaign: Results, failed: list[Standing]) -> list[str]:
    """Every cell that has failed; where many give the same reason, it is told once."""
    groups: dict[str, list[Standing]] = {}
    for one in failed:
        assert one.failure is not None  # noqa: S101 - only failed ones come here
        groups.setdefault(_NUMBER.sub("job", one.failure.reason), []).append(one)
    lines = []
    for reason, group in groups.items():
        if len(group) < ALIKE:
            lines += [line for one in group for line in _failure(campaign, one)]
            continue
        nodes = sorted({one.node for one in group}, key=natural)
        lines += [f"  {len(group)} cells, {', '.join(nodes)}: {reason}"]
        lines += [f"    {one.cell.id}" for one in group]
        lines += _failure(campaign, group[0])[2:]
    return lines


def _failure(campaign: Results, one: Standing) -> list[str]:
    assert one.failure is not None  # noqa: S101 - only failed ones come here
    log = campaign.directory / "logs" / f"{one.cell.id}.log"
    lines = [f"  {one.cell.id}", f"    {one.failure.host}: {one.failure.reason}", f"    attempt  {one.failure.attempt}"]
    for path in (log, one.failure.job_log):
        if path is not None and path.is_file() and path.stat().st_size:
            lines.append(f"    log      {path}")
    return [*lines, f"    again    {command(campaign, one.cell)}"]


def command(campaign: Results, cell: Cell) -> str:
    """What measures this cell alone, to be pasted into a shell in the checkout."""
    profile = "slurm" if campaign.plan.get("cluster") else "local"
    name = next((one.get("job") for one in campaign.plan["cells"] if one.get("id") == cell.id), None)
    target = campaign.record_path(cell) if name is None else output_path(campaign.directory, name)
    # The target comes first: --configfile would take it for one more file.
    config_file = shlex.quote(str(campaign.directory / "config.json"))
    first, *more = snakemake(profile).partition(" ")
    return f"{first} {shlex.quote(str(target))}{''.join(more)} --configfile {config_file}"
