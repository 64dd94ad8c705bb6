"""A Slurm that answers what a test says, with the words that real ones have."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from peakmark import slurm
from peakmark.plan import jobs, plan
from peakmark.workflow import progress
from peakmark.workflow import queue as queues
from peakmark.workflow.queue import Queue
from peakmark.workflow.task import Ended, Task

LIMIT = (
    "sbatch: error: QOSMaxSubmitJobPerUserLimit sbatch: error: Batch job submission failed: "
    "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"
)


ACCOUNT = "sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified"


def refusal(words: str) -> slurm.SlurmError:
    """What ``slurm.submit`` raises where sbatch prints these words."""
    return slurm.SlurmError(f"sbatch failed: {words}", said=words)


NO_ANSWER = slurm.SlurmError(
    "sbatch got no answer from Slurm within 60 s: is slurmctld up?", silent=True
)


class Site:
    """What Slurm answers: state and reason of each job, the nodes that take none, and whether
    sbatch takes another.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.submitted, self.cancelled = 0.0, [], []  # type: ignore[var-annotated]
        self.states: dict[str, tuple[str, str]] = {}
        self.comments: dict[str, str] = {}
        self.nodes: dict[str, str] = {}
        self.on: dict[str, str] = {}
        self.refuses: Callable[[int], str | None] = lambda _: None
        self.silent = False
        monkeypatch.setattr(slurm, "submit", self.submit)
        monkeypatch.setattr(slurm, "jobs", self.jobs)
        monkeypatch.setattr(slurm, "cancel", self.cancel)
        monkeypatch.setattr(progress, "started", None)
        monkeypatch.setattr(queues, "AT_ONCE", 1)  # numbers in the order of the cells
        monkeypatch.setattr(slurm, "nodes_away", lambda _names: self.nodes)
        monkeypatch.setattr(slurm, "job", lambda _: {"BatchHost": "n1", "ExitCode": "1:0"})

    def submit(self, options: Any, _script: str) -> str:
        words = self.refuses(len(self.submitted))
        if words:
            raise refusal(words)
        self.submitted.append(tuple(options))
        number = str(len(self.submitted))
        self.states[number] = ("PENDING", "Priority")
        self.comments[number] = next(
            word.partition("=")[2] for word in options if word.startswith("--comment=")
        )
        return number

    def jobs(self, _states: str = "") -> list[slurm.Job]:
        if self.silent:
            raise slurm.SlurmError(
                "squeue failed: slurm_load_jobs error: Unable to contact slurm controller"
            )
        return [
            slurm.Job(
                number,
                state,
                self.comments.get(number, ""),
                "" if state == "PENDING" else self.on.get(number, "n1"),
                why,
                "0:01",
            )
            for number, (state, why) in self.states.items()
        ]

    def cancel(self, numbers: Any) -> None:
        self.cancelled.extend(numbers)


def filled(one: plan.Plan, site: Site, **more: Any) -> tuple[Queue, list[str]]:
    said: list[str] = []
    queue = Queue(one, say=said.append, clock=lambda: site.now, **more)
    for place, cell in enumerate(one.cells):
        output = Path(one.record_name(cell))
        comment = jobs.comment(one, [cell])
        queue.add(
            Task(place, (cell,), output, comment, ("--nodes=1",), "#!/bin/bash\n", nodes=("n1",))
        )
    return queue, said


def steps(queue: Queue, site: Site, seconds: int) -> list[Ended]:
    ended = []
    for _ in range(seconds):
        ended += queue.step()
        site.now += 1.0
    return ended
