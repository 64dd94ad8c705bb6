"""A paced neighbour: processes that take a share of the time of some CPUs, as a slow node would."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

PERIOD_S = 0.01
_NEIGHBOUR = """
import os, sys, time
cpu, share, period = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
os.sched_setaffinity(0, [cpu])
parent, begun = os.getppid(), time.monotonic()
while os.getppid() == parent:
    if time.thread_time() < share * (time.monotonic() - begun):
        continue
    time.sleep(period * (1 - share))
"""


@contextmanager
def neighbours(cpus: Iterable[int], share: float) -> Iterator[None]:
    """Let a process take a share of the time of each of the CPUs while the block runs.

    Args:
        cpus: those of the measurement.
        share: 0 for none, below 0.5: the kernel gives each of two that want it no more.
    """
    with ExitStack() as stack:
        for cpu in cpus if share else ():
            argv = [
                sys.executable,
                "-I",
                "-S",
                "-c",
                _NEIGHBOUR,
                str(cpu),
                str(share),
                str(PERIOD_S),
            ]
            process = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
            stack.callback(process.wait)
            stack.callback(process.kill)
        yield
