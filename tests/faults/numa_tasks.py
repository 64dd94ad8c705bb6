"""What test_numa.py has done in an emulated machine of two sockets, two NUMA nodes and two threads
a core.
"""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from peakmark.cell import Cell
from peakmark.run.measure import Request, measure

DEADLINE_S = 300.0  # two emulated CPUs on a machine that is busy otherwise
POOL = 32 << 20  # bytes of all threads together
PAGE = 4096
LARGE = 1024  # pages: buffers, and not the stacks beside them
MOVE_PAGES = {"x86_64": 279, "aarch64": 239}  # its number; no C library has it


def measured(order: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The record of each cell, measured with the CPUs that it is given; facts of the machine stay
    in the folder.
    """
    folder = Path(order["folder"])
    scratch = folder / "scratch"
    scratch.mkdir()
    os.environ["TMPDIR"] = str(scratch)
    found = []
    for one in order["cells"]:
        cell = Cell.from_json(one["cell"])
        os.sched_setaffinity(0, one["cpus"])
        found.append(
            measure(
                Request(cell, folder / "cells" / f"{cell.id}.json", folder, Path(order["kernels"]))
            )
        )
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    return [*found, {"pages": [pages(Path(order["kernels"]), cpus) for cpus in order["pages"]]}]


def pages(kernels: Path, cpus: list[int]) -> dict[str, dict[str, int]]:
    """NUMA node -> pages of rambench's buffers while it runs on these CPUs: ``maps`` by the
    kernel's list of mappings, ``moved`` by its answer for each page to move_pages, which moves
    nothing where no nodes are given.
    """
    argv = [str(kernels / "rambench"), "--workload", "RS", "--block", "64KiB", "--pool", str(POOL)]
    argv += ["--seconds", "1000", "--warmup", "0", "--threads", str(len(cpus))]
    argv += ["--cpus", ",".join(map(str, cpus))]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL) as process:
        try:
            end = time.monotonic() + DEADLINE_S
            while sum((listed := _listed(process.pid)).values()) < POOL // PAGE:
                if process.poll() is not None or time.monotonic() > end:
                    raise RuntimeError(
                        f"rambench has touched {listed} of {POOL // PAGE} pages, exit code {process.returncode}"
                    )
                time.sleep(0.05)
            # Linux 6.1 tells nothing of a page that NUMA balancing has just unmapped, until its
            # thread is there again.
            answers: dict[int, int] = {}
            while len(answers) < POOL // PAGE and time.monotonic() < end:
                answers |= _asked(process.pid)
                time.sleep(0.05)
            moved = {str(node): count for node, count in Counter(answers.values()).items()}
            return {"maps": listed, "moved": moved}
        finally:
            process.kill()


def _buffers(pid: int) -> list[tuple[int, dict[str, int]]]:
    """(first address, pages by node) of the larger mappings of a process: ``7f.. default anon=8192
    dirty=8192 N0=8192``.
    """
    found = []
    for line in Path(f"/proc/{pid}/numa_maps").read_text().splitlines():
        anonymous = re.search(r" anon=(\d+)", line)
        if anonymous and int(anonymous[1]) >= LARGE:
            nodes = {node: int(count) for node, count in re.findall(r" N(\d+)=(\d+)", line)}
            found.append((int(line.split()[0], 16), nodes))
    return found


def _listed(pid: int) -> dict[str, int]:
    found: dict[str, int] = {}
    for _, nodes in _buffers(pid):
        for node, count in nodes.items():
            found[node] = found.get(node, 0) + count
    return found


def _asked(pid: int) -> dict[int, int]:
    """Address -> node of every page of the same mappings of which move_pages tells it."""
    ends = {}
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        start, end = (int(word, 16) for word in line.split()[0].split("-"))
        ends[start] = end
    found: dict[int, int] = {}
    for start, _ in _buffers(pid):
        addresses = range(start, ends[start], PAGE)
        where = (ctypes.c_void_p * len(addresses))(*addresses)
        states = (ctypes.c_int * len(addresses))()
        call = ctypes.CDLL(None, use_errno=True).syscall
        count = ctypes.c_ulong(len(addresses))
        if call(MOVE_PAGES[os.uname().machine], pid, count, where, None, states, 0) != 0:
            raise OSError(ctypes.get_errno(), "move_pages")
        found |= {
            address: node for address, node in zip(addresses, states, strict=True) if node >= 0
        }
    return found
