"""What is made of the states that Slurm tells of jobs that ended badly."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.unit import campaign_data
from tests.unit.plan.planned import CPU, NOW, made, where

from peakmark import files, slurm
from peakmark.cell import Cell
from peakmark.storage import records
from peakmark.workflow import failures, status

DATA = campaign_data.DATA / "slurm"


@pytest.mark.parametrize("state", sorted(slurm.ENDED_BADLY))
def test_every_bad_end_becomes_an_attempt_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    one = made(tmp_path, monkeypatch, cpu=[CPU])
    cell = one.cells[0]
    details = {"BatchHost": "node7.site", "ExitCode": "9:0", "StdOut": "/logs/5"}
    path = failures.keep(one, [cell], "5", state, details, NOW)
    assert path is not None
    record = records.read(path)
    assert (record["status"], record["context"]["host"], record["context"]["job_id"]) == (
        "failed",
        "node7",
        "5",
    )
    assert record["reason"].startswith(f"Slurm ended job 5: {state}")
    # A job that wrote its own attempt gets no second.
    assert failures.keep(one, [cell], "5", state, details, NOW) is None


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ("over-memory-kill.log", "OUT_OF_MEMORY: .*300M.*memory_factor"),
        ("cgroup.log", "OUT_OF_MEMORY: .*300M.*memory_factor"),
        ("exit-code.log", "FAILED, exit code 1"),
        ("none.log", "FAILED, exit code 1"),
    ],
)
def test_a_step_without_memory_fails_its_job_and_only_the_log_tells_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log: str, words: str
) -> None:
    one = made(tmp_path, monkeypatch, cpu=[CPU])
    details = {"BatchHost": "node7", "ExitCode": "1:0", "MinMemoryNode": "300M"}
    details["StdOut"] = str(DATA / log)
    path = failures.keep(one, one.cells[:1], "5", "FAILED", details, NOW)
    assert path is not None
    record = records.read(path)
    assert re.match(f"Slurm ended job 5: {words}", record["reason"])
    assert record["context"]["slurm"]["state"] == "FAILED"  # what Slurm calls it stays on record
    failure = status.last_failure(one.results, one.cells[0])
    assert failure is not None and failure.job_log == DATA / log


def test_a_job_that_had_its_whole_node_is_not_told_to_ask_for_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = made(tmp_path, monkeypatch, cpu=[CPU])
    details = {"MinMemoryNode": "0", "TRES": "cpu=2,mem=4G,node=1,billing=2", "BatchHost": "n1"}
    path = failures.keep(one, one.cells[:1], "5", "OUT_OF_MEMORY", details, NOW)
    assert path is not None
    reason = records.read(path)["reason"]
    assert "(4G)" in reason and "pool" in reason and "memory_factor" not in reason


def test_what_scontrol_tells_of_a_job_may_hold_blanks(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        "JobId=2 JobName=0b9 UserId=root(0) Comment=rule_measure_wildcards_c_x Reason=NonZeroExitCode NodeList=node1 "
        "NumCPUs=2 CPUs/Task=1 ReqB:S:C:T=0:0:*:* TRES=cpu=2,mem=848M,node=1,billing=2 Socks/Node=* MinMemoryNode=848M "
        "WorkDir=/tmp/a checkout StdErr=/tmp/a checkout/.snakemake/2.log StdIn=/dev/null "
        "StdOut=/tmp/a checkout/.snakemake/2.log Power= \n"
    )
    monkeypatch.setattr(slurm, "ask", lambda *_: text)
    found = slurm.job("2")
    assert found["WorkDir"] == "/tmp/a checkout"
    assert found["StdOut"] == f"{found['WorkDir']}/.snakemake/2.log"
    assert (found["JobId"], found["NodeList"], found["Power"]) == ("2", "node1", "")
    assert found["TRES"] == "cpu=2,mem=848M,node=1,billing=2" and found["Socks/Node"] == "*"


def test_of_a_job_for_a_node_the_cell_it_was_at_is_the_one_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = made(tmp_path, monkeypatch, where(nodes=("n1",)), cpu=[CPU], fan_out="node")
    ((name, cells),) = one.jobs.items()
    assert name == "n1.own" and failures.keep(one, cells, "5", "NODE_FAIL", {}, NOW) is None
    files.write_text(one.directory / "nodes" / "n1.own.now", one.cells[1].id + "\n")
    path = failures.keep(one, cells, "5", "NODE_FAIL", {}, NOW)
    assert path is not None and Cell.from_json(records.read(path)["cell"]) == one.cells[1]
