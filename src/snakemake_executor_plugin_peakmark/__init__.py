"""Snakemake executor ``peakmark``: hands a job's own command to Slurm, and keeps the bookkeeping in
this process.

It stands on Snakemake's executor interface alone. On a node no Snakemake is started: the rule's
shell command is the script. What becomes of jobs in Slurm: ``peakmark.slurm.queue``.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor
from snakemake_interface_executor_plugins.settings import CommonSettings

from peakmark.errors import sentence
from peakmark.slurm.queue import Task
from peakmark.workflow.startup import UserError

common_settings = CommonSettings(
    non_local_exec=True,
    implies_no_shared_fs=False,
    job_deploy_sources=False,
    init_seconds_before_status_checks=0,
)
PAUSE_S, SHORT_S = 0.2, 0.01


class Executor(RemoteExecutor):  # type: ignore[misc] # the interface has no types
    """The thread that the interface brings for questions also submits: there is one thing at a
    time.
    """

    def __init__(self, workflow: Any, logger: Any) -> None:
        """What the thread needs is there before the interface starts it, which it does long before
        ``__post_init__``.
        """
        from peakmark.workflow.run import (
            Run,
        )  # not before Snakemake has gone to the folder of --directory

        if Run.current is None or Run.current.plan.cluster is None:
            raise UserError(
                "the executor peakmark runs the Snakefile of peakmark, on a cluster, and nothing else"
            )
        self.run_of = Run.current
        self.queue = self.run_of.queue(
            say=lambda sentence: self.logger.warning(f"peakmark: {sentence}")
        )
        self.infos: dict[Path, SubmittedJobInfo] = {}
        self.added: list[Task] = []
        self._lock = threading.Lock()
        super().__init__(workflow, logger)

    def run_job(self, job: Any) -> None:
        """Note the job; the other thread hands it over."""
        output = Path(job.output[0])
        info = SubmittedJobInfo(job)
        try:
            for path in (
                output,
                *map(Path, job.log),
                self.run_of.plan.directory / "logs" / "slurm" / "log",
            ):
                path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            self.report_job_error(info, msg=sentence(error))
            return
        # No mark of an incomplete output: records are whole or not there, and those of a killed
        # run's jobs count.
        self.report_job_submission(info, register_job=False)
        with self._lock:
            self.infos[output] = info
            self.added.append(self.run_of.task(job.wildcards, output, job.shellcmd))

    async def check_active_jobs(
        self, active_jobs: list[SubmittedJobInfo]
    ) -> AsyncGenerator[SubmittedJobInfo, None]:
        """Hand over what is new, tell what has ended."""
        with self._lock:
            added, self.added = self.added, []
        for task in added:
            self.queue.add(task)
        over = set()
        for ended in self.queue.step():
            with self._lock:
                info = self.infos.pop(ended.task.output)
            over.add(id(info))
            if ended.why is None:
                self.report_job_success(info)
            else:
                self.report_job_error(info, msg=ended.why.text)
        # While Snakemake thinks, jobs come a few at a time: whoever slept meanwhile would submit at
        # half the speed.
        pause = 0.0 if self.queue.may_submit or self.added else SHORT_S if added else PAUSE_S
        self.next_seconds_between_status_checks = pause
        for info in active_jobs:
            if id(info) not in over:
                yield info

    def print_job_error(
        self, job_info: SubmittedJobInfo, msg: str | None = None, **kwargs: Any
    ) -> None:
        """The queue's words alone: the interface would add where to look, which the list at the end
        says.
        """
        job_info.job.log_error(msg, **kwargs)

    def cancel_jobs(self, active_jobs: list[SubmittedJobInfo]) -> None:  # noqa: ARG002 - all that this run has are ended
        """End all jobs; who presses Ctrl-C again must not stop this half way."""
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        self.queue.cancel()
