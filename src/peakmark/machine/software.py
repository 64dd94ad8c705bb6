"""Kernel, distribution, C library, Slurm and the programs that measure."""

from __future__ import annotations

import os
import platform
import re
from typing import Any

from peakmark.machine import allowed
from peakmark.machine.host import Host


def collect_os(host: Host) -> dict[str, Any]:
    """The ``os`` part of the facts."""
    release = host.pairs("/etc/os-release", "=") or host.pairs("/usr/lib/os-release", "=")
    distribution = release.get("PRETTY_NAME") or release.get("NAME")
    try:
        libc = os.confstr("CS_GNU_LIBC_VERSION")
    except (ValueError, OSError):
        libc = None
    return {
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "distribution": distribution.strip('"') if distribution else None,
        "glibc": libc.removeprefix("glibc ") if libc else None,
        "io_uring_disabled": host.read_int("/proc/sys/kernel/io_uring_disabled"),
        "numa_balancing": host.read_int("/proc/sys/kernel/numa_balancing"),
        "command_line": _command_line(host),
        "firmware": _firmware(host),
    }


# Parameters of the kernel (Documentation/admin-guide/kernel-parameters.txt) that change what is
# measured. The others name disks and servers, which are nobody's business.
_TELLING = re.compile(
    r"(isolcpus|nohz|nohz_full|rcu_nocbs|idle|(intel_idle|processor)\.max_cstate|(intel|amd)_pstate\S*|cpufreq\.\S+|nosmt|smt|"
    r"maxcpus|nr_cpus|mem|memmap|numa|numa_balancing|default_hugepagesz|hugepagesz|hugepages|transparent_hugepage|iommu\S*|"
    r"(intel|amd)_iommu|mitigations|nopti|pti|(no)?spect\S*|tsx|mds|clocksource|tsc|audit|selinux|init_on_\w+|"
    r"page_poison|slub_debug|nmi_watchdog|nosoftlockup|skew_tick|preempt|threadirqs|cgroup\w*)(=.*)?"
)


def _command_line(host: Host) -> str | None:
    """The kernel's parameters that change what is measured, empty where none of them was given."""
    text = host.read("/proc/cmdline")
    return (
        None
        if text is None
        else " ".join(word for word in text.split() if _TELLING.fullmatch(word))
    )


def _firmware(host: Host) -> str | None:
    """Maker, version and date of the BIOS, as far as an ordinary user may read them."""
    parts = [host.read(f"/sys/class/dmi/id/bios_{name}") for name in ("vendor", "version", "date")]
    return " ".join(word for word in parts if word) or None


def collect_slurm(host: Host) -> dict[str, Any] | None:
    """Slurm's version and this job, or None where there is no Slurm."""
    said = host.run(["sinfo", "--version"])
    return allowed.slurm_now(said.strip().removeprefix("slurm ") if said else None)
