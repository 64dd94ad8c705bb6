"""Kernel, distribution, C library, Slurm and the programs that measure."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from typing import Any, Protocol

from peakmark.machine.host import Host


class ToolLike(Protocol):
    """What ``peakmark.instruments.base.Tool`` has."""

    @property
    def path(self) -> str: ...

    @property
    def version(self) -> str: ...


def collect_os(host: Host) -> dict[str, Any]:
    """The ``os`` part of the facts."""
    release: dict[str, str] = {}
    for line in (host.read("/etc/os-release") or host.read("/usr/lib/os-release") or "").splitlines():
        key, equals, value = line.partition("=")
        if equals:
            release[key] = value.strip().strip('"')
    try:
        libc = os.confstr("CS_GNU_LIBC_VERSION")
    except (ValueError, OSError):
        libc = None
    return {
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "distribution": release.get("PRETTY_NAME") or release.get("NAME"),
        "glibc": libc.removeprefix("glibc ") if libc else None,
        "io_uring_disabled": host.read_int("/proc/sys/kernel/io_uring_disabled"),
    }


def collect_slurm(host: Host) -> dict[str, Any] | None:
    """Slurm's version and this job, or None where there is no Slurm."""
    version = host.run(["sinfo", "--version"])
    job = os.environ.get("SLURM_JOB_ID")
    if not version and not job:
        return None
    return {
        "version": version.strip().removeprefix("slurm ") if version else None,
        "job_id": job,
        "partition": os.environ.get("SLURM_JOB_PARTITION"),
        "node": os.environ.get("SLURMD_NODENAME"),
    }


def collect_tools(tools: Mapping[str, ToolLike]) -> dict[str, dict[str, str]]:
    """Path and version of each program, by its name."""
    return {name: {"path": tool.path, "version": tool.version} for name, tool in sorted(tools.items())}
