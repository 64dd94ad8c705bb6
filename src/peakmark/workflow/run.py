"""The run of a campaign, as the Snakefile knows it: what is wanted, what is there already, and the
inputs, options and resources of each rule.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from peakmark import files, output, resources
from peakmark.cell import Cell
from peakmark.errors import PeakmarkError
from peakmark.formatting import duration, parse_duration, plural
from peakmark.plan import cluster, jobs
from peakmark.plan.build import complete, make_completed
from peakmark.plan.cluster import settings_of
from peakmark.plan.job_groups import two_nodes
from peakmark.plan.plan import RESULTS
from peakmark.plan.plan_text import node_names
from peakmark.run import build, cleanup, job, lock
from peakmark.slurm.queue import MAX_JOBS, Queue, Task, modified
from peakmark.storage import planfile, records
from peakmark.storage.results import Results
from peakmark.workflow import startup, status

OVERRIDES = jobs.OVERRIDES
EVERY_CPU = 1 << 20
"""Snakemake makes of it as many as it was given."""
TRIGGER = Path(".snakemake/peakmark-again")
Callback = Callable[[Any], Any]


class Run:
    """One reading of the Snakefile. Before ``begin`` it writes nothing into the campaign and
    deletes nothing.

    Args:
        config: as Snakemake has it.
        remote: whether an executor hands jobs to a cluster.
        overrides: partition, account and the like of the command line, by Snakemake's names.

    ``current`` is the one of this process, for the executor that Snakemake makes by itself;
    ``opened`` is that executor's queue, None without a cluster.
    """

    current: ClassVar[Run | None] = None
    opened: Queue | None = None

    def __init__(
        self, config: Mapping[str, Any], remote: bool, overrides: Mapping[str, str]
    ) -> None:
        # Ten thousand jobs are some million objects that live to the end: looking for garbage among
        # them took a sixth of the planning.
        gc.set_threshold(100_000, 20, 20)
        os.umask(os.umask(0o077) | 0o002)  # Snakemake's folders too are not for everybody to write
        self.config = config
        os.environ.pop(cleanup.OWNER, None)
        self.overrides = {
            OVERRIDES[name]: value for name, value in overrides.items() if name in OVERRIDES
        }
        completed = complete(config, on_cluster=remote)
        where = None
        if remote:
            folder = RESULTS / completed["campaign"]
            where = cluster.find(completed, self.overrides.get("partition"), folder)
        self.plan = make_completed(completed, where)
        self.folder = str(self.plan.directory)
        self.cells = {cell.id: cell for cell in self.plan.cells}
        self.places = {cell.id: place for place, cell in enumerate(self.plan.cells)}
        startup.check_campaign(self.plan.directory)
        self.findings = startup.survey(self.plan.results)
        self.kernels_ready = build.up_to_date()
        if not self.kernels_ready and self.missing_cells:
            startup.check_compiler(build.folder())
        output.tell(*startup.check(self.plan, self.missing_cells))
        Run.current = self

    # -- what is wanted

    @cached_property
    def missing_cells(self) -> list[Cell]:
        """The planned cells that have no record that counts, in running order."""
        return [cell for cell in self.plan.cells if not self.is_measured(cell)]

    def missing_of(self, name: str) -> list[Cell]:
        """The cells that the job still has to measure."""
        return [cell for cell in self.plan.jobs[name] if cell.id in self._missing]

    @cached_property
    def _missing(self) -> frozenset[str]:
        return frozenset(cell.id for cell in self.missing_cells)

    @cached_property
    def records(self) -> list[str]:
        """Files before the tables: every planned record, or the output of each job."""
        if not self.plan.jobs:
            return [self.plan.record_name(cell) for cell in self.plan.cells]
        return [self.job_output(name) for name in self.plan.jobs]

    def lost_records(self, _: Any) -> list[str]:
        """Return the records without which tables stand, so that the rule asks for them by name:
        behind tables that still stand, Snakemake would not miss one. The output of a job of several
        cells hides a record that is lost too.
        """
        if not self._exists("tables"):
            return []
        jobs = [self.job_output(name) for name in self.plan.jobs if self.missing_of(name)]
        return [*jobs, *(path for path in self.records if not Path(path).exists())]

    def job_output(self, name: str) -> str:
        return str(job.output_path(self.plan.directory, name))

    def _exists(self, name: str) -> bool:
        return (self.plan.directory / name).exists()

    # -- inputs and options of rules

    def is_measured(self, cell: Cell) -> bool:
        """Whether the cell has a whole, unchanged record with its present options."""
        return cell.id in self.findings and self.findings[cell.id].state == records.GOOD

    @cached_property
    def digest(self) -> str:
        """Changes with the plan: tables made from another one are made anew."""
        return hashlib.sha256(planfile.text(self.plan.results.plan).encode()).hexdigest()

    @property
    def plan_trigger(self) -> list[str]:
        """Trigger file where tables stand without their plan, which somebody has removed."""
        lost = self._exists("tables") and not self._exists("plan.json")
        return [self.rerun_trigger] if lost else []

    @cached_property
    def rerun_trigger(self) -> str:
        """Trigger file: as an input of a rule it makes Snakemake rerun cells whose records do not
        count. A rule could not make it, as Snakemake asks for nothing that only finished cells need.
        """
        TRIGGER.parent.mkdir(exist_ok=True)
        # Snakemake compares the contents of small inputs too.
        TRIGGER.write_text(f"{time.time_ns()}\n")
        return str(TRIGGER)

    @property
    def cell_inputs(self) -> Callback | list[str]:
        """Input of a cell's rule. To ask each of ten thousand takes seconds, and mostly none has
        anything to wait for.
        """
        unfit = any(map(startup.is_unfit, self.findings.values()))
        return self._cell_inputs if unfit or not self.kernels_ready else []

    def _cell_inputs(self, wildcards: Any) -> list[str]:
        """The kernels, where they must be compiled before this cell. A finished cell does not
        depend on them: kernels that were compiled anew or removed void no measurement (the
        record names the version that measured). ``ancient`` cannot say this: with it, Snakemake
        9.27 takes all cells behind an outdated kernel for finished.
        """
        cell = self.cells[wildcards.cell]
        finding = self.findings.get(cell.id)
        trigger = [self.rerun_trigger] if finding and startup.is_unfit(finding) else []
        needs_kernels = not self.kernels_ready and not self.is_measured(cell)
        return [*trigger, *(build.programs() if needs_kernels else ())]

    def job_inputs(self, wildcards: Any) -> list[str]:
        """Input of the rule of a job of several cells, whose output may not be true any more."""
        if not self.missing_of(wildcards.job):
            return []
        return [self.rerun_trigger, *(() if self.kernels_ready else build.programs())]

    def fingerprint(self, wildcards: Any) -> str:
        """By what a cell is measured: when it changes, the cell is measured again."""
        cell = self.cells[wildcards.cell]
        pair = ["--pair"] if self.plan.cluster and two_nodes(cell) else []
        tool = jobs.program(cell.instrument, self.plan)
        return shlex.join(["--cell", cell.spec(), "--tool", *tool, *pair])

    def job_fingerprint(self, wildcards: Any) -> str:
        return jobs.fingerprint(self.plan.jobs[wildcards.job], self.plan)

    @property
    def priority(self) -> Callback | int:
        """The plan's order, which mixes programs and repetitions: without a cluster, Snakemake
        would run cells in an order of its own. On a cluster the queue keeps it.
        """
        if self.plan.cluster is not None:
            return 0
        most, places = len(self.plan.cells), self.places
        return lambda wildcards: most - places[wildcards.cell]

    @property
    def threads(self) -> int:
        """Without a cluster, nothing may run beside a measurement."""
        return EVERY_CPU if self.plan.cluster is None else 1

    def _cells_of(self, wildcards: Any) -> Sequence[Cell]:
        """The cells of a job of Snakemake's."""
        name = getattr(wildcards, "job", None)
        return [self.cells[wildcards.cell]] if name is None else self.plan.jobs[name]

    # -- jobs of a cluster

    def task(self, wildcards: Any, output: Path, command: str) -> Task:
        """The task of a job of Snakemake's, for the queue."""
        cells = tuple(self._cells_of(wildcards))
        directory = self.plan.directory
        options = (
            f"--job-name={jobs.name(self.plan, cells, settings_of(self.plan.config))}",
            f"--output={_log(directory / 'logs' / 'slurm')}",
            *jobs.options(cells, self.plan, self.overrides),
        )
        finding = self.findings.get(cells[0].id)
        absent = len(cells) == 1 and (finding is None or finding.state == records.ABSENT)
        name = self.plan.job_of(cells[0])
        nodes, count = jobs.eligible(cells, self.plan)
        return Task(
            place=self.places[cells[0].id],
            cells=cells,
            output=output,
            comment=jobs.comment(self.plan, cells),
            options=options,
            script=f"#!/bin/bash\n{shell_prefix()}\n{command}\n",
            nodes=nodes,
            node_count=count,
            shares=self.plan.shares(cells[0]),
            before=None if absent else modified(output),
            present=None if name is None else job.present_path(directory, name),
        )

    def queue(self, say: Callable[[str], None]) -> Queue:
        """Where an executor puts those jobs."""
        # While Snakemake's own thread computes, each answer of sbatch would wait for its turn
        # several times, 5 ms each.
        sys.setswitchinterval(0.001)
        config = self.plan.config
        self.opened = Queue(
            self.plan.directory,
            max_jobs=int(settings_of(config).get("max_jobs", MAX_JOBS)),
            give_up_s=parse_duration("give_up_after", config["give_up_after"]),
            is_reserved="reservation" in settings_of(config),
            retries=int(config["retries"]),
            say=say,
            on_start=status.progress.start,
            on_cell=status.progress.reached,
        )
        return self.opened

    # -- beginning and ending

    def begin(self) -> list[int]:
        """Take the machine or the campaign, write the plan, set aside records that do not count.

        Two campaigns that measure at once would measure each other.

        Returns:
            The descriptors that hold the locks.

        Raises:
            PeakmarkError: one of them is taken, or Slurm refuses the jobs.
        """
        cleanup.once()  # the summary is printed undisturbed, however often Ctrl-C is pressed
        directory = self.plan.directory
        held = [startup.lock(directory)]
        startup.check_readable(self.plan.results)
        if self.plan.cluster is None:
            held.append(lock.acquire("campaign"))
            # Without a cluster a cell does not outlive a killed Snakemake; jobs do, until the next
            # run.
            os.environ[cleanup.OWNER] = cleanup.process_identity()
        elif self.opened is None:
            raise PeakmarkError(
                "jobs of a cluster are handed over by peakmark's executor alone: "
                "use --profile slurm without --executor"
            )
        else:
            startup.check_allocation_overlap(self.plan)
            startup.ignore_sighup(directory / "logs" / "hangup.log")
        build.keep_version(directory)
        # Everything that a cell needs to be measured; the plan last, as it says that all is there.
        config = json.dumps(self.config, indent=1, sort_keys=True)
        files.renew(directory / "config.json", f"{config}\n")
        planfile.write(directory / "plan.json", self.plan.results.plan)
        if self.opened is not None:
            self.opened.adopted |= startup.adopt(self.plan)
            startup.check_jobs(self.plan, self.overrides, self.is_measured)
        startup.set_aside(self.plan, self.findings)
        self._estimate()
        return held

    def _estimate(self) -> None:
        """Give the progress bar the expected seconds of what is left."""
        groups = {self.plan.record_name(cell): [cell] for cell in self.missing_cells}
        if self.plan.jobs:
            groups = {self.job_output(name): self.missing_of(name) for name in self.plan.jobs}
        seconds = self.plan.durations.total
        expected = {
            path: {cell.id: seconds([cell]) for cell in cells} for path, cells in groups.items()
        }
        status.progress.expect(expected)
        if self.plan.cluster is not None and groups:
            cells = plural(len(self.missing_cells), "cell")
            where = f"partition {self.plan.cluster.partition}, on {node_names(self.plan.cluster)}"
            time_left = duration(seconds(self.missing_cells))
            output.tell(
                f"{cells} through Slurm, {where}; {time_left} of measuring, then the report"
            )

    def print_summary(self) -> None:
        """Print where the results are. Raises: PeakmarkError; OSError when that is impossible."""
        output.say(status.summary(self.plan.directory))

    def print_failures(self) -> None:
        """Print what a run lacks that has failed."""
        campaign = Results.read(self.plan.directory)
        ending: status.Ending = "interrupted" if cleanup.pressed else "failed"
        output.say(status.describe(campaign, only_failed=True, ending=ending))


def _log(folder: Path) -> str:
    """Where Slurm writes the output of a job: it takes % for a pattern, and \\ for the end of all
    patterns.
    """
    place = str(folder.resolve())
    return "/dev/null" if "\\" in place else f"{place.replace('%', '%%')}/%j.log"


def shell_prefix() -> str:
    """Rules call the peakmark of this Python, on a node of a cluster as well."""
    return f'export PATH={shlex.quote(str(Path(sys.executable).parent))}:"$PATH"; '


def measure_command() -> str:
    """How rules call ``peakmark measure``, in the place of the shell. With braces for Snakemake to
    leave alone.
    """
    argv = resources.command("measure", "--kernels", str(build.folder()))
    return shlex.join(["exec", *argv]).replace("{", "{{").replace("}", "}}")
