"""Cells in jobs that Slurm binds (task/affinity, task/cgroup) on an emulated machine of two
sockets, nodes and threads a core.
"""

from __future__ import annotations

from typing import Any

import numa_tasks
import pytest
from bench import LIMIT_S
from benchmarks import guest
from test_numa import MACHINE, SITE, cell, in_machine

from peakmark import limits

WHOLE = ["--exclusive", "--cpus-per-task=8"]

pytestmark = pytest.mark.trouble  # some minutes of a core

# What srun is told, what the cell asks for -> the job's cpuset (task/cgroup), its affinity
# (task/affinity), CPUs of the threads, cores, nodes.
EXPECTED: list[tuple[list[str], int | str, str, list[int], list[int], int, list[int]]] = [
    # A core is never shared: both its threads are the job's.
    (["--cpus-per-task=1"], "cpus", "0-1", [0, 1], [0, 1], 1, [0]),
    (["--cpus-per-task=4"], "cores", "0-3", [0, 1, 2, 3], [0, 2], 2, [0]),
    ([*WHOLE, "--cpu-bind=mask_cpu:0x33"], "cores", "0-7", [0, 1, 4, 5], [0, 4], 2, [0, 1]),
    (WHOLE, "cores", "0-7", list(range(8)), [0, 2, 4, 6], 4, [0, 1]),
]
WITH_PAGES = 2
PROGRAMS = {"slurmctld": "slurmctld", "slurmd": "slurmd", "srun": "slurm-client", "munged": "munge"}


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    if reason := guest.why_not(MACHINE) or guest.common.missing(PROGRAMS):
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("numa").resolve()
    orders = [
        {"words": words, "cell": cell(asked, "compact", number), "pages": number == WITH_PAGES}
        for number, (words, asked, *_) in enumerate(EXPECTED)
    ]
    found, facts = in_machine(folder, "numa_slurm:measured", {"jobs": orders}, 10 * LIMIT_S)
    return {**found, "facts": facts}


@pytest.mark.parametrize("number", range(len(EXPECTED)))
def test_a_jobs_cells_have_its_cores_and_the_limit_is_theirs(
    number: int, jobs: dict[str, Any]
) -> None:
    _, _, cpuset, given, cpus, cores, nodes = EXPECTED[number]
    job = jobs["jobs"][number]
    assert (job["cpuset"], job["affinity"]) == (cpuset, given)
    context, measured = job["record"]["context"], job["record"]["measurements"][0]
    assert context["allowed"]["cpus"] == given and context["allowed"]["node_cores"] == 4
    placed = context["placed"]
    assert (placed["cpus"], placed["cores"], placed["numa_nodes"]) == (cpus, cores, nodes)
    row = ("cpu", "DP", "", None, measured["concurrency"], "rate")
    limit = limits.for_row(*row, jobs["facts"], SITE, 1e9, placed=placed)
    assert limit.value == pytest.approx(cores * 4e9)


def test_a_jobs_pages_lie_on_the_nodes_of_its_cores(jobs: dict[str, Any]) -> None:
    found = jobs["jobs"][WITH_PAGES]["pages"]
    assert set(found["maps"]) == set(found["moved"]) == {"0", "1"}
    assert sum(found["moved"].values()) >= numa_tasks.POOL // numa_tasks.PAGE
