"""What the Snakefile knows of its campaign: what is asked for, what is there already, and what each
rule is told.
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

from peakmark import files, interrupts, output, resources
from peakmark.cell import Cell
from peakmark.formatting import duration, plural
from peakmark.plan import cluster, jobs, plan, sequential_testing
from peakmark.plan.cluster import Cluster, settings_of
from peakmark.plan.plan import Plan
from peakmark.plan.plan_text import node_names
from peakmark.run import build, cleanup, job, lock
from peakmark.storage import decisions, integrity, planfile
from peakmark.units import parse_duration
from peakmark.workflow import head, preflight, progress, resume
from peakmark.workflow.queue import MAX_JOBS, Queue
from peakmark.workflow.task import Task, written

OVERRIDES = jobs.OVERRIDES
EVERY_CPU = 1 << 20
"""Snakemake makes of it as many as it was given."""
TRIGGER = Path(".snakemake/peakmark-again")
Callback = Callable[[Any], Any]


class Run:
    """One reading of the Snakefile. Before ``begin`` it writes nothing into the campaign and
    deletes nothing.

    config   as Snakemake has it
    main     whether this process runs the campaign, or is a job that Snakemake itself started on a
             node
    remote   whether an executor hands jobs to a cluster
    given    partition, account and the like of the command line

    ``current`` is the one of this process, for the executor that Snakemake makes by itself;
    ``opened`` is that executor's queue, None while another one hands jobs over.
    """

    current: ClassVar[Run | None] = None
    opened: Queue | None = None

    def __init__(
        self, config: Mapping[str, Any], main: bool, remote: bool, given: Mapping[str, str]
    ) -> None:
        _settle()
        self.config, self.main = config, main
        self.given = {
            jobs.OVERRIDES[name]: value for name, value in given.items() if name in jobs.OVERRIDES
        }
        completed = plan.complete(
            config, on_cluster=remote or cluster.VARIABLE in os.environ, checked=not main
        )
        where = _cluster(completed, self.given) if main and remote else _inherited(main)
        self.plan: Plan = plan.build(completed, where, resumes=main)
        if self.plan.cluster is not None:
            cluster.to_environment(self.plan.cluster)
        self.folder = str(self.plan.directory)
        self.cells = {cell.id: cell for cell in self.plan.cells}
        if main:
            preflight.check_campaign(self.plan.directory)
        self.findings = resume.survey(self.plan.results) if main else {}
        self.kernels_ready = build.up_to_date() if main else True
        if main:
            output.tell(*preflight.check(self.plan, self.left))
        Run.current = self

    # -- what is asked for

    @property
    def rounds(self) -> int:
        """Rounds of repetitions that Snakemake decides on; jobs of several cells decide for
        themselves.
        """
        return 0 if self.plan.jobs else sequential_testing.rounds(self.plan.criteria)

    @cached_property
    def left(self) -> list[Cell]:
        """The cells that are asked for by now and have no record that counts, in running order."""
        return [cell for cell in self.plan.wanted() if not self.is_measured(cell)]

    @cached_property
    def records(self) -> list[str]:
        """What must be there before the tables: every record needed in any case, or the word of
        each job that all are.
        """
        if not self.plan.jobs:
            return [self.plan.record_name(cell) for cell in self.plan.required_cells()]
        return [self.job_output(name) for name in self.plan.jobs]

    def lost(self, records: Sequence[str]) -> list[str]:
        """Those of what is asked for that tables stand without. What a job of several cells once
        said of them hides one that is lost.
        """
        if not self.is_there("tables"):
            return []
        if self.plan.jobs:
            return [self.job_output(name) for name in self.plan.jobs if self.missing(name)]
        return [path for path in records if not Path(path).exists()]

    def job_output(self, name: str) -> str:
        return str(job.output_path(self.plan.directory, name))

    def is_there(self, name: str) -> bool:
        return (self.plan.directory / name).exists()

    def asked_in(self, number: int, decision: str | None) -> list[str]:
        """Records of a round of repetitions, by the decisions after the round before."""
        if decision is None:
            return self.records
        cells = sequential_testing.required_in_round(
            self.plan.cells, self.plan.criteria, decisions.read(Path(decision)), number
        )
        return [decision, *map(self.plan.record_name, cells)]

    @cached_property
    def digest(self) -> str:
        """Changes with the plan: tables made from another one are made anew."""
        return hashlib.sha256(planfile.text(self.plan.results.plan).encode()).hexdigest()

    @property
    def plan_trigger(self) -> list[str]:
        """A reason to begin where tables stand without their plan, which somebody has removed."""
        return (
            [self.rerun_trigger]
            if self.is_there("tables") and not self.is_there("plan.json")
            else []
        )

    @cached_property
    def rerun_trigger(self) -> str:
        """A file that is newer than every record, if one does not count: as an input it makes
        Snakemake measure again what is there. It lies among Snakemake's own; a rule would not
        do, as nobody misses what only finished cells need.
        """
        TRIGGER.parent.mkdir(exist_ok=True)
        TRIGGER.write_text(
            f"{time.time_ns()}\n"
        )  # never the same: Snakemake compares the contents of small inputs too
        return str(TRIGGER)

    # -- what is there already

    def is_measured(self, cell: Cell) -> bool:
        """Whether the cell has a whole, unchanged record with its present options."""
        return cell.id in self.findings and self.findings[cell.id].state == integrity.GOOD

    @property
    def cell_inputs(self) -> Callback | list[str]:
        """Input of a cell's rule. To ask each of ten thousand takes seconds, and mostly none has
        anything to wait for.
        """
        unfit = any(resume.unfit(finding) for finding in self.findings.values())
        return self._cell_inputs if self.main and (unfit or not self.kernels_ready) else []

    def _cell_inputs(self, wildcards: Any) -> list[str]:
        """The kernels, where they must be compiled before this cell. A finished cell does not
        depend on them: kernels that were compiled anew or removed void no measurement (the
        record names the version that measured). ``ancient`` cannot say this: with it, Snakemake
        9.27 takes all cells behind an outdated kernel for finished.
        """
        cell = self.cells[wildcards.cell]
        rerun_trigger = [self.rerun_trigger] if resume.unfit(self.findings[cell.id]) else []
        return (
            rerun_trigger
            if self.kernels_ready or self.is_measured(cell)
            else [*rerun_trigger, *build.programs()]
        )

    def job_inputs(self, wildcards: Any) -> list[str]:
        """The same for a job of several cells: what it once said of them may not be true any more."""
        if not self.main or not self.missing(wildcards.job):
            return []
        return (
            [self.rerun_trigger] if self.kernels_ready else [self.rerun_trigger, *build.programs()]
        )

    def missing(self, name: str) -> list[Cell]:
        """What the job will have to do."""
        left = self._left
        return [cell for cell in self.plan.jobs[name] if cell.id in left]

    @cached_property
    def _left(self) -> frozenset[str]:
        return frozenset(cell.id for cell in self.left)

    # -- what rules are told

    def fingerprint(self, wildcards: Any) -> str:
        """What a cell is measured by: when it changes, the cell is measured again."""
        cell = self.cells[wildcards.cell]
        pair = ["--pair"] if self.plan.cluster and plan.two_nodes(cell) else []
        return shlex.join(
            ["--cell", cell.spec(), "--tool", *jobs.program(cell.instrument, self.plan), *pair]
        )

    def job_fingerprint(self, wildcards: Any) -> str:
        return jobs.fingerprint(self.plan.jobs[wildcards.job], self.plan)

    @property
    def priority(self) -> Callback | int:
        """The plan's order, which mixes programs and repetitions: here, Snakemake would run cells
        in an order of its own. On a cluster the queue keeps it.
        """
        if self.plan.cluster is not None:
            return 0
        most, places = len(self.plan.cells), self.places
        return lambda wildcards: most - places[wildcards.cell]

    @property
    def threads(self) -> int:
        """Here, nothing may run beside a measurement. On a cluster it has a job of its own."""
        return EVERY_CPU if self.plan.cluster is None else 1

    @property
    def resources(self) -> dict[str, Callback]:
        """For Snakemake's own Slurm executor; ours asks the plan."""
        if self.plan.cluster is None:
            return {}
        names = jobs.resources(self.plan.cells[:1], self.plan, {}) if self.plan.cells else {}
        return {
            name: self._resource(name)
            for name in names
            if jobs.OVERRIDES.get(name) not in self.given
        }

    def _resource(self, name: str) -> Callback:
        return lambda wildcards: jobs.resources(self.cells_of(wildcards), self.plan, {})[name]

    def cells_of(self, wildcards: Any) -> Sequence[Cell]:
        """The cells of a job of Snakemake's."""
        name = getattr(wildcards, "job", None)
        return [self.cells[wildcards.cell]] if name is None else self.plan.jobs[name]

    def task(self, wildcards: Any, output: Path, command: str) -> Task:
        """What Slurm is told of a job of Snakemake's."""
        cells = tuple(self.cells_of(wildcards))
        settings = settings_of(self.plan.config)
        options = (
            f"--job-name={jobs.name(self.plan, cells, settings)}",
            f"--output={_log(self.plan.directory / 'logs' / 'slurm')}",
            *jobs.options(cells, self.plan, self.given),
        )
        absent = len(cells) == 1 and self.findings[cells[0].id].state == integrity.ABSENT
        before = None if absent else written(output)
        comment = jobs.comment(self.plan, cells)
        nodes, count = jobs.eligible(cells, self.plan)
        place = self.places[cells[0].id]
        return Task(place, cells, output, comment, options, script(command), nodes, count, before)

    @cached_property
    def places(self) -> dict[str, int]:
        return {cell.id: place for place, cell in enumerate(self.plan.cells)}

    def queue(self, say: Callable[[str], None]) -> Queue:
        """Where an executor puts those jobs."""
        # While Snakemake's own thread computes, each answer of sbatch would wait for its turn
        # several times, 5 ms each.
        sys.setswitchinterval(0.001)
        most = int(settings_of(self.plan.config).get("max_jobs", MAX_JOBS))
        seconds = parse_duration("give_up_after", self.plan.config["give_up_after"])
        retries = int(self.plan.config["retries"])
        self.opened = Queue(self.plan, max_jobs=most, give_up_s=seconds, retries=retries, say=say)
        return self.opened

    # -- beginning

    def begin(self) -> list[int]:
        """Take the machine or the campaign, write the plan, set aside what does not count. Returns
        what holds the locks.

        Two campaigns that measure at once would measure each other. Errors: PeakmarkError.
        """
        interrupts.once()  # the last words are said undisturbed, however often Ctrl-C is pressed
        held = [head.lock(self.plan.directory)]
        if self.plan.cluster is None:
            held.append(lock.acquire("campaign"))
            # A cell does not outlive a killed Snakemake here; jobs of a cluster do, until the next
            # run.
            os.environ[cleanup.OWNER] = cleanup.process_identity()
        else:
            head.check_allocation_overlap(self.plan)
            head.ignore_sighup(self.plan.directory / "logs" / "hangup.log")
        build.keep_version(self.plan.directory)
        self._write()
        if self.opened is not None:
            self.opened.adopted |= head.adopt(self.plan)
            head.check(self.plan, self.given, self.is_measured)
        resume.begin(self.plan, self.findings)
        self._estimate()
        return held

    # -- ending

    def print_summary(self) -> None:
        """Where the results are. Errors: PeakmarkError; OSError when they cannot be printed."""
        from peakmark.workflow import summary  # takes longer to load than the Snakefile to read

        output.say(summary.describe(self.plan.directory))

    def print_failures(self) -> None:
        """The same for a run that did not do all."""
        from peakmark.storage.results import Results
        from peakmark.workflow import status

        campaign = Results.read(self.plan.directory)
        output.say(status.describe(campaign, only_failed=True, interrupted=interrupts.pressed).text)

    def _write(self) -> None:
        """Everything that a cell needs to be measured, by a job or again by hand; the plan last, as
        it tells that all is there.
        """
        files.renew(
            self.plan.directory / "config.json",
            json.dumps(self.config, indent=1, sort_keys=True) + "\n",
        )
        planfile.write(self.plan.directory / "plan.json", self.plan.results.plan)

    def _estimate(self) -> None:
        seconds_of = self.plan.durations.total
        each = {self.plan.record_name(cell): [cell] for cell in self.left}
        if self.plan.jobs:
            each = {self.job_output(name): self.missing(name) for name in self.plan.jobs}
            progress.steps = {
                path: {cell.id: seconds_of([cell]) for cell in cells}
                for path, cells in each.items()
            }
        progress.estimates = {path: seconds_of(cells) for path, cells in each.items() if cells}
        if self.plan.cluster is not None and each:
            cells = plural(sum(map(len, each.values())), "cell")
            time_left = duration(sum(progress.estimates.values()))
            where = f"through Slurm, partition {self.plan.cluster.partition}, on {node_names(self.plan.cluster)}"
            output.tell(f"{cells} {where}; {time_left} of measuring, then the report")


def _settle() -> None:
    # Ten thousand jobs are some million objects that live to the end. Python would look for garbage
    # among them time and again, which took a sixth of the planning; what is garbage dies young and
    # is still found.
    gc.set_threshold(100_000, 20, 20)
    os.umask(os.umask(0o077) | 0o002)  # Snakemake makes folders too: none is for everybody to write


def _cluster(completed: Mapping[str, Any], given: Mapping[str, str]) -> Cluster:
    """The cluster, asked by the process that submits."""
    os.environ.pop(cleanup.OWNER, None)
    return cluster.find(completed, given.get("partition"), plan.RESULTS / completed["campaign"])


def _inherited(main: bool) -> Cluster | None:
    if main:
        os.environ.pop(cluster.VARIABLE, None)
        os.environ.pop(cleanup.OWNER, None)
    return cluster.from_environment()


def _log(folder: Path) -> str:
    """Where Slurm writes what it has to say of a job: it takes % for a pattern, and \\ for the end
    of all patterns.
    """
    place = str(folder.resolve())
    return "/dev/null" if "\\" in place else f"{place.replace('%', '%%')}/%j.log"


def shell_prefix() -> str:
    """Rules call the peakmark that stands beside this Python, on a node of a cluster as well as
    here.
    """
    return f'export PATH={shlex.quote(str(Path(sys.executable).parent))}:"$PATH"; '


def measuring() -> str:
    """How rules call ``peakmark measure``: Python does without what is installed, and takes the
    place of the shell. With braces for Snakemake to leave alone.
    """
    return shlex.join(["exec", *resources.command("measure")]).replace("{", "{{").replace("}", "}}")


def script(command: str) -> str:
    """What a node runs of a job: its rule's command, and no Snakemake."""
    return f"#!/bin/bash\n{shell_prefix()}\n{command}\n"
