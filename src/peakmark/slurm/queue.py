"""Submit the jobs of a campaign in the order of the plan, and find out how each ends.

One thread calls ``step`` again and again. The module does not know Snakemake.
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

from peakmark import slurm
from peakmark.cell import Cell
from peakmark.formatting import duration, plural
from peakmark.slurm import failures
from peakmark.storage.results import JOBS

AT_ONCE = 4
"""Number of calls of sbatch at a time. Each call waits for the controller most of its time."""
BATCH = 32
"""Largest number of jobs that are submitted between two readings of the clock."""
LOOK_S, PAUSE_FACTOR, LONGEST_S = 1.0, 20.0, 60.0
"""Three numbers that limit how often squeue is called.

The shortest pause between two calls in seconds, the pause as a multiple of the time of the
last call, and the longest pause in seconds. squeue therefore takes at most a twentieth of the
time. It is called at least once a minute, because a slow answer may come from a controller that
restarted, or from a time when this machine was suspended.
"""
LATER_S = 3.0
"""Seconds until the next submission after sbatch has refused a job."""
PAIRS_S = 2.0
"""Seconds without a new job of one node, after which a job of two nodes is submitted.

Snakemake hands over jobs in another order than that of the plan. A job of two nodes that was submitted too early
would keep its first node idle until the second is free.
"""
NODES_S = 10.0
"""Longest time between two queries of the states of nodes, in seconds."""
SILENT_S = 20.0
"""Seconds without an answer of Slurm after which the silence is reported."""
CANCEL_S = 20.0
"""Longest time for which ``cancel`` waits for a running step, in seconds."""
MISSES = 2
"""Number of consecutive answers of squeue that lack a job, after which the job counts as forgotten. A
single answer may lack a new job.
"""


@dataclass(eq=False)
class Task:
    """A job of a campaign.

    Attributes:
        place: place in the order of the plan.
        output: file that the job writes at its end.
        options: options of sbatch.
        nodes: nodes on which Slurm may run the job, which takes ``node_count`` of them.
        before: time at which an earlier job wrote the output, in ns; None without an earlier output.
        present: file in which a job of several cells names the cell that it measures.
        number: number that Slurm has given the job.
        misses: number of consecutive answers of Slurm that lack the job.
        unanswered: whether sbatch got no answer, so that Slurm may have the job.
        unavailable_since: time since which too few of the job's nodes have been up.
    """

    place: int
    cells: tuple[Cell, ...]
    output: Path
    comment: str
    options: tuple[str, ...]
    script: str
    nodes: tuple[str, ...] = ()
    node_count: int = 1
    before: int | None = None
    present: Path | None = None
    number: str = ""
    misses: int = 0
    unanswered: bool = False
    retries: int = 0
    unavailable_since: float | None = None

    def __lt__(self, other: Task) -> bool:
        return self.place < other.place

    def is_made(self) -> bool:
        """Return whether the output exists and was not written by an earlier job."""
        return modified(self.output) not in (None, self.before)

    def cell(self) -> Cell | None:
        """Return the cell that the job measures, or was measuring when it ended; None if unknown."""
        if self.present is None:
            return self.cells[0]
        name = current_cell(self.present)
        for cell in self.cells:
            if cell.id == name:
                return cell
        return None

    def forget_cell(self) -> None:
        """Remove the file that names the cell in progress, which a killed job leaves behind."""
        if self.present is not None:
            with suppress(OSError):
                self.present.unlink(missing_ok=True)


@dataclass(frozen=True)
class Ended:
    """A job that has ended.

    Attributes:
        why: reason of the failure; None without a failure. It is empty if the job has written an attempt,
            which has the reason.
    """

    task: Task
    why: str | None = None


def modified(path: Path) -> int | None:
    """Return the time at which a file was written, in ns; None without a file."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None


def current_cell(path: Path) -> str | None:
    """Return the id of the cell that a job is measuring, from the file in which the job names it.

    The result is None if the file cannot be read, for example because the job has ended.
    """
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return None


@dataclass
class Queue:
    """All jobs of a run.

    Attributes:
        campaign: folder of the campaign.
        max_jobs: largest number of jobs in Slurm's queue at a time.
        give_up_s: longest time in seconds that a job may wait for a node that is not available.
        is_reserved: whether jobs have a reservation of their nodes.
        retries: how often a job is submitted again after its node was lost or taken away.
        say: function that prints a sentence for the user.
        on_start: function that is called whenever jobs run.
        adopted: comment -> number, for jobs of an earlier run that are still in the queue.
        clock: function that returns a time in seconds.
    """

    campaign: Path
    max_jobs: int
    give_up_s: float
    is_reserved: bool
    retries: int
    say: Callable[[str], None]
    on_start: Callable[[], None]
    adopted: dict[str, str] = field(default_factory=dict)
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        """Start with no job."""
        self.waiting: list[Task] = []
        # Number of a submitted job -> the job.
        self.active: dict[str, Task] = {}
        # Earliest times to submit again, to ask for the states of jobs and of nodes, and to submit jobs of
        # two nodes.
        self._submit_at = self._look_at = self._nodes_at = self._pairs_at = 0.0
        # Since when Slurm has not answered.
        self._silent_since: float | None = None
        # What the user was told once, and node -> why it is not available.
        self._messages: set[Hashable] = set()
        self._unavailable: dict[str, str] = {}
        self._pool = ThreadPoolExecutor(AT_ONCE, "sbatch")
        # Held by the thread that takes a step; ``_over`` tells it that another thread has ended the queue.
        self._turn = threading.Lock()
        self._over = False

    def add(self, task: Task) -> None:
        """Add a job, which is taken over from an earlier run or submitted later."""
        number = self.adopted.pop(task.comment, None)
        if number is not None:
            self._activate(task, number)
            return
        heapq.heappush(self.waiting, task)
        # Further jobs of one node may follow, which come before jobs of two nodes.
        if task.node_count == 1:
            self._pairs_at = self.clock() + PAIRS_S

    @property
    def may_submit(self) -> bool:
        """Return whether another step would submit a job at once."""
        has_room = len(self.active) < self.max_jobs
        return self._is_next_due() and has_room and self.clock() >= self._submit_at

    def step(self) -> list[Ended]:
        """Submit jobs for about a second, ask Slurm for states if this is due, and return ended jobs."""
        ended: list[Ended] = []
        with self._turn:
            if not self._over:
                ended = self._step()
        # ``failures.keep`` has read which cell each job measured: the file is no longer needed.
        for end in ended:
            end.task.forget_cell()
        return ended

    def _step(self) -> list[Ended]:
        """Submit jobs, and ask Slurm for their states unless the last question was too recent."""
        ended = list(self._submit())
        now = self.clock()
        if self.active and now >= self._look_at:
            ended += self._look(now)
            # A slow controller is asked more rarely.
            pause = max(LOOK_S, PAUSE_FACTOR * (self.clock() - now))
            self._look_at = now + min(pause, LONGEST_S)
        return ended

    def cancel(self) -> None:
        """End all jobs, as far as Slurm answers. Another thread than that of ``step`` calls this method.

        All jobs include jobs that are being submitted, and jobs whose submission sbatch has not answered.
        """
        # No step begins from now on. Wait until the present one has ended.
        self._over = True
        if self._turn.acquire(timeout=CANCEL_S):  # a step takes longer if Slurm does not answer
            self._turn.release()
        comments = {task.comment for task in self.waiting if task.unanswered}
        with suppress(slurm.SlurmError):
            numbers = list(self.active)
            if comments:
                numbers += [job.number for job in slurm.jobs() if job.comment in comments]
            slurm.cancel(numbers)
        for task in list(self.active.values()):
            task.forget_cell()
        # Do not cancel calls that have not begun: these end by themselves because of ``_over``. A
        # cancelled call would raise an error in the thread that waits for it.
        self._pool.shutdown(wait=False)

    # -- submitting

    def _is_next_due(self) -> bool:
        """Return whether the next job may be submitted. Jobs of two nodes wait for ``PAIRS_S``."""
        if not self.waiting:
            return False
        return self.waiting[0].node_count == 1 or self.clock() >= self._pairs_at

    def _submit(self) -> Iterator[Ended]:
        """Submit jobs during at most ``LOOK_S`` seconds.

        Yield tasks that need no job, and jobs that Slurm refuses for good.
        """
        until = self.clock() + LOOK_S
        while not self._over and self._submit_at <= self.clock() < until:
            room = min(BATCH, self.max_jobs - len(self.active))
            tasks = self._take(room)
            if not tasks:
                return
            silence = self._find_unanswered(tasks)
            if silence is not None:
                self._postpone(tasks, silence)
                return
            for task, refusal in zip(tasks, self._pool.map(self._hand_over, tasks), strict=True):
                task.unanswered = refusal is not None and failures.is_unanswered(refusal)
                # The cases in their order: Slurm took the job; the campaign ended meanwhile; the task needs no job any
                # more; Slurm refused the job for now; Slurm refused it for good.
                if task.number:
                    self._activate(task, task.number)
                elif self._over:
                    heapq.heappush(self.waiting, task)
                elif refusal is None:
                    yield Ended(task)
                elif failures.may_succeed_later(refusal, has_jobs=bool(self.active)):
                    self._postpone([task], refusal)
                else:
                    yield self._refused(task, failures.refusal(refusal))

    def _take(self, room: int) -> list[Task]:
        """Remove and return the next jobs of the plan."""
        taken: list[Task] = []
        while len(taken) < room and self._is_next_due():
            taken.append(heapq.heappop(self.waiting))
        return taken

    def _activate(self, task: Task, number: str) -> None:
        task.number = number
        self.active[number] = task

    def _hand_over(self, task: Task) -> slurm.SlurmError | None:
        """Submit a job, unless Slurm has it already or a job of another run has written its output.

        ``_find_unanswered`` sets the number of a job that Slurm has. Return the error of sbatch if
        Slurm refused the job.
        """
        if self._over or task.number or task.is_made():
            return None
        try:
            task.number = slurm.submit((*task.options, f"--comment={task.comment}"), task.script)
        except slurm.SlurmError as error:
            return error
        return None

    def _find_unanswered(self, tasks: Sequence[Task]) -> slurm.SlurmError | None:
        """Find jobs whose submission got no answer in Slurm's queue, and set their numbers.

        A busy controller may take a job and answer too late for sbatch. The cells of such a job must not
        be measured twice. Return the error if Slurm does not print the queue.
        """
        unanswered = [task for task in tasks if task.unanswered]
        if not unanswered:
            return None
        try:
            known = slurm.jobs()
        except slurm.SlurmError as error:
            return error
        numbers = {job.comment: job.number for job in known if job.number not in self.active}
        for task in unanswered:
            task.number = numbers.get(task.comment, "")
        return None

    def _postpone(self, tasks: Iterable[Task], refusal: slurm.SlurmError) -> None:
        """Put jobs back that Slurm refuses for now, and submit nothing for ``LATER_S``."""
        for task in tasks:
            heapq.heappush(self.waiting, task)
        self._submit_at = self.clock() + LATER_S
        self._tell(
            "later",
            f"Slurm takes no further jobs for now ({failures.text(refusal)}):"
            f" {len(self.active)} are in its queue, the rest follows as it takes them",
        )

    def _refused(self, task: Task, why: str) -> Ended:
        failures.store_refused(self.campaign, task.cells, why)
        return Ended(task, why)

    # -- looking

    def _look(self, now: float) -> list[Ended]:
        """Ask Slurm for the state of all jobs, and return those that have ended or wait too long for a node.

        Jobs whose node was lost are submitted again. If a job runs, ``on_start`` is called.
        """
        known = self._ask_for_jobs(now)
        if known is None:  # Slurm did not answer: no job counts as ended
            return []
        ended = []
        is_running = False
        for number, task in list(self.active.items()):
            job = known.get(number)
            if job:
                # Slurm says cancelled or failed of a job that its node could not start.
                job = replace(job, state=failures.end_of(job, self.is_reserved))
            outcome = self._outcome(task, job)
            if outcome is None:
                is_running |= job is not None and not job.waits
                continue
            del self.active[number]
            self._count(task, job)
            self._submit_at = 0.0  # there may be room again
            has_failed = outcome.why is not None
            if job and has_failed and job.state in slurm.NODE_LOST and task.retries < self.retries:
                self._retry(task, job)
            else:
                ended.append(outcome)
        if is_running:
            self.on_start()
        return ended + self._give_up(known, now)

    def _ask_for_jobs(self, now: float) -> dict[str, slurm.Job] | None:
        """Return number -> job for all jobs that Slurm remembers; None without an answer.

        A silence is reported once it lasts for ``SILENT_S``. ``now`` is a time of ``clock``.
        """
        try:
            known = {job.number: job for job in slurm.jobs("all")}
        except slurm.SlurmError as error:
            if self._silent_since is None:
                self._silent_since = now
            elif now - self._silent_since > SILENT_S:
                self._tell("silent", f"{error}: waiting until it answers; jobs go on meanwhile")
            return None
        self._silent_since = None
        self._messages.discard("silent")
        return known

    def _count(self, task: Task, job: slurm.Job | None) -> None:
        """Add number, nodes and seconds of an ended job to the campaign's file ``JOBS``, if Slurm still knows the job."""
        seconds = slurm.seconds(job.elapsed) if job else None
        if seconds is None:
            return
        with suppress(OSError), (self.campaign / JOBS).open("a", encoding="utf-8") as stream:
            stream.write(f"{task.number},{task.node_count},{seconds}\n")

    def _outcome(self, task: Task, job: slurm.Job | None) -> Ended | None:
        """Return how a job has ended; None while the job waits or runs."""
        if job is None:
            task.misses += 1
            return self._forgotten(task) if task.misses >= MISSES else None
        task.misses = 0
        # A job that has written its output is good, even if Slurm ended it badly afterwards.
        if job.state in slurm.ENDED_BADLY and not task.is_made():
            return Ended(task, self._failed(task, job))
        if job.state == "COMPLETED" or job.state in slurm.ENDED_BADLY:
            return Ended(task)
        return None

    def _failed(self, task: Task, job: slurm.Job) -> str:
        """Write the attempt of a failed job, and return the reason.

        The reason is empty if ``failures.keep`` writes none, for example because the job has
        written the attempt.
        """
        if job.state in ("SPECIAL_EXIT", slurm.LAUNCH_FAILED):  # the job may stay in the queue
            self._cancel(task)
        details = slurm.job(job.number)
        if not failures.keep(self.campaign, task.cell(), job.number, job.state, details):
            return ""
        where = f" on {job.nodes}" if job.nodes else ""
        return f"Slurm ended job {job.number}{where}: {job.state}"

    def _forgotten(self, task: Task) -> Ended:
        """Return how a job ended that Slurm no longer knows, from its record or failed attempt."""
        if task.is_made():
            return Ended(task)
        if failures.has_attempt(self.campaign, task.cells, task.number):
            return Ended(task, "")
        why = f"Slurm has forgotten job {task.number} before anybody saw how it ended"
        return self._refused(task, f"{why}, and there is no record")

    def _retry(self, task: Task, job: slurm.Job) -> None:
        """Put a job back into the queue. It may succeed on another node, or later."""
        retry = task.retries + 1
        self.say(
            f"job {job.number} ended on {job.nodes}: {job.state}."
            f" It is submitted again ({retry} of {self.retries} retries)"
        )
        again = replace(task, number="", misses=0, unavailable_since=None, retries=retry)
        heapq.heappush(self.waiting, again)

    # -- jobs that wait

    def _give_up(self, known: Mapping[str, slurm.Job], now: float) -> list[Ended]:
        """End the jobs whose nodes have not been available for ``give_up_s``, and return them.

        Jobs that wait for another reason are not ended.
        """
        jobs = [known[number] for number in self.active if number in known]
        pending = [self.active[job.number] for job in jobs if job.waits]
        if pending and now >= self._nodes_at:
            # With a short ``give_up_s``, ask so often that a node that comes back in time is noticed.
            self._nodes_at = now + min(NODES_S, self.give_up_s / 4)
            self._ask_for_nodes(pending)
        # End each job that has had too few nodes for too long. ``waiting`` is states of nodes -> number of their jobs.
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
                why = f"{states}, for {patience} now (give_up_after)"
                ended.append(self._refused(task, why))
        # Print why the other jobs wait.
        clock = datetime.now().strftime("%H:%M")
        for states, count in waiting.items():
            self._tell(
                states,
                f"{plural(count, 'job waits', 'jobs wait')} since {clock}: {states}: waiting ends when the node is back."
                f" If it stays away for {patience} (give_up_after), the cells fail, and the same"
                " command measures them later",
            )
        return ended

    def _ask_for_nodes(self, pending: Iterable[Task]) -> None:
        """Ask Slurm which nodes of waiting jobs are unavailable."""
        names = set().union(*(task.nodes for task in pending))
        unavailable: dict[str, str] = {}
        # If Slurm does not answer, the earlier answer is kept.
        with suppress(slurm.SlurmError):
            if names:
                unavailable = slurm.nodes_unavailable(names, self.is_reserved)
            self._unavailable = unavailable

    def _cancel(self, task: Task) -> None:
        with suppress(slurm.SlurmError):
            slurm.cancel([task.number])

    def _tell(self, key: Hashable, text: str) -> None:
        """Print a text unless a text with this key has been printed."""
        if key not in self._messages:
            self._messages.add(key)
            self.say(text)
