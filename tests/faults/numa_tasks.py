"""What test_numa.py has done in an emulated machine of two sockets, two NUMA nodes and two threads a core."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from peakmark.cell import Cell
from peakmark.measuring.measure import Request, measure

DEADLINE_S = 60.0
POOL = 32 << 20  # bytes of all threads together


def measured(order: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The record of each cell, measured with the CPUs that it is given; facts of the machine stay in the folder."""
    folder = Path(order["folder"])
    scratch = folder / "scratch"
    scratch.mkdir()
    os.environ["TMPDIR"] = str(scratch)
    found = []
    for one in order["cells"]:
        cell = Cell.from_json(one["cell"])
        os.sched_setaffinity(0, one["cpus"])
        found.append(measure(Request(cell, folder / "cells" / f"{cell.id}.json", folder, Path(order["kernels"]))))
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    return [*found, {"pages": [pages(Path(order["kernels"]), cpus) for cpus in order["pages"]]}]


def pages(kernels: Path, cpus: list[int]) -> dict[str, int]:
    """NUMA node -> pages of rambench's buffers while it runs on these CPUs, by the kernel's own account."""
    argv = [str(kernels / "rambench"), "--workload", "RS", "--block", "64KiB", "--pool", str(POOL), "--seconds", "30"]
    argv += ["--warmup", "0", "--threads", str(len(cpus)), "--cpus", ",".join(map(str, cpus))]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL) as process:
        try:
            end = time.monotonic() + DEADLINE_S
            while sum((found := _nodes(process.pid)).values()) < POOL // 4096 and time.monotonic() < end:
                if process.poll() is not None:
                    raise RuntimeError(f"rambench ended with exit code {process.returncode}")
                time.sleep(0.05)
        finally:
            process.kill()
    return found


def _nodes(pid: int) -> dict[str, int]:
    """Anonymous 4 KiB pages of the larger mappings of a process, by node: ``7f.. default anon=8192 dirty=8192 N0=8192``."""
    found: dict[str, int] = {}
    for line in Path(f"/proc/{pid}/numa_maps").read_text().splitlines():
        anonymous = re.search(r" anon=(\d+)", line)
        if anonymous and int(anonymous[1]) >= 1024:
            for node, count in re.findall(r" N(\d+)=(\d+)", line):
                found[node] = found.get(node, 0) + int(count)
    return found
