"""Faults put in on purpose, taken out again when the block is left. Each says by which words a
report must name it.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.kernels.namespaces import Namespaces
from benchmarks.method.sides import Bench, Surroundings
from peakmark.machine import job_limits
from peakmark.machine.host import Host
from peakmark.messages import Unavailable

READY_S = 30.0


@dataclass(frozen=True)
class Fault:
    """One fault.

    grids   the cells in which it must show      words   what a note on the row must say
    apart   whether a comparison must call the two sides different; else the note alone must tell
    put     given the bench, the plain surroundings and the median without the fault: those with it,
            until it is left
    modules of the user-mode kernel in which it is put in where this machine cannot; none: only here
    """

    name: str
    grids: dict[str, Any]
    words: str
    put: Callable[[Bench, Surroundings, float], AbstractContextManager[Surroundings]]
    apart: bool = True
    between_namespaces: bool = False
    modules: tuple[str, ...] = ()


@contextmanager
def _competing(bench: Bench, plain: Surroundings, _: float) -> Iterator[Surroundings]:
    """A program of somebody else on the CPU that the kernel is pinned to. It ends with this process
    at the latest.
    """
    cpu = bench.facts["limits"]["cpus_allowed"][0]
    loop = f"import os\nos.sched_setaffinity(0, [{cpu}])\nparent = os.getppid()\nwhile os.getppid() == parent: pass"
    with subprocess.Popen([sys.executable, "-c", loop]) as process:
        try:
            path, deadline = Path(f"/proc/{process.pid}/stat"), time.monotonic() + READY_S
            while (
                int(path.read_text().rpartition(")")[2].split()[11]) < 2
                and time.monotonic() < deadline
            ):
                time.sleep(0.01)
            yield plain
        finally:
            process.kill()


@contextmanager
def _cgroup(bench: Bench, plain: Surroundings, healthy: float) -> Iterator[Surroundings]:
    """Reading from the scratch disk limited to a twentieth of what it does: that is what is
    measured, whoever else has the disk or the CPU meanwhile. Errors: Unavailable.
    """
    here = Host()
    disks = bench.facts["storage"]["members"] or []
    device = here.read(f"/sys/block/{disks[0]}/dev") if len(disks) == 1 else None
    if os.geteuid() != 0 or device is None:
        raise Unavailable(
            "a control group that limits the disk needs root, and one disk behind the scratch directory"
        )
    rate = max(1_000_000, int(healthy / 20))
    for version, folder in reversed(job_limits.folders(here, "blkio")):
        group = Path(folder) / f"peakmark-{os.getpid()}"
        try:
            if (
                version == 2
                and "io" not in (here.read(f"{folder}/cgroup.subtree_control") or "").split()
            ):
                continue
            group.mkdir()
        except OSError:
            continue
        try:
            name, text = ("io.max", f"{device} rbps={rate}") if version == 2 else (
                "blkio.throttle.read_bps_device", f"{device} {rate}")  # fmt: skip
            (group / name).write_text(text)
            yield replace(plain, cgroups=(group,))
        finally:
            _remove_group(group)
        return
    raise Unavailable(
        "no control group here can limit the disk: neither io (version 2) nor blkio (version 1)"
    )


def _remove_group(group: Path) -> None:
    """The worker has ended, but the kernel may need a moment to let go of it."""
    deadline = time.monotonic() + READY_S
    while group.exists():
        try:
            group.rmdir()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


@contextmanager
def _slow_tool(bench: Bench, plain: Surroundings, healthy: float) -> Iterator[Surroundings]:
    """fio held back by its own option, as by a wrapper somebody left on PATH."""
    real = shutil.which("fio")
    if real is None:
        raise Unavailable("fio not found; install the package fio")
    path = bench.work / "fio"
    rate = max(1_000_000, int(healthy / 5))
    path.write_text(
        f'#!/bin/sh\ncase "$*" in *--name=*) exec {shlex.quote(real)} --rate={rate} "$@" ;; esac\nexec {shlex.quote(real)} "$@"\n'
    )
    path.chmod(0o755)
    yield replace(plain, tools={**plain.tools, "fio": str(path)})


@contextmanager
def _page_cache(bench: Bench, plain: Surroundings, _: float) -> Iterator[Surroundings]:
    """O_DIRECT taken and ignored, as by a file system that only pretends. Errors: Unavailable
    without a compiler, or where no block device is seen below the scratch directory (overlay,
    tmpfs): what a device moved is not known there.
    """
    device = bench.work.stat().st_dev
    if not Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}").exists():
        raise Unavailable(
            f"no block device is seen below {bench.work}, so bytes that come from a cache cannot be told"
        )
    library = bench.work / "strip_direct.so"
    source = Path(__file__).with_name("strip_direct.c")
    try:
        argv = ["gcc", "-shared", "-fPIC", "-O2", "-o", str(library), str(source), "-ldl"]
        subprocess.run(argv, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise Unavailable(f"{source.name} cannot be compiled: {error}") from error
    yield replace(plain, environment={**plain.environment, "LD_PRELOAD": str(library)})


def _shaped(
    *discipline: str,
) -> Callable[[Bench, Surroundings, float], AbstractContextManager[Surroundings]]:
    @contextmanager
    def put(_: Bench, plain: Surroundings, __: float) -> Iterator[Surroundings]:
        names = plain.namespaces
        if names is None:
            raise Unavailable("no network namespaces: run as root, with iproute2")
        device = device_of(names)
        _tc(names, "add", "dev", device, "root", *discipline)
        try:
            yield plain
        finally:
            _tc(names, "del", "dev", device, "root")

    return put


def device_of(names: Namespaces) -> str:
    """Name of the link's end in the client's namespace."""
    argv = ["ip", "-n", names.client, "-o", "link", "show", "type", "veth"]
    listed = subprocess.run(argv, capture_output=True, text=True, check=True)
    return listed.stdout.split(":")[1].strip().partition("@")[0]


def _tc(names: Namespaces, *words: str) -> None:
    argv = ["tc", "-n", names.client, "qdisc", *words]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    except OSError as error:
        raise Unavailable(f"tc: {error.strerror}; install the package iproute2") from error
    if done.returncode != 0:
        raise Unavailable(f"{' '.join(words[4:6])}: {done.stderr.strip() or 'tc failed'}")


_CPU: dict[str, Any] = {"workloads": ["DP"], "concurrency": [1], "seconds": 0.2}
_READ = {**_CPU, "workloads": ["RS"], "blocks": ["1MiB"], "size": "16MiB"}
_TCP = {**_CPU, "workloads": ["TCP"], "blocks": ["32KiB"]}
_LATENCY = {**_CPU, "workloads": ["LAT-TCP"], "blocks": ["1B"]}

FAULTS = (
    Fault("CPU: a competing program on it", {"cpu": [_CPU]}, "other programs used", _competing),
    Fault("disk: limited by a control group", {"disk": [_READ]}, "a cgroup lets this job", _cgroup),
    Fault(
        "disk: one of two programs limited (fio --rate)",
        {"disk": [{**_READ, "references": {"fio": {"seconds": 0.3}}}]},
        "they do not measure the same",
        _slow_tool,
    ),
    Fault(
        "disk: page cache instead of O_DIRECT",
        {"disk": [_READ]},
        "came from or stayed in a cache",
        _page_cache,
    ),
    Fault(
        "link: 100 Mbit/s by tc tbf",
        {"network": [_TCP]},
        "slowed down on purpose (tbf",
        _shaped("tbf", "rate", "100mbit", "burst", "64kb", "latency", "50ms"),
        between_namespaces=True,
        modules=("veth", "sch_tbf"),
    ),
    Fault(
        "link: 2 ms by tc netem",
        {"network": [_LATENCY]},
        "slowed down on purpose (netem",
        _shaped("netem", "delay", "2ms"),
        between_namespaces=True,
        modules=("veth", "sch_netem"),
    ),
)
