"""Lines that delay, lose, repeat and reorder packets, in a guest's kernel: it has counted what the
programs should have.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from bench import KERNELS, network_cell
from benchmarks import guest
from benchmarks.method.faults import FAULTS
from guest_cells import (
    EVERY_BYTE,
    FEW,
    GUEST_S,
    RTT_S,
    Seen,
    assert_nothing_left,
    boot,
    measured_or_skip,
    record_of,
)

from peakmark import machine
from peakmark.analysis import analysis
from peakmark.storage import records
from peakmark.storage.results import Results
from peakmark.tables import tables


def on_the_line(
    seen: Seen, instrument: str, workload: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the guest saw of a cell on the bad line, and its record."""
    task = seen("line")
    one = next(one for one in task["seen"] if f"/{instrument}/{workload}_" in one["cell"])
    assert one["failed"] is None, one["failed"]
    return one, measured_or_skip(record_of(task, one["cell"]))


@pytest.mark.parametrize("workload", ["LAT-TCP", "LAT-UDP"])
@pytest.mark.parametrize("instrument", ["netbench", "qperf"])
def test_the_delay_of_the_line_is_in_every_round_trip(
    seen: Seen, instrument: str, workload: str
) -> None:
    _, record = on_the_line(seen, instrument, "ALL" if instrument == "qperf" else workload)
    one = next(one for one in record["measurements"] if one["workload"] == workload)
    assert one["value"] > RTT_S
    assert one["details"].get("min", one["value"]) > RTT_S


def dropped(one: dict[str, Any]) -> int:
    """Packets lost by netem, at the link's other end, and at the receiver's full buffer."""
    assert one["dropped"] > 0  # the line has lost none
    return int(one["dropped"] + one["refused"] + one["no_room"])


def test_lost_datagrams_are_those_that_the_kernel_dropped(seen: Seen) -> None:
    """But for packets of the control connection, and datagrams that were sent outside the measured
    time.
    """
    one, record = on_the_line(seen, "netbench", "UDP")
    details, value = record["measurements"][0]["details"], record["measurements"][0]["value"]
    assert details["sent"] == details["received"] + details["lost"] <= one["sent"]
    outside = one["sent"] - details["sent"]
    assert 0 <= dropped(one) - details["lost"] <= outside + one["control"] + FEW, one
    assert value == pytest.approx(8 * 1024 * details["received"] / details["seconds"], rel=0.001), (
        "what arrived"
    )


def test_iperf3s_loss_is_what_the_kernel_did_not_deliver(seen: Seen) -> None:
    """What waits unread at the end is no kernel's loss but iperf3's; its own count leaves out what
    is lost at the end.
    """
    one, record = on_the_line(seen, "iperf3", "UDP")
    details, value = record["measurements"][0]["details"], record["measurements"][0]["value"]
    received = value * details["seconds"] / 8 / 1024
    assert received == pytest.approx(one["arrived"], rel=0.01, abs=FEW), one
    lost = details["loss"] * details["packets"]
    assert lost == pytest.approx(one["sent"] - one["arrived"], rel=0.01, abs=FEW), one
    assert dropped(one) - one["control"] - FEW <= lost
    assert details["lost_reported"] <= dropped(one)


def test_repeated_and_reordered_datagrams_are_not_counted_twice(seen: Seen) -> None:
    task = seen("line-more")
    one = task["seen"][0]
    assert one["failed"] is None, one["failed"]
    details = record_of(task, one["cell"])["measurements"][0]["details"]
    assert details["duplicated"] > 0 and details["reordered"] > 0
    assert details["received"] + details["lost"] == details["sent"]
    outside = one["sent"] - details["sent"]
    assert 0 <= one["arrived"] - details["received"] - details["duplicated"] <= 2 * outside + FEW, (
        one
    )


@pytest.mark.parametrize("instrument", ["netbench", "iperf3"])
def test_no_more_bytes_are_counted_over_tcp_than_have_passed(seen: Seen, instrument: str) -> None:
    one, record = on_the_line(seen, instrument, "TCP")
    (measured,) = record["measurements"]
    received = measured["value"] * measured["details"]["seconds"] / 8
    assert 0 < received <= one["passed_bytes"]


def test_every_byte_arrives_over_a_line_that_loses_some(seen: Seen) -> None:
    task = seen("line-more")
    one = task["seen"][1]
    assert one["failed"] is None, one["failed"]
    assert one["dropped"] > 0  # the line has lost none
    details = record_of(task, EVERY_BYTE)["measurements"][0]["details"]
    assert (details["work"], details["lost"]) == (2_000_000, 0)


def test_rows_of_a_shaped_line_are_marked_and_the_table_holds_the_records_numbers(
    seen: Seen,
) -> None:
    task = seen("line")
    results = Results.read(task["folder"])
    found = [row for table in analysis.build_rows(results).values() for row in table]
    assert {row.key.workload for row in found} >= {"TCP", "UDP", "LAT-TCP", "LAT-UDP"}
    for row in found:
        notes = " ".join(row.said(row.remarks))
        shape = "netem delay 2 ms" + (" loss 2 %" if row.key.workload in ("TCP", "UDP") else "")
        assert f"({shape})" in notes, row
        assert ("messages were lost" in notes) == (row.key.workload == "UDP")
    tables.build(task["folder"])
    assert_nothing_left(task)


@pytest.mark.trouble
@pytest.mark.parametrize("netem", ["loss 20%", "delay 40ms 20ms 25%", "corrupt 5%", "loss 100%"])
def test_worse_lines_give_right_numbers_or_none(tmp_path: Path, kernels: None, netem: str) -> None:
    names = ["UDP"] if netem == "loss 100%" else ["TCP", "UDP", "LAT-TCP", "LAT-UDP"]
    cells = [network_cell(workload=one, seconds=0.4) for one in names]
    specs = [{"cell": cell.to_json(), "netem": f"{netem} limit 100000"} for cell in cells]
    task = boot(tmp_path, {"line": {"cells": specs}}, GUEST_S)["line"]
    assert "error" not in task, task["error"]
    for one in task["seen"]:
        path = task["folder"] / "cells" / f"{one['cell']}.json"
        assert path.exists() == (one["failed"] is None)
        assert one["failed"] is not None or netem != "loss 100%"
        if one["failed"] is not None:
            assert "Traceback" not in one["failed"]
            continue
        (measured,) = records.read(path)["measurements"]
        details = measured["details"]
        if measured["workload"] == "UDP":
            assert details["sent"] == details["received"] + details["lost"]
        if measured["metric"] == "throughput":
            assert measured["value"] * details["seconds"] / 8 <= one["passed_bytes"]
        elif "40ms" in netem:
            assert details["p50"] > 0.02
    assert_nothing_left(task)


@pytest.mark.trouble
@pytest.mark.parametrize("name", ["link: 100 Mbit/s by tc tbf", "link: 2 ms by tc netem"])
def test_the_method_finds_and_names_a_shaped_line(tmp_path: Path, kernels: None, name: str) -> None:
    """The pair of make bench-method that is measured in a guest where the kernel here cannot shape."""
    if reason := guest.why_not():
        pytest.skip(reason)
    fault = next(one for one in FAULTS if one.name == name)
    argument = {"fault": name, "number": 0, "repetitions": 6, "kernels": str(KERNELS)}
    argument["facts"] = machine.collect(tmp_path)
    found = guest.call(
        tmp_path, "benchmarks.method.verdicts:judge_in_a_guest", argument,
        limit_s=GUEST_S, modules=fault.modules, shown=[KERNELS],
    )  # fmt: skip
    assert found["possible"], found["note"]
    assert found["found"] and found["named"] and not found["alarm"], found
    assert "user-mode kernel" in found["guest"]
