"""What a cluster needs of the machine, and the control groups that it takes there."""

import contextlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from .processes import wait_until

SLURM = [
    "slurmctld", "slurmd", "scontrol", "sinfo", "squeue", "sbatch", "srun", "scancel", "sacct",
    "munged",
]  # fmt: skip
ACCOUNTING = ["slurmdbd", "sacctmgr", "mariadbd", "mariadb-install-db"]
TOOLS = ["ip", "nsenter", "unshare", "setpriv", "setsid", "env"]
PACKAGES = "slurm-wlm munge iproute2 util-linux"
GROUPS = Path("/sys/fs/cgroup")
CONTROLLERS = ("cpuset", "memory", "freezer", "cpuacct")

# All that a container or a hardened kernel may forbid, tried in namespaces that end with it.
PROBE = """set -e
ip link add pmprobe type bridge
ip link add pmprobe0 type veth peer name pmprobe1
ip link set pmprobe0 master pmprobe
mount -t sysfs sysfs /sys
mount -t proc proc /proc
hostname pmprobe
"""


def search_path() -> str:
    """PATH with the folders of daemons, which root does not have in every environment."""
    path = os.environ.get("PATH", "/usr/bin:/bin").split(":")
    return ":".join(dict.fromkeys([*path, "/usr/local/sbin", "/usr/sbin", "/sbin"]))


def why_not(**options: Any) -> str | None:
    """Why a cluster with these options of ``Layout`` cannot be here, in a sentence; None if it can."""
    accounting, cpus = bool(options.get("accounting")), options.get("cpus", 2)
    begin = "a Slurm test cluster needs"
    if os.geteuid() != 0:
        return f"{begin} root (it makes network and mount namespaces); this is another user"
    path = search_path()
    wanted = [*TOOLS, *SLURM, *(ACCOUNTING if accounting else [])]
    if missing := [name for name in wanted if not shutil.which(name, path=path)]:
        packages = PACKAGES + (" slurmdbd mariadb-server" if accounting else "")
        return f"{begin} {', '.join(missing)}, not found in PATH (Debian packages: {packages})"
    if not Path("/etc/slurm").is_dir():
        return f"{begin} the directory /etc/slurm, which Debian's slurm-wlm makes"
    most, here = max(cpus if isinstance(cpus, tuple) else (cpus,)), len(os.sched_getaffinity(0))
    if (options.get("binding") or options.get("cgroups")) and here < most:
        return (
            f"nodes that hold jobs to their CPUs cannot claim {most} CPUs: this machine has {here}"
        )
    if options.get("cgroups") and (reason := why_no_groups()):
        return reason
    command = ["unshare", "--mount", "--net", "--uts", "--pid", "--fork", "sh", "-c", PROBE]
    try:
        done = subprocess.run(
            command, env={"PATH": path}, capture_output=True, text=True, timeout=20, check=False
        )
    except subprocess.TimeoutExpired:
        return f"{begin} namespaces; making some did not end within 20 s"
    if done.returncode:
        reason = " ".join(done.stderr.split()) or f"exit code {done.returncode}"
        return f"{begin} namespaces, a bridge and mounts, which this machine refuses: {reason}"
    return None


# -- control groups, for task/cgroup
#
# slurmd of Debian makes `slurm_NODE` in each controller's hierarchy of version 1 and works in it; a
# node's name that no other cluster has makes it the cluster's own. Version 2 is not tried: slurmd
# 22.05 asks systemd for its place.


def why_no_groups() -> str | None:
    """Why Slurm cannot have control groups here, in a sentence; None if it can."""
    for name in CONTROLLERS:
        # What slurmd itself looks for ("unable to verify cgroup namespace availability").
        if not os.access(GROUPS / name / "release_agent", os.R_OK):
            return (
                "task/cgroup is tried with control groups of version 1, and this machine has no "
                f"{GROUPS / name}/release_agent: the controller is off, belongs to version 2 or to "
                "the host of a container"
            )
        if not os.access(GROUPS / name, os.W_OK):
            return f"task/cgroup makes control groups, and {GROUPS / name} cannot be written"
    return None


def groups(node: str) -> list[Path]:
    """The control groups of a node."""
    return [path for path in GROUPS.glob(f"*/slurm_{node}") if not path.parent.is_symlink()]


def remove_groups(node: str) -> None:
    """Remove the control groups of a node whose processes have ended."""

    def gone() -> bool:
        for top in groups(node):
            for folder, _, _ in os.walk(top, topdown=False):
                # The kernel may still be busy with the end of a process that was in it.
                with contextlib.suppress(OSError):
                    os.rmdir(folder)
        return not groups(node)

    wait_until(gone, 10.0, f"the control groups of {node} are gone")
