"""Attempts of jobs that Slurm ended."""

from __future__ import annotations

import re

import pytest
from tests.unit import campaign_data
from tests.unit.slurm.conftest import Site

from peakmark import slurm
from peakmark.slurm import failures
from peakmark.storage import records
from peakmark.workflow import status

DATA = campaign_data.DATA / "slurm"
DETAILS = {"BatchHost": "node7.site", "ExitCode": "1:0", "MinMemoryNode": "300M"}


def kept(site: Site, state: str, details: dict[str, str]) -> dict[str, object]:
    """The attempt of the first cell, whose job 5 ended so."""
    cell = site.plan.cells[0]
    assert failures.keep(site.plan.directory, cell, "5", state, details)
    # A job that has an attempt gets no second.
    assert not failures.keep(site.plan.directory, cell, "5", state, details)
    (path,) = records.attempts(site.plan.directory, cell)
    return dict(records.read(path))


@pytest.mark.parametrize("state", sorted(slurm.ENDED_BADLY))
def test_every_bad_end_becomes_one_attempt(site: Site, state: str) -> None:
    record = kept(site, state, DETAILS)
    context = record["context"]
    assert (record["status"], context["host"], context["job_id"]) == ("failed", "node7", "5")
    assert record["reason"].startswith(f"Slurm ended job 5: {state}")
    assert not failures.keep(site.plan.directory, None, "6", state, {}), "nobody knows the cell"


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
    site: Site, log: str, words: str
) -> None:
    record = kept(site, "FAILED", {**DETAILS, "StdOut": str(DATA / log)})
    assert re.match(f"Slurm ended job 5: {words}", record["reason"])
    assert record["context"]["slurm"]["state"] == "FAILED"  # what Slurm calls it stays on record
    failure = status.last_failure(site.plan.results, site.plan.cells[0])
    assert failure is not None and failure.job_log == DATA / log


def test_a_job_that_had_its_whole_node_is_not_advised_to_ask_for_more(site: Site) -> None:
    details = {"MinMemoryNode": "0", "TRES": "cpu=2,mem=4G,node=1,billing=2", "BatchHost": "n1"}
    reason = kept(site, "OUT_OF_MEMORY", details)["reason"]
    assert "(4G)" in reason and "pool" in reason and "memory_factor" not in reason
