"""Read the limits of this process: CPUs, memory, CPU time, disk.

The limits come from CPU affinity, cgroups and Slurm's variables, so that they are correct inside a job.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from peakmark.machine import topology
from peakmark.machine.host import Facts, Host, first_int
from peakmark.machine.topology import Topology

JOB_NUMBERS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID")
"""Variables in which schedulers give the number of a job."""
UNLIMITED = 1 << 62
"""Bytes. A memory limit of at least this number means that there is no limit.

Without a limit, version 1 of cgroups shows the largest multiple of a page below 2**63
(``PAGE_COUNTER_MAX``, include/linux/page_counter.h).
"""


def collect(
    host: Host, affinity: set[int] | None = None, cpu_locations: Topology | None = None
) -> Facts:
    """Return the ``limits`` part of the facts.

    Args:
        host: the machine.
        affinity: numbers of the CPUs that the process may use; by default the affinity of this process.
        cpu_locations: locations of these CPUs, if already read.
    """
    if affinity is None:
        affinity = os.sched_getaffinity(0)
    cpus = sorted(affinity)
    cpu_locations = cpu_locations or topology.read(host, cpus)
    total = host.meminfo().get("MemTotal") or _installed(host)
    memory = _memory_limit(host)
    limited_by: str | None = "cgroup"
    # Ignore a limit that is not below the memory of the node.
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
    """Return the installed memory in bytes from ``sysinfo(2)``, for systems that hide /proc/meminfo.

    The result is None for another host, or if the C library does not know it.
    """
    if host.root != Path("/"):
        return None
    pages = os.sysconf("SC_PHYS_PAGES")
    return pages * os.sysconf("SC_PAGE_SIZE") if pages > 0 else None


def job_id() -> str | None:
    """Return the job ID of the job that this process belongs to; None outside a job."""
    for name in JOB_NUMBERS:
        if os.environ.get(name):
            return os.environ[name]
    return None


def _slurm_limits() -> dict[str, int | None]:
    """Return the CPUs and the memory of the job from Slurm's environment variables; None for those that are not set."""
    return {
        "cpus_on_node": first_int(os.environ.get("SLURM_CPUS_ON_NODE")),
        "memory_per_node_bytes": _slurm_bytes("SLURM_MEM_PER_NODE"),
        "memory_per_cpu_bytes": _slurm_bytes("SLURM_MEM_PER_CPU"),
    }


def _slurm_bytes(name: str) -> int | None:
    """Return as bytes what an environment variable of Slurm holds in MiB.

    The result is None for 0, which means all memory of the node.
    """
    mebibytes = first_int(os.environ.get(name))
    return mebibytes << 20 if mebibytes else None


def slurm_job(version: str | None) -> Facts | None:
    """Return the ``slurm`` part of the facts: Slurm's version, partition and name of the node; None without Slurm.

    Outside a job, partition and node are None.
    """
    job = os.environ.get("SLURM_JOB_ID")
    if not version and not job:
        return None
    return {
        "version": version,
        "partition": os.environ.get("SLURM_JOB_PARTITION"),
        "node": os.environ.get("SLURMD_NODENAME"),
    }


def folders(host: Host, controller: str) -> list[tuple[int, str]]:
    """Return (cgroup version, folder) of this process's cgroup and of all its parents.

    Args:
        host: the machine.
        controller: name of the controller, such as ``memory``.
    """
    mounts = _mounts(host)
    found = []
    # A line is ``NUMBER:CONTROLLERS:GROUP``, such as ``4:cpu,cpuacct:/slurm/job_7``.
    groups = re.findall(r"(?m)^(\d+):([^:]*):(.*)$", host.read("/proc/self/cgroup") or "")
    for number, names, group in groups:
        key = controller
        # Version 2 has the line ``0::GROUP`` for all controllers.
        if number == "0" and not names:
            key = ""
        elif controller not in names.split(","):
            continue
        if key not in mounts:
            continue
        version, mount, root = mounts[key]
        # In a container, only the part below ``root`` is visible.
        visible = group
        if root != "/" and f"{group}/".startswith(f"{root}/"):
            visible = group.removeprefix(root)
        inside = PurePosixPath("/" + visible.lstrip("/"))
        for path in (inside, *inside.parents):
            found.append((version, f"{mount.rstrip('/')}{path}".rstrip("/")))
    return found


def _mounts(host: Host) -> dict[str, tuple[int, str, str]]:
    """Return controller -> (cgroup version, mount point, root of the mount).

    Version 2 has one mount for all controllers, under an empty name.
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
    """Return the smallest memory limit in bytes of this process's cgroup and its parents; None without a limit.

    ``memory.high`` counts as a limit, because above it the kernel reclaims memory and delays
    processes. If there is no limit, version 1 of cgroups shows a number above ``UNLIMITED``;
    ``collect`` ignores this number.
    """
    names = {1: ("memory.limit_in_bytes",), 2: ("memory.max", "memory.high")}
    limits = []
    for version, folder in folders(host, "memory"):
        limits += [host.read_int(f"{folder}/{name}") for name in names[version]]
    return min((limit for limit in limits if limit), default=None)


def _cpu_quota(host: Host) -> float | None:
    """Return the number of CPUs whose time the cgroup grants, such as 2.5; None without a quota."""
    quotas = []
    for version, folder in folders(host, "cpu"):
        names = ("cpu.max",) if version == 2 else ("cpu.cfs_quota_us", "cpu.cfs_period_us")
        # Both versions give quota and period, such as ``250000 100000``; ``max`` or -1 is no quota.
        text = " ".join(host.read(folder, name) or "" for name in names)
        if match := re.fullmatch(r"([1-9]\d*) ([1-9]\d*)", text):
            quotas.append(int(match[1]) / int(match[2]))
    return min(quotas, default=None)


def oom_kills(host: Host) -> int | None:
    """Return how many processes of this cgroup the kernel has killed for lack of memory; None if it is unknown.

    If the cgroup has no such counter, its nearest parent with one counts.
    """
    names = {1: "memory.oom_control", 2: "memory.events"}
    for version, folder in folders(host, "memory"):
        count = host.pairs(f"{folder}/{names[version]}", " ").get("oom_kill", "")
        if count.isdecimal():
            return int(count)
    return None


_IO_KEYS = {"rbps": "read_bps", "wbps": "write_bps", "riops": "read_iops", "wiops": "write_iops"}
"""Key of ``io.max`` in version 2 of cgroups -> key in the result of ``io_limits``."""


def io_limits(host: Host, disks: Iterable[str]) -> dict[str, int] | None:
    """Return the lowest I/O limits of this process's cgroups on any of these disks; None without a limit.

    The keys are ``read_bps`` and ``write_bps`` in B/s, ``read_iops`` and ``write_iops`` in 1/s. Rates
    without a limit are left out.
    """
    devices = {host.read(f"/sys/block/{disk}/dev") for disk in disks}
    limits: dict[str, int] = {}
    for version, folder in folders(host, "blkio"):
        for device, key, text in _io_entries(host, version, folder):
            # In version 1, the value 0 removes a limit.
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
