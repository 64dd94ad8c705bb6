"""Puts right what the Slurm executor plugin makes of the states of jobs, and keeps why Slurm ended one.

Four things would let a campaign hang for ever with snakemake-executor-plugin-slurm 2.8 (each has a test):
a status query that fails makes it forget all jobs; a job that Slurm has forgotten before it was seen to end stays
running; PREEMPTED never counts as an end; and while scontrol gives no answer it turns to sacct, which need not work.
"""

from __future__ import annotations

import contextlib
import datetime
import importlib
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from peakmark import slurm
from peakmark.planning.plan import Plan
from peakmark.running import failures

Query = Callable[..., Awaitable[tuple[dict[str, str] | None, float | None]]]

MISSES = 2
"""A job absent from so many answers in a row is forgotten by Slurm, not merely too new to be in one."""
NEVER_FORGOTTEN_S = 10**6


@dataclass
class Watch:
    """What this run has submitted and not yet seen end: job number -> answers in a row without it."""

    made: Plan
    waiting: dict[str, int] = field(default_factory=dict)
    guard: threading.Lock = field(default_factory=threading.Lock)

    def submitted(self, number: str) -> None:
        with self.guard:
            self.waiting[number] = 0

    def corrected(self, states: dict[str, str] | None) -> dict[str, str]:
        """The states as the plugin should see them. ``UNKNOWN`` makes it look for the job's outputs."""
        if states is None:
            return {}  # no news: every job is still active
        answer = {number: "CANCELLED" if state == "PREEMPTED" else state for number, state in states.items()}
        with self.guard:
            for number in list(self.waiting):
                if number not in states:
                    self.waiting[number] += 1
                    if self.waiting[number] >= MISSES:
                        answer[number] = "UNKNOWN"
                        del self.waiting[number]
                    continue
                self.waiting[number] = 0
                if states[number] == "COMPLETED":
                    del self.waiting[number]
                elif states[number] in slurm.ENDED_BADLY:
                    del self.waiting[number]
                    self._keep(number, states[number])
        return answer

    def _keep(self, number: str, state: str) -> None:
        with contextlib.suppress(OSError):
            failures.keep(self.made, number, state, slurm.job(number), datetime.datetime.now().astimezone())


def install(made: Plan, plugin: ModuleType | None = None) -> Watch:
    """Put a watch between the plugin and squeue. Returns it."""
    plugin = plugin or importlib.import_module("snakemake_executor_plugin_slurm")
    watch = Watch(made)
    query: Query = plugin.query_job_status
    number_of: Callable[..., str] = plugin.validate_or_get_slurm_job_id

    async def query_job_status(command: str, logger: Any) -> tuple[dict[str, str], float]:
        states, seconds = await query(command, logger)
        return watch.corrected(states), seconds or 0.0

    def validate_or_get_slurm_job_id(*words: str) -> str:
        number = number_of(*words)
        watch.submitted(number)
        return number

    for name, value in (
        ("query_job_status", query_job_status),
        ("validate_or_get_slurm_job_id", validate_or_get_slurm_job_id),
        ("get_min_job_age", lambda: NEVER_FORGOTTEN_S),
    ):
        setattr(plugin, name, value)
    return watch
