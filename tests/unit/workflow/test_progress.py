"""The progress line of a run: jobs, failures, and the time left, replayed from a real campaign."""

import io
import logging
import time
from itertools import pairwise
from types import SimpleNamespace
from typing import NamedTuple

import pytest
from rich.console import Console
from snakemake_interface_logger_plugins.common import LogEvent
from tests.unit import campaign_data
from tests.unit.cases import cases

from peakmark.plan import durations
from peakmark.storage.results import Results
from peakmark.workflow import status
from peakmark.workflow.status import Progress
from snakemake_logger_plugin_peakmark import handler


class Run:
    """A logger with a clock and a console of its own."""

    def __init__(self, monkeypatch, terminal=False):
        self.now, self.progress = 100.0, Progress()
        monkeypatch.setattr(status, "progress", self.progress)
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        console = Console(file=io.StringIO(), width=200, force_terminal=terminal)
        monkeypatch.setattr(handler, "Console", lambda **_: console)
        names = ("stdout", "dryrun", "printshellcmds", "verbose")
        self.handler = handler.LogHandler(SimpleNamespace(**dict.fromkeys(names, False)), None)
        self.file = console.file

    def send(self, event, level=logging.INFO, message="", **values):
        """All that is printed after the event."""
        record = logging.LogRecord("snakemake", level, __file__, 1, message, None, None)
        record.__dict__.update(event=event, **values)
        self.handler.emit(record)
        return str(self.file.getvalue())

    def begin(self, number):
        output = [f"results/a/cells/{number}.json"]
        self.send(LogEvent.JOB_INFO, jobid=number, rule_name="measure", output=output)


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Run(monkeypatch)


def test_jobs_that_wait_or_run_side_by_side_make_no_time_longer(run):
    run.progress.expect({f"results/a/cells/{number}.json": 10.0 for number in range(100)})
    for number in range(100):
        run.begin(number)
    run.now += 5000.0  # all wait for a node
    run.progress.start()
    run.now += 450.0  # two at a time
    for number in range(90):
        run.send(LogEvent.JOB_FINISHED, job_id=number)
    printed = run.send(LogEvent.PROGRESS, done=90, total=101)
    assert "90 of 101" in printed and "54 s left" in printed


def test_without_estimates_no_time_is_promised(run):
    run.send(LogEvent.JOB_INFO, jobid=1, rule_name="plan", wildcards={}, resources=None)
    printed = run.send(LogEvent.PROGRESS, done=1, total=2)
    assert "left" not in printed and "done" not in printed
    assert "2 of 2 jobs, 0 s, done" in run.send(LogEvent.PROGRESS, done=2, total=2)


def test_a_failure_is_named_with_the_end_of_its_log(run, tmp_path):
    log = tmp_path / "0.log"
    log.write_text("peakmark: [red]luck[/red]\n")
    values = {"rule_name": "measure", "output": ["results/a/cells/disk/fio/x/any/0.json"]}
    printed = run.send(LogEvent.JOB_ERROR, logging.ERROR, **values, log=[str(log)])
    assert "disk/fio/x/any/0" in printed
    assert "[red]luck[/red]" in printed  # what a tool says is no markup
    assert "stopped" not in printed
    printed = run.send(LogEvent.JOB_ERROR, logging.ERROR, **values, log=["/proc/self/mem"])
    assert printed.count("disk/fio/x/any/0") == 2


@pytest.mark.parametrize("text", ["", "peakmark: interrupted\n", "Traceback\nKeyboardInterrupt\n"])
def test_a_job_that_a_signal_ended_has_stopped_and_not_failed(text, run, tmp_path):
    log = tmp_path / "0.log"
    log.write_text(text)
    values = {"rule_name": "measure", "output": ["results/a/cells/cpu/x/0.json"], "log": [str(log)]}
    assert run.send(LogEvent.JOB_ERROR, logging.ERROR, **values) == "stopped cpu/x/0\n"
    printed = run.send(LogEvent.JOB_ERROR, logging.ERROR, **values, rule_msg="TIMEOUT")
    assert ("TIMEOUT" in printed) == (text == "")


@cases("workflow")
def test_of_what_snakemake_says_reasons_and_answers_stay(run, level, message, printed):
    level = getattr(logging, level)
    event = LogEvent.ERROR if level == logging.ERROR else None
    run.handler.setFormatter(logging.Formatter("%(message)s"))
    assert run.send(event, level, message) == printed


def test_the_bar_is_gone_when_all_is_done(monkeypatch):
    run = Run(monkeypatch, terminal=True)
    run.begin(1)
    for done in (0, 1, 2):
        assert run.handler.bar.progress.live.is_started
        run.send(LogEvent.PROGRESS, done=done, total=2)
    assert not run.handler.bar.progress.live.is_started


BETWEEN_S = 0.3
"""From the end of a cell to the start of the next one."""


class Moment(NamedTuple):
    """After a cell: seconds left as reported, and as they turned out."""

    reported: float
    truth: float


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    """Expected and measured seconds of each real cell of a campaign, in running order."""
    results = Results.read(campaign_data.golden("cluster", tmp_path_factory.mktemp("golden")))
    expected = durations.Durations(durations.LOOPBACK_LINK).expected
    records = sorted(results.records, key=lambda record: record.data.context.started)
    return {
        record.cell.id: (expected(record.cell), record.data.context.seconds)
        for record in records
        if record.cell.node == "any"
    }


def replay(cells, slower=1.0, first_three=1.0, nodes=1):
    """Each moment of the campaign with cells that take so many times longer."""
    factors = [slower * (first_three if place < 3 else 1.0) for place in range(len(cells))]
    measured = [
        seconds * factor for (_, seconds), factor in zip(cells.values(), factors, strict=True)
    ]
    whole = sum(seconds + BETWEEN_S for seconds in measured) / nodes
    progress = Progress()
    progress.expect({cell: expected for cell, (expected, _) in cells.items()})
    elapsed, moments = 0.0, []
    for cell, seconds in zip(cells, measured, strict=True):
        elapsed += (seconds + BETWEEN_S) / nodes
        progress.finish(cell)
        reported = progress.seconds_left(time.monotonic() - elapsed)
        moments.append(Moment(reported, whole - elapsed))
    return moments


def largest_step(moments):
    """Between two cells, until the last twenty: there any second is a large share."""
    reported = [moment.reported for moment in moments[:-20]]
    return max(max(after / before, before / after) for before, after in pairwise(reported))


def test_the_time_left_of_a_real_campaign_is_right_within_a_third(cells):
    moments = replay(cells)
    assert largest_step(moments) < 1.3
    for moment in moments[:-20]:
        assert 0.67 < moment.reported / moment.truth < 1.5


@pytest.mark.parametrize(("slower", "nodes"), [(4.0, 1), (0.25, 1), (1.0, 2), (1.0, 8)])
def test_another_machine_is_learnt_by_the_middle(cells, slower, nodes):
    moments = replay(cells, slower, nodes=nodes)
    assert largest_step(moments) < 1.7
    for moment in moments[len(moments) // 2 : -20]:
        assert 0.6 < moment.reported / moment.truth < 1.6
