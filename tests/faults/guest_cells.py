"""What the tests beside this have measured in one guest: a lossy line, a quota, a clock set back;
and looking at it.

Programs start slowly in a guest and share one CPU, so no rate of it means anything: each number is
held against what the guest's kernel itself has counted. See benchmarks/guest.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bench import KERNELS, MIB, cpu_cell, disk_cell, network_cell
from benchmarks import guest
from benchmarks.guest import common

from peakmark import machine
from peakmark.cell import Cell
from peakmark.plan import plan
from peakmark.storage import records

Seen = Callable[[str], dict[str, Any]]
"""Name of a task -> what it saw in the guest."""

GUEST_S = 900.0
"""Only a guest that hangs takes so long: all its work is for one emulated CPU, and half a minute on
an idle machine.
"""
HERE = Path(__file__).resolve().parent
MODULES = ("veth", "sch_netem", "loop", "quota_v2", "ipv6")  # qperf's server wants IPv6
BAD_LINE = "delay 2ms loss 2% limit 100000"
LATE_LINE = "delay 2ms"  # a lost datagram would stop qperf, and a round trip that waits for one is no matter of the delay
REPEATING = "delay 1ms 1ms duplicate 10% limit 100000"
RTT_S = 0.002
FEW = 10  # packets that are no cell's: ARP, neighbours
LINE = {
    "campaign": "line",
    "seed": 1,
    "repetitions": 1,
    "warmup": 0.0,
    "network": [
        {"workloads": ["TCP", "UDP"], "blocks": ["1KiB"], "concurrency": [1], "seconds": 0.4,
         "references": {"iperf3": {"seconds": 1}}},
        {"workloads": ["LAT-TCP", "LAT-UDP"], "blocks": ["1B"], "concurrency": [1], "seconds": 0.4,
         "references": {"qperf": {"seconds": 1}}},
    ],
}  # fmt: skip
EVERY_BYTE = Cell(
    "network", "netbench", "TCP", "", 1000, 1, "any", 0, {"total": 2_000_000, "warmup": 0.0}
)
# What is measured while the clock is set back; the word tells the measuring program from a question
# for its version.
OURS = {
    "cpubench": Cell(
        "cpu", "cpubench", "SP", "", None, 1, "any", 1, {"seconds": 0.4, "warmup": 0.0}
    ),
    "rambench": Cell(
        "memory", "rambench", "RWS", "block", 4096, 1, "any", 1, {"seconds": 0.4, "warmup": 0.0}
    ),
    "diskbench": disk_cell(seconds=0.4),
    "netbench-TCP": network_cell(seconds=0.4),
    "netbench-UDP": network_cell(workload="LAT-UDP", seconds=0.4),
}
# iozone and ping ask the wall clock; the others are looked at by make test-trouble.
ASKING = {
    "iozone": (disk_cell("iozone", "ALL", size=8 * MIB), "-I"),
    "ping": (Cell("network", "ping", "LAT-ICMP", "", 1, 1, "any", 0, {"count": 40}), "-c"),
}
OTHERS = {
    "hpl": (
        Cell("cpu", "hpl", "DP", "", None, 1, "any", 0, {"warmup": 0.0, "budget_s": 3, "nb": 64}),
        "hpcc",
    ),
    "fio": (disk_cell("fio", seconds=1), "--name"),
    "iperf3": (network_cell("iperf3", seconds=1), "--client"),
    "qperf": (network_cell("qperf", "ALL", seconds=1), "--msg_size"),
}


def repeated(cell: Cell, number: int) -> dict[str, Any]:
    return {**cell.to_json(), "repetition": number}


def twice(cells: dict[str, tuple[Cell, str]]) -> list[dict[str, Any]]:
    """Orders for each cell: as it is, and while the clock is set back."""
    return [
        {"cell": repeated(cell, number), "word": word}
        for cell, word in cells.values()
        for number in (0, 1)
    ]


def boot(folder: Path, orders: dict[str, dict[str, Any]], limit_s: float) -> dict[str, Any]:
    """Hand the tasks to a guest; each has a campaign's folder of its name with this machine's
    facts.
    """
    if reason := guest.why_not():
        pytest.skip(reason)
    for program, package in (("mkfs.ext4", "e2fsprogs"), ("setquota", "quota")):
        if shutil.which(program, path=common.SYSTEM_PATH) is None:
            pytest.skip(f"{program} not found: install {package}")
    facts = {**machine.collect(folder, cpubench=KERNELS / "cpubench"), "host": "peakmark-guest"}
    for name, order in orders.items():
        campaign = folder / name
        (campaign / "machine").mkdir(parents=True)
        (campaign / "machine/peakmark-guest.json").write_text(json.dumps(facts))
        order |= {"folder": str(campaign), "kernels": str(KERNELS), "python": sys.executable}
    how: dict[str, Any] = {"modules": MODULES, "path": [HERE], "shown": [KERNELS]}
    found = guest.call(folder, "guest_tasks:everything", orders, limit_s=limit_s, **how)
    return {name: {**one, "folder": folder / name} for name, one in found.items()}


def boot_for_all(folder: Path) -> Seen:
    """The guest that all tests share, which has done everything by now."""
    planned = plan.make(LINE)
    lines = []
    for cell in planned.cells:
        netem = BAD_LINE if cell.workload in ("TCP", "UDP") else LATE_LINE
        lines.append({"cell": cell.to_json(), "netem": netem})
    more = [
        {"cell": network_cell(workload="UDP", seconds=0.3).to_json(), "netem": REPEATING},
        {"cell": EVERY_BYTE.to_json(), "netem": BAD_LINE.replace("2%", "5%")},
    ]
    # Too much for the quota, by each program that writes; then what fits; and one whose record
    # finds no room.
    tools = (("diskbench", "WS"), ("fio", "WS"), ("iozone", "ALL"))
    writing = [disk_cell(tool, workload, size=8 * MIB) for tool, workload in tools]
    quota = []
    for one in (*writing, disk_cell(workload="RS")):
        options = {**one.options, "scratch": "/tmp/disk/scratch"}
        quota.append({**one.to_json(), "options": options})
    ours = [{"cell": repeated(cell, 1), "word": "--seconds"} for cell in OURS.values()]
    orders: dict[str, dict[str, Any]] = {
        "line": {"cells": lines},
        "line-more": {"cells": more},
        "quota": {"cells": [*quota, cpu_cell().to_json()]},
        "clock": {"cells": [*ours, *twice(ASKING)]},
    }
    found = boot(folder, orders, GUEST_S)
    (folder / "line/plan.json").write_text(json.dumps(planned.to_json()))

    def look(name: str) -> dict[str, Any]:
        one: dict[str, Any] = found[name]
        assert "error" not in one, one["error"]
        return one

    return look


def record_of(task: dict[str, Any], cell: Cell | str) -> dict[str, Any]:
    name = cell if isinstance(cell, str) else cell.id
    return records.read(task["folder"] / "cells" / f"{name}.json")


def measured_or_skip(record: dict[str, Any]) -> dict[str, Any]:
    if record["status"] == "unavailable":
        pytest.skip(record["reason"])
    return record


def assert_nothing_left(task: dict[str, Any]) -> None:
    assert task["left"] == {"processes": [], "files": [], "ports": [], "namespaces": []}
