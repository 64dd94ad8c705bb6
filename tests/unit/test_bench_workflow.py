"""What `make bench-workflow` reads and what it tells."""

import math
from pathlib import Path

from benchmarks.workflow import journal, lines, reframe
from benchmarks.workflow.lines import Line

# As slurmctld 22.05 wrote it: backfill and the main scheduler, a single job, tasks of an array, a
# job on two nodes.
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


def test_the_controllers_log_tells_what_jobs_took(tmp_path: Path) -> None:
    log = tmp_path / "slurmctld.log"
    log.write_text(LOG)
    found = {job.name: round(job.node_seconds, 3) for job in journal.ended_jobs(log)}
    assert found == {"1": 0.062, "4_0(6)": 0.096, "5": 0.198}, "job 7 still runs"
    assert [job.name for job in journal.ended_jobs(log, after=LOG.index("JobId=4_0"))] == ["5"]
    first, second = journal.submissions(log)
    assert math.isclose(second - first, 0.033, abs_tol=1e-6)


def test_names_of_nodes_are_counted() -> None:
    assert [journal.count(names) for names in ("node1", "gn4-2", "node[1-3,7]", "n[08-11]")] == [
        1,
        1,
        4,
        4,
    ]


def test_a_line_without_a_promise_has_no_verdict() -> None:
    told = lines.markdown(
        [
            Line("a", "s", [1.0, 2.0]),
            Line("b", "s", [1.0], 1.2, "ReFrame", [2.0]),
            Line("c", "s", [3.0], 2.0),
        ]
    ).splitlines()[2:]
    assert [[cell.strip() for cell in line.strip("|").split("|")][-2:] for line in told] == [
        ["", ""],
        ["at most 1.2", "met"],
        ["at most 2 s", "missed"],
    ]


def test_reframes_files_are_python() -> None:
    compile(reframe.SETTINGS, "settings.py", "exec")
    compile(reframe.CHECKS, "checks.py", "exec")
