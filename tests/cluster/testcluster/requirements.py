"""What the cluster needs of the machine, asked before anything is started."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from . import cgroups

SLURM = (
    "slurmctld",
    "slurmd",
    "scontrol",
    "sinfo",
    "squeue",
    "sbatch",
    "srun",
    "scancel",
    "sacct",
    "munged",
)
ACCOUNTING = ("slurmdbd", "sacctmgr", "mariadbd", "mariadb-install-db")
TOOLS = ("ip", "nsenter", "unshare", "setpriv", "setsid", "env")

# Everything the cluster does that a container or a hardened kernel may forbid, tried once in
# namespaces that end with the command.
PROBE = """set -e
ip link add pmprobe type bridge
ip link add pmprobe0 type veth peer name pmprobe1
ip link set pmprobe0 master pmprobe
mount -t sysfs sysfs /sys
mount -t proc proc /proc
hostname pmprobe
"""


def search_path() -> str:
    """PATH with the directories of daemons in it; root has them, but not in every environment."""
    given = os.environ.get("PATH", "/usr/bin:/bin").split(":")
    return ":".join(
        given + [d for d in ("/usr/local/sbin", "/usr/sbin", "/sbin") if d not in given]
    )


def why_not(**options: Any) -> str | None:
    """One sentence that says why a cluster with these options (see config.Layout) cannot be started
    here, or None when it can.
    """
    accounting, cpus = bool(options.get("accounting")), options.get("cpus", 2)
    if os.geteuid() != 0:
        return "a Slurm test cluster needs root (it makes network and mount namespaces); this is another user"
    path = search_path()
    wanted = TOOLS + SLURM + (ACCOUNTING if accounting else ())
    missing = [name for name in wanted if not shutil.which(name, path=path)]
    if missing:
        packages = "slurm-wlm munge iproute2 util-linux" + (
            " slurmdbd mariadb-server" if accounting else ""
        )
        return f"a Slurm test cluster needs {', '.join(missing)}, not found in PATH (Debian packages: {packages})"
    if not Path("/etc/slurm").is_dir():
        return "a Slurm test cluster needs the directory /etc/slurm to lay its own over; Debian's slurm-wlm makes it"
    there = len(os.sched_getaffinity(0))
    if (options.get("binding") or options.get("cgroups")) and there < (
        most := max(cpus if isinstance(cpus, tuple) else (cpus,))
    ):
        return f"nodes whose jobs are held to their CPUs cannot claim {most} CPUs: this machine has {there}"
    if options.get("cgroups") and (reason := cgroups.why_not()):
        return reason
    try:
        done = subprocess.run(
            ["unshare", "--mount", "--net", "--uts", "--pid", "--fork", "sh", "-c", PROBE],
            env={"PATH": path}, capture_output=True, text=True, timeout=20, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return "a Slurm test cluster needs namespaces; trying to make some did not come to an end within 20 s"
    if done.returncode:
        reason = " ".join(done.stderr.split()) or f"exit code {done.returncode}"
        return f"a Slurm test cluster needs namespaces, a bridge and mounts, which this machine refuses: {reason}"
    return None
