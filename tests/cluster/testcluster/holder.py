"""The first process of one host of the cluster; run as a script inside the host's new namespaces.

    holder.py HOSTNAME [--sys]

It sets the host up (host name; /proc of the new process table; with --sys a /sys of the new
network), prints its process id as the machine sees it, and then only keeps the namespaces alive and
takes in orphans. When it is killed, the kernel kills every process of the host with it.
"""

import os
import signal
import socket
import sys

if __name__ == "__main__":
    # Run by path in isolated mode (-I), where the script's own directory is not searched.
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    from mounts import fresh_sys, mount  # type: ignore[import-not-found]

    name, *options = sys.argv[1:]
    machine_pid = os.readlink(
        "/proc/self"
    )  # /proc still is the machine's here, so this is the id seen from outside
    try:
        socket.sethostname(name)
        if "--sys" in options:
            fresh_sys()
        mount("proc", "/proc", "proc")
    except OSError as error:
        sys.exit(f"{name}: {error}")
    # The kernel itself reaps the children of a process that ignores SIGCHLD; orphans of the host
    # end up here.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    print(machine_pid, flush=True)
    quiet = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(quiet, descriptor)
    while True:
        signal.pause()
