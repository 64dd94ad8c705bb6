"""The progress line of a run: jobs, time left by the cells' own estimates, failures with their last
words.
"""

from __future__ import annotations

import io
import logging
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console
from snakemake_interface_logger_plugins.common import LogEvent

import snakemake_logger_plugin_peakmark as plugin
from peakmark.workflow import progress


@pytest.fixture
def handler(monkeypatch: pytest.MonkeyPatch) -> plugin.LogHandler:
    settings: Any = SimpleNamespace(stdout=False, dryrun=False, printshellcmds=False, verbose=False)
    handler = plugin.LogHandler(settings, None)
    handler.console = Console(file=io.StringIO(), width=200)
    handler.bar = plugin._Bar(handler.console)
    for name in ("estimates", "steps", "behind"):
        monkeypatch.setattr(progress, name, {})
    now = [100.0]
    monkeypatch.setattr(plugin.time, "monotonic", lambda: now[0])
    handler.now = now  # type: ignore[attr-defined]
    return handler


def send(
    handler: plugin.LogHandler,
    event: str | None,
    level: int = logging.INFO,
    message: str = "",
    **values: Any,
) -> str:
    record = logging.LogRecord("snakemake", level, __file__, 1, message, None, None)
    record.__dict__.update(event=event, **values)
    handler.emit(record)
    output: str = handler.console.file.getvalue()  # type: ignore[attr-defined]
    return output


def job(number: int) -> dict[str, Any]:
    return {"jobid": number, "rule_name": "measure", "output": [f"results/a/cells/{number}.json"]}


def test_the_time_left_follows_what_records_say(
    handler: plugin.LogHandler, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        progress, "estimates", {f"results/a/cells/{number}.json": 10.0 for number in range(1, 101)}
    )
    monkeypatch.setattr(progress, "started", None)
    Path("results/a/cells").mkdir(parents=True)
    for number in range(1, 91):
        send(handler, LogEvent.JOB_INFO, **job(number))
        handler.now[0] += 20.0  # type: ignore[attr-defined] - twice as long as expected
        Path(f"results/a/cells/{number}.json").write_text('{"context": {"seconds": 20.0}}')
        send(handler, LogEvent.JOB_FINISHED, job_id=number)
    output = send(handler, LogEvent.PROGRESS, done=90, total=100)
    assert "90 of 100" in output and "3 min left" in output


def test_what_jobs_waited_and_that_they_ran_side_by_side_makes_no_time_longer(
    handler: plugin.LogHandler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        progress, "estimates", {f"results/a/cells/{number}.json": 10.0 for number in range(100)}
    )
    for number in range(100):
        send(handler, LogEvent.JOB_INFO, **job(number))
    handler.now[0] += 5000.0  # type: ignore[attr-defined] - all wait for a node
    monkeypatch.setattr(progress, "started", handler.now[0])  # type: ignore[attr-defined]
    handler.now[0] += 450.0  # type: ignore[attr-defined] - two at a time
    for number in range(90):
        send(handler, LogEvent.JOB_FINISHED, job_id=number)
    assert "54 s left" in send(handler, LogEvent.PROGRESS, done=90, total=101)


def test_a_failed_job_is_not_ahead_any_more(
    handler: plugin.LogHandler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All cells of a node in one job, of which one has failed: what is left is the other job."""
    monkeypatch.setattr(
        progress,
        "estimates",
        {"results/a/cells/1.json": 960.0, **{f"results/a/cells/{n}.json": 20.0 for n in (2, 3)}},
    )
    for number in (1, 2, 3):
        send(handler, LogEvent.JOB_INFO, **job(number))
    monkeypatch.setattr(progress, "started", handler.now[0])  # type: ignore[attr-defined]
    handler.now[0] += 980.0  # type: ignore[attr-defined]
    send(handler, LogEvent.JOB_ERROR, logging.ERROR, **job(1), log=[])
    send(handler, LogEvent.JOB_FINISHED, job_id=2)
    assert "20 s left" in send(handler, LogEvent.PROGRESS, done=1, total=3)


def test_a_job_of_several_cells_is_told_while_it_runs(
    handler: plugin.LogHandler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two nodes with a job each: there is nothing else to be told of until one of them ends."""
    one, two = (f"results/a/nodes/n{number}.own" for number in (1, 2))
    progress.steps |= {
        one: {f"{number}": 10.0 for number in range(10)},
        two: {"x": 10.0, "y": 90.0},
    }
    progress.estimates |= {one: 100.0, two: 100.0}
    for number, output in enumerate((one, two)):
        send(handler, LogEvent.JOB_INFO, jobid=number, rule_name="measure_job", output=[output])
    monkeypatch.setattr(progress, "started", handler.now[0])  # type: ignore[attr-defined]
    handler.now[0] += 10.0  # type: ignore[attr-defined]
    progress.reached(one, "0")
    progress.reached(one, "4")
    progress.reached(one, "not one of them")
    progress.reached(one, "3")  # rounds of repetitions begin at the first row again
    output = send(handler, LogEvent.PROGRESS, done=0, total=4)
    assert "4 of 12" in output and "2 min left" in output
    failed = {"jobid": 0, "rule_name": "measure_job", "output": [one], "log": []}
    send(handler, LogEvent.JOB_ERROR, logging.ERROR, **failed)
    output = send(handler, LogEvent.PROGRESS, done=1, total=4)
    assert "10 of 12" in output and "32 s left" in output and "n1.own" in output
    send(handler, LogEvent.JOB_FINISHED, job_id=1)
    output = send(handler, LogEvent.PROGRESS, done=4, total=4)
    assert "12 of 12" in output and output.endswith("done\n")


def test_without_estimates_no_time_is_promised(
    handler: plugin.LogHandler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "estimates", {})
    send(handler, LogEvent.JOB_INFO, jobid=1, rule_name="plan", wildcards={}, resources=None)
    output = send(handler, LogEvent.PROGRESS, done=1, total=2)
    assert "left" not in output and "done" not in output
    assert "2 of 2 jobs, 0 s, done" in send(handler, LogEvent.PROGRESS, done=2, total=2)


def test_a_failure_is_named_with_the_end_of_its_log(
    handler: plugin.LogHandler, tmp_path: Path
) -> None:
    log = tmp_path / "0.log"
    log.write_text("peakmark: [red]luck[/red]\n")
    values = {"rule_name": "measure", "output": ["results/a/cells/disk/fio/x/any/0.json"]}
    output = send(handler, LogEvent.JOB_ERROR, logging.ERROR, **values, log=[str(log)])
    assert "disk/fio/x/any/0" in output
    assert "[red]luck[/red]" in output  # what a tool says is no markup
    output = send(handler, LogEvent.JOB_ERROR, logging.ERROR, **values, log=["/proc/self/mem"])
    assert output.count("disk/fio/x/any/0") == 2


def test_warnings_are_shown_and_chatter_is_not(handler: plugin.LogHandler) -> None:
    handler.setFormatter(logging.Formatter("%(message)s"))
    assert "careful" in send(handler, None, logging.WARNING, "careful")
    assert "chatter" not in send(handler, None, logging.INFO, "chatter")


def test_the_bar_is_gone_when_all_is_done(handler: plugin.LogHandler) -> None:
    handler.bar = plugin._Bar(Console(file=io.StringIO(), width=200, force_terminal=True))
    send(handler, LogEvent.JOB_INFO, **job(1))
    assert handler.bar.progress.live.is_started
    send(handler, LogEvent.PROGRESS, done=1, total=2)
    assert handler.bar.progress.live.is_started
    send(handler, LogEvent.PROGRESS, done=2, total=2)
    assert not handler.bar.progress.live.is_started


def test_the_executor_tells_of_cells_while_the_log_tells_of_jobs(
    handler: plugin.LogHandler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each in its own thread: a job that ends while the time left is computed from all jobs is no
    error.
    """
    names = [f"results/a/nodes/n{number}.own" for number in range(3)]
    for number, output in enumerate(names):
        progress.steps[output] = {str(cell): 10.0 for cell in range(4)}
        progress.estimates[output] = 40.0
        send(handler, LogEvent.JOB_INFO, jobid=number, rule_name="measure_job", output=[output])
    other = threading.Thread(
        target=send, args=(handler, LogEvent.JOB_FINISHED), kwargs={"job_id": 2}
    )
    passed = progress.passed

    def slow(output: str) -> list[str]:
        if other.ident is None:
            other.start()
            other.join(0.2)  # where nothing keeps the two apart, this is time enough
        return passed(output)

    monkeypatch.setattr(progress, "passed", slow)
    progress.reached(names[0], "1")
    other.join(60)
    assert progress.cells() == (5, 12)
