"""Where a cell's threads run, and what its record says of the CPUs that it was given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from peakmark.cell import Cell
from peakmark.machine.host import Host
from peakmark.machine.topology import CpuLocation
from peakmark.run import measure, pinning
from peakmark.tools import REGISTRY

LOCATIONS = {cpu: CpuLocation(cpu, cpu, cpu // 4, cpu // 4, (cpu,), 0) for cpu in range(8)}
"""Two sockets of four cores; the operating system counts one after the other."""
LIMITS: dict[str, Any] = {
    "cpus_allowed": list(range(8)), "physical_cores_allowed": 8, "cpu_quota": None, "memory_bytes": 1 << 30,
    "memory_limited_by": None, "slurm": None,
}  # fmt: skip


@pytest.mark.parametrize(
    ("options", "cpus"),
    [({}, (0, 1, 2, 3, 4, 5, 6, 7)), ({"placement": "spread"}, (0, 4, 1, 5, 2, 6, 3, 7))],
)
def test_a_program_is_given_cpus_in_the_order_of_the_placement(
    options: dict[str, str], cpus: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "_cpu_locations", lambda _: LOCATIONS)
    monkeypatch.setattr(measure.machine, "cached", lambda *_: {"limits": dict(LIMITS)})
    point = ("RS", "pool", 1 << 20, 2, "any", 0)
    cell = Cell("memory", "rambench", *point, {"scratch": str(tmp_path), **options})
    request = measure.Request(cell, tmp_path / "record.json", tmp_path, tmp_path)
    with measure.workspace(request, REGISTRY["rambench"]) as space:
        assert space.cpus == cpus


def test_a_record_tells_the_cores_that_the_job_was_given_and_those_of_the_node() -> None:
    limits = {**LIMITS, "cpus_allowed": [5], "physical_cores_allowed": 1}
    found = pinning.allowed(Host(), limits, LOCATIONS)
    assert (found["cpus"], found["cores"], found["node_cores"]) == ([5], 1, 8)
