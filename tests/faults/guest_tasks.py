"""What test_guest.py has done in a guest, where this is root; records stay in a task's folder."""

import ctypes
import json
import os
import shutil
import subprocess
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.kernels import namespaces
from benchmarks.kernels.namespaces import Namespaces
from benchmarks.method.sides import beyond
from tests.programs import wait_for

from peakmark.cell import Cell
from peakmark.errors import PeakmarkError
from peakmark.run.measure import Request, measure

CLONE_NEWNET = 0x40000000
HOUR_S = 3600.0
EVERY_S = 0.01
TRIES = 20
GIVES_UP, GAVE_UP = 3, "iperf3: unable to read from stream socket"
"""Runs of a cell, as iperf3 gives up on a guest that gets too little of a busy machine's time."""
USER = 4711
QUOTA_KIB = 4096
PROGRAMS = {
    "hpcc", "iozone", "fio", "ping", "qperf", "iperf3", "netbench", "cpubench", "rambench",
    "diskbench", "peakmark",
}  # fmt: skip

Order = Mapping[str, Any]


def everything(orders: Mapping[str, Order]) -> dict[str, Any]:
    """The tasks by name, one after the other: what each saw, or its error."""
    seen: dict[str, Any] = {}
    for name, order in orders.items():
        began = time.monotonic()
        try:
            seen[name] = TASKS[name](order)
        except Exception:
            seen[name] = {"error": traceback.format_exc()}
        print(name, round(time.monotonic() - began, 1), "s", flush=True)
    return seen


def attempt(order: Order, cell: Cell, _: str = "", far_end: Any = None) -> dict[str, Any]:
    """Measure one cell: why it failed, and how long it took by the clock that nobody sets."""
    campaign = Path(order["folder"])
    path = campaign / "cells" / f"{cell.id}.json"
    began, failed = time.monotonic(), None
    try:
        measure(Request(cell, path, campaign, Path(order["kernels"]), far_end=far_end))
    except PeakmarkError as error:
        failed = str(error)
    return {"failed": failed, "elapsed": time.monotonic() - began, "cell": cell.id}


def left(scratch: Path = Path("/tmp")) -> dict[str, list[str]]:
    """What is still there that a cell may have made."""
    names = [path.read_text().strip() for path in Path("/proc").glob("[0-9]*/comm")]
    listening = run("ss", "--listening", "--tcp", "--udp", "--numeric", "--no-header").splitlines()
    return {
        "processes": sorted(PROGRAMS & set(names)),
        "files": sorted(path.name for path in scratch.glob("peakmark-*") if path.is_dir()),
        "ports": listening,
        "namespaces": run("ip", "netns", "list").split(),
    }


def run(*argv: str) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


# -- a line that loses, delays, repeats and reorders


def line(order: Order) -> dict[str, Any]:
    """Cells between two namespaces, each with netem on the client's end of the link between them."""
    seen = []
    with namespaces.joined() as names:
        device = names.device
        for spec in order["cells"]:
            for _ in range(GIVES_UP):
                one = on_line(order, spec, names, device)
                if GAVE_UP not in (one["failed"] or ""):
                    break
            seen.append(one)
    return {"seen": seen, "left": left()}


def on_line(order: Order, spec: Mapping[str, Any], names: Any, device: str) -> dict[str, Any]:
    """One cell over the line, and what the kernel counted meanwhile."""
    cell = Cell.from_json(spec["cell"])
    run(
        "tc",
        "-n",
        names.client,
        "qdisc",
        "add",
        "dev",
        device,
        "root",
        "netem",
        *spec["netem"].split(),
    )
    before = counters(names, device)
    with within(names.client):
        one = attempt(order, cell, far_end=beyond(names))
    after = counters(names, device)
    text = run("tc", "-n", names.client, "-s", "-j", "qdisc", "show", "dev", device)
    queue = next(queue for queue in json.loads(text) if queue["kind"] == "netem")
    run("tc", "-n", names.client, "qdisc", "del", "dev", device, "root")
    one |= {name: after[name] - before[name] for name in after}
    return one | {
        "dropped": queue["drops"], "passed_bytes": queue["bytes"], "netem": spec["netem"],
    }  # fmt: skip


@contextmanager
def within(name: str) -> Iterator[None]:
    """This process, and what it starts, in a namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    here = os.open("/proc/self/ns/net", os.O_RDONLY)
    there = os.open(f"/run/netns/{name}", os.O_RDONLY)
    try:
        if libc.setns(there, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")
        yield
    finally:
        libc.setns(here, CLONE_NEWNET)
        os.close(here)
        os.close(there)


def snmp(name: str, protocol: str) -> dict[str, int]:
    with within(name):
        lines = Path("/proc/self/net/snmp").read_text().splitlines()
    keys, values = (line.split()[1:] for line in lines if line.startswith(f"{protocol}:"))
    return dict(zip(keys, map(int, values), strict=True))


def counters(names: Namespaces, device: str) -> dict[str, int]:
    """What the kernel has counted of the client's packets.

    sent     datagrams by the client            arrived  those that the server's program has got
    control  its TCP segments                   no_room  those for which the server's buffer had no
             room
    refused  packets that the link's other end had no room for
    """
    far, near = snmp(names.server, "Udp"), snmp(names.client, "Udp")
    link = json.loads(run("ip", "-n", names.client, "-s", "-j", "link", "show", "dev", device))[0]
    return {
        "sent": near["OutDatagrams"],
        "arrived": far["InDatagrams"],
        "no_room": far["RcvbufErrors"],
        "control": snmp(names.client, "Tcp")["OutSegs"],
        "refused": link["stats64"]["tx"]["dropped"],
    }


# -- a user's quota on a real file system


@contextmanager
def new_disk() -> Iterator[Path]:
    """An ext4 of 64 MiB that knows quotas, where the others are in memory."""
    image, folder = Path("/tmp/image"), Path("/tmp/disk")
    folder.mkdir(exist_ok=True)
    run("truncate", "--size=64M", str(image))
    run("mkfs.ext4", "-q", "-O", "quota", "-E", "quotatype=usrquota", str(image))
    run("mount", "-o", "loop,usrquota", str(image), str(folder))
    try:
        yield folder
    finally:
        run("umount", str(folder))


def quota(order: Order) -> dict[str, Any]:
    """Cells of an ordinary user with a quota on the disk that holds scratch and results."""
    with new_disk() as disk:
        scratch, results = disk / "scratch", disk / "results"
        run("setquota", "-u", str(USER), "0", str(QUOTA_KIB), "0", "0", str(disk))
        scratch.mkdir()
        shutil.copytree(Path(order["folder"]) / "machine", results / "machine")
        run("chown", "--recursive", f"{USER}:{USER}", str(scratch), str(results))
        *writing, computing = order["cells"]
        over = as_user(order, results, writing)
        seen = {"over": over, "left": left(scratch), "free": shutil.disk_usage(disk).free}
        # A file takes the rest of the quota: measuring goes well, but the record has no room.
        with (disk / "filler").open("wb") as stream:
            os.chown(stream.fileno(), USER, USER)
            stream.write(bytes(QUOTA_KIB << 10))

        def stored() -> dict[str, str]:
            return {str(path): path.read_text() for path in (results / "cells").rglob("*.json")}

        before = stored()
        seen["full"] = as_user(order, results, [computing])
        seen["kept"] = before == stored()
        seen["half"] = [path.name for path in results.rglob("*.tmp")]
        shutil.copytree(results, order["folder"], dirs_exist_ok=True)
        return seen


def as_user(order: Order, results: Path, cells: list[dict[str, Any]]) -> list[str]:
    """What the measuring process said of each cell; it may read the checkout, wherever that lies."""
    may = "-all,+dac_read_search"
    plain = [f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
    plain += [f"--inh-caps={may}", f"--ambient-caps={may}"]
    orders = {"kernels": order["kernels"], "tools": {}, "namespaces": None}
    orders["cells"] = [{"campaign": str(results), "cell": cell} for cell in cells]
    path = Path("/tmp/orders.json")
    path.write_text(json.dumps(orders))
    argv = ["setpriv", *plain, order["python"], "-m", "benchmarks.method.sides", str(path)]
    done = subprocess.run(argv, cwd="/tmp", capture_output=True, text=True, check=False)
    return [*done.stdout.splitlines(), *done.stderr.splitlines()]


# -- the wall clock


def clock(order: Order) -> dict[str, Any]:
    """Cells of repetition 0 as they are, others while the clock is set back again and again."""
    seen = []
    with new_disk() as disk:
        os.environ["TMPDIR"] = str(disk)
        # Round trips that last, so that the clock is set within one: ping's are over loopback here.
        run("tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms")
        for spec in order["cells"]:
            cell = Cell.from_json(spec["cell"])
            measured = while_set_back if cell.repetition else attempt
            seen.append(measured(order, cell, spec["word"]))
        run("tc", "qdisc", "del", "dev", "lo", "root")
        del os.environ["TMPDIR"]
        return {"seen": seen, "left": left(disk)}


def while_set_back(order: Order, cell: Cell, word: str) -> dict[str, Any]:
    """An attempt during which the clock was set: a short program may have ended before it was."""
    one: dict[str, Any] = {}
    for _ in range(TRIES):
        with backwards(cell.instrument, word) as times:
            one = attempt(order, cell)
        if times:
            break
        # What was measured without is no record of this attempt.
        (Path(order["folder"]) / "cells" / f"{cell.id}.json").unlink(missing_ok=True)
    return {**one, "set_back": len(times)}


@contextmanager
def backwards(program: str, word: str) -> Iterator[list[float]]:
    """Set the clock back by an hour again and again while a program runs with ``word``; right afterwards."""
    name = {"hpl": "hpcc"}.get(program, program)
    times: list[float] = []
    over, offset = threading.Event(), time.time() - time.monotonic()

    def runs() -> bool:
        for path in Path("/proc").glob("[0-9]*/comm"):
            try:
                words = path.with_name("cmdline").read_text()
                if path.read_text().strip() == name and word in words:
                    return True
            except OSError:
                continue
        return False

    def set_back() -> None:
        wait_for(lambda: over.is_set() or runs(), f"{name} runs")
        while not over.wait(EVERY_S):
            times.append(time.time() - HOUR_S)
            time.clock_settime(time.CLOCK_REALTIME, times[-1])

    thread = threading.Thread(target=set_back)
    thread.start()
    try:
        yield times
    finally:
        over.set()
        thread.join()
        time.clock_settime(time.CLOCK_REALTIME, offset + time.monotonic())


TASKS: dict[str, Callable[[Order], dict[str, Any]]] = {
    "line": line, "line-more": line, "quota": quota, "clock": clock,
}  # fmt: skip
