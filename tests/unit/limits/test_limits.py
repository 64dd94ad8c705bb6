"""Limits: known machines give known numbers, unknown ones give a reason and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.limits.machines import VM, cpu, machine, memory

from peakmark import limits
from peakmark.messages import message
from peakmark.units import quantity


def test_no_facts_at_all() -> None:
    for subsystem, workload, metric in (
        ("cpu", "DP", "rate"),
        ("memory", "RWS", "throughput"),
        ("disk", "RS", "iops"),
    ):
        limit = limits.for_row(subsystem, workload, "block", 1024, 1, metric, {})
        assert (limit.value, limit.kind) == (None, "unknown")
        assert limit.reason


def disk(metric: str, facts: dict[str, Any], **more: Any) -> limits.Limit:
    return limits.for_row("disk", "RR", "psync", 4096, 1, metric, facts, **more)


def test_disk_by_datasheet_else_by_interface_else_unknown() -> None:
    nvme = machine(
        storage={"interface": "nvme", "interface_limit": 7.877e9, "interface_limit_formula": "PCIe"}
    )
    assert disk("throughput", nvme).value == 7.877e9
    assert disk("throughput", nvme).remarks == (message("limit-of-interface"),)
    assert disk("iops", nvme).value is None
    site = {"disk": {"throughput": {"RR": 3e9}, "iops": {"RR": 5e5}, "latency": {"RR": 8e-5}}}
    assert [
        disk(metric, nvme, site=site).value for metric in ("throughput", "iops", "latency")
    ] == [3e9, 5e5, 8e-5]
    assert "virtual disk" in (disk("throughput", VM).reason or "")
    ram = machine(storage={"interface": "ram", "filesystem": "tmpfs"})
    assert "in memory" in (disk("throughput", ram).reason or "")
    assert "in memory" in (disk("iops", ram).reason or "")


def test_efficiency_is_one_at_the_limit() -> None:
    rate = cpu("DP", 1, VM, clock_hz=3e9)
    assert rate.value is not None
    assert limits.efficiency(rate.value, rate) == 1
    assert limits.efficiency(rate.value / 4, rate) == 0.25
    time = memory("LAT", "", 1024, 1, VM, clock_hz=4e9)
    assert limits.efficiency(4e-9, time) == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (588.8e9, "op/s", "588.8 GigaOPS"),
        (1.543e12, "op/s", "1543 GigaOPS"),
        (51.2e9, "B/s", "51.2 GB/s"),
        (941e6, "bit/s", "941 Mb/s"),
        (14.06e-9, "s", "14.06 ns"),
        (5782.4991, "1/s", "5782 IOPS"),
        (123456.0, "1/s", "123456 IOPS"),
        (0.0, "B/s", "0 B/s"),
    ],
)
def test_quantities_in_words(value: float, unit: str, text: str) -> None:
    assert quantity(value, unit) == text
