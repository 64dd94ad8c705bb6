"""Checks of disks: did the bytes reach the device, and was it held back."""

import copy
from dataclasses import replace
from typing import Any

import pytest
from tests.unit.judging.checked import VIRTUAL, VM, codes, row

from peakmark.judging.checks import check_row
from peakmark.messages import Severity, message


def disk(details: dict[str, Any], facts: dict[str, Any] = VM) -> list[str]:
    return codes(
        row(details=details, facts=facts, subsystem="disk", instrument="diskbench", workload="RR")
    )


def test_a_disk_figure_that_never_reached_the_device() -> None:
    assert (
        disk({"device_bytes": 10_000, "work": 10_000, "direct": True, "filesystem": "ext4"}) == []
    )
    assert disk({"device_bytes": 100, "work": 10_000, "direct": True, "filesystem": "ext4"}) == [
        "cached"
    ]
    assert disk({"device_bytes": 0, "work": 10_000, "direct": False, "filesystem": "ext4"}) == [
        "cached"
    ]
    assert disk({"device_bytes": None, "work": 10_000, "direct": False, "filesystem": "zfs"}) == [
        "buffered"
    ]
    assert disk({"device_bytes": None, "work": 10_000, "direct": True, "filesystem": "nfs"}) == []
    assert disk({"device_bytes": None, "work": 10_000, "direct": True, "filesystem": "tmpfs"}) == [
        "ram-file-system"
    ]


def test_a_reference_that_tells_no_file_system_is_judged_by_the_facts() -> None:
    facts = copy.deepcopy(VM)
    facts["storage"] |= {"filesystem": "tmpfs", "interface": "ram"}
    assert disk({}, facts) == ["ram-file-system"]


@pytest.mark.parametrize(
    ("limits", "metric", "value", "marked"),
    [
        ({"read_bps": 20_000_000}, "throughput", 19e6, True),
        ({"read_bps": 20_000_000}, "throughput", 10e6, False),
        ({"write_bps": 20_000_000}, "throughput", 19e6, False),
        ({"read_iops": 500}, "iops", 495.0, True),
        ({"read_bps": 4096 * 500}, "iops", 495.0, True),
        ({"read_iops": 500}, "latency", 2 / 490, True),
        ({"read_iops": 500}, "latency", 2 / 100, False),
        (None, "throughput", 19e6, False),
    ],
)
def test_a_disk_that_a_cgroup_holds_back(
    limits: dict[str, int] | None, metric: str, value: float, marked: bool
) -> None:
    identity = {
        "subsystem": "disk",
        "instrument": "diskbench",
        "workload": "RR",
        "metric": metric,
        "block": 4096,
    }
    values = [value * factor for factor in (1, 1.001, 0.999, 1.002, 0.998, 1)]
    found = check_row(row(values, {}, {"io_limits": limits}, concurrency=2, **identity))
    assert [note.code for note in found] == (["io-limit"] if marked else [])
    if marked:
        assert "cgroup" in found[0].text and "io.max" in found[0].text


@pytest.mark.parametrize(
    ("bps", "text"), [(401_000_000, "at most 401 MB/s"), (2_500_000_000, "at most 2500 MB/s")]
)
def test_a_limit_of_a_disk_is_in_the_unit_of_its_tables(bps: int, text: str) -> None:
    identity = {
        "subsystem": "disk",
        "instrument": "diskbench",
        "workload": "RS",
        "metric": "throughput",
        "block": 1 << 20,
    }
    values = [bps * factor for factor in (1, 1.001, 0.999, 1.002, 0.998, 1)]
    (note,) = check_row(row(values, {}, {"io_limits": {"read_bps": bps}}, **identity))
    assert text in note.text


@pytest.mark.parametrize(
    ("flush", "work", "facts", "found"),
    [
        (1e-4, 8e8, VIRTUAL, [("flush", Severity.UNSURE)]),
        (1e-4, 8e8, {"cpu": {}}, [("flush", Severity.NOTE)]),
        (0.02, 8e8, VIRTUAL, []),
        (1e-4, 1e6, VIRTUAL, []),
    ],
)
def test_a_flush_that_takes_no_time_is_remarked(
    flush: float, work: float, facts: dict[str, Any], found: list[tuple[str, Severity]]
) -> None:
    details = {"flush_seconds": flush, "work": work, "seconds": 2.0}
    measured = row(
        details=details,
        subsystem="disk",
        instrument="diskbench",
        workload="WS",
        unit="B/s",
        facts=facts,
    )
    notes = check_row(replace(measured, metric="throughput"))
    assert [(note.code, note.severity) for note in notes] == found
    for note in notes:
        assert dict(note.values)["where"] in (message("hosts-memory"), message("safe-cache"))
