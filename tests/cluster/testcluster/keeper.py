"""The first processes of a cluster's hosts; run by path inside their new namespaces.

    unshare --mount --net --uts -- python keeper.py DIRECTORY
    python keeper.py --host NAME [--sys]

The first form owns the cluster: it makes the login side, starts the process table of all daemons,
and prints that table's first process id. Its standard input is a pipe from the cluster's owner.
When that pipe closes, because the owner ended in whatever way, the cluster ends; a byte "R" on it
makes the cluster independent until SIGTERM. Then end: every process of the daemons' process table
(the kernel does that, including all nodes and jobs), every process on the login side, that is, in
the keeper's mount namespace, and DIRECTORY.

The second form keeps a host's namespaces alive and takes in orphans. It sets the host name, mounts
/proc of the new process table and with --sys a /sys of the new network, and prints its process id
as the machine sees it. When it is killed, the kernel kills every process of the host with it.
"""

import ctypes
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

# Run by path, so that it does not matter where the package lies.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from testcluster import config
from testcluster.processes import members, namespace

# Values from <linux/mount.h>.
MS_BIND = 4096
MS_REC = 16384
GROUPS = "/sys/fs/cgroup"


def mount(source: str, target: str, kind: str | None = None, flags: int = 0) -> None:
    """mount(2), without the path rewriting of mount(8). Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    kind_bytes = kind.encode() if kind else None
    if libc.mount(source.encode(), target.encode(), kind_bytes, flags, None) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"cannot mount {source} on {target}: {os.strerror(number)}")


def mount_sys() -> None:
    """Mount a new /sys, which shows this network namespace, and keep the control groups in it.

    The control groups are mounts of their own below /sys. The new one would hide them, and slurmd
    looks for them when it starts.
    """
    if not os.path.ismount(GROUPS):
        mount("sysfs", "/sys", "sysfs")
        return
    # The descriptor keeps the old tree reachable after the new /sys lies over it.
    descriptor = os.open(GROUPS, os.O_PATH | os.O_DIRECTORY)
    try:
        mount("sysfs", "/sys", "sysfs")
        mount(f"/proc/self/fd/{descriptor}", GROUPS, flags=MS_BIND | MS_REC)
    finally:
        os.close(descriptor)


def hold_host(name: str, with_sys: bool) -> None:
    """Set a host up and keep its namespaces until this process is killed."""
    # /proc still is the machine's here, so this is the id seen from outside.
    machine_pid = os.readlink("/proc/self")
    try:
        socket.sethostname(name)
        if with_sys:
            mount_sys()
        mount("proc", "/proc", "proc")
    except OSError as error:
        sys.exit(f"{name}: {error}")
    # The kernel itself reaps the children of a process that ignores SIGCHLD.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    print(machine_pid, flush=True)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    while True:
        signal.pause()


def make_login_side(directory: Path) -> None:
    """Give this host its configuration, its name, and the bridge that connects all nodes."""
    # Snakemake's Slurm plugin removes SLURM_CONF from the environment of its jobs, so only the
    # standard place will do.
    mount(str(directory / "slurm"), "/etc/slurm", flags=MS_BIND)
    mount(str(directory / "hosts"), "/etc/hosts", flags=MS_BIND)
    if (directory / "pmix").is_dir():
        mount(str(directory / "pmix"), str(config.PMIX), flags=MS_BIND)
    mount_sys()
    socket.sethostname(config.LOGIN)
    subprocess.run(["ip", "-batch", "-"], input=config.bridge_commands(), text=True, check=True)


def start_controller() -> tuple["subprocess.Popen[str]", int]:
    """The process table of the daemons; setpriv and --kill-child end it with the keeper."""
    command = [
        "setpriv", "--pdeathsig", "KILL", "unshare", "--pid", "--mount", "--fork", "--kill-child",
    ]  # fmt: skip
    command += [sys.executable, "-I", __file__, "--host", config.LOGIN]
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    assert child.stdout
    line = child.stdout.readline()
    if not line.strip():
        sys.exit("keeper: the first process of the cluster did not start")
    return child, int(line)


def wait_for_end(child: "subprocess.Popen[str]") -> None:
    """Return when the owner is gone, SIGTERM came, or the daemons' process table has ended."""
    read_fd, write_fd = os.pipe()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: os.write(write_fd, b"."))
    watched = [0, read_fd, os.pidfd_open(child.pid)]
    while True:
        ready, _, _ = select.select(watched, [], [])
        if 0 in ready and os.read(0, 1) == b"R":
            watched.remove(0)
        elif ready:
            return


def end_everything(child: "subprocess.Popen[str]", directory: Path) -> None:
    """End every process of the cluster and remove what it has on this machine."""
    child.kill()
    child.wait()
    mounts = namespace(os.getpid(), "mnt")
    # Again until none remains: a process may have started another since the list was made.
    while others := [one for one in members("mnt", mounts) if one.pid != os.getpid()]:
        for process in others:
            process.end()
    shutil.rmtree(directory, ignore_errors=True)


def keep_cluster(directory: Path) -> None:
    """Make the login side, and end the cluster when its owner is gone."""
    make_login_side(directory)
    child, controller = start_controller()
    try:
        print(controller, flush=True)
        wait_for_end(child)
    finally:
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        end_everything(child, directory)


if __name__ == "__main__":
    if sys.argv[1] == "--host":
        hold_host(sys.argv[2], "--sys" in sys.argv[3:])
    else:
        keep_cluster(Path(sys.argv[1]))
