"""What test_numa.py has done in an emulated machine of two sockets, two NUMA nodes and two threads
a core: cells on CPUs that it names, and in jobs that Slurm's own daemons bind to CPUs.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from peakmark.cell import Cell
from peakmark.machine import topology
from peakmark.machine.host import Host
from peakmark.run.measure import Request, measure

Order = Mapping[str, Any]

DEADLINE_S = 300.0  # two emulated CPUs on a machine that is busy otherwise
POOL = 32 << 20  # bytes of all threads together
PAGE = 4096
LARGE = 1024  # pages: buffers, and not the stacks beside them
MOVE_PAGES = {"x86_64": 279, "aarch64": 239}  # its number; no C library has it
PLACE = Path("/tmp/slurm")
GROUPS = Path("/sys/fs/cgroup")
CONTROLLERS = ("cpuset", "memory", "freezer", "cpuacct")
ADDRESS = "10.77.0.1"
CONF = """ClusterName=guest
SlurmctldHost={host}({address})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={place}/munge.socket
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/slurmd.pid
SlurmctldLogFile={place}/slurmctld.log
SlurmdLogFile={place}/slurmd.log
MailProg=/bin/true
MpiDefault=none
# An emulated machine is slow: nothing here is late.
SlurmdTimeout=0
SlurmctldTimeout=600
MessageTimeout=100
BatchStartTimeout=100
ReturnToService=2
SchedulerType=sched/builtin
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity,task/cgroup
NodeName={host} NodeAddr={address} Sockets=2 CoresPerSocket=2 ThreadsPerCore=2 RealMemory=500
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE
"""
CGROUP_CONF = f"CgroupPlugin=cgroup/v1\nCgroupMountpoint={GROUPS}\nConstrainCores=yes\n"


def on_cpus(order: Order) -> list[dict[str, Any]]:
    """The record of each cell, measured on its CPUs; last, where pages lie."""
    scratch = Path(order["folder"]) / "scratch"
    scratch.mkdir()
    os.environ["TMPDIR"] = str(scratch)
    seen = []
    for one in order["cells"]:
        os.sched_setaffinity(0, one["cpus"])
        seen.append(_record(one["cell"], order))
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    return [*seen, {"pages": [pages(Path(order["kernels"]), cpus) for cpus in order["pages"]]}]


def _record(cell_json: Mapping[str, Any], order: Order) -> dict[str, Any]:
    cell, folder = Cell.from_json(cell_json), Path(order["folder"])
    path = folder / "cells" / f"{cell.id}.json"
    return measure(Request(cell, path, folder, Path(order["kernels"])))


# -- where the pages of rambench lie


def pages(kernels: Path, cpus: list[int]) -> dict[str, dict[str, int]]:
    """NUMA node -> pages of rambench's buffers while it runs on these CPUs.

    ``maps`` is the kernel's list of mappings, ``moved`` its answer for each page to move_pages,
    which moves nothing where no nodes are named.
    """
    argv = [str(kernels / "rambench"), "--workload", "RS", "--block", "64KiB", "--pool", str(POOL)]
    argv += ["--seconds", "1000", "--warmup", "0", "--threads", str(len(cpus))]
    argv += ["--cpus", ",".join(map(str, cpus))]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL) as process:
        try:
            end = time.monotonic() + DEADLINE_S
            listed: Counter[str] = Counter()
            while listed.total() < POOL // PAGE:
                if process.poll() is not None or time.monotonic() > end:
                    code = process.returncode
                    raise RuntimeError(f"rambench has touched {listed}, exit code {code}")
                time.sleep(0.05)
                listed = sum((nodes for _, nodes in _buffers(process.pid)), Counter())
            # Linux 6.1 tells nothing of a page that NUMA balancing has just unmapped, until its
            # thread uses it again.
            answers: dict[int, int] = {}
            while len(answers) < POOL // PAGE and time.monotonic() < end:
                answers |= _nodes_of_pages(process.pid)
                time.sleep(0.05)
            moved = {str(node): count for node, count in Counter(answers.values()).items()}
            return {"maps": dict(listed), "moved": moved}
        finally:
            process.kill()


def _buffers(pid: int) -> Iterator[tuple[int, Counter[str]]]:
    """(first address, pages by node) of the larger mappings: ``7f.. default anon=8192 N0=8192``."""
    for line in Path(f"/proc/{pid}/numa_maps").read_text().splitlines():
        anonymous = re.search(r" anon=(\d+)", line)
        if anonymous and int(anonymous[1]) >= LARGE:
            nodes = {node: int(count) for node, count in re.findall(r" N(\d+)=(\d+)", line)}
            yield int(line.split()[0], 16), Counter(nodes)


def _nodes_of_pages(pid: int) -> dict[int, int]:
    """Address -> node of every page of the same mappings that move_pages knows."""
    ends = {}
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        start, end = (int(word, 16) for word in line.split()[0].split("-"))
        ends[start] = end
    nodes: dict[int, int] = {}
    call = ctypes.CDLL(None, use_errno=True).syscall
    for start, _ in _buffers(pid):
        addresses = range(start, ends[start], PAGE)
        where = (ctypes.c_void_p * len(addresses))(*addresses)
        states = (ctypes.c_int * len(addresses))()
        count = ctypes.c_ulong(len(addresses))
        if call(MOVE_PAGES[os.uname().machine], pid, count, where, None, states, 0) != 0:
            raise OSError(ctypes.get_errno(), "move_pages")
        known = zip(addresses, states, strict=True)
        nodes |= {address: node for address, node in known if node >= 0}
    return nodes


# -- cells in jobs of Slurm


def in_jobs(order: Order) -> dict[str, Any]:
    """For each job its record, its cpuset, its affinity and, where ordered, where its pages lie."""
    # Control groups of version 1, which slurmd 22.05 takes without systemd.
    _run("mount", "-t", "tmpfs", "tmpfs", str(GROUPS))
    for name in CONTROLLERS:
        (GROUPS / name).mkdir()
        _run("mount", "-t", "cgroup", "-o", name, name, str(GROUPS / name))
    with contextlib.ExitStack() as daemons:
        _start_slurm(daemons)
        return {"jobs": [_job(number, one, order) for number, one in enumerate(order["jobs"])]}


def _job(number: int, one: Order, order: Order) -> dict[str, Any]:
    result = Path(order["folder"]) / f"job{number}.json"
    part = json.dumps({**one, "folder": order["folder"], "kernels": order["kernels"]})
    program = "import sys, numa_tasks; numa_tasks.within_job(*sys.argv[1:])"
    words = ["srun", "--nodes=1", "--ntasks=1", *one["words"], sys.executable, "-c", program]
    try:
        _run(*words, part, str(result))
    except RuntimeError as error:
        logs = (path.read_text()[-2000:] for path in sorted(PLACE.glob("*.log")))
        raise RuntimeError("\n".join([str(error), *logs])) from None
    return dict(json.loads(result.read_text()))


def within_job(part: str, result: str) -> None:
    """Measure the cell of an order's part (JSON) in this job, and write what was seen."""
    order = json.loads(part)
    record, allowed = _record(order["cell"], order), os.sched_getaffinity(0)
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    group = next(line.partition(":cpuset:/")[2] for line in lines if ":cpuset:" in line)
    cpuset = (GROUPS / "cpuset" / group / "cpuset.cpus").read_text().strip()
    seen: dict[str, Any] = {"record": record, "cpuset": cpuset, "affinity": sorted(allowed)}
    if order["pages"]:
        cpus = topology.order(topology.read(Host(), allowed), allowed)
        seen["pages"] = pages(Path(order["kernels"]), cpus)
    Path(result).write_text(json.dumps(seen))


def _start_slurm(daemons: contextlib.ExitStack) -> None:
    """Start munged, slurmctld and slurmd; each answers before the next one starts."""
    for folder in (PLACE, PLACE / "state", PLACE / "spool"):
        folder.mkdir(mode=0o755)
    host = socket.gethostname()
    (PLACE / "slurm.conf").write_text(CONF.format(host=host, place=PLACE, address=ADDRESS))
    (PLACE / "cgroup.conf").write_text(CGROUP_CONF)
    # Slurm's daemons listen for all addresses, and the C library names none where there is but
    # loopback's.
    _run("ip", "addr", "add", f"{ADDRESS}/32", "dev", "lo")
    (PLACE / "hosts").write_text(f"127.0.0.1 localhost\n{ADDRESS} {host}\n")
    _run("mount", "--bind", str(PLACE / "hosts"), "/etc/hosts")
    key, end = PLACE / "munge.key", PLACE / "munge.socket"
    key.touch(mode=0o600)
    key.write_bytes(os.urandom(128))
    munge = ["munged", "--foreground", f"--key-file={key}", f"--socket={end}"]
    munge += [f"--{name}-file={PLACE}/munged.{name}" for name in ("pid", "log", "seed")]
    for command, ready in (
        (munge, end.exists),
        (["slurmctld", "-D"], lambda: _run("scontrol", "show", "partition")),
        (["slurmd", "-D"], lambda: "idle" in _run("sinfo", "--noheader", "--format=%T")),
    ):
        log = PLACE / f"{command[0]}.out"
        with log.open("ab") as stream:
            daemon = subprocess.Popen(command, stdout=stream, stderr=stream, env=_environment())
        daemons.callback(daemon.wait, 60)
        daemons.callback(daemon.terminate)
        _wait_until(ready, daemon, log)


def _wait_until(ready: Callable[[], object], daemon: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + DEADLINE_S
    while True:
        with contextlib.suppress(RuntimeError):
            if ready():
                return
        if daemon.poll() is not None or time.monotonic() > end:
            raise RuntimeError(f"{log.stem} does not answer: {log.read_text()[-2000:]}")
        time.sleep(0.2)


def _environment() -> dict[str, str]:
    return {**os.environ, "SLURM_CONF": str(PLACE / "slurm.conf"), "TMPDIR": str(PLACE)}


def _run(*words: str) -> str:
    how: dict[str, Any] = {"capture_output": True, "text": True, "timeout": DEADLINE_S}
    done = subprocess.run(words, **how, check=False, env=_environment())
    if done.returncode:
        raise RuntimeError(f"{' '.join(words[:6])}: {done.stderr}")
    return str(done.stdout)
