"""Limits of this process: CPUs, memory, CPU time, disk. Affinity, cgroups and Slurm's variables
give them, so that they hold inside a job.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from peakmark.machine import topology
from peakmark.machine.host import Facts, Host, environment_int
from peakmark.machine.topology import Topology

UNLIMITED = 1 << 62
"""Bytes from which on a memory limit means no limit. Version 1 of cgroups writes the largest
multiple of a page below 2**63 where none is set (``PAGE_COUNTER_MAX``,
include/linux/page_counter.h).
"""


def collect(
    host: Host, affinity: set[int] | None = None, cpu_locations: Topology | None = None
) -> Facts:
    """Return the ``limits`` part of the facts.

    Args:
        affinity: CPUs instead of those of this process, for another host.
        cpu_locations: where these CPUs sit, if already read.
    """
    if affinity is None:
        affinity = os.sched_getaffinity(0)
    cpus = sorted(affinity)
    cpu_locations = cpu_locations or topology.read(host, cpus)
    total = host.meminfo().get("MemTotal") or _installed(host)
    memory = _memory_limit(host)
    limited_by: str | None = "cgroup"
    # A limit of all the memory of the node, or more, limits nothing.
    if memory is None or memory >= (total or UNLIMITED):
        memory, limited_by = total, None
    slurm = None
    if "SLURM_JOB_ID" in os.environ:
        slurm = _slurm_limits()
    return {
        "cpus_allowed": topology.order(cpu_locations, cpus),
        "physical_cores_allowed": topology.reach(cpu_locations, cpus)["cores"],
        "cpu_quota": _cpu_quota(host),
        "memory_bytes": memory,
        "memory_limited_by": limited_by,
        "slurm": slurm,
    }


def _installed(host: Host) -> int | None:
    """Return the memory in bytes by ``sysinfo(2)``, for where ``/proc/meminfo`` is masked.

    None for another host, or where the C library does not know it either.
    """
    if host.root != Path("/"):
        return None
    pages = os.sysconf("SC_PHYS_PAGES")
    return pages * os.sysconf("SC_PAGE_SIZE") if pages > 0 else None


def _slurm_limits() -> dict[str, int | None]:
    """Return the job's CPUs and bytes by Slurm's variables."""
    return {
        "cpus_on_node": environment_int("SLURM_CPUS_ON_NODE"),
        "cpus_per_task": environment_int("SLURM_CPUS_PER_TASK"),
        "memory_per_node_bytes": _slurm_bytes("SLURM_MEM_PER_NODE"),
        "memory_per_cpu_bytes": _slurm_bytes("SLURM_MEM_PER_CPU"),
    }


def _slurm_bytes(name: str) -> int | None:
    """Return the bytes of a variable that counts MiB; None for 0, by which Slurm means all memory of
    the node.
    """
    mebibytes = environment_int(name)
    return mebibytes << 20 if mebibytes else None


def slurm_job(version: str | None) -> Facts | None:
    """Return the ``slurm`` part of the facts: Slurm's version and this job; None without Slurm."""
    job = os.environ.get("SLURM_JOB_ID")
    if not version and not job:
        return None
    return {
        "version": version,
        "job_id": job,
        "partition": os.environ.get("SLURM_JOB_PARTITION"),
        "node": os.environ.get("SLURMD_NODENAME"),
    }


def folders(host: Host, controller: str) -> list[tuple[int, str]]:
    """Return (cgroup version, folder) of this process's group and all above it.

    The folders lie below the mount points that the kernel names.
    """
    mounts = _mounts(host)
    found = []
    groups = re.findall(r"(?m)^(\d+):([^:]*):(.*)$", host.read("/proc/self/cgroup") or "")
    for number, names, group in groups:
        key = controller
        if number == "0" and not names:
            key = ""
        elif controller not in names.split(","):
            continue
        if key not in mounts:
            continue
        version, mount, root = mounts[key]
        # In a container the mount shows only what lies below ``root``.
        visible = group
        if root != "/" and f"{group}/".startswith(f"{root}/"):
            visible = group.removeprefix(root)
        inside = PurePosixPath("/" + visible.lstrip("/"))
        for path in (inside, *inside.parents):
            found.append((version, f"{mount.rstrip('/')}{path}".rstrip("/")))
    return found


def _mounts(host: Host) -> dict[str, tuple[int, str, str]]:
    """Return each controller's cgroup version, mount point and root of the mount.

    The controller of version 2 has the empty name.
    """
    # mount id, parent, device, root, mount point, ..., "-", type, source, options
    line = r"(?m)^\S+ \S+ \S+ (\S+) (\S+) .* - (cgroup2?) \S+ (\S+)"
    mounts: dict[str, tuple[int, str, str]] = {}
    for root, mount, kind, options in re.findall(line, host.read("/proc/self/mountinfo") or ""):
        version, names = (2, [""]) if kind == "cgroup2" else (1, options.split(","))
        for name in names:
            mounts.setdefault(name, (version, mount, root))
    return mounts


def _memory_limit(host: Host) -> int | None:
    """Return the smallest limit in bytes from this process's cgroup to the root, None without one.

    ``memory.high`` counts: above it the kernel takes memory back and delays the processes.
    """
    names = {1: ("memory.limit_in_bytes",), 2: ("memory.max", "memory.high")}
    limits = []
    for version, folder in folders(host, "memory"):
        limits += [host.read_int(f"{folder}/{name}") for name in names[version]]
    return min((limit for limit in limits if limit), default=None)


def _cpu_quota(host: Host) -> float | None:
    """Return how many CPUs' time the cgroup grants, such as 2.5; None without a quota."""
    quotas = []
    for version, folder in folders(host, "cpu"):
        names = ("cpu.max",) if version == 2 else ("cpu.cfs_quota_us", "cpu.cfs_period_us")
        text = " ".join(host.read(folder, name) or "" for name in names)
        if match := re.fullmatch(r"([1-9]\d*) ([1-9]\d*)", text):
            quotas.append(int(match[1]) / int(match[2]))
    return min(quotas, default=None)


def oom_kills(host: Host) -> int | None:
    """Count the processes of this cgroup that the kernel has ended because memory ran out.

    None where the kernel does not tell.
    """
    names = {1: "memory.oom_control", 2: "memory.events"}
    for version, folder in folders(host, "memory"):
        count = host.pairs(f"{folder}/{names[version]}", " ").get("oom_kill", "")
        if count.isdecimal():
            return int(count)
    return None


_IO_KEYS = {"rbps": "read_bps", "wbps": "write_bps", "riops": "read_iops", "wiops": "write_iops"}
"""Key of ``io.max`` in version 2 of cgroups -> that of ``io_limits``."""


def io_limits(host: Host, disks: Iterable[str]) -> dict[str, int] | None:
    """Return the most that cgroups let this process move on any of these disks, None without a
    limit.

    Returns:
        ``read_bps``, ``write_bps`` (B/s), ``read_iops``, ``write_iops`` (1/s), each only where it
        is limited.
    """
    devices = {host.read(f"/sys/block/{disk}/dev") for disk in disks}
    limits: dict[str, int] = {}
    for version, folder in folders(host, "blkio"):
        for device, key, text in _io_entries(host, version, folder):
            if device in devices and text.isdecimal() and int(text) > 0:
                limits[key] = min(limits.get(key, int(text)), int(text))
    return limits or None


def _io_entries(host: Host, version: int, folder: str) -> Iterable[tuple[str, str, str]]:
    """Yield (device number, key of ``io_limits``, value) of each limit that one cgroup sets."""
    if version == 2:
        for device, text in host.pairs(f"{folder}/io.max", " ").items():
            for name, number in re.findall(r"(\w+)=(\d+)", text):
                yield device, _IO_KEYS[name], number
        return
    for key in _IO_KEYS.values():
        for device, text in host.pairs(f"{folder}/blkio.throttle.{key}_device", " ").items():
            yield device, key, text
