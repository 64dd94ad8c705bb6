"""What this process may use: CPUs, memory, CPU time. Affinity and cgroups, so that it is right
inside a Slurm job.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any

from peakmark.machine import topology
from peakmark.machine.host import Host
from peakmark.machine.topology import Topology


def collect(
    host: Host, affinity: set[int] | None = None, cpu_locations: Topology | None = None
) -> dict[str, Any]:
    """The ``limits`` part of the facts. ``affinity``: CPUs instead of those of this process (for
    another host); ``seats``: of these CPUs, where they are known.
    """
    allowed = sorted(os.sched_getaffinity(0) if affinity is None else affinity)
    cpu_locations = topology.read(host, allowed) if cpu_locations is None else cpu_locations
    memory = cgroup_limit(host, "memory", "memory.max", "memory.limit_in_bytes")
    total = host.meminfo().get("MemTotal")
    if memory is not None and total is not None and memory >= total:
        memory = None  # version 1 writes a huge number for "no limit"
    return {
        "cpus_allowed": topology.order(cpu_locations, allowed),
        "physical_cores_allowed": topology.reach(cpu_locations, allowed)["cores"],
        "cpu_quota": _cpu_quota(host),
        "memory_bytes": memory if memory is not None else total,
        "memory_limited_by": "cgroup" if memory is not None else None,
        "slurm": {
            "cpus_on_node": _env_int("SLURM_CPUS_ON_NODE"),
            "cpus_per_task": _env_int("SLURM_CPUS_PER_TASK"),
            "memory_per_node_bytes": _megabytes("SLURM_MEM_PER_NODE"),
            "memory_per_cpu_bytes": _megabytes("SLURM_MEM_PER_CPU"),
        }
        if "SLURM_JOB_ID" in os.environ
        else None,
    }


def cgroup_limit(host: Host, controller: str, file_v2: str, file_v1: str) -> int | None:
    """The smallest limit on the way from this process's cgroup to the root, or None where nothing
    limits.
    """
    files = {1: file_v1, 2: file_v2}
    readings = [
        host.read_int(f"{folder}/{files[version]}") for version, folder in folders(host, controller)
    ]
    known = [value for value in readings if value is not None]
    return min(known) if known else None


def folders(host: Host, controller: str) -> tuple[tuple[int, str], ...]:
    """(cgroup version, folder) of this process's group and all above it, by the mount points the
    kernel names.
    """
    return _folders(
        host.read("/proc/self/mountinfo") or "", host.read("/proc/self/cgroup") or "", controller
    )


@lru_cache(8)
def _folders(mountinfo: str, cgroup: str, controller: str) -> tuple[tuple[int, str], ...]:
    mounts: dict[str, tuple[int, str, str]] = {}
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) < 5 or len(kind) < 3:
            continue
        if kind[0] == "cgroup2":
            mounts.setdefault("", (2, fields[4], fields[3]))
        elif kind[0] == "cgroup":
            for name in kind[2].split(","):
                mounts.setdefault(name, (1, fields[4], fields[3]))
    folders = []
    for line in cgroup.splitlines():
        number, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        key = "" if number == "0" and not names else controller
        if (key and key not in names.split(",")) or key not in mounts:
            continue
        version, mount, root = mounts[key]
        # In a container the mount shows only what lies below ``root``.
        if root != "/" and (path == root or path.startswith(f"{root}/")):
            path = path[len(root) :] or "/"
        inside = PurePosixPath("/" + path.lstrip("/"))
        folders += [
            (version, f"{mount.rstrip('/')}{'' if str(p) == '/' else p}")
            for p in (inside, *inside.parents)
        ]
    return tuple(folders)


def oom_kills(host: Host) -> int | None:
    """How many processes of this one's cgroup the kernel has ended because memory ran out; None
    where it does not tell.
    """
    for version, folder in folders(host, "memory"):
        count = host.pairs(
            f"{folder}/{'memory.events' if version == 2 else 'memory.oom_control'}", " "
        ).get("oom_kill", "")
        if count.isdigit():
            return int(count)
    return None


def io_limits(host: Host, disks: Iterable[str]) -> dict[str, int] | None:
    """What cgroups let this process move on any of these disks at most, None without a limit.

    Keys read_bps, write_bps (B/s), read_iops, write_iops (1/s), each only where there is a limit.
    """
    devices = {host.read(f"/sys/block/{disk}/dev") for disk in disks} - {None}
    limits: dict[str, int] = {}

    def keep(name: str, text: str) -> None:
        if text.isdigit() and int(text) > 0:
            limits[name] = min(limits.get(name, int(text)), int(text))

    for version, folder in folders(host, "blkio"):
        if version == 2:
            for line in (host.read(f"{folder}/io.max") or "").splitlines():
                device, *entries = line.split()
                for entry in entries if device in devices else ():
                    short, _, text = entry.partition("=")
                    keep({"r": "read", "w": "write"}.get(short[:1], short) + f"_{short[1:]}", text)
            continue
        for name in ("read_bps", "write_bps", "read_iops", "write_iops"):
            for line in (host.read(f"{folder}/blkio.throttle.{name}_device") or "").splitlines():
                device, _, text = line.partition(" ")
                if device in devices:
                    keep(name, text.strip())
    return limits or None


def _cpu_quota(host: Host) -> float | None:
    """CPUs' worth of time the cgroup grants (2.5 is two and a half CPUs), or None without a quota."""
    grants = []
    for version, folder in folders(host, "cpu"):
        if version == 2:
            quota, _, period = (host.read(f"{folder}/cpu.max") or "max").partition(" ")
            if quota.isdigit() and period.isdigit() and int(period) > 0:
                grants.append(int(quota) / int(period))
        else:
            quota_us = host.read_int(f"{folder}/cpu.cfs_quota_us")
            period_us = host.read_int(f"{folder}/cpu.cfs_period_us")
            if quota_us is not None and quota_us > 0 and period_us:
                grants.append(quota_us / period_us)
    return min(grants) if grants else None


def _env_int(name: str) -> int | None:
    text = os.environ.get(name, "")
    return int(text) if text.isdigit() else None


def _megabytes(name: str) -> int | None:
    """Slurm's memory variables are in MiB; 0 means all of the node's memory."""
    value = _env_int(name)
    return value * (1 << 20) if value else None


def slurm_now(version: str | None) -> dict[str, Any] | None:
    """Slurm's version, as it is known, and this job; None where there is no Slurm."""
    job = os.environ.get("SLURM_JOB_ID")
    if not version and not job:
        return None
    return {
        "version": version,
        "job_id": job,
        "partition": os.environ.get("SLURM_JOB_PARTITION"),
        "node": os.environ.get("SLURMD_NODENAME"),
    }
