"""What happens in a guest's kernel: a clock set back, lines that delay, lose, repeat and reorder
packets, a quota that is too small; and guests that end, with one line why.

All of it is measured in one guest (see tests/guest, and guest_tasks.py for what is done in
it). Programs start slowly there and share one CPU, so no rate means anything: each number is held
against what the guest's kernel itself has counted.
"""

import contextlib
import json
import shutil
import sys
from pathlib import Path

import pytest
from bench import KERNELS, MIB, cpu_cell, disk_cell, network_cell
from tests import guest
from tests.guest import GuestError, common
from tests.programs import LIMIT_S, wait_for
from tests.unit import campaign_data as make

from peakmark import plan
from peakmark.cell import Cell
from peakmark.machine.facts import collect
from peakmark.storage import records

GUEST_S = 900.0
"""Only a guest that hangs takes so long: half a minute of one CPU on an idle machine."""
HERE = Path(__file__).resolve().parent
MODULES = ("veth", "sch_netem", "loop", "quota_v2", "ipv6")  # qperf's server wants IPv6
BAD_LINE = "delay 2ms loss 2% limit 100000"
LATE_LINE = "delay 2ms"  # a lost datagram would stop qperf
RTT_S = 0.002
FEW = 10  # packets that are no cell's: ARP, neighbours
POINT = {"concurrency": [1], "seconds": 0.4}
RATES = {"workloads": ["TCP", "UDP"], "blocks": ["1KiB"], "references": {"iperf3": {"seconds": 1}}}
TRIPS = {
    "workloads": ["LAT-TCP", "LAT-UDP"],
    "blocks": ["1B"],
    "references": {"qperf": {"seconds": 1}},
}
LINE = {"campaign": "line", "seed": 1, "repetitions": 1, "repeat_disturbed": 0, "warmup": 0.0}
LINE["network"] = [{**POINT, **RATES}, {**POINT, **TRIPS}]


def cell(subsystem, program, workload, block=None, **options):
    return Cell(subsystem, program, workload, "", block, 1, "any", 1, {"warmup": 0.0, **options})


EVERY_BYTE = cell("network", "netbench", "TCP", 1000, total=2_000_000)
LASTING = {"warmup": 0.0, "seconds": 0.4}
# What is measured while the clock is set back.
OURS = {
    "cpubench": cell("cpu", "cpubench", "SP", seconds=0.4),
    "rambench": Cell("memory", "rambench", "RWS", "block", 4096, 1, "any", 1, LASTING),
    "diskbench": disk_cell(seconds=0.4),
    "netbench-TCP": network_cell(seconds=0.4),
    "netbench-UDP": network_cell(workload="LAT-UDP", seconds=0.4),
}
# These ask the wall clock. The word tells the measuring program from a question for its version.
ASKING = {
    "iozone": (disk_cell("iozone", "ALL", size=8 * MIB), "-I"),
    "ping": (cell("network", "ping", "LAT-ICMP", 1, count=40), "-c"),
}


def repeated(cell, number):
    return {**cell.to_json(), "repetition": number}


def twice(cells):
    """Orders for each cell: as it is, and while the clock is set back."""
    both = [(cell, word, number) for cell, word in cells.values() for number in (0, 1)]
    return [{"cell": repeated(cell, number), "word": word} for cell, word, number in both]


def boot(folder, orders):
    """Hand tasks to a guest, each with a campaign's folder of its name; what each saw."""
    if reason := guest.why_not():
        pytest.skip(reason)
    for program, package in (("mkfs.ext4", "e2fsprogs"), ("setquota", "quota")):
        if shutil.which(program, path=common.SYSTEM_PATH) is None:
            pytest.skip(f"{program} not found: install {package}")
    facts = {**collect(folder, cpubench=KERNELS / "cpubench"), "host": "peakmark-guest"}
    argument = {}
    for name, cells in orders.items():
        campaign = folder / name
        (campaign / "machine").mkdir(parents=True)
        (campaign / "machine/peakmark-guest.json").write_text(json.dumps(facts))
        argument[name] = {"cells": cells, "folder": str(campaign), "kernels": str(KERNELS)}
        argument[name]["python"] = sys.executable
    how = {"modules": MODULES, "path": [HERE], "shown": [KERNELS]}
    seen = guest.call(folder, "guest_tasks:everything", argument, limit_s=GUEST_S, **how)
    return {name: {**task, "folder": folder / name} for name, task in seen.items()}


@pytest.fixture(scope="module")
def seen(tmp_path_factory, kernels):
    """One guest is booted for all tests that ask for what it saw."""
    folder, planned = tmp_path_factory.mktemp("guest"), plan.make(LINE)
    netem = {"TCP": BAD_LINE, "UDP": BAD_LINE}
    repeating = "delay 1ms 1ms duplicate 10% limit 100000"
    # Too much for the quota, by each program that writes; then what fits; and one whose record
    # finds no room.
    tools = (("diskbench", "WS"), ("fio", "WS"), ("iozone", "ALL"))
    quota = [disk_cell(tool, workload, size=8 * MIB) for tool, workload in tools]
    quota.append(disk_cell(workload="RS"))
    place = {"scratch": "/tmp/disk/scratch"}
    orders = {
        "line": [
            {"cell": cell.to_json(), "netem": netem.get(cell.workload, LATE_LINE)}
            for cell in planned.cells
        ],
        "line-more": [
            {"cell": network_cell(workload="UDP", seconds=0.3).to_json(), "netem": repeating},
            {"cell": EVERY_BYTE.to_json(), "netem": BAD_LINE.replace("2%", "5%")},
        ],
        "quota": [
            *({**cell.to_json(), "options": {**cell.options, **place}} for cell in quota),
            cpu_cell().to_json(),
        ],
        "clock": [
            *({"cell": repeated(cell, 1), "word": "--seconds"} for cell in OURS.values()),
            *twice(ASKING),
        ],
    }
    tasks = boot(folder, orders)
    (folder / "line/plan.json").write_text(json.dumps(planned.to_json()))

    def look(name):
        assert "error" not in tasks[name], tasks[name]["error"]
        return tasks[name]

    return look


def record_of(task, cell):
    name = cell if isinstance(cell, str) else cell.id
    return records.read(task["folder"] / "cells" / f"{name}.json")


def measured_or_skip(record):
    if record["status"] == "unavailable":
        pytest.skip(record["reason"])
    return record


def assert_nothing_left(task):
    assert task["left"] == {"processes": [], "files": [], "ports": [], "namespaces": []}


# -- a wall clock that is set back by an hour while programs measure


def while_set_back(task, cell):
    one = next(one for one in task["seen"] if one["cell"] == cell.id)
    assert one["set_back"] > 0  # the clock was set while the program ran
    return one


@pytest.mark.parametrize("name", OURS)
def test_our_kernels_do_not_notice_that_the_clock_goes_back(seen, name):
    """They ask only the clock that nobody can set."""
    task, cell = seen("clock"), Cell.from_json(repeated(OURS[name], 1))
    one = while_set_back(task, cell)
    assert one["failed"] is None, one["failed"]
    record = record_of(task, cell)
    assert record["status"] == "ok", record["reason"]
    # On a busy machine its threads may begin after the 0.4 s have.
    assert 0.1 <= record["measurements"][0]["details"]["seconds"] <= one["elapsed"]
    assert 0.35 <= record["context"]["seconds"] <= one["elapsed"]


def assert_no_wrong_number(task, cell):
    """Either the same as without, within a factor, or a failed attempt: never off by an hour."""
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
def test_a_reference_tool_that_asks_the_wall_clock_gives_no_wrong_number(seen, name):
    assert_no_wrong_number(seen("clock"), ASKING[name][0])
    assert_nothing_left(seen("clock"))


# -- lines: the kernel has counted what the programs should have


def on_the_line(seen, instrument, workload):
    """What the guest saw of a cell on the bad line, and its record."""
    task = seen("line")
    one = next(one for one in task["seen"] if f"/{instrument}/{workload}_" in one["cell"])
    assert one["failed"] is None, one["failed"]
    return one, measured_or_skip(record_of(task, one["cell"]))


@pytest.mark.parametrize("workload", ["LAT-TCP", "LAT-UDP"])
@pytest.mark.parametrize("instrument", ["netbench", "qperf"])
def test_the_delay_of_the_line_is_in_every_round_trip(seen, instrument, workload):
    _, record = on_the_line(seen, instrument, "ALL" if instrument == "qperf" else workload)
    one = next(one for one in record["measurements"] if one["workload"] == workload)
    assert one["value"] > RTT_S
    assert one["details"].get("min", one["value"]) > RTT_S


def dropped(one):
    """Packets lost by netem, at the link's other end, and at the receiver's full buffer."""
    assert one["dropped"] > 0  # the line has lost none
    return int(one["dropped"] + one["refused"] + one["no_room"])


def test_lost_datagrams_are_those_that_the_kernel_dropped(seen):
    """But for the control connection's packets and datagrams outside the measured time."""
    one, record = on_the_line(seen, "netbench", "UDP")
    details, value = record["measurements"][0]["details"], record["measurements"][0]["value"]
    assert details["sent"] == details["received"] + details["lost"] <= one["sent"]
    outside = one["sent"] - details["sent"]
    assert 0 <= dropped(one) - details["lost"] <= outside + one["control"] + FEW, one
    assert value == pytest.approx(8 * 1024 * details["received"] / details["seconds"], rel=0.001), (
        "what arrived"
    )


def test_iperf3s_loss_is_what_the_kernel_did_not_deliver(seen):
    """Its own count leaves out what is lost at the end; what waits unread is its loss."""
    one, record = on_the_line(seen, "iperf3", "UDP")
    details, value = record["measurements"][0]["details"], record["measurements"][0]["value"]
    received = value * details["seconds"] / 8 / 1024
    assert received == pytest.approx(one["arrived"], rel=0.01, abs=FEW), one
    lost = details["loss"] * details["packets"]
    assert lost == pytest.approx(one["sent"] - one["arrived"], rel=0.01, abs=FEW), one
    assert dropped(one) - one["control"] - FEW <= lost
    assert details["lost_reported"] <= dropped(one)


def test_repeated_and_reordered_datagrams_are_not_counted_twice(seen):
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
def test_no_more_bytes_are_counted_over_tcp_than_have_passed(seen, instrument):
    one, record = on_the_line(seen, instrument, "TCP")
    (measured,) = record["measurements"]
    received = measured["value"] * measured["details"]["seconds"] / 8
    assert 0 < received <= one["passed_bytes"]


def test_every_byte_arrives_over_a_line_that_loses_some(seen):
    task = seen("line-more")
    one = task["seen"][1]
    assert one["failed"] is None, one["failed"]
    assert one["dropped"] > 0  # the line has lost none
    details = record_of(task, EVERY_BYTE)["measurements"][0]["details"]
    assert (details["work"], details["lost"]) == (2_000_000, 0)


def test_rows_of_a_shaped_line_are_marked_and_the_table_holds_the_records_numbers(seen):
    task = seen("line")
    frames = make.tables(task["folder"])
    own = frames.rows[frames.rows["is_own"]]
    assert set(own["workload"]) >= {"TCP", "UDP", "LAT-TCP", "LAT-UDP"}
    for row in own.itertuples():
        notes = " ".join(frames.warnings.loc[frames.warnings["point"].eq(row.point), "text"])
        shape = "netem delay 2ms" + (" loss 2%" if row.workload in ("TCP", "UDP") else "")
        assert f"({shape})" in notes, row
        assert ("messages were lost" in notes) == (row.workload == "UDP")
    assert_nothing_left(task)


# -- a user's quota that is too small


@pytest.mark.parametrize("instrument", ["diskbench", "fio", "iozone"])
def test_a_quota_is_named_and_nothing_is_left(seen, instrument):
    task = seen("quota")
    assert task["free"] > 32 * MIB  # it was the user's quota, not the disk
    said = next(line for line in task["over"] if f"disk/{instrument}/" in line)
    if " unavailable " in said:
        pytest.skip(said)
    assert " failed " in said and "uota exceeded" in said, said
    assert "Traceback" not in " ".join(task["over"])
    (attempt,) = (task["folder"] / "attempts/disk" / instrument).rglob("0.json")
    assert "uota exceeded" in json.loads(attempt.read_text())["reason"]
    assert not list((task["folder"] / "cells/disk" / instrument).glob("W*"))
    assert_nothing_left(task)


def test_what_fits_into_the_quota_is_measured_afterwards(seen):
    assert record_of(seen("quota"), disk_cell(workload="RS"))["status"] == "ok"


def test_a_record_without_room_in_the_quota_is_said_and_costs_no_other(seen):
    task = seen("quota")
    said = " ".join(task["full"])
    assert "uota exceeded" in said and "Traceback" not in said, said
    assert task["kept"], "finished records stay"
    assert task["half"] == []  # no half file stays
    assert not (task["folder"] / "cells" / f"{cpu_cell().id}.json").exists()


# -- guests that end: at the deadline, after an error, not started at all


def processes_of(folder):
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it may end while it is looked at
            found += [path] if f"GUEST={folder}".encode() in path.read_bytes() else []
    return found


def test_a_guest_that_hangs_is_ended_and_its_errors_are_told(tmp_path):
    if reason := guest.why_not():
        pytest.skip(reason)
    with pytest.raises(GuestError, match=r"did not end within 4 s"):
        guest.call(tmp_path, "time:sleep", 600, limit_s=4)
    wait_for(lambda: not processes_of(tmp_path), "no process of the guest is left")
    with pytest.raises(GuestError, match=r"(?s)ValueError.*'nonsense'"):
        guest.call(tmp_path, "builtins:int", "nonsense", limit_s=LIMIT_S)
    wait_for(lambda: not processes_of(tmp_path), "no process of the guest is left")
