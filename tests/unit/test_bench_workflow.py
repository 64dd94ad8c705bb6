"""What ``make bench-workflow`` reads of Slurm's log, and its verdicts."""

from benchmarks.results import Line
from benchmarks.workflow import cluster

# As slurmctld 22.05 wrote it: backfill and the main scheduler, a single job, tasks of an array, a
# job on two nodes, a job that still runs.
LOG = """\
[2026-11-21T20:16:38.974] _slurm_rpc_submit_batch_job: JobId=1 InitPrio=4294901759 usec=232
[2026-11-21T20:16:39.007] _slurm_rpc_submit_batch_job: JobId=4 InitPrio=4294901756 usec=137
[2026-11-21T20:16:39.541] sched/backfill: _start_job: Started JobId=1 in main on node1
[2026-11-21T20:16:39.603] _job_complete: JobId=1 WEXITSTATUS 0
[2026-11-21T20:16:39.603] _job_complete: JobId=1 done
[2026-11-21T20:16:40.546] sched/backfill: _start_job: Started JobId=4_0(6) in main on node2
[2026-11-21T20:16:40.642] _job_complete: JobId=4_0(6) WEXITSTATUS 0
[2026-11-21T20:16:40.642] _job_complete: JobId=4_0(6) done
[2026-11-21T20:16:42.549] sched: Allocate JobId=5 NodeList=node[1-2] #CPUs=4 Partition=main
[2026-11-21T20:16:42.648] _job_complete: JobId=5 done
[2026-11-21T20:16:43.000] sched: Allocate JobId=7 NodeList=node1 #CPUs=2 Partition=main
"""


def test_slurmctlds_log_gives_the_time_of_jobs(tmp_path):
    log = tmp_path / "slurmctld.log"
    log.write_text(LOG)
    found = {job.name: round(job.node_seconds, 3) for job in cluster.ended_jobs(log)}
    assert found == {"1": 0.062, "4_0(6)": 0.096, "5": 0.198}
    assert [job.name for job in cluster.ended_jobs(log, after=LOG.index("JobId=4_0"))] == ["5"]


def test_verdicts_of_ratios_and_of_values():
    better = Line("b", "s", [1.0], 1.2, "bare jobs", [2.0])
    cases = [Line("a", "s", [1.0, 2.0]), better, Line("c", "s", [3.0], 2.0)]
    assert [line.verdict for line in cases] == ["", "met", "missed"]
    assert "at most 2 s" in cases[2].cells()
