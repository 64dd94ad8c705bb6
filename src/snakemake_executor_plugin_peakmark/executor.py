"""The executor: submit the jobs of a run to Slurm, and report to Snakemake how they end."""

from __future__ import annotations

import signal
import threading
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from snakemake_interface_executor_plugins.executors.base import SubmittedJobInfo
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor
from snakemake_interface_executor_plugins.settings import CommonSettings, ExecutorSettingsBase

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
"""Usual pause between two steps of the queue, and pause while Snakemake hands over jobs, in seconds."""


@dataclass
class ExecutorSettings(ExecutorSettingsBase):  # type: ignore[misc] # the interface has no types
    """Settings of this executor, of which there are none.

    Attributes:
        chosen: whether Snakemake has made them. It does so before it reads the Snakefile, and only
            for the executor that hands over the jobs.
    """

    chosen: ClassVar[bool] = False

    def __post_init__(self) -> None:
        ExecutorSettings.chosen = True


class Executor(RemoteExecutor):  # type: ignore[misc] # the interface has no types
    """Executor whose thread for status checks also submits jobs, so that only one thread calls Slurm."""

    def __init__(self, workflow: Any, logger: Any) -> None:
        """Prepare everything that the thread needs before the interface starts the thread.

        ``__post_init__`` would be too late, because the thread starts long before it.
        """
        # Imported late: Snakemake changes to the folder of --directory first.
        from peakmark.workflow.run import Run

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
        """Add a job to the list from which the other thread submits."""
        output = Path(job.output[0])
        info = SubmittedJobInfo(job)
        written = [output, self.run_of.plan.directory / "logs" / "slurm" / "log"]
        written += map(Path, job.log)
        try:
            for path in written:
                path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            self.report_job_error(info, msg=sentence(error))
            return
        # Do not let register_job mark the output as incomplete: records are whole or missing, and the
        # records of a killed run's jobs count.
        self.report_job_submission(info, register_job=False)
        with self._lock:
            self.infos[output] = info
            self.added.append(self.run_of.task(job.wildcards, output, job.shellcmd))

    async def check_active_jobs(
        self, active_jobs: list[SubmittedJobInfo]
    ) -> AsyncGenerator[SubmittedJobInfo, None]:
        """Submit new jobs, report ended jobs, and yield the jobs that still run."""
        with self._lock:
            added, self.added = self.added, []
        # Submit the new jobs.
        for task in added:
            self.queue.add(task)
        # Report the ended jobs.
        over = set()
        for ended in self.queue.step():
            with self._lock:
                info = self.infos.pop(ended.task.output)
            over.add(id(info))
            if ended.why is None:
                self.report_job_success(info)
            else:
                self.report_job_error(info, msg=ended.why)
        # Snakemake hands over only a few jobs at a time, so a long pause would halve the submission rate.
        pause = PAUSE_S
        if self.queue.may_submit or self.added:
            pause = 0.0
        elif added:
            pause = SHORT_S
        self.next_seconds_between_status_checks = pause
        for info in active_jobs:
            if id(info) not in over:
                yield info

    def print_job_error(
        self, job_info: SubmittedJobInfo, msg: str | None = None, **kwargs: Any
    ) -> None:
        """Log only the queue's message.

        The interface would add the paths of logs, which the list at the end of the run also has.
        """
        job_info.job.log_error(msg, **kwargs)

    def cancel_jobs(self, active_jobs: list[SubmittedJobInfo]) -> None:  # noqa: ARG002 - all that this run has are ended
        """End all jobs. Ignore further Ctrl-C, which would stop this half way."""
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        self.queue.cancel()
