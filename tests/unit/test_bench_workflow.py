"""What ``make bench-workflow`` reads of Slurm's log, and its verdicts."""

from benchmarks.results import Line
from benchmarks.workflow import cluster
from tests.unit.campaign_data import DATA

LOG = DATA / "slurm" / "slurmctld-22.05.log"
"""Backfill and the main scheduler: a job, tasks of an array, a job on two nodes, one that still runs."""


def test_slurmctlds_log_gives_the_time_of_jobs():
    found = {job.name: round(job.node_seconds, 3) for job in cluster.ended_jobs(LOG)}
    assert found == {"1": 0.062, "4_0(6)": 0.096, "5": 0.198}
    after = LOG.read_text().index("JobId=4_0")
    assert [job.name for job in cluster.ended_jobs(LOG, after=after)] == ["5"]


def test_verdicts_of_ratios_and_of_values():
    better = Line("b", "s", [1.0], 1.2, "bare jobs", [2.0])
    cases = [Line("a", "s", [1.0, 2.0]), better, Line("c", "s", [3.0], 2.0)]
    assert [line.verdict for line in cases] == ["", "met", "missed"]
    assert "at most 2 s" in cases[2].cells()
