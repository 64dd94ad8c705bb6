"""Write a campaign that says of this machine what an idle node of its class reaches.

The machine may be busy: rates count the CPU time that the threads had.
"""

from __future__ import annotations

import csv
import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from peakmark.check.expected import read_node
from peakmark.machine.host import Host

COLUMNS = (
    *("node", "place", "subsystem", "instrument", "workload", "variant", "block_bytes"),
    *("concurrency", "concurrency_word", "cache_level", "unit", "n", "low", "high"),
    *("is_own", "is_slow", "severity"),
)
"""Columns of ``rows.csv`` that the check reads."""
NODE_COLUMNS = ("node", "class", "cpu", "memory", "network", "kernel", "clock")
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
    def place(self) -> str:
        """Return the name of the row's point without the node."""
        block = "" if self.block is None else self.block
        return f"{self.table}/{self.workload}/{self.variant}/{block}/{self.concurrency}/"

    @property
    def argv(self) -> list[str]:
        """Return the command as a record holds it."""
        cpus = ",".join(map(str, range(self.concurrency)))
        words = (
            f"--workload {self.workload} --threads {self.concurrency} --cpus {cpus} {self.words}"
        )
        return [
            f"elsewhere/{self.instrument}",
            *words.split(),
            "--warmup",
            "0.05",
            "--seconds",
            "9",
        ]


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
        argv = [str(kernels / row.instrument), *row.argv[1:-1], "0.1"]
        done = subprocess.run(argv, capture_output=True, text=True, check=True)
        printed = json.loads(done.stdout)
        values.append(printed["value"] / printed["cpu_share"])
    return median(values)


def write(
    folder: Path, values: Mapping[MadeRow, float], nodes: Sequence[str] = ("node1",), **facts: str
) -> Path:
    """Write ``rows/`` and ``cells/`` of a campaign in which all nodes are equal to this machine.

    Args:
        folder: folder of the campaign.
        values: row -> value of the class.
        nodes: names of the class's nodes.
        facts: columns of ``nodes.csv`` that differ from this machine's.
    """
    equipment = read_node(Host()).equipment._asdict() | facts
    lines = [{"node": node, "class": "", **equipment} for node in nodes]
    _write_csv(folder / "rows" / "nodes.csv", NODE_COLUMNS, lines)
    lines = [_line(row, value, node) for row, value in values.items() for node in nodes]
    _write_csv(folder / "rows" / "rows.csv", COLUMNS, lines)
    for row in values:
        _write_record(folder, row, nodes[0])
    return folder


def _line(row: MadeRow, value: float, node: str) -> dict[str, Any]:
    known = {
        name: getattr(row, name) for name in ("subsystem", "instrument", "workload", "variant")
    }
    return {
        **known,
        "node": node,
        "place": row.place,
        "block_bytes": row.block,
        "concurrency": row.concurrency,
        "concurrency_word": "",
        "cache_level": row.cache_level,
        "unit": row.unit,
        "n": 6,
        "low": value * (1 - SPREAD),
        "high": value * (1 + SPREAD),
        "is_own": True,
        "is_slow": False,
        "severity": "",
    }


def _write_csv(path: Path, columns: Sequence[str], lines: Sequence[Mapping[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)


def _write_record(folder: Path, row: MadeRow, node: str) -> None:
    workload = "-".join(filter(None, [row.workload, row.variant]))
    place = (
        folder
        / "cells"
        / row.subsystem
        / row.instrument
        / f"{workload}_any_x{row.concurrency}"
        / node
    )
    place.mkdir(parents=True)
    record = {
        "status": "ok",
        "measurements": [{"block": row.block, "details": {"seconds": 9.0}}],
        "context": {"commands": [{"argv": row.argv, "seconds": 9.2}]},
    }
    (place / "0.json").write_text(json.dumps(record), encoding="utf-8")
