"""What a cluster needs of the machine."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

SLURM = [
    "slurmctld", "slurmd", "scontrol", "sinfo", "squeue", "sbatch", "srun", "scancel", "sacct",
    "munged",
]  # fmt: skip
ACCOUNTING = ["slurmdbd", "sacctmgr", "mariadbd", "mariadb-install-db"]
TOOLS = ["ip", "nsenter", "unshare", "setpriv", "setsid", "env"]
PACKAGES = "slurm-wlm munge iproute2 util-linux"

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
    if options.get("binding") and here < most:
        return (
            f"nodes that hold jobs to their CPUs cannot claim {most} CPUs: this machine has {here}"
        )
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
