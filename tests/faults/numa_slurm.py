"""What test_numa.py has done in an emulated machine: Slurm's own daemons, and cells in jobs
that Slurm binds to CPUs.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numa_tasks

from peakmark.cell import Cell
from peakmark.machine import topology
from peakmark.machine.host import Host
from peakmark.run.measure import Request, measure

PLACE = Path("/tmp/slurm")
GROUPS = Path("/sys/fs/cgroup")
CONTROLLERS = ("cpuset", "memory", "freezer", "cpuacct")
ADDRESS = "10.77.0.1"
DEADLINE_S = 240.0

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


def measured(order: Mapping[str, Any]) -> dict[str, Any]:
    """For each job of the order its record, its cpuset and, where it was asked for, where its pages
    lie.
    """
    _mount_groups()
    with _daemons():
        return {"jobs": [_job(number, one, order) for number, one in enumerate(order["jobs"])]}


def in_job(words: Sequence[str]) -> None:
    """Within a job: measure the cell, and write what was found. ``words``: the order's part as
    JSON, and the file.
    """
    order = json.loads(words[0])
    cell, folder = Cell.from_json(order["cell"]), Path(order["folder"])
    kernels = Path(order["kernels"])
    record = measure(Request(cell, folder / "cells" / f"{cell.id}.json", folder, kernels))
    allowed = os.sched_getaffinity(0)
    taken = topology.order(topology.read(Host(), allowed), allowed)
    group = next(
        line for line in Path("/proc/self/cgroup").read_text().splitlines() if ":cpuset:" in line
    )
    cpus = (GROUPS / "cpuset" / group.partition(":cpuset:/")[2] / "cpuset.cpus").read_text().strip()
    found: dict[str, Any] = {"record": record, "cpuset": cpus, "affinity": sorted(allowed)}
    if order["pages"]:
        found["pages"] = numa_tasks.pages(kernels, taken)
    Path(words[1]).write_text(json.dumps(found))


def _job(number: int, one: Mapping[str, Any], order: Mapping[str, Any]) -> dict[str, Any]:
    result = Path(order["folder"]) / f"job{number}.json"
    part = json.dumps({**one, "folder": order["folder"], "kernels": order["kernels"]})
    program = "import sys, numa_slurm; numa_slurm.in_job(sys.argv[1:])"
    words = ["--nodes=1", "--ntasks=1", *one["words"]]
    argv = ["srun", *words, sys.executable, "-c", program, part, str(result)]
    done = subprocess.run(
        argv, capture_output=True, text=True, check=False, timeout=DEADLINE_S, env=_environment()
    )
    if done.returncode:
        logs = "\n".join(path.read_text()[-2000:] for path in sorted(PLACE.glob("*.log")))
        raise RuntimeError(f"{' '.join(argv[:5])}: {done.stderr}\n{logs}")
    return dict(json.loads(result.read_text()))


def _environment() -> dict[str, str]:
    return {**os.environ, "SLURM_CONF": str(PLACE / "slurm.conf"), "TMPDIR": str(PLACE)}


def _mount_groups() -> None:
    """Control groups of version 1, which slurmd 22.05 takes without systemd."""
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(GROUPS)], check=True)
    for name in CONTROLLERS:
        (GROUPS / name).mkdir()
        subprocess.run(["mount", "-t", "cgroup", "-o", name, name, str(GROUPS / name)], check=True)


class _daemons:
    """munged, slurmctld and slurmd, until the block is left; each is up before the next one starts."""

    def __init__(self) -> None:
        self.running: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> None:
        for folder in (PLACE, PLACE / "state", PLACE / "spool"):
            folder.mkdir(mode=0o755)
        (PLACE / "slurm.conf").write_text(
            CONF.format(host=socket.gethostname(), place=PLACE, address=ADDRESS)
        )
        (PLACE / "cgroup.conf").write_text(CGROUP_CONF)
        # Slurm's daemons listen for all addresses, and the C library tells of none where there is
        # but loopback's own.
        subprocess.run(["ip", "addr", "add", f"{ADDRESS}/32", "dev", "lo"], check=True)
        (PLACE / "hosts").write_text(f"127.0.0.1 localhost\n{ADDRESS} {socket.gethostname()}\n")
        subprocess.run(["mount", "--bind", str(PLACE / "hosts"), "/etc/hosts"], check=True)
        key = PLACE / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(128))
        end = PLACE / "munge.socket"
        self._start("munged", "--foreground", f"--key-file={key}", f"--socket={end}", f"--pid-file={PLACE}/munged.pid",
                    f"--log-file={PLACE}/munged.log", f"--seed-file={PLACE}/munged.seed")  # fmt: skip
        self._until(end.exists, "munged")
        self._start("slurmctld", "-D")
        self._until(lambda: _answers("scontrol", "show", "partition"), "slurmctld")
        self._start("slurmd", "-D")
        self._until(lambda: "idle" in _said("sinfo", "--noheader", "--format=%T"), "slurmd")

    def __exit__(self, *_: object) -> None:
        for process in reversed(self.running):
            process.terminate()
            process.wait(60)

    def _start(self, *words: str) -> None:
        program = shutil.which(words[0]) or words[0]
        with (PLACE / f"{words[0]}.log").open("ab") as log:
            self.running.append(
                subprocess.Popen(
                    [program, *words[1:]], stdout=log, stderr=subprocess.STDOUT, env=_environment()
                )
            )

    def _until(self, ready: Callable[[], bool], name: str) -> None:
        end = time.monotonic() + DEADLINE_S
        while not ready():
            if self.running[-1].poll() is not None or time.monotonic() > end:
                raise RuntimeError(
                    f"{name} is not up: {(PLACE / f'{name}.log').read_text()[-2000:]}"
                )
            time.sleep(0.2)


def _said(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=_environment())
    return done.stdout if done.returncode == 0 else ""


def _answers(*words: str) -> bool:
    return bool(_said(*words))
