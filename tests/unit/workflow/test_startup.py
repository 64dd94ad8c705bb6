"""What a run does before its first cell, and the executor as Snakemake makes it."""

import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import msgspec
import pytest
from snakemake.scheduling.job_scheduler import JobRateLimiter
from snakemake.settings.types import MaxJobsPerTimespan
from tests.unit import campaign_data as make
from tests.unit.cases import cases
from tests.unit.hostile import one_grid, refuses
from tests.unit.plan.planned import CPU, DISK, NETWORK, made, where

from peakmark import plan, slurm
from peakmark.plan import jobs
from peakmark.slurm import commands
from peakmark.storage import records
from peakmark.tools.base import Tool
from peakmark.workflow import startup
from peakmark.workflow.run import Run
from peakmark.workflow.startup import UserError
from snakemake_executor_plugin_peakmark import Executor

GRID = one_grid("cpu")


@cases("configuration")
def test_what_this_machine_lacks_is_said_before_the_first_cell(values, words):
    made = plan.make({**values, "tools_on": "here"})
    refuses(lambda: startup.check(made, made.cells), *words)
    startup.check(made, [])  # a campaign that is measured is reported wherever it is
    # On a cluster the nodes have it, or not.
    startup.check(plan.make({**values, "tools_on": "nodes"}), made.cells)


def test_what_this_machine_has_is_measured():
    values = {**one_grid("disk", size="1MiB"), "scratch": "/tmp", "interface": "lo"}
    made = plan.make({**values, "tools": {"fio": "/bin/sh"}, "tools_on": "here"})
    assert not startup.check(made, made.cells)


def three(*nodes):
    return where(nodes=nodes, kinds=[{"cpus": 8, "memory": 4000, "nodes": ["n1", "n2", "n3"]}])


HANG_UP = """
import os, signal, sys
from pathlib import Path
from peakmark.workflow import startup
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # these tests may run under nohup
startup.ignore_sighup(Path(sys.argv[1]))
os.kill(os.getpid(), signal.SIGHUP)
print("goes on", flush=True)
"""


@pytest.mark.parametrize("place", ["logs/hangup.log", "a file/hangup.log"])
def test_a_run_goes_on_without_its_terminal_wherever_its_words_can_go(tmp_path, place):
    (tmp_path / "a file").touch()  # as on a full disk, no folder can be made there
    log = tmp_path / place
    argv = [sys.executable, "-c", HANG_UP, log]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0 and not done.stdout, done.stderr
    assert log.exists() == ("a file" not in place)
    if log.exists():
        first, last = log.read_text().splitlines()
        assert "terminal" in first and last == "goes on"


def test_slurm_checks_one_job_of_each_kind(tmp_path, monkeypatch):
    """Cells of one node and those of two ask for something else."""
    grids = {"cpu": [CPU], "disk": [DISK], "network": [NETWORK]}
    one = made(tmp_path, monkeypatch, three("n1", "n2", "n3"), **grids, repetitions=1)
    assert len(one.cells) == 12
    calls = []
    monkeypatch.setattr(commands, "ask", lambda *argv, **_: calls.append(argv) or "")
    startup.check_jobs(one, {}, one.cells)
    single, pair = (argv for argv in calls if argv[0] == "sbatch")
    assert {"--test-only", "--nodes=1"} <= {*single} and {"--test-only", "--nodes=2"} <= {*pair}
    longest = max(jobs.minutes([cell], one) for cell in one.cells if cell.subsystem != "network")
    assert f"--time={longest}" in single
    calls.clear()
    startup.check_jobs(one, {}, [cell for cell in one.cells if cell.subsystem == "network"])
    assert [argv[0] for argv in calls].count("sbatch") == 1  # what is measured asks for nothing


@pytest.mark.parametrize(("limit", "warned"), [(1, True), (600, False)])
def test_a_job_that_ends_too_soon_is_named_first(limit, warned, tmp_path, monkeypatch, capsys):
    one = made(tmp_path, monkeypatch, where(limit=limit), cpu=[{**CPU, "seconds": 100.0}])
    monkeypatch.setattr(commands, "ask", lambda *_, **__: "")
    startup.check_jobs(one, {}, one.cells)
    assert ("MaxTime" in capsys.readouterr().err) == warned


@pytest.mark.parametrize(("repetitions", "sentence"), [(2, "1 cell is"), (3, "2 cells are")])
def test_records_of_other_options_go_aside(repetitions, sentence, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    grid = {"cpu": [{"workloads": ["SP"], "concurrency": [1]}], "campaign": "c"}
    now, before = (
        plan.make({**grid, "repetitions": repetitions, "seconds": seconds}) for seconds in (2, 1)
    )
    for cell, other in zip(now.cells, before.cells, strict=True):
        stored = cell if cell.repetition == 0 else other
        record = make.struct(stored, [make.measurement(stored, "rate", 4e10)])
        records.write(now.directory / "cells" / f"{stored.id}.json", record)
    found = startup.survey(now.results)
    assert [found[cell.id].state for cell in now.cells].count(
        records.OTHER_OPTIONS
    ) == repetitions - 1
    startup.set_aside(now, found)
    printed = capsys.readouterr().err
    assert sentence in printed


FIO, OLD = Tool("fio", "/opt/fio", "3.36"), Tool("fio", "/opt/fio", "2.15")
IDLE = slurm.Node("n1", "main", 8, 4000, "idle", None, frozenset())


@pytest.mark.parametrize(("before", "now", "measured"), [
    (None, None, False), (None, FIO, True), (OLD, OLD, False), (OLD, FIO, True),
])  # fmt: skip
def test_a_cell_is_measured_once_its_node_has_the_tool(
    before, now, measured, tmp_path, monkeypatch, capsys
):
    disk = [{**DISK, "references": {"fio": {}}}]
    one = made(tmp_path, monkeypatch, three("n1", "n2"), disk=disk, nodes=["n1", "n2"])
    refused = [cell for cell in one.cells if cell.instrument == "fio"]
    assert [cell.node for cell in sorted(refused, key=str)] == ["n1", "n2"]
    for cell in refused:
        host = f"ip-{cell.node}"
        slurm_facts = {"slurm": {"node": f"{cell.node}.hpc.example"}}
        records.write_facts(one.directory / "machine" / f"{host}.json", slurm_facts)
        record = make.struct(cell, status="unavailable", reason="no fio", host=host)
        record.context.tool = before
        records.write(one.directory / "cells" / f"{cell.id}.json", record)
    asked = []
    monkeypatch.setattr(slurm, "nodes", lambda *_: [IDLE, replace(IDLE, name="n2", state="mixed")])
    answer = msgspec.json.encode(["n1", {"fio": now}]).decode()
    monkeypatch.setattr(commands, "ask", lambda *argv, **_: asked.append(argv) or answer)
    found = startup.other_tools(one, startup.survey(one.results), {"partition": "long"})
    assert {"srun", "--nodelist=n1", "--partition=long"} <= {*asked[0]} and len(asked) == 1
    assert [name.split("/")[3] for name in found] == ["n1"] * measured
    startup.set_aside(one, startup.survey(one.results) | found)
    said = capsys.readouterr().err
    assert "n2: some cells were not possible" in said
    assert ("1 without the tools" in said) == measured


@pytest.mark.parametrize(("words", "stays"), [
    ("", False), ("--profile slurm --jobs 5", False), ("--max-jobs-per-timespan 50/1m", True),
    ("--max-jobs-per-timespan=50/1m", True), ("--max-jobs-per-second 50", True),
])  # fmt: skip
def test_only_a_limit_of_jobs_a_second_of_the_command_line_stays(words, stays):
    scheduler = SimpleNamespace(job_rate_limiter=JobRateLimiter(MaxJobsPerTimespan(50, "1m")))
    startup.disable_rate_limit(scheduler, words.split())
    assert (scheduler.job_rate_limiter is not None) == stays


def test_another_workflow_is_refused_in_a_sentence(monkeypatch):
    monkeypatch.setattr(Run, "current", None)
    with pytest.raises(UserError, match="runs the Snakefile of peakmark"):
        Executor(None, None)
