"""The jobs of a campaign in Slurm: handed over in the plan's order, asked about all at once, told how they ended.

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
from peakmark.planning.plan import Plan
from peakmark.running import failures, present, progress, refusals
from peakmark.running.binding import Rows
from peakmark.running.reasons import JobReason
from peakmark.running.task import Ended, Task

AT_ONCE = 4
"""Calls of sbatch side by side: one waits for the controller most of the time."""
BATCH = 32
LOOK_S, SHARE, LONGEST_S = 1.0, 20.0, 60.0
"""Slurm is asked every second, and no more than a twentieth of the time is its answer; yet every minute, as a late answer may
have been the last one of a controller that restarts, or this machine stood still."""
FEW = 64
"""So many outputs are looked for each time, which costs a shared filesystem less than squeue costs the controller."""
LATER_S = 3.0
NODES_S = 10.0
SILENT_S = 20.0
CANCEL_S = 20.0
MISSES = 2
"""A job absent from so many answers in a row is forgotten by Slurm, not merely too new to be in one."""
MAX_JOBS = 1000


@dataclass
class Queue:
    """All jobs of a run.

    adopted     comment -> number of jobs that an earlier run has left in the queue
    rows        the nodes of rows, where Slurm chooses them
    max_jobs    most that are in Slurm's queue at a time
    give_up_s   how long a job may wait for a node that takes none
    say         gets a sentence for the user
    """

    plan: Plan
    adopted: dict[str, str] = field(default_factory=dict)
    rows: Rows = field(default_factory=Rows)
    max_jobs: int = MAX_JOBS
    give_up_s: float = 3600.0
    say: Callable[[str], None] = print
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self.waiting: list[Task] = []
        self.active: dict[str, Task] = {}
        self.interval = LOOK_S
        self._looked = -LONGEST_S
        self._submit_at = self._nodes_at = 0.0
        self._silent_since: float | None = None
        self._said: set[Hashable] = set()
        self._unusable: dict[str, str] = {}
        self._running: list[Task] = []
        self._pool = ThreadPoolExecutor(AT_ONCE, "sbatch")
        self._turn = threading.Lock()
        self._over = False

    def add(self, task: Task) -> None:
        """A job to be submitted, or to be taken over from an earlier run."""
        number = self.adopted.pop(task.comment, None)
        if number is None:
            heapq.heappush(self.waiting, task)
        else:
            task.number = number
            self.active[number] = task
            self.rows.took_over(task)

    @property
    def hands_over(self) -> bool:
        """Whether another step would submit at once: there are jobs, and Slurm takes them."""
        return bool(self.waiting) and len(self.active) < self.max_jobs and self.clock() >= self._submit_at

    def step(self) -> list[Ended]:
        """Submit for at most about a second, then look how jobs are, if it is time to. Returns those that have ended."""
        with self._turn:
            ended = [] if self._over else self._step()
        for end in ended:
            present.forget(self.plan, end.task)
        return ended

    def _step(self) -> list[Ended]:
        ended = [*self._submit(), *self._complete()]
        now = self.clock()
        # Where nothing else is in the queue, nodes stand idle until a row knows its own.
        wait = self.interval if self.active else LOOK_S
        if (self.active or self.rows.ask) and now >= self._looked + wait:
            ended += self._look(now)
            present.tell(self.plan, self._running)
            self.interval = min(max(LOOK_S, SHARE * (self.clock() - now)), LONGEST_S)
            self._looked = now
        return ended

    def cancel(self) -> None:
        """End all jobs, as far as Slurm answers: those too that are just being handed over, and of whose submission sbatch
        has told nothing. Called by another thread than ``step``.
        """
        self._over = True
        if self._turn.acquire(timeout=CANCEL_S):  # where Slurm does not answer, a step takes longer
            self._turn.release()
        comments = {task.comment for task in (*self.waiting, *self.rows.back()) if task.unanswered}
        with contextlib.suppress(slurm.SlurmError):
            lost = [job.number for job in slurm.jobs() if job.comment in comments] if comments else []
            slurm.cancel([*self.active, *lost])
        for task in [*self.active.values()]:
            present.forget(self.plan, task)
        # Calls that have not begun see that all is over: a cancelled one would be an error in the thread that waits for it.
        self._pool.shutdown(wait=False)

    # -- submitting

    def _submit(self) -> Iterator[Ended]:
        until = self.clock() + LOOK_S
        while self.waiting and not self._over and self._submit_at <= self.clock() < until:
            room = min(BATCH, self.max_jobs - len(self.active), len(self.waiting))
            if room <= 0:
                return
            tasks = [heapq.heappop(self.waiting) for _ in range(room)]
            silence = self._look_for([task for task in tasks if task.unanswered])
            if silence is not None:
                self._push(tasks)
                self._wait(silence)
                return
            tasks = [task for task in tasks if self.rows.lets(task)]
            for task, refusal in zip(tasks, self._pool.map(self._hand_over, tasks), strict=True):
                task.unanswered = refusal is not None and refusals.unanswered(refusal)
                if task.number is not None:
                    self.active[task.number] = task
                elif self._over:
                    self._push([task])
                elif refusal is None:
                    self._push(self.rows.without(task))
                    yield Ended(task)
                elif refusals.later(refusal):
                    self._push([task])
                    self._wait(refusal)
                elif task.nodes:
                    self._leave(task, refusals.reason(refusal))
                    self._push([task.again()])
                else:
                    why = refusals.reason(refusal)
                    self._keep_refusal(task, why)
                    self._push(self.rows.without(task))  # it gets no nodes: another one of its row decides them
                    yield Ended(task, why)

    def _push(self, tasks: Iterable[Task]) -> None:
        for task in tasks:
            heapq.heappush(self.waiting, task)

    def _hand_over(self, task: Task) -> slurm.SlurmError | None:
        """Submit one. Returns why not. A record that another run's job has made meanwhile needs no job."""
        if self._over or task.number is not None or task.is_made():
            return None
        try:
            where = (f"--nodelist={task.nodes}",) if task.nodes else ()
            task.number = slurm.submit((*task.options, *where, f"--comment={task.comment}"), task.script)
        except slurm.SlurmError as error:
            return error
        return None

    def _look_for(self, tasks: Sequence[Task]) -> slurm.SlurmError | None:
        """A busy controller may take a job and answer too late for sbatch: nothing is to be measured twice. Returns why
        that cannot be known now."""
        if not tasks:
            return None
        try:
            there = {job.comment: job.number for job in slurm.jobs() if job.number not in self.active}
        except slurm.SlurmError as error:
            return error
        for task in tasks:
            task.number = there.get(task.comment)
        return None

    def _wait(self, refusal: slurm.SlurmError) -> None:
        self._submit_at = self.clock() + LATER_S
        self._tell("later", JobReason("later", (refusals.said(refusal), len(self.active))))

    def _keep_refusal(self, task: Task, why: JobReason) -> None:
        with contextlib.suppress(OSError, PeakmarkError):
            failures.refused(self.plan, task.cells, why, datetime.datetime.now().astimezone())

    # -- looking

    def _complete(self) -> list[Ended]:
        """Jobs whose output is there: a record is whole or not there, so nobody waits until Slurm is asked again."""
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
                self._tell("silent", JobReason("silent", (error,)))
            return []
        if self._silent_since is not None:
            self._silent_since = None
            self._said.discard("silent")
        ended = []
        running = (task for number, task in self.active.items() if number in known and not known[number].waits)
        self._running = list(itertools.islice(running, FEW))
        for number, task in list(self.active.items()):
            job = known.get(number)
            if task.leaves and job is not None and job.state == "CANCELLED":
                del self.active[number]
                self._push([task.again()])
                continue
            outcome = self._forgotten(task) if job is None else self._judge(task, job, now)
            if outcome is not None:
                del self.active[number]
                ended.append(outcome)
        self._push(self.rows.look(known, self.active))
        if ended:
            self._submit_at = 0.0  # there may be room again
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

    def _failed(self, task: Task, job: slurm.Job) -> JobReason:
        if job.state == "SPECIAL_EXIT":
            with contextlib.suppress(slurm.SlurmError):
                slurm.cancel([job.number])
        with contextlib.suppress(OSError, PeakmarkError):
            details = slurm.job(job.number)
            now = datetime.datetime.now().astimezone()
            if failures.keep(self.plan, task.cells, job.number, job.state, details, now) is not None:
                named = JobReason("ended on", (job.nodes, job.state), job.number)
                return named if job.nodes else JobReason("ended", (job.state,), job.number)
        return JobReason("told")

    def _forgotten(self, task: Task) -> Ended | None:
        """A job that Slurm does not know any more: its record tells, or nobody."""
        task.misses += 1
        if task.misses < MISSES:
            return None
        if task.is_made():
            return Ended(task)
        why = JobReason("forgotten", job=str(task.number))
        with contextlib.suppress(OSError, PeakmarkError):
            if failures.has_told(self.plan, task.cells, str(task.number)):
                return Ended(task, JobReason("told"))
        self._keep_refusal(task, why)
        return Ended(task, why)

    # -- nodes that take no jobs

    def _give_up(self, known: Mapping[str, slurm.Job], now: float) -> list[Ended]:
        there = [(task, known[number]) for number, task in self.active.items() if number in known]
        pending = [(task, job) for task, job in there if job.waits]
        if not pending:
            return []
        if now >= self._nodes_at or any(job.is_stuck and task.stuck_since is None for task, job in pending):
            self._nodes_at = now + min(NODES_S, self.give_up_s / 4)
            with contextlib.suppress(slurm.SlurmError):
                self._unusable = slurm.unusable()
        self._leave_nodes(pending, now)
        ended = []
        for task, job in pending:
            why = None if task.leaves else self._why_stuck(task, job)
            if why is None:
                task.stuck_since = None
                continue
            if task.stuck_since is None:
                task.stuck_since = now
                self._tell(why, JobReason("for ever", (why, f"{self.give_up_s:g}")))
            elif now - task.stuck_since >= self.give_up_s:
                over = JobReason("given up", (why, f"{self.give_up_s:g}"))
                ended += [Ended(member, over) for member in (task, *self.rows.without(task))]
        self._drop(ended)
        return ended

    def _why_stuck(self, task: Task, job: slurm.Job) -> JobReason | None:
        """Why no end of another job lets this one begin; None where it just waits."""
        node = task.cells[0].node
        if node in self._unusable:
            return JobReason("unusable", (node, self._unusable[node]))
        if job.is_stuck:
            nodes = "; ".join(str(JobReason("unusable", entry)) for entry in list(self._unusable.items())[:4])
            return JobReason("waits for", (job.reason, nodes)) if nodes else JobReason("waits", (job.reason,))
        return None

    def _leave_nodes(self, pending: Iterable[tuple[Task, slurm.Job]], now: float) -> None:
        """Take jobs out of Slurm's queue that wait for nodes of their row which they will not get soon."""
        leaving = []
        for task, job in pending:
            why = self.rows.why_leave(task, job, self._unusable, now) if task.nodes and not task.leaves else None
            if why is not None:
                self._leave(task, why)
                leaving.append(task)
        with contextlib.suppress(slurm.SlurmError):
            slurm.cancel([str(task.number) for task in leaving], waiting=True)
            for task in leaving:
                task.leaves = True

    def _leave(self, task: Task, why: JobReason) -> None:
        self.rows.leave(task)
        self._tell(task.nodes, JobReason("left", (task.nodes, why)))

    def _drop(self, ended: Iterable[Ended]) -> None:
        for end in ended:
            if end.task.number is not None:
                with contextlib.suppress(slurm.SlurmError):
                    slurm.cancel([end.task.number])
                self.active.pop(end.task.number, None)
            if end.why is not None:
                self._keep_refusal(end.task, end.why)

    def _tell(self, key: Hashable, reason: JobReason) -> None:
        """Say something once."""
        if key not in self._said:
            self._said.add(key)
            self.say(str(reason))
