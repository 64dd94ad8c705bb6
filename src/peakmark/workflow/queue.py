"""The jobs of a campaign in Slurm: handed over in the plan's order, asked about all at once, told
how they ended.

One thread calls ``step`` again and again; nothing here knows of Snakemake.
"""

from __future__ import annotations

import contextlib
import datetime
import heapq
import itertools
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from peakmark import slurm
from peakmark.errors import PeakmarkError
from peakmark.formatting import duration, plural
from peakmark.messages import Message, message
from peakmark.plan.plan import Plan
from peakmark.workflow import current_cell, failures, progress, submission_errors
from peakmark.workflow.task import Ended, Task

AT_ONCE = 4
"""Calls of sbatch side by side: one waits for the controller most of the time."""
BATCH = 32
LOOK_S, SHARE, LONGEST_S = 1.0, 20.0, 60.0
"""Slurm is asked every second, and no more than a twentieth of the time is its answer; yet every
minute, as a late answer may have been the last one of a controller that restarts, or this
machine stood still.
"""
FEW = 64
"""So many outputs are looked for each time, which costs a shared filesystem less than squeue costs
the controller.
"""
LATER_S = 3.0
PAIRS_S = 2.0
"""So long after the last new job of one node those of two nodes are submitted: Snakemake tells of
jobs in an order of its own, and a node would stand idle until the other one is free too.
"""
NODES_S = 10.0
IDLE_S = 600.0
"""So long no job runs before the user hears why Slurm lets them wait."""
SILENT_S = 20.0
CANCEL_S = 20.0
MISSES = 2
"""A job absent from so many answers in a row is forgotten by Slurm, not merely too new to be in
one.
"""
MAX_JOBS = 1000


@dataclass
class Queue:
    """All jobs of a run.

    adopted     comment -> number of jobs that an earlier run has left in the queue
    max_jobs    most that are in Slurm's queue at a time
    give_up_s   how long a job may wait for a node that is away
    retries     how often a job is submitted again whose node was lost or taken by another job
    say         gets a sentence for the user
    """

    plan: Plan
    adopted: dict[str, str] = field(default_factory=dict)
    max_jobs: int = MAX_JOBS
    give_up_s: float = 3600.0
    retries: int = 2
    say: Callable[[str], None] = print
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self.waiting: list[Task] = []
        self.active: dict[str, Task] = {}
        self.interval = LOOK_S
        self._looked = -LONGEST_S
        self._submit_at = self._nodes_at = 0.0
        self._pairs_at = 0.0
        self._silent_since: float | None = None
        self._said: set[Hashable] = set()
        self._away: dict[str, str] = {}
        self._idle_since: float | None = None
        self._running: list[Task] = []
        self._pool = ThreadPoolExecutor(AT_ONCE, "sbatch")
        self._turn = threading.Lock()
        self._over = False

    def add(self, task: Task) -> None:
        """A job to be submitted, or to be taken over from an earlier run."""
        number = self.adopted.pop(task.comment, None)
        if number is None:
            heapq.heappush(self.waiting, task)
            if task.node_count == 1:
                self._pairs_at = self.clock() + PAIRS_S
        else:
            task.number = number
            self.active[number] = task

    @property
    def hands_over(self) -> bool:
        """Whether another step would submit at once: there are jobs, and Slurm takes them."""
        return (
            self._is_next_due()
            and len(self.active) < self.max_jobs
            and self.clock() >= self._submit_at
        )

    def _is_next_due(self) -> bool:
        """Whether the next job may be submitted: jobs of two nodes are the last of the plan."""
        return bool(self.waiting) and (
            self.waiting[0].node_count == 1 or self.clock() >= self._pairs_at
        )

    def step(self) -> list[Ended]:
        """Submit for at most about a second, then look how jobs are, if it is time to. Returns
        those that have ended.
        """
        with self._turn:
            ended = [] if self._over else self._step()
        for end in ended:
            current_cell.forget(self.plan, end.task)
        return ended

    def _step(self) -> list[Ended]:
        ended = [*self._submit(), *self._complete()]
        now = self.clock()
        if self.active and now >= self._looked + self.interval:
            ended += self._look(now)
            current_cell.tell(self.plan, self._running)
            self.interval = min(max(LOOK_S, SHARE * (self.clock() - now)), LONGEST_S)
            self._looked = now
        return ended

    def cancel(self) -> None:
        """End all jobs, as far as Slurm answers: those too that are just being handed over, and of
        whose submission sbatch has told nothing. Called by another thread than ``step``.
        """
        self._over = True
        if self._turn.acquire(timeout=CANCEL_S):  # where Slurm does not answer, a step takes longer
            self._turn.release()
        comments = {task.comment for task in self.waiting if task.unanswered}
        with contextlib.suppress(slurm.SlurmError):
            lost = (
                [job.number for job in slurm.jobs() if job.comment in comments] if comments else []
            )
            slurm.cancel([*self.active, *lost])
        for task in [*self.active.values()]:
            current_cell.forget(self.plan, task)
        # Calls that have not begun see that all is over: a cancelled one would be an error in the
        # thread that waits for it.
        self._pool.shutdown(wait=False)

    # -- submitting

    def _submit(self) -> Iterator[Ended]:
        until = self.clock() + LOOK_S
        while not self._over and self._submit_at <= self.clock() < until:
            room = min(BATCH, self.max_jobs - len(self.active))
            tasks: list[Task] = []
            while len(tasks) < room and self._is_next_due():
                tasks.append(heapq.heappop(self.waiting))
            if not tasks:
                return
            silence = self._look_for([task for task in tasks if task.unanswered])
            if silence is not None:
                self._push(tasks)
                self._wait(silence)
                return
            for task, refusal in zip(tasks, self._pool.map(self._hand_over, tasks), strict=True):
                task.unanswered = refusal is not None and submission_errors.unanswered(refusal)
                if task.number is not None:
                    self.active[task.number] = task
                elif self._over:
                    self._push([task])
                elif refusal is None:
                    yield Ended(task)
                elif submission_errors.later(refusal):
                    self._push([task])
                    self._wait(refusal)
                else:
                    why = submission_errors.reason(refusal)
                    self._keep_refusal(task, why)
                    yield Ended(task, why)

    def _push(self, tasks: Iterable[Task]) -> None:
        for task in tasks:
            heapq.heappush(self.waiting, task)

    def _hand_over(self, task: Task) -> slurm.SlurmError | None:
        """Submit one. Returns why not. A record that another run's job has made meanwhile needs no
        job.
        """
        if self._over or task.number is not None or task.is_made():
            return None
        try:
            task.number = slurm.submit((*task.options, f"--comment={task.comment}"), task.script)
        except slurm.SlurmError as error:
            return error
        return None

    def _look_for(self, tasks: Sequence[Task]) -> slurm.SlurmError | None:
        """A busy controller may take a job and answer too late for sbatch: nothing is to be
        measured twice. Returns why that cannot be known now.
        """
        if not tasks:
            return None
        try:
            there = {
                job.comment: job.number for job in slurm.jobs() if job.number not in self.active
            }
        except slurm.SlurmError as error:
            return error
        for task in tasks:
            task.number = there.get(task.comment)
        return None

    def _wait(self, refusal: slurm.SlurmError) -> None:
        self._submit_at = self.clock() + LATER_S
        self._tell(
            "later",
            message("jobs-later", reason=submission_errors.said(refusal), count=len(self.active)),
        )

    def _keep_refusal(self, task: Task, why: Message) -> None:
        with contextlib.suppress(OSError, PeakmarkError):
            failures.refused(self.plan, task.cells, why, datetime.datetime.now().astimezone())

    # -- looking

    def _complete(self) -> list[Ended]:
        """Jobs whose output is there: a record is whole or not there, so nobody waits until Slurm
        is asked again.
        """
        tasks = list(self.active.values()) if len(self.active) <= FEW else self._running
        over = [task for task in tasks if str(task.number) in self.active and task.is_made()]
        for task in over:
            del self.active[str(task.number)]
            progress.started = self.clock() if progress.started is None else progress.started
        return [Ended(task) for task in over]

    def _look(self, now: float) -> list[Ended]:
        try:
            known = {job.number: job for job in slurm.jobs("all")}
        except slurm.SlurmError as error:
            self._silent_since = self._silent_since or now
            if now - self._silent_since > SILENT_S:
                self._tell("silent", message("slurm-silent", error=str(error)))
            return []
        if self._silent_since is not None:
            self._silent_since = None
            self._said.discard("silent")
        ended = []
        running = (
            task
            for number, task in self.active.items()
            if number in known and not known[number].waits
        )
        self._running = list(itertools.islice(running, FEW))
        for number, task in list(self.active.items()):
            job = known.get(number)
            outcome = self._forgotten(task) if job is None else self._judge(task, job, now)
            if outcome is None:
                continue
            del self.active[number]
            self._submit_at = 0.0  # there may be room again
            if job is not None and outcome.why is not None and self._may_retry(task, job):
                self._push([task.retry()])
            else:
                ended.append(outcome)
        return ended + self._give_up(known, now)

    def _judge(self, task: Task, job: slurm.Job, now: float) -> Ended | None:
        task.misses = 0
        if job.state == "COMPLETED":
            return Ended(task)
        if job.state in slurm.ENDED_BADLY:
            return Ended(task, None if task.is_made() else self._failed(task, job))
        if job.state not in slurm.WAITING and progress.started is None:
            progress.started = now
        return None

    def _failed(self, task: Task, job: slurm.Job) -> Message:
        if job.state == "SPECIAL_EXIT":
            with contextlib.suppress(slurm.SlurmError):
                slurm.cancel([job.number])
        with contextlib.suppress(OSError, PeakmarkError):
            details = slurm.job(job.number)
            now = datetime.datetime.now().astimezone()
            if (
                failures.keep(self.plan, task.cells, job.number, job.state, details, now)
                is not None
            ):
                name = failures.job_name(job.number)
                if not job.nodes:
                    return message("job-ended", job=name, state=job.state)
                return message("job-ended", case="node", job=name, node=job.nodes, state=job.state)
        return message("job-reported")

    def _forgotten(self, task: Task) -> Ended | None:
        """A job that Slurm does not know any more: its record tells, or nobody."""
        task.misses += 1
        if task.misses < MISSES:
            return None
        if task.is_made():
            return Ended(task)
        why = message("job-forgotten", job=failures.job_name(str(task.number)))
        with contextlib.suppress(OSError, PeakmarkError):
            if failures.has_told(self.plan, task.cells, str(task.number)):
                return Ended(task, message("job-reported"))
        self._keep_refusal(task, why)
        return Ended(task, why)

    def _may_retry(self, task: Task, job: slurm.Job) -> bool:
        """Whether the cell may well succeed on another node, or later."""
        if job.state not in slurm.NODE_LOST or task.retries >= self.retries:
            return False
        name = failures.job_name(job.number)
        values = {"nodes": job.nodes, "state": job.state}
        retry = message("job-retry", job=name, retry=task.retries + 1, most=self.retries, **values)
        self.say(retry.text)
        return True

    # -- jobs that wait

    def _give_up(self, known: Mapping[str, slurm.Job], now: float) -> list[Ended]:
        """End jobs whose nodes have been away for too long; what else Slurm lets wait may go on
        waiting.
        """
        found = [(task, known[number]) for number, task in self.active.items() if number in known]
        pending = [(task, job) for task, job in found if job.waits]
        self._tell_idle(pending, all(job.waits for _, job in found), now)
        if not pending:
            return []
        if now >= self._nodes_at:
            names = {name for task, _ in pending for name in task.nodes}
            self._nodes_at = now + min(NODES_S, self.give_up_s / 4)
            with contextlib.suppress(slurm.SlurmError):
                self._away = slurm.nodes_away(names) if names else {}
        ended = []
        waiting: dict[str, int] = {}
        for task, _ in pending:
            away = [name for name in task.nodes if name in self._away]
            if len(task.nodes) - len(away) >= task.node_count:
                task.away_since = None
                continue
            states = "; ".join(f"{name} is {self._away[name]}" for name in away[:4])
            waiting[states] = waiting.get(states, 0) + 1
            if task.away_since is None:
                task.away_since = now
            elif now - task.away_since >= self.give_up_s:
                patience = duration(self.give_up_s)
                ended.append(Ended(task, message("job-given-up", states=states, patience=patience)))
        for states, count in waiting.items():
            clock = datetime.datetime.now().strftime("%H:%M")
            jobs = plural(count, "job waits", "jobs wait")
            patience = duration(self.give_up_s)
            notice = message("nodes-away", jobs=jobs, clock=clock, states=states, patience=patience)
            self._tell(states, notice)
        self._drop(ended)
        return ended

    def _tell_idle(
        self, pending: Sequence[tuple[Task, slurm.Job]], none_runs: bool, now: float
    ) -> None:
        """Say why nothing happens, where no job has run for a while."""
        if not pending or not none_runs:
            self._idle_since = None
            return
        if self._idle_since is None:
            self._idle_since = now
        elif now - self._idle_since >= IDLE_S:
            reason = pending[0][1].reason
            jobs = plural(len(pending), "job waits", "jobs wait")
            self._tell(
                reason, message("jobs-idle", patience=duration(IDLE_S), jobs=jobs, reason=reason)
            )

    def _drop(self, ended: Iterable[Ended]) -> None:
        for end in ended:
            if end.task.number is not None:
                with contextlib.suppress(slurm.SlurmError):
                    slurm.cancel([end.task.number])
                self.active.pop(end.task.number, None)
            if end.why is not None:
                self._keep_refusal(end.task, end.why)

    def _tell(self, key: Hashable, reason: Message) -> None:
        """Say something once."""
        if key not in self._said:
            self._said.add(key)
            self.say(reason.text)
