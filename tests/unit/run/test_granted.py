"""How much memory a job may use where Slurm has granted it, and nothing holds it to that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from peakmark.cell import Cell
from peakmark.run import job, pinning
from peakmark.storage.planfile import Part

TOTAL = 64 << 30
CELL = Cell("cpu", "cpubench", "DP", "", None, 1, "any", 0)


def limits(
    memory: int | None = TOTAL, by: str | None = None, **slurm: int | None
) -> dict[str, Any]:
    said: dict[str, int | None] = {"cpus_on_node": 4, "cpus_per_task": None}
    said |= {"memory_per_node_bytes": None, "memory_per_cpu_bytes": None, **slurm}
    return {"memory_bytes": memory, "memory_limited_by": by, "slurm": said}


@pytest.mark.parametrize(
    ("slurm", "node", "memory"),
    [
        ({"memory_per_node_bytes": 8 << 30}, 60 << 30, 8 << 30),  # --mem=8G
        ({"memory_per_cpu_bytes": 2 << 30}, 60 << 30, 8 << 30),  # --mem-per-cpu=2G, four CPUs
        ({}, 60 << 30, 60 << 30),  # --mem=0: all that Slurm has of the node
    ],
)
def test_what_slurm_grants_is_the_limit(
    slurm: dict[str, int | None], node: int, memory: int
) -> None:
    found = pinning.granted(limits(**slurm), node)
    assert (found["memory_bytes"], found["memory_limited_by"]) == (memory, "slurm")


def test_a_control_group_that_grants_less_stays_the_limit() -> None:
    for given in (limits(4 << 30, "cgroup", memory_per_node_bytes=8 << 30), limits(), limits(None)):
        assert pinning.granted(given, None) == given
    outside = {**limits(), "slurm": None}
    assert pinning.granted(outside, 1 << 30) == outside


def test_the_plan_tells_what_slurm_has_of_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = [
        {"cpus": 1, "memory": 1200, "nodes": ["n1"]},
        {"cpus": 2, "memory": 6000, "nodes": ["n2", "n3"]},
    ]
    part = Part(Path("results/a"), {"config": {}, "cluster": {"kinds": kinds}}, (CELL,))
    monkeypatch.setenv("SLURMD_NODENAME", "n3")
    assert job.request(part, CELL, Path("build")).node_bytes == 6000 << 20
    monkeypatch.setenv("SLURMD_NODENAME", "elsewhere")
    assert job.request(part, CELL, Path("build")).node_bytes is None
    here = Part(Path("results/a"), {"config": {}, "cluster": None}, (CELL,))
    assert job.request(here, CELL, Path("build")).node_bytes is None
