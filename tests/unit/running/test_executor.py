"""The executor as Snakemake's interface makes it; what it does is tried on the test cluster."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from snakemake_interface_executor_plugins.executors.remote import RemoteExecutor

from peakmark.running.run import Run
from peakmark.running.told import Told
from snakemake_executor_plugin_peakmark import Executor


def test_the_thread_that_the_interface_starts_finds_all_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """It starts in the interface's own ``__init__``: whatever is missing then ends the thread, and the run waits for ever."""
    there: set[str] = set()

    def begins(self: Any, workflow: Any, logger: Any) -> None:
        there.update(vars(self))

    monkeypatch.setattr(RemoteExecutor, "__init__", begins)
    run = SimpleNamespace(plan=SimpleNamespace(cluster=object()), queue=lambda **_: object())
    monkeypatch.setattr(Run, "current", run)
    made = Executor(None, None)
    assert there == set(vars(made)) >= {"queue", "guard", "added", "infos", "run_of"}


def test_another_workflow_is_refused_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Run, "current", None)
    with pytest.raises(Told, match="runs the Snakefile of peakmark"):
        Executor(None, None)
