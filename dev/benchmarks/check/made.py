"""Write a campaign that says of this machine what an idle node of its class reaches.

The machine may be busy: rates count the CPU time that the threads had.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from peakmark.check.command import read_node
from peakmark.formatting import format_size
from peakmark.machine.host import Host
from peakmark.rows import CHECK, FOLDER, expectations

SPREAD = 0.01
"""Half the width of the made intervals, as a share: that of an idle node."""


@dataclass(frozen=True)
class MadeRow:
    """A row of the made campaign, and the arguments of its kernel without time and CPUs."""

    table: str
    subsystem: str
    instrument: str
    workload: str
    concurrency: int
    words: str = ""
    variant: str = ""
    block: int | None = None
    cache_level: str = ""
    unit: str = "op/s"

    @property
    def argv(self) -> list[str]:
        """Return the command without the amount of work."""
        cpus = ",".join(map(str, range(self.concurrency)))
        words = (
            f"--workload {self.workload} --threads {self.concurrency} --cpus {cpus} {self.words}"
        )
        return [self.instrument, *words.split(), "--warmup", "0.05"]


def dp(threads: int) -> MadeRow:
    """Return the row of double precision with so many threads."""
    return MadeRow("cpu", "cpu", "cpubench", "DP", threads)


def headlines(threads: int) -> list[MadeRow]:
    """Return a row for each headline of the check."""
    copy = {
        "table": "memory_throughput",
        "subsystem": "memory",
        "instrument": "rambench",
        "unit": "B/s",
    }
    return [
        dp(threads),
        dp(1),
        MadeRow("cpu", "cpu", "cpubench", "QP", threads),
        MadeRow(
            **copy, workload="RWS", concurrency=1, words="--block 1024 --pool block", variant="block",
            block=1024, cache_level="L1",
        ),
        MadeRow(
            **copy, workload="RWS", concurrency=threads, words="--block 1048576 --pool 268435456",
            variant="pool", block=1 << 20, cache_level="DRAM",
        ),
    ]  # fmt: skip


def healthy_value(row: MadeRow, kernels: Path, runs: int = 5) -> float:
    """Return the median rate of a row for the CPU time that its threads had."""
    values: list[float] = []
    for _ in range(runs):
        argv = [str(kernels / row.instrument), *row.argv[1:], "--seconds", "0.1"]
        done = subprocess.run(argv, capture_output=True, text=True, check=True)
        printed = json.loads(done.stdout)
        values.append(printed["value"] / printed["cpu_share"])
    return median(values)


def write(folder: Path, values: Mapping[MadeRow, float], **facts: str) -> Path:
    """Write ``rows/check.json`` of a campaign whose only class has the equipment of this machine.

    Args:
        folder: folder of the campaign.
        values: row -> value of the class.
        facts: properties of the equipment that differ from this machine's.
    """
    equipment = read_node(Host()).equipment._asdict() | facts
    rows = [expected(row, value) for row, value in values.items()]
    target = folder / FOLDER / CHECK
    target.parent.mkdir(parents=True)
    target.write_text(json.dumps([{"equipment": equipment, "rows": rows}]), encoding="utf-8")
    return folder


def expected(row: MadeRow, value: float) -> dict[str, Any]:
    """Return what ``check.json`` holds of a row that idle nodes measure with this value."""
    highest = value * (1 + SPREAD)
    words = [row.table, row.workload, row.variant, format_size(row.block) if row.block else ""]
    return {
        "name": " ".join([*filter(None, words), f"x{row.concurrency}"]),
        "threads": row.concurrency,
        "unit": row.unit,
        "highest": highest,
        "bound": expectations.bound(value * (1 - SPREAD), highest, is_time=row.unit == "s"),
        "is_cpu": row.subsystem == "cpu",
        "is_private": row.subsystem == "cpu" or row.cache_level in expectations.PRIVATE_CACHES,
        "argv": row.argv,
        "cpus": list(range(row.concurrency)),
        "overhead_s": 0.2,
        "clock_limit_hz": None,
        "is_headline": True,
    }
