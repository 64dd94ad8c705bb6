"""The run of a campaign, as the Snakefile sees it: planned and finished records, and the inputs, options
and resources of each rule.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from peakmark import files, resources
from peakmark.cell import Cell
from peakmark.config.types import Planned
from peakmark.errors import tell
from peakmark.formatting import duration, parse_duration, plural
from peakmark.plan import cluster, jobs
from peakmark.plan.cluster import Cluster
from peakmark.plan.plan import RESULTS, Plan, complete, make_completed, node_names
from peakmark.rows import FOLDER as ROWS
from peakmark.run import cleanup, job, kernel_build, lock, mpi
from peakmark.slurm.queue import Queue, Task, modified
from peakmark.storage import planfile, records
from peakmark.storage.results import Results
from peakmark.workflow import startup, status

RESOURCE_SETTINGS = jobs.RESOURCE_SETTINGS
EVERY_CPU = 1 << 20
"""Threads of a rule that takes all cores. Snakemake reduces them to the cores that it was given."""
TRIGGER = Path(".snakemake/peakmark-again")
"""File that each run rewrites, so that Snakemake repeats a job that has it among its inputs."""
CELL = "{subsystem}/{instrument}/{workload}_{block}_x{concurrency}/{node}/{repetition}"
"""Id of a cell (``Cell.id``) in Snakemake's wildcards. ``rules/cells.smk`` limits what they match."""
Callback = Callable[[Any], Any]
OTHER_EXECUTOR = "this executor starts Snakemake in every job and submits no lost job again; on Slurm --profile slurm without --executor avoids both"


class Run:
    """One reading of the Snakefile. Before ``begin`` it changes nothing in the folder of the campaign.

    Args:
        config: configuration that Snakemake has read.
        remote: whether an executor submits jobs to a cluster.
        overrides: partition, account and similar settings of the command line, by Snakemake's names.
        has_queue: whether that executor is peakmark's.

    Attributes:
        current: the run of this process. The executor, which Snakemake creates, finds it here.
        opened: the queue of peakmark's executor; None without it.
    """

    current: ClassVar[Run | None] = None
    opened: Queue | None = None

    def __init__(
        self,
        config: Mapping[str, Any],
        remote: bool,
        overrides: Mapping[str, str],
        has_queue: bool = False,
    ) -> None:
        # Ten thousand jobs are about a million objects that live to the end. The garbage collector took
        # a sixth of the planning's time to search them.
        gc.set_threshold(100_000, 20, 20)
        # Users outside the group may not write into Snakemake's folders either. The umask can only
        # be read by setting it.
        os.umask(os.umask(0o077) | 0o002)
        self.config = config
        self.has_queue = has_queue
        os.environ.pop(cleanup.OWNER, None)  # ``begin`` sets it if this machine measures
        self.overrides = {
            RESOURCE_SETTINGS[name]: value
            for name, value in overrides.items()
            if name in RESOURCE_SETTINGS
        }
        completed = complete(config, on_cluster=remote)
        where = None
        if remote:
            where = self._find_cluster(completed)
        self.plan = make_completed(completed, where)
        self._index()
        startup.check_folder(self.plan.directory)
        self.findings = startup.survey(self.plan.results)
        self.findings |= startup.other_tools(self.plan, self.findings, self.overrides)
        self.kernels_ready = kernel_build.up_to_date()
        if not self.kernels_ready and self.missing_cells:
            startup.check_compiler(kernel_build.folder())
        tell(*startup.check(self.plan, self.missing_cells))
        Run.current = self

    def _find_cluster(self, completed: Planned) -> Cluster:
        """Return the cluster whose scheduler gets the jobs. peakmark's executor needs Slurm."""
        if not self.has_queue and shutil.which("scontrol") is None:
            return cluster.unlisted(completed)
        folder = RESULTS / completed.campaign
        return cluster.find(completed, self.overrides.get("partition"), folder)

    def _index(self) -> None:
        """Note where the campaign is, and the place of each cell in the order of the plan."""
        self.folder = str(self.plan.directory)
        self.places = {cell.id: place for place, cell in enumerate(self.plan.cells)}

    # -- what is wanted

    @cached_property
    def missing_cells(self) -> list[Cell]:
        """Return the planned cells without a valid record, in running order."""
        return [cell for cell in self.plan.cells if not self.is_measured(cell)]

    def missing_of(self, name: str) -> list[Cell]:
        """Return the cells that a job still has to measure."""
        return [cell for cell in self.plan.jobs[name] if cell.id in self._missing]

    @cached_property
    def _missing(self) -> frozenset[str]:
        return frozenset(cell.id for cell in self.missing_cells)

    @cached_property
    def records(self) -> list[str]:
        """Return the inputs of the rule that makes the rows: the output of each job."""
        return [self.output(name) for name in self.plan.jobs]

    @property
    def lost(self) -> list[str]:
        """Return the outputs of jobs with missing cells, if the campaign already has rows.

        Snakemake does not notice that a record is lost if the tables made from it exist. Without
        rows Snakemake makes every record anyway, and the result is empty: stating ten thousand
        outputs a second time would make planning take a tenth longer.
        """
        if not (self.plan.directory / ROWS).exists():
            return []
        return [self.output(name) for name in self.plan.jobs if self.missing_of(name)]

    @property
    def pattern(self) -> str:
        """Return the name of a job in Snakemake's wildcards."""
        return "{job}" if self.plan.is_grouped else CELL

    @property
    def option(self) -> str:
        """Return the option of ``peakmark measure`` that names the cell, or the job of several cells."""
        name = self.pattern.replace("{", "{wildcards.").replace("}", ":q}")
        return f"--job {name}" if self.plan.is_grouped else f"--cell {name}"

    def name_of(self, wildcards: Any) -> str:
        """Return the name of a Snakemake job in the plan."""
        return self.pattern.format_map(vars(wildcards))

    def cells_of(self, wildcards: Any) -> list[Cell]:
        """Return the cells that a Snakemake job measures."""
        return self.plan.jobs[self.name_of(wildcards)]

    def output(self, name: str) -> str:
        """Return the output of a job: the record of its only cell, or the job's own output file.

        A job that may have several cells writes its file when all its cells are measured.
        """
        if self.plan.is_grouped:
            return str(job.output_path(self.plan.directory, name))
        return f"{self.folder}/cells/{name}.json"

    def log(self, name: str) -> str:
        """Return the log of a job."""
        part = f"{job.NODES}/{name}" if self.plan.is_grouped else name
        return f"{self.folder}/logs/{part}.log"

    # -- inputs and options of rules

    def is_measured(self, cell: Cell) -> bool:
        """Return whether the cell has an undamaged record with the options in the plan."""
        return cell.id in self.findings and self.findings[cell.id].state == records.GOOD

    @cached_property
    def plan_text(self) -> str:
        """Return the text of ``plan.json``."""
        return planfile.text(self.plan.to_json())

    @cached_property
    def digest(self) -> str:
        """Return the digest of the plan. If the digest changes, Snakemake makes the tables again."""
        return hashlib.sha256(self.plan_text.encode()).hexdigest()

    @property
    def inputs(self) -> Callback | list[str]:
        """Return the input of the rule that measures: a function, if some job needs an input.

        Otherwise return an empty list, because calling a function for ten thousand cells takes seconds.
        """
        unfit = any(map(startup.is_unfit, self.findings.values()))
        if unfit or self.plan.is_grouped or not self.kernels_ready:
            return self._inputs
        return []

    def _inputs(self, wildcards: Any) -> list[str]:
        """Return the inputs of a job with missing cells; none for a finished job.

        These are the kernels if they must be compiled, and ``TRIGGER`` if Snakemake would otherwise
        take an existing output for the result: an unfit record, or the output of an earlier job of
        several cells.

        A finished cell does not depend on the kernels, because its record names the version that measured.
        ``ancient`` cannot be used: Snakemake 9.27 would count all cells with an outdated kernel as finished.
        """
        missing = self.missing_of(self.name_of(wildcards))
        if not missing:
            return []
        inputs = []
        if not self.kernels_ready:
            inputs += kernel_build.programs()
        if self.plan.is_grouped or startup.is_unfit(self.findings[missing[0].id]):
            # Snakemake compares the contents of small inputs too.
            TRIGGER.parent.mkdir(exist_ok=True)
            TRIGGER.write_text(f"{time.time_ns()}\n")
            inputs.append(str(TRIGGER))
        return inputs

    def fingerprint(self, wildcards: Any) -> str:
        """Return a digest of a job's cells and programs. If it changes, the cells are measured again."""
        return jobs.fingerprint(self.cells_of(wildcards), self.plan)

    @property
    def priority(self) -> Callback | int:
        """Return a function of a job's wildcards that returns its priority.

        With these priorities Snakemake keeps the order of the plan. If peakmark's executor submits
        the jobs, its queue keeps the order, and the result is 0.
        """
        if self.has_queue:
            return 0
        most = len(self.plan.cells)
        return lambda wildcards: most - self.places[self.cells_of(wildcards)[0].id]

    @property
    def threads(self) -> int:
        """Return the threads of a cell: without a cluster all threads, so that the cell runs alone."""
        return EVERY_CPU if self.plan.cluster is None else 1

    @cached_property
    def resources(self) -> dict[str, Callback]:
        """Return the resources of the rules that measure, for executors other than peakmark's.

        peakmark's own executor needs no resources and gets none, because Snakemake would take seconds
        to evaluate ten resources for each of ten thousand jobs.
        """
        if self.plan.cluster is None or self.has_queue or not self.plan.cells:
            return {}
        first = next(iter(self.plan.jobs.values()))
        names = jobs.resources(first, self.plan, self.overrides)
        return {name: partial(self._resource, name) for name in names}

    @property
    def limited_resources(self) -> list[str]:
        """Return the names of the resources that only one job at a time may use."""
        if not self.resources:
            return []
        return list(jobs.shared_resources(self.plan.cells[:1], self.plan))

    def _resource(self, name: str, wildcards: Any) -> int | str:
        """Return one resource of a Snakemake job. All resources of the job are computed together."""
        cells = self.cells_of(wildcards)
        if cells[0].id not in self._known_resources:
            values = jobs.resources(cells, self.plan, self.overrides)
            self._known_resources[cells[0].id] = values
        return self._known_resources[cells[0].id][name]

    @cached_property
    def _known_resources(self) -> dict[str, jobs.Values]:
        return {}

    # -- jobs of a cluster

    def task(self, wildcards: Any, output: Path, command: str) -> Task:
        """Return the queue's task for one of Snakemake's jobs."""
        cells = tuple(self.cells_of(wildcards))
        directory = self.plan.directory
        options = (
            f"--job-name={jobs.name(self.plan, cells, self.plan.config.site_facts.slurm)}",
            f"--output={_log(directory / 'logs' / 'slurm')}",
            *jobs.options(cells, self.plan, self.overrides),
        )
        # The time at which an earlier job wrote the output. The queue compares it, to find out
        # whether this job has written the output. For one cell the output is its record, so that
        # ``findings`` tells whether there is one.
        finding = self.findings.get(cells[0].id)
        before = None
        if len(cells) > 1 or (finding is not None and finding.state != records.ABSENT):
            before = modified(output)
        # The file in which a job of several cells names the cell that it measures now.
        present = None
        if self.plan.is_grouped:
            present = job.current_path(directory, self.name_of(wildcards))
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
            before=before,
            present=present,
        )

    def queue(self, say: Callable[[str], None]) -> Queue:
        """Open the queue to which the executor hands the tasks."""
        # Let threads take turns more often. While Snakemake's thread computes, each answer of sbatch would
        # otherwise wait several times for the interpreter, 5 ms each.
        sys.setswitchinterval(0.001)
        config = self.plan.config
        self.opened = Queue(
            self.plan.directory,
            max_jobs=config.site_facts.slurm.max_jobs,
            give_up_s=parse_duration(config.give_up_after),
            is_reserved=bool(config.site_facts.slurm.reservation),
            retries=config.retries,
            say=say,
            on_start=status.progress.start,
        )
        return self.opened

    # -- beginning and ending

    def begin(self) -> list[int]:
        """Lock the campaign and the machine, write the plan, and set aside records that do not count.

        Two campaigns that measure at once would disturb each other.

        Returns:
            The descriptors that hold the locks.

        Raises:
            PeakmarkError: another process holds a lock, or Slurm refuses the jobs.
        """
        cleanup.once()  # further Ctrl-C must not stop the summary
        directory = self.plan.directory
        held = [startup.lock(directory)]
        if self.plan.cluster is None:
            held.append(lock.acquire("campaign"))
            # Without a cluster, a cell ends if Snakemake is killed. On a cluster, the jobs continue.
            os.environ[cleanup.OWNER] = str(os.getpid())
        else:
            if self.opened is None:
                tell(OTHER_EXECUTOR)
            startup.ignore_sighup(directory / "logs" / "hangup.log")
        if any(cell.subsystem == "mpi" for cell in self.missing_cells):
            mpi.compile_for(directory, self.plan.config.site_facts.mpi)
        kernel_build.keep_version(directory)
        # Write everything that a cell needs. The plan is last, because it shows that the rest exists.
        config = json.dumps(self.config, indent=1, sort_keys=True)
        files.renew(directory / "config.json", f"{config}\n")
        files.renew(directory / "plan.json", self.plan_text)
        if self.opened is not None:
            self.opened.adopted |= startup.adopt(self.plan)
            startup.check_jobs(self.plan, self.overrides, self.missing_cells)
        startup.set_aside(self.plan, self.findings)
        self._estimate()
        return held

    def _estimate(self) -> None:
        """Pass the expected seconds of each job to the progress bar. On a cluster, also print what will be measured."""
        seconds = self.plan.durations.total
        expected = {}
        for name in self.plan.jobs:
            if cells := self.missing_of(name):
                expected[self.output(name)] = seconds(cells)
        status.progress.expect(expected)
        if self.plan.cluster is not None and expected:
            count = plural(len(self.missing_cells), "cell")
            where = "as jobs of a scheduler other than Slurm"
            if self.plan.cluster.partition:
                nodes = node_names(self.plan.cluster)
                where = f"through Slurm, partition {self.plan.cluster.partition}, on {nodes}"
            time_left = duration(seconds(self.missing_cells))
            tell(f"{count} {where}; {time_left} of measuring, then the report")

    def print_summary(self) -> None:
        """Print the score card and the folder of the results. Errors: PeakmarkError, OSError."""
        status.print_summary(self.plan.directory)

    def print_failures(self) -> None:
        """Print the cells that this failed or interrupted run has not measured, with the reasons."""
        campaign = Results.read(self.plan.directory)
        ending: status.Ending = "interrupted" if cleanup.pressed else "failed"
        print(status.describe(campaign, only_failed=True, ending=ending), flush=True)


class RunInJob(Run):
    """The run as the Snakefile needs it inside a job that another executor than peakmark's submitted.

    Such an executor starts Snakemake again in each job. This class takes the plan that the run has
    written. It does not ask Slurm or read records, because the job measures what it was submitted for.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        # The run chose partition and account, judged the records and compiled the kernels before it
        # submitted this job. Without findings no record counts, so the job measures all its cells.
        self.config = config
        self.has_queue = False  # the job's own Snakemake measures, and submits nothing
        self.overrides = {}
        folder = RESULTS / complete(config, on_cluster=True).campaign
        results = Results.read(folder)
        where = msgspec.convert(results.plan.cluster, Cluster | None)
        self.plan = Plan(config=results.config, cells=results.cells, references=(), cluster=where)
        self.findings = {}
        self.kernels_ready = True
        self._index()

    @cached_property
    def digest(self) -> str:
        """Return an empty text in the place of the digest of the plan: no job makes rows here."""
        return ""

    @property
    def inputs(self) -> list[str]:
        """Return the input of the rule that measures: none.

        The run had the kernels compiled before it submitted the job.
        """
        return []

    @cached_property
    def resources(self) -> dict[str, Callback]:
        """Return the resources that the Slurm plugin reads inside a job."""
        if self.plan.cluster is None:
            return {}
        return {name: partial(self._resource, name) for name in jobs.STEP}

    @property
    def limited_resources(self) -> list[str]:
        """Return no resource: a job runs alone in its own Snakemake."""
        return []

    def _resource(self, name: str, wildcards: Any) -> int | str:
        """Return one resource of the step that measures inside the job, not of the job itself."""
        cells = self.cells_of(wildcards)
        return jobs.step_resources(cells, self.plan, self.plan.config.site_facts.slurm)[name]


def _log(folder: Path) -> str:
    """Return the path of a job's log as a pattern of sbatch, in which %j is the job's id and %% a percent sign.

    In a path with a backslash sbatch replaces nothing, and a job whose log cannot be opened fails: such a
    folder has no logs.
    """
    place = str(folder.resolve())
    if "\\" in place:
        return "/dev/null"
    return f"{place.replace('%', '%%')}/%j.log"


def shell_prefix() -> str:
    """Return the start of each rule's shell command, with which it finds the peakmark of this Python."""
    return f'export PATH={shlex.quote(str(Path(sys.executable).parent))}:"$PATH"; '


def measure_command(campaign: Path) -> str:
    """Return the command with which rules call ``peakmark measure``, with braces doubled for Snakemake."""
    plan = str(campaign / "plan.json")
    argv = resources.command("measure", "--kernels", str(kernel_build.folder()), "--plan", plan)
    return shlex.join(["exec", *argv]).replace("{", "{{").replace("}", "}}")
