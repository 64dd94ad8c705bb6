"""Checks of disks: did the bytes reach the device, and was it held back."""

import copy
from typing import Any

import pytest
from tests.unit.analysis.checked import VIRTUAL, VM, codes, row

from peakmark.analysis.checks import check_row
from peakmark.messages import Severity, message


def disk(details: dict[str, Any], facts: dict[str, Any] = VM) -> list[str]:
    return codes(
        row(details=details, facts=facts, subsystem="disk", instrument="diskbench", workload="RR")
    )


@pytest.mark.parametrize(
    ("moved", "direct", "filesystem", "found"),
    [
        (10_000, True, "ext4", []),
        (100, True, "ext4", ["cached"]),
        (0, False, "ext4", ["cached"]),
        (None, False, "zfs", ["buffered"]),
        (None, True, "nfs", []),
        (None, True, "tmpfs", ["ram-file-system"]),
    ],
)
def test_a_disk_figure_that_never_reached_the_device(
    moved: int | None, direct: bool, filesystem: str, found: list[str]
) -> None:
    details = {"device_bytes": moved, "work": 10_000, "direct": direct, "filesystem": filesystem}
    assert disk(details) == found


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
    identity = {"subsystem": "disk", "instrument": "diskbench", "workload": "RR", "block": 4096}
    values = [value * factor for factor in (1, 1.001, 0.999, 1.002, 0.998, 1)]
    context = {"io_limits": limits}
    found = check_row(row(values, {}, context, metric=metric, concurrency=2, **identity))
    assert [note.code for note in found] == (["io-limit"] if marked else [])
    if marked:
        assert "cgroup" in found[0].text and "io.max" in found[0].text


@pytest.mark.parametrize(("bps", "text"), [(401e6, "401 MB/s"), (2.5e9, "2500 MB/s")])
def test_a_limit_of_a_disk_is_in_the_unit_of_its_tables(bps: float, text: str) -> None:
    identity = {"subsystem": "disk", "instrument": "diskbench", "workload": "RS", "block": 1 << 20}
    values = [bps * factor for factor in (1, 1.001, 0.999, 1.002, 0.998, 1)]
    context = {"io_limits": {"read_bps": int(bps)}}
    (note,) = check_row(row(values, {}, context, metric="throughput", **identity))
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
    identity = {"subsystem": "disk", "instrument": "diskbench", "workload": "WS", "unit": "B/s"}
    notes = check_row(row(details=details, facts=facts, metric="throughput", **identity))
    assert [(note.code, note.severity) for note in notes] == found
    for note in notes:
        assert dict(note.values)["where"] in (message("hosts-memory"), message("safe-cache"))
