"""What test_numa.py has done in an emulated machine of two sockets and two NUMA nodes."""

import os
import re
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from peakmark.cell import Cell
from peakmark.run.measure import Request, measure

Order = Mapping[str, Any]

DEADLINE_S = 300.0  # two emulated CPUs on a machine that is busy otherwise
POOL = 32 << 20  # bytes of all threads together
SWEEP = ("--workload", "RS", "--block", "64KiB")
PAGE = 4096
LARGE = 1024  # pages: buffers, and not the stacks beside them


def on_cpus(order: Order) -> list[dict[str, Any]]:
    """The record of each cell, measured on its CPUs; last, where pages lie."""
    scratch = Path(order["folder"]) / "scratch"
    scratch.mkdir()
    os.environ["TMPDIR"] = str(scratch)
    seen = []
    for one in order["cells"]:
        os.sched_setaffinity(0, one["cpus"])
        seen.append(_record(one["cell"], order))
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    return [*seen, {"pages": [pages(Path(order["kernels"]), cpus) for cpus in order["pages"]]}]


def matrices(order: Order) -> dict[str, Any]:
    """What rambench prints of each workload; then where pages lie while a matrix is measured."""
    kernels, workloads = Path(order["kernels"]), order["workloads"]
    words = ["--threads", "2", "--pool", str(POOL), "--seconds", "0.1", "--warmup", "0"]
    printed = [
        subprocess.run(
            [kernels / "rambench", "--workload", workload, *words],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for workload in workloads
    ]
    return {"printed": printed, "pages": pages(kernels, [0, 1], ["--workload", workloads[0]])}


def _record(cell_json: Mapping[str, Any], order: Order) -> dict[str, Any]:
    cell, folder = Cell.from_json(cell_json), Path(order["folder"])
    path = folder / "cells" / f"{cell.id}.json"
    return measure(Request(cell, path, folder, Path(order["kernels"])))


def pages(kernels: Path, cpus: list[int], words: Sequence[str] = SWEEP) -> dict[str, int]:
    """NUMA node -> pages of rambench's buffers while it measures ``words`` on these CPUs."""
    argv = [str(kernels / "rambench"), *words, "--pool", str(POOL)]
    argv += ["--seconds", "1000", "--warmup", "0", "--threads", str(len(cpus))]
    argv += ["--cpus", ",".join(map(str, cpus))]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL) as process:
        try:
            end = time.monotonic() + DEADLINE_S
            listed: Counter[str] = Counter()
            while listed.total() < POOL // PAGE:
                if process.poll() is not None or time.monotonic() > end:
                    code = process.returncode
                    raise RuntimeError(f"rambench has touched {listed}, exit code {code}")
                time.sleep(0.05)
                listed = sum(_buffers(process.pid), Counter())
            return dict(listed)
        finally:
            process.kill()


def _buffers(pid: int) -> Iterator[Counter[str]]:
    """Pages by node of each of the larger mappings: ``7f.. default anon=8192 N0=8192``."""
    for line in Path(f"/proc/{pid}/numa_maps").read_text().splitlines():
        anonymous = re.search(r" anon=(\d+)", line)
        if anonymous and int(anonymous[1]) >= LARGE:
            nodes = {node: int(count) for node, count in re.findall(r" N(\d+)=(\d+)", line)}
            yield Counter(nodes)
