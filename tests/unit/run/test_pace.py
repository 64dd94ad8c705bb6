"""A neighbour of ours stays on its CPU and ends with its block."""

from __future__ import annotations

import os
import time
from pathlib import Path

from peakmark.run import execute


def children():
    path = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    return set(map(int, path.read_text().split()))


def test_a_neighbour_takes_time_of_its_cpu_until_the_block_ends():
    before = children()
    cpu = min(os.sched_getaffinity(0))
    with execute.neighbours([cpu], 0.3):
        (process,) = children() - before
        stat = Path(f"/proc/{process}/stat")
        deadline = time.monotonic() + 60
        while os.sched_getaffinity(process) != {cpu} or int(stat.read_text().split()[13]) < 10:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    with execute.neighbours([cpu], 0.0):
        assert children() == before
    assert children() == before
