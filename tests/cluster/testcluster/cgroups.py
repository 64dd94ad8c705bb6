"""Control groups of a cluster's own, for task/cgroup: below the machine's, one for each node, gone
with the cluster.

slurmd of Debian makes `slurm_NODE` in each controller's hierarchy of version 1 and works in there;
a node's name that is no other cluster's makes it the cluster's own. Version 2 is another matter:
its controllers can be had only where the machine has none of them in version 1, and slurmd 22.05
asks systemd for its place. Where there is no version 1, a cluster is without task/cgroup.
"""

import contextlib
import os
from pathlib import Path

from .processes import wait_until

ROOT = Path("/sys/fs/cgroup")
CONTROLLERS = ("cpuset", "memory", "freezer", "cpuacct")


def why_not() -> str | None:
    """One sentence that says why Slurm cannot have control groups here, or None when it can."""
    for name in CONTROLLERS:
        # What slurmd itself looks for ("unable to verify cgroup namespace availability" in its log,
        # if it is not there).
        if not os.access(ROOT / name / "release_agent", os.R_OK):
            return (
                f"task/cgroup is tried with control groups of version 1, and this machine has no {ROOT / name}/release_agent: "
                "the controller is off, belongs to version 2 or to the host of a container"
            )
        if not os.access(ROOT / name, os.W_OK):
            return f"task/cgroup makes control groups, and {ROOT / name} cannot be written"
    return None


def groups(node: str) -> list[Path]:
    """The control groups of a node that are there."""
    return [path for path in ROOT.glob(f"*/slurm_{node}") if not path.parent.is_symlink()]


def remove(node: str, seconds: float = 10.0) -> None:
    """Remove the control groups of a node whose processes have ended."""

    def gone() -> bool:
        for top in groups(node):
            for folder, _, _ in os.walk(top, topdown=False):
                # The kernel may still be at the end of a process that was in it.
                with contextlib.suppress(OSError):
                    os.rmdir(folder)
        return not groups(node)

    wait_until(gone, seconds, f"the control groups of {node} are gone")
