"""What this machine's kernel lacks or must not suffer, in a kernel of its own: lossy lines, quotas, a clock set back.

One guest is booted for all tests here; see benchmarks/guest. Programs start slowly in it and share one CPU, so no rate
of it means anything: each number is held against what the guest's kernel itself has counted.
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
from benchmarks.method.faults import FAULTS

from peakmark import machine
from peakmark.cell import Cell
from peakmark.judging import rows
from peakmark.planning import plan
from peakmark.storage import records
from peakmark.storage.results import Results
from peakmark.tables import tables

GUEST_S = 900.0
"""Only a guest that hangs takes so long: all its work is for one emulated CPU, and half a minute on an idle machine."""
HERE = Path(__file__).resolve().parent
MODULES = ("veth", "sch_netem", "loop", "quota_v2", "ipv6")  # qperf's server wants IPv6
BAD_LINE = "delay 2ms loss 2% limit 100000"
LATE_LINE = (
    "delay 2ms"  # a lost datagram would stop qperf, and a round trip that waits for one is no matter of the delay
)
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
EVERY_BYTE = Cell("network", "netbench", "TCP", "", 1000, 1, "any", 0, {"total": 2_000_000, "warmup": 0.0})
# What is measured while the clock is set back; the word tells the measuring program from a question for its version.
OURS = {
    "cpubench": Cell("cpu", "cpubench", "SP", "", None, 1, "any", 1, {"seconds": 0.4, "warmup": 0.0}),
    "rambench": Cell("memory", "rambench", "RWS", "block", 4096, 1, "any", 1, {"seconds": 0.4, "warmup": 0.0}),
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
    "hpl": (Cell("cpu", "hpl", "DP", "", None, 1, "any", 0, {"warmup": 0.0, "budget_s": 3, "nb": 64}), "hpcc"),
    "fio": (disk_cell("fio", seconds=1), "--name"),
    "iperf3": (network_cell("iperf3", seconds=1), "--client"),
    "qperf": (network_cell("qperf", "ALL", seconds=1), "--msg_size"),
}


def repeated(cell: Cell, number: int) -> dict[str, Any]:
    return {**cell.to_json(), "repetition": number}


def boot(folder: Path, orders: dict[str, dict[str, Any]], limit_s: float) -> dict[str, Any]:
    """Hand the tasks to a guest; each has a campaign's folder of its name with this machine's facts."""
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
    found = guest.call(
        folder, "guest_tasks:everything", orders, limit_s=limit_s, modules=MODULES, path=[HERE], shown=[KERNELS]
    )
    return {name: {**one, "folder": folder / name} for name, one in found.items()}


@pytest.fixture(scope="session")
def seen(tmp_path_factory: pytest.TempPathFactory, kernels: None) -> Callable[[str], dict[str, Any]]:
    """Name of a task -> what it saw in the guest."""
    planned = plan.make(LINE)
    lines = [
        {"cell": cell.to_json(), "netem": BAD_LINE if cell.workload in ("TCP", "UDP") else LATE_LINE}
        for cell in planned.cells
    ]
    more = [
        {"cell": network_cell(workload="UDP", seconds=0.3).to_json(), "netem": REPEATING},
        {"cell": EVERY_BYTE.to_json(), "netem": BAD_LINE.replace("2%", "5%")},
    ]
    # Too much for the quota, by each program that writes; then what fits; and one whose record finds no room.
    large = [disk_cell(size=8 * MIB), disk_cell("fio", size=8 * MIB), disk_cell("iozone", "ALL", size=8 * MIB)]
    quota = [
        {**one.to_json(), "options": {**one.options, "scratch": "/tmp/disk/scratch"}}
        for one in (*large, disk_cell(workload="RS"))
    ]
    orders = {
        "line": {"cells": lines},
        "line-more": {"cells": more},
        "quota": {"cells": [*quota, cpu_cell().to_json()]},
        "clock": {
            "cells": [{"cell": cell.to_json() | {"repetition": 1}, "word": "--seconds"} for cell in OURS.values()]
            + [{"cell": repeated(cell, number), "word": word} for cell, word in ASKING.values() for number in (0, 1)]
        },
    }
    folder = tmp_path_factory.mktemp("guest")
    found = boot(folder, orders, GUEST_S)
    (folder / "line/plan.json").write_text(json.dumps(planned.to_json()))

    def look(name: str) -> dict[str, Any]:
        one: dict[str, Any] = found[name]
        assert "error" not in one, one["error"]
        return one

    return look


Seen = Callable[[str], dict[str, Any]]


def record_of(task: dict[str, Any], cell: Cell | str) -> dict[str, Any]:
    name = cell if isinstance(cell, str) else cell.id
    return records.read(task["folder"] / "cells" / f"{name}.json")


def measured_or_skip(record: dict[str, Any]) -> dict[str, Any]:
    if record["status"] == "unavailable":
        pytest.skip(record["reason"])
    return record


def assert_nothing_left(task: dict[str, Any]) -> None:
    assert task["left"] == {"processes": [], "files": [], "ports": [], "namespaces": []}


# -- the line


def on_the_line(seen: Seen, instrument: str, workload: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the guest saw of a cell on the bad line, and its record."""
    task = seen("line")
    one = next(one for one in task["seen"] if f"/{instrument}/{workload}_" in one["cell"])
    assert one["failed"] is None, one["failed"]
    return one, measured_or_skip(record_of(task, one["cell"]))


@pytest.mark.parametrize("workload", ["LAT-TCP", "LAT-UDP"])
@pytest.mark.parametrize("instrument", ["netbench", "qperf"])
def test_the_delay_of_the_line_is_in_every_round_trip(seen: Seen, instrument: str, workload: str) -> None:
    _, record = on_the_line(seen, instrument, "ALL" if instrument == "qperf" else workload)
    one = next(one for one in record["measurements"] if one["workload"] == workload)
    assert one["value"] > RTT_S
    assert one["details"].get("min", one["value"]) > RTT_S


def dropped(one: dict[str, Any]) -> int:
    """Packets lost by netem, at the link's other end, and at the receiver's full buffer."""
    assert one["dropped"] > 0, "the line has lost none"
    return int(one["dropped"] + one["refused"] + one["no_room"])


def test_lost_datagrams_are_those_that_the_kernel_dropped(seen: Seen) -> None:
    """But for packets of the control connection, and datagrams that were sent outside the measured time."""
    one, record = on_the_line(seen, "netbench", "UDP")
    details, value = record["measurements"][0]["details"], record["measurements"][0]["value"]
    assert details["sent"] == details["received"] + details["lost"] <= one["sent"]
    outside = one["sent"] - details["sent"]
    assert 0 <= dropped(one) - details["lost"] <= outside + one["control"] + FEW, one
    assert value == pytest.approx(8 * 1024 * details["received"] / details["seconds"], rel=0.001), "what arrived"


def test_iperf3s_loss_is_what_the_kernel_did_not_deliver(seen: Seen) -> None:
    """What waits unread at the end is no kernel's loss but iperf3's; its own count leaves out what is lost at the end."""
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
    assert 0 <= one["arrived"] - details["received"] - details["duplicated"] <= 2 * outside + FEW, one


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
    assert one["dropped"] > 0, "the line has lost none"
    details = record_of(task, EVERY_BYTE)["measurements"][0]["details"]
    assert (details["work"], details["lost"]) == (2_000_000, 0)


def test_rows_of_a_shaped_line_are_marked_and_the_table_holds_the_records_numbers(seen: Seen) -> None:
    task = seen("line")
    results = Results.read(task["folder"])
    found = [row for table in rows.build(results).values() for row in table]
    assert {row.key.workload for row in found} >= {"TCP", "UDP", "LAT-TCP", "LAT-UDP"}
    for row in found:
        notes = " ".join(row.said(row.remarks))
        shape = "netem delay 2 ms" + (" loss 2 %" if row.key.workload in ("TCP", "UDP") else "")
        assert f"slowed down on purpose ({shape})" in notes, row
        assert ("messages were lost" in notes) == (row.key.workload == "UDP")
    tables.build(task["folder"])
    assert_nothing_left(task)


# -- the quota


@pytest.mark.parametrize("instrument", ["diskbench", "fio", "iozone"])
def test_a_quota_is_named_and_nothing_is_left(seen: Seen, instrument: str) -> None:
    task = seen("quota")
    assert task["free"] > 32 * MIB, "it was the user's quota, not the disk"
    said = next(line for line in task["over"] if f"disk/{instrument}/" in line)
    if " unavailable " in said:
        pytest.skip(said)
    assert " failed " in said and "uota exceeded" in said, said
    assert "Traceback" not in " ".join(task["over"])
    (attempt,) = (task["folder"] / "attempts/disk" / instrument).rglob("0.json")
    assert "uota exceeded" in json.loads(attempt.read_text())["reason"]
    assert not list((task["folder"] / "cells/disk" / instrument).glob("W*"))
    assert_nothing_left(task)


def test_what_fits_into_the_quota_is_measured_afterwards(seen: Seen) -> None:
    assert record_of(seen("quota"), disk_cell(workload="RS"))["status"] == "ok"


def test_a_record_without_room_in_the_quota_is_said_and_costs_no_other(seen: Seen) -> None:
    task = seen("quota")
    said = " ".join(task["full"])
    assert "cannot be written (Disk quota exceeded)" in said and "Traceback" not in said, said
    assert task["kept"], "finished records stay"
    assert task["half"] == [], "no half file stays"
    assert not (task["folder"] / "cells" / f"{cpu_cell().id}.json").exists()


# -- the clock


def while_set_back(task: dict[str, Any], cell: Cell) -> dict[str, Any]:
    one: dict[str, Any] = next(one for one in task["seen"] if one["cell"] == cell.id)
    assert one["set_back"] > 0, "the clock was set while the program ran"
    return one


@pytest.mark.parametrize("name", OURS)
def test_our_kernels_do_not_notice_that_the_clock_goes_back(seen: Seen, name: str) -> None:
    """They ask only the clock that nobody can set."""
    task, cell = seen("clock"), Cell.from_json(repeated(OURS[name], 1))
    one = while_set_back(task, cell)
    assert one["failed"] is None, one["failed"]
    record = record_of(task, cell)
    assert record["status"] == "ok", record["reason"]
    # On a busy machine its threads may begin after the 0.4 s have.
    assert 0.1 <= record["measurements"][0]["details"]["seconds"] <= one["elapsed"]
    assert 0.35 <= record["context"]["seconds"] <= one["elapsed"]


def assert_no_wrong_number(task: dict[str, Any], cell: Cell) -> None:
    """Either the same as without, within a factor, or a failed attempt: never one that is off by an hour."""
    right, other = Cell.from_json(repeated(cell, 0)), Cell.from_json(repeated(cell, 1))
    expected = [one["value"] for one in measured_or_skip(record_of(task, right))["measurements"]]
    one = while_set_back(task, other)
    if one["failed"] is not None:
        assert "Traceback" not in one["failed"]
        assert not (task["folder"] / "cells" / f"{other.id}.json").exists()
        return
    values = [one["value"] for one in record_of(task, other)["measurements"]]
    assert len(values) == len(expected)
    for value, about in zip(values, expected, strict=True):
        assert about / 10 < value < about * 10


@pytest.mark.parametrize("name", ASKING)
def test_a_reference_tool_that_asks_the_wall_clock_gives_no_wrong_number(seen: Seen, name: str) -> None:
    assert_no_wrong_number(seen("clock"), ASKING[name][0])
    assert_nothing_left(seen("clock"))


# -- more of it


@pytest.mark.trouble
def test_the_other_tools_while_the_clock_goes_back(tmp_path: Path, kernels: None) -> None:
    cells = [{"cell": repeated(cell, number), "word": word} for cell, word in OTHERS.values() for number in (0, 1)]
    task = boot(tmp_path, {"clock": {"cells": cells}}, GUEST_S)["clock"]
    assert "error" not in task, task["error"]
    for cell, _ in OTHERS.values():
        assert_no_wrong_number(task, cell)
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
    argument = {
        "fault": name,
        "number": 0,
        "repetitions": 6,
        "kernels": str(KERNELS),
        "facts": machine.collect(tmp_path),
    }
    found = guest.call(
        tmp_path, "benchmarks.method.verdicts:judge_in_a_guest", argument,
        limit_s=GUEST_S, modules=fault.modules, shown=[KERNELS],
    )  # fmt: skip
    assert found["possible"], found["note"]
    assert found["found"] and found["named"] and not found["alarm"], found
    assert "user-mode kernel" in found["guest"]
