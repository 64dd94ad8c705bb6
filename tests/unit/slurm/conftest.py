"""What the tests of this folder share: a Slurm that answers, or programs that print, what a test says."""

import pytest
from tests.programs import executable
from tests.unit.plan.planned import CPU, made

from peakmark import slurm
from peakmark.plan import jobs
from peakmark.slurm import queue as queues
from peakmark.slurm.queue import Queue, Task

MINE = "519605|RUNNING|n1|0:01|c/x 1|None"
"""A line of squeue."""


def printing(text):
    """A shell script that prints a text."""
    return f"cat <<'EOF'\n{text}\nEOF"


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """A function that puts shell scripts first on PATH, by name; all but those named fail."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    def put(**scripts):
        for name in ("sbatch", "squeue", "sinfo", "scontrol", "scancel"):
            executable(tmp_path / name, f"#!/bin/sh\n{scripts.get(name, 'exit 1')}\n")

    return put


def refusal(words):
    """What ``slurm.submit`` raises where sbatch prints these words."""
    return slurm.SlurmError(f"sbatch failed: {words}", reason=words)


NO_ANSWER = slurm.SlurmError(
    "sbatch got no answer from Slurm within 60 s: is slurmctld up?", silent=True
)


class Site:
    """What Slurm answers of jobs, nodes and submissions; with a queue of the plan's jobs."""

    def __init__(self, planned, monkeypatch):
        self.plan, self.now, self.silent, self.starts = planned, 0.0, False, 0
        self.submitted = []
        self.cancelled = []
        self.messages = []
        self.states = {}
        self.comments = {}
        self.nodes = {}
        self.refuses = lambda _: None
        for name in ("submit", "jobs"):
            monkeypatch.setattr(slurm, name, getattr(self, name))
        monkeypatch.setattr(slurm, "cancel", self.cancelled.extend)
        monkeypatch.setattr(slurm, "nodes_unavailable", lambda _names, _reserved: self.nodes)
        monkeypatch.setattr(slurm, "job", lambda _: {"BatchHost": "n1", "ExitCode": "1:0"})
        monkeypatch.setattr(queues, "AT_ONCE", 1)  # numbers in the order of the cells

    def submit(self, options, _script):
        if words := self.refuses(len(self.submitted)):
            raise refusal(words)
        self.submitted.append(tuple(options))
        number = str(len(self.submitted))
        self.states[number] = ("PENDING", "Priority")
        self.comments[number] = options[-1].removeprefix("--comment=")
        return number

    def jobs(self, _states=""):
        if self.silent:
            raise slurm.SlurmError("squeue failed: Unable to contact slurm controller")
        return [
            slurm.Job(number, state, "" if state == "PENDING" else "n1", "0:01",
                      self.comments.get(number, ""), reason)
            for number, (state, reason) in self.states.items()
        ]  # fmt: skip

    def all_are(self, state, reason="None"):
        self.states = dict.fromkeys(self.states, (state, reason))

    def started(self):
        self.starts += 1

    def task(self, place, **changes):
        cell = self.plan.cells[place]
        comment, output = jobs.comment(self.plan, [cell]), self.plan.results.record_path(cell)
        task = Task(place, (cell,), output, comment, ("--nodes=1",), "#!/bin/sh\n", ("n1",))
        for name, value in changes.items():
            setattr(task, name, value)
        return task

    def queue(self, *tasks, **options):
        """A queue of these tasks, without any of one for each cell."""
        how = {"max_jobs": 1000, "give_up_s": 3600.0, "is_reserved": False, "retries": 2}
        how |= {"say": self.messages.append, "clock": lambda: self.now, "on_start": self.started}
        self.made = Queue(self.plan.directory, **{**how, **options})
        for task in tasks or map(self.task, range(len(self.plan.cells))):
            self.made.add(task)
        return self.made

    def steps(self, seconds):
        ended = []
        for _ in range(seconds):
            ended += self.made.step()
            self.now += 1.0
        return ended


@pytest.fixture
def site(tmp_path, monkeypatch):
    """Slurm with a plan of four cells."""
    planned = made(tmp_path, monkeypatch, cpu=[{**CPU, "workloads": ["DP", "SP"]}])
    return Site(planned, monkeypatch)
