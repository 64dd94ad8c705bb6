"""The jobs of a campaign in Slurm: submitted in the plan's order, looked at all at once, and what
becomes of each.

One thread calls ``step`` again and again; nothing here knows of Snakemake.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from peakmark import files, slurm
from peakmark.cell import Cell
from peakmark.formatting import duration, plural
from peakmark.messages import Message, message
from peakmark.slurm import failures

AT_ONCE = 4
"""Calls of sbatch side by side: one waits for the controller most of the time."""
BATCH = 32
LOOK_S, SHARE, LONGEST_S = 1.0, 20.0, 60.0
"""Slurm is asked every second, and no more than a twentieth of the time is its answer; yet every
minute, as a late answer may have been the last one of a controller that restarts, or this
machine stood still.
"""
FEW = 64
"""So many outputs of running jobs are looked for each time, which costs a shared filesystem less
than squeue costs the controller.
"""
LATER_S = 3.0
PAIRS_S = 2.0
"""So long after the last new job of one node those of two nodes are submitted: Snakemake hands over
jobs in an order of its own, and a node would stand idle until the other one is free too.
"""
SHARED_S = 0.2
"""So often jobs are looked for that share nothing with an active one any more."""
NODES_S = 10.0
IDLE_S = 600.0
"""So long no job runs before the user hears why Slurm lets them wait."""
SILENT_S = 20.0
CANCEL_S = 20.0
MISSES = 2
"""A job absent from so many answers in a row is forgotten by Slurm, not merely too new to be in
one.
"""
UNNUMBERED = 3
"""A job that sbatch takes so often without a number, and Slurm's queue never shows, is not there."""
MAX_JOBS = 1000


@dataclass(eq=False)
class Task:
    """A job of a campaign.

    Attributes:
        place: in the plan's order.
        output: file that the job makes.
        options: of sbatch.
        nodes: those on which Slurm may run it, of which it takes ``node_count``.
        before: when the output of an earlier job was written (ns), None without one.
        shares: what no two active jobs may share.
        present: file in which a job of several cells names the one that it measures.
        number: that Slurm gave it.
        misses: answers of Slurm in a row that lack it.
        unanswered: sbatch was called and got no answer: Slurm may have the job.
        unnumbered: how often sbatch has ended well without a number.
        unavailable_since: since when too few of its nodes have been up.
    """

    place: int
    cells: tuple[Cell, ...]
    output: Path
    comment: str
    options: tuple[str, ...]
    script: str
    nodes: tuple[str, ...] = ()
    node_count: int = 1
    shares: frozenset[str] = frozenset()
    before: int | None = None
    present: Path | None = None
    number: str = ""
    misses: int = 0
    unanswered: bool = False
    unnumbered: int = 0
    retries: int = 0
    unavailable_since: float | None = None

    def __lt__(self, other: Task) -> bool:
        return self.place < other.place

    def is_made(self) -> bool:
        """Whether the output is there, and is not the one from before."""
        return modified(self.output) not in (None, self.before)

    def cell(self) -> Cell | None:
        """The cell that the job measures, or was measuring when it ended; None if nobody knows."""
        if self.present is None:
            return self.cells[0]
        name = present_cell(self.present)
        return next((cell for cell in self.cells if cell.id == name), None)

    def forget_cell(self) -> None:
        """Remove the file of a job that was killed, and could not do so itself."""
        if self.present is not None:
            with suppress(OSError):
                self.present.unlink(missing_ok=True)


@dataclass(frozen=True)
class Ended:
    """A job that has ended. ``why`` it failed, None when it did not."""

    task: Task
    why: Message | None = None


def modified(path: Path) -> int | None:
    """When a file was written (ns), None where there is none."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None


def present_cell(path: Path) -> str | None:
    """The cell that a job names in this file; None if it cannot be read, as when the job just ends."""
    try:
        return files.read_text(path).strip()
    except (OSError, UnicodeDecodeError):
        return None


def _waiting(count: int) -> str:
    return plural(count, "job waits", "jobs wait")


@dataclass
class Queue:
    """All jobs of a run.

    Attributes:
        campaign: its folder.
        adopted: comment -> number of jobs of an earlier run that are still in the queue.
        max_jobs: most that are in Slurm's queue at a time.
        give_up_s: how long a job may wait for a node that is not available.
        is_reserved: jobs have a reservation of their nodes.
        retries: how often a job is submitted again whose node was lost or taken by another job.
        say: gets a sentence for the user.
        on_start: called whenever jobs run.
        on_cell: gets output and present cell of running jobs of several cells.
    """

    campaign: Path
    adopted: dict[str, str] = field(default_factory=dict)
    max_jobs: int = MAX_JOBS
    give_up_s: float = 3600.0
    is_reserved: bool = False
    retries: int = 2
    say: Callable[[str], None] = print
    on_start: Callable[[], None] = lambda: None
    on_cell: Callable[[Path, str], None] = lambda _output, _cell: None
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self.waiting: list[Task] = []
        self.active: dict[str, Task] = {}
        self._submit_at = self._look_at = self._nodes_at = self._pairs_at = 0.0
        self._silent_since: float | None = None
        self._idle_since: float | None = None
        self._messages: set[Hashable] = set()
        self._unavailable: dict[str, str] = {}
        self._running: list[Task] = []
        self._pool = ThreadPoolExecutor(AT_ONCE, "sbatch")
        self._turn = threading.Lock()
        self._over = False

    def add(self, task: Task) -> None:
        """A job to be submitted, or to be taken over from an earlier run."""
        number = self.adopted.pop(task.comment, None)
        if number is not None:
            self._activate(task, number)
            return
        heapq.heappush(self.waiting, task)
        if task.node_count == 1:
            self._pairs_at = self.clock() + PAIRS_S

    @property
    def may_submit(self) -> bool:
        """Whether another step would submit at once: there are jobs, and Slurm takes them."""
        has_room = len(self.active) < self.max_jobs
        return self._is_next_due() and has_room and self.clock() >= self._submit_at

    def step(self) -> list[Ended]:
        """Submit for at most about a second, then look how jobs are, if it is time to; those that
        have ended.
        """
        with self._turn:
            ended = [] if self._over else self._step()
        for end in ended:
            end.task.forget_cell()
        return ended

    def _step(self) -> list[Ended]:
        ended = [*self._submit(), *self._made()]
        now = self.clock()
        if self.active and now >= self._look_at:
            ended += self._look(now)
            for task in self._running:
                cell = task.cell() if task.present else None
                if cell is not None:
                    self.on_cell(task.output, cell.id)
            pause = max(LOOK_S, SHARE * (self.clock() - now))
            self._look_at = now + min(pause, LONGEST_S)
        return ended

    def cancel(self) -> None:
        """End all jobs, as far as Slurm answers: those too that are just being submitted, and whose
        submission sbatch has not answered. Called by another thread than ``step``.
        """
        self._over = True
        if self._turn.acquire(timeout=CANCEL_S):  # where Slurm does not answer, a step takes longer
            self._turn.release()
        comments = {task.comment for task in self.waiting if task.unanswered}
        with suppress(slurm.SlurmError):
            known = slurm.jobs() if comments else []
            slurm.cancel([*self.active, *(job.number for job in known if job.comment in comments)])
        for task in [*self.active.values()]:
            task.forget_cell()
        # Calls that have not begun see that all is over: a cancelled one would be an error in the
        # thread that waits for it.
        self._pool.shutdown(wait=False)

    # -- submitting

    def _is_next_due(self) -> bool:
        """Whether the next job may be submitted: jobs of two nodes are the last of the plan."""
        return bool(self.waiting) and (
            self.waiting[0].node_count == 1 or self.clock() >= self._pairs_at
        )

    def _submit(self) -> Iterator[Ended]:
        until = self.clock() + LOOK_S
        while not self._over and self._submit_at <= self.clock() < until:
            room = min(BATCH, self.max_jobs - len(self.active))
            tasks = self._take(room)
            if not tasks:
                if self.waiting:
                    self._submit_at = self.clock() + SHARED_S
                return
            silence = self._find_unanswered(tasks)
            if silence is not None:
                self._postpone(tasks, silence)
                return
            for task, refusal in zip(tasks, self._pool.map(self._hand_over, tasks), strict=True):
                task.unanswered = refusal is not None and failures.is_unanswered(refusal)
                if task.number:
                    self._activate(task, task.number)
                elif self._over:
                    heapq.heappush(self.waiting, task)
                elif refusal is None:
                    yield Ended(task)
                elif self._may_be_taken(task, refusal):
                    self._postpone([task], refusal)
                else:
                    yield self._refused(task, failures.refusal(refusal))

    def _may_be_taken(self, task: Task, refusal: slurm.SlurmError) -> bool:
        """Return whether a refused job is worth another try."""
        if isinstance(refusal, slurm.NumberError):
            task.unnumbered += 1
            return task.unnumbered < UNNUMBERED
        return failures.passes(refusal, has_jobs=bool(self.active))

    def _take(self, room: int) -> list[Task]:
        """The next jobs of the plan, but those that share something with an active one."""
        busy = set().union(*(task.shares for task in self.active.values()))
        taken: list[Task] = []
        blocked: list[Task] = []
        while len(taken) < room and self._is_next_due():
            task = heapq.heappop(self.waiting)
            if busy.isdisjoint(task.shares):
                taken.append(task)
                busy |= task.shares
            else:
                blocked.append(task)
        for task in blocked:
            heapq.heappush(self.waiting, task)
        return taken

    def _activate(self, task: Task, number: str) -> None:
        task.number = number
        self.active[number] = task

    def _hand_over(self, task: Task) -> slurm.SlurmError | None:
        """Submit one; why not. A record that another run's job has made meanwhile needs no job."""
        if self._over or task.number or task.is_made():
            return None
        try:
            task.number = slurm.submit((*task.options, f"--comment={task.comment}"), task.script)
        except slurm.SlurmError as error:
            return error
        return None

    def _find_unanswered(self, tasks: Sequence[Task]) -> slurm.SlurmError | None:
        """A busy controller may take a job and answer too late for sbatch: nothing is to be
        measured twice. Returns why that cannot be known now.
        """
        unanswered = [task for task in tasks if task.unanswered]
        try:
            known = slurm.jobs() if unanswered else []
        except slurm.SlurmError as error:
            return error
        numbers = {job.comment: job.number for job in known if job.number not in self.active}
        for task in unanswered:
            task.number = numbers.get(task.comment, "")
        return None

    def _postpone(self, tasks: Iterable[Task], refusal: slurm.SlurmError) -> None:
        for task in tasks:
            heapq.heappush(self.waiting, task)
        self._submit_at = self.clock() + LATER_S
        count = len(self.active)
        self._tell("later", "jobs-later", reason=failures.text_for_now(refusal), count=count)

    def _refused(self, task: Task, why: Message) -> Ended:
        failures.refuse(self.campaign, task.cells, why)
        return Ended(task, why)

    # -- looking

    def _made(self) -> list[Ended]:
        """Running jobs whose output is there: a record is whole or not there, so nobody waits until
        Slurm is asked again.
        """
        made = [task for task in self._running if task.number in self.active and task.is_made()]
        for task in made:
            del self.active[task.number]
        return [Ended(task) for task in made]

    def _look(self, now: float) -> list[Ended]:
        try:
            known = {job.number: job for job in slurm.jobs("all")}
        except slurm.SlurmError as error:
            if self._silent_since is None:
                self._silent_since = now
            elif now - self._silent_since > SILENT_S:
                self._tell("silent", "slurm-silent", error=str(error))
            return []
        self._silent_since = None
        self._messages.discard("silent")
        ended = []
        running = []
        for number, task in list(self.active.items()):
            job = known.get(number)
            outcome = self._outcome(task, job)
            if outcome is None:
                running += [task] if job and not job.waits else []
                continue
            del self.active[number]
            self._submit_at = 0.0  # there may be room again
            if job and outcome.why and job.state in slurm.NODE_LOST and task.retries < self.retries:
                self._retry(task, job)
            else:
                ended.append(outcome)
        self._running = running[:FEW]
        if running:
            self.on_start()
        return ended + self._give_up(known, now)

    def _outcome(self, task: Task, job: slurm.Job | None) -> Ended | None:
        """How a job has ended; None while it waits or runs."""
        if job is None:
            task.misses += 1
            return self._forgotten(task) if task.misses >= MISSES else None
        task.misses = 0
        if job.state not in slurm.ENDED_BADLY:
            return Ended(task) if job.state == "COMPLETED" else None
        return Ended(task, None if task.is_made() else self._failed(task, job))

    def _failed(self, task: Task, job: slurm.Job) -> Message:
        if job.state == "SPECIAL_EXIT":  # it would stay in the queue
            self._cancel(task)
        details = slurm.job(job.number)
        if not failures.keep(self.campaign, task.cell(), job.number, job.state, details):
            return message("job-reported")
        values = {"job": f"job {job.number}", "state": job.state}
        if not job.nodes:
            return message("job-ended", **values)
        return message("job-ended", case="node", node=job.nodes, **values)

    def _forgotten(self, task: Task) -> Ended:
        """A job that Slurm does not know any more: its record tells, or nobody."""
        if task.is_made():
            return Ended(task)
        if failures.has_attempt(self.campaign, task.cells, task.number):
            return Ended(task, message("job-reported"))
        return self._refused(task, message("job-forgotten", job=f"job {task.number}"))

    def _retry(self, task: Task, job: slurm.Job) -> None:
        """Submit a job again, which may well succeed on another node, or later."""
        values = {"job": f"job {job.number}", "nodes": job.nodes, "state": job.state}
        retry = task.retries + 1
        self.say(message("job-retry", retry=retry, most=self.retries, **values).text)
        again = replace(task, number="", misses=0, unavailable_since=None, retries=retry)
        heapq.heappush(self.waiting, again)

    # -- jobs that wait

    def _give_up(self, known: Mapping[str, slurm.Job], now: float) -> list[Ended]:
        """End jobs whose nodes have not been available for too long; whatever else Slurm lets wait
        may go on waiting.
        """
        jobs = [known[number] for number in self.active if number in known]
        pending = [self.active[job.number] for job in jobs if job.waits]
        self._tell_idle(jobs, now)
        if pending and now >= self._nodes_at:
            names = {name for task in pending for name in task.nodes}
            self._nodes_at = now + min(NODES_S, self.give_up_s / 4)
            with suppress(slurm.SlurmError):
                self._unavailable = (
                    slurm.nodes_unavailable(names, self.is_reserved) if names else {}
                )
        ended = []
        patience = duration(self.give_up_s)
        waiting = Counter[str]()
        for task in pending:
            missing = [name for name in task.nodes if name in self._unavailable]
            if len(task.nodes) - len(missing) >= task.node_count:
                task.unavailable_since = None
                continue
            states = "; ".join(f"{name} is {self._unavailable[name]}" for name in missing[:4])
            waiting[states] += 1
            if task.unavailable_since is None:
                task.unavailable_since = now
            elif now - task.unavailable_since >= self.give_up_s:
                self._cancel(task)
                del self.active[task.number]
                why = message("job-given-up", states=states, patience=patience)
                ended.append(self._refused(task, why))
        clock = datetime.now().strftime("%H:%M")
        for states, count in waiting.items():
            values = {"states": states, "clock": clock, "patience": patience}
            self._tell(states, "nodes-away", jobs=_waiting(count), **values)
        return ended

    def _tell_idle(self, jobs: Sequence[slurm.Job], now: float) -> None:
        """Say why nothing happens, where no job has run for a while."""
        if not jobs or not all(job.waits for job in jobs):
            self._idle_since = None
        elif self._idle_since is None:
            self._idle_since = now
        elif now - self._idle_since >= IDLE_S:
            reason, patience = jobs[0].reason, duration(IDLE_S)
            values = {"patience": patience, "jobs": _waiting(len(jobs)), "reason": reason}
            self._tell(reason, "jobs-idle", **values)

    def _cancel(self, task: Task) -> None:
        with suppress(slurm.SlurmError):
            slurm.cancel([task.number])

    def _tell(self, key: Hashable, code: str, **values: Any) -> None:
        """Say something once."""
        if key not in self._messages:
            self._messages.add(key)
            self.say(message(code, **values).text)
