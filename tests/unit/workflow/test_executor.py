"""The executor as Snakemake's interface makes it; what it does is tried on the test cluster."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor

from peakmark.workflow.run import Run
from peakmark.workflow.user_errors import UserError
from snakemake_executor_plugin_peakmark import Executor


def test_the_thread_that_the_interface_starts_finds_all_it_needs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It starts in the interface's own ``__init__``: whatever is missing then ends the thread, and
    the run waits for ever.
    """
    there: set[str] = set()

    def begins(self: Any, workflow: Any, logger: Any) -> None:
        there.update(vars(self))

    monkeypatch.setattr(RemoteExecutor, "__init__", begins)
    run = SimpleNamespace(plan=SimpleNamespace(cluster=object()), queue=lambda **_: object())
    monkeypatch.setattr(Run, "current", run)
    made = Executor(None, None)
    assert there == set(vars(made)) >= {"queue", "_lock", "added", "infos", "run_of"}


def test_another_workflow_is_refused_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Run, "current", None)
    with pytest.raises(UserError, match="runs the Snakefile of peakmark"):
        Executor(None, None)


def test_a_disk_that_takes_no_folder_is_a_failed_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error out of ``run_job`` would end Snakemake with a traceback, and leave all other jobs
    alone.
    """
    monkeypatch.setattr(RemoteExecutor, "__init__", lambda *_: None)
    run = SimpleNamespace(
        plan=SimpleNamespace(cluster=object(), directory=tmp_path), queue=lambda **_: object()
    )
    monkeypatch.setattr(Run, "current", run)
    executor = Executor(None, None)
    told: list[tuple[Any, str]] = []
    monkeypatch.setattr(
        executor, "report_job_error", lambda info, msg: told.append((info.job, msg))
    )
    (tmp_path / "cells").write_text("")
    job = SimpleNamespace(output=[str(tmp_path / "cells" / "cpu" / "0.json")], log=[])
    executor.run_job(job)
    ((failed, words),) = told
    assert failed is job and str(tmp_path / "cells") in words and not executor.added
