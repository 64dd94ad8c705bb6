"""The process that owns a cluster: it makes the login side, starts the process table of all
daemons, and ends everything.

    unshare --mount --net --uts -- python keeper.py DIRECTORY [--remove]

Its standard input is a pipe from whoever asked for the cluster. When that pipe closes, because the
owner ended it or died in whatever way, the cluster ends; a byte "R" on it (release) makes the
cluster independent until SIGTERM. With --remove the state directory goes too. The first line on
standard output is the process id of the controller's first process.

What ends: every process of the daemons' process table (the kernel does that, including all nodes
and jobs), and every process that runs on the login side, that is, in the keeper's own mount
namespace. The control groups of the nodes named in DIRECTORY/cgroups go after them.
"""

import os
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

# Run by path, so that it does not matter where the package lies.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from testcluster import cgroups, config, mounts
from testcluster.errors import ClusterError
from testcluster.processes import members, namespace

HOLDER = Path(__file__).resolve().parent / "holder.py"


def make_login_side(directory: Path) -> None:
    """Own configuration at the fixed places, own host name, and the bridge that all nodes hang on."""
    # Snakemake's Slurm plugin removes SLURM_CONF from the environment of its jobs, so only the
    # standard place will do.
    mounts.bind(directory / "slurm", "/etc/slurm")
    mounts.bind(directory / "hosts", "/etc/hosts")
    mounts.fresh_sys()
    subprocess.run(["hostname", config.LOGIN], check=True)
    subprocess.run(["ip", "-batch", "-"], input=config.bridge_commands(), text=True, check=True)


def start_controller() -> tuple["subprocess.Popen[str]", int]:
    """The process table of the daemons; setpriv and --kill-child end it with the keeper even if
    that is killed.
    """
    child = subprocess.Popen(
        ["setpriv", "--pdeathsig", "KILL", "unshare", "--pid", "--mount", "--fork", "--kill-child",
         sys.executable, "-I", str(HOLDER), config.LOGIN],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert child.stdout
    line = child.stdout.readline()
    if not line.strip():
        sys.exit("keeper: the first process of the cluster did not start")
    return child, int(line)


def wait_for_the_end(child: "subprocess.Popen[str]") -> None:
    """Return when the owner is gone, SIGTERM came, or the daemons' process table has ended by
    itself.
    """
    ended, waker = os.pipe()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: os.write(waker, b"."))
    table = os.pidfd_open(child.pid)
    watched = [0, ended, table]
    while True:
        ready, _, _ = select.select(watched, [], [])
        if 0 in ready and os.read(0, 1) == b"R":
            watched.remove(0)
        elif ready:
            return


def end_everything(child: "subprocess.Popen[str]") -> None:
    child.kill()
    child.wait()
    mine = namespace(os.getpid(), "mnt")
    assert mine is not None
    # Again until none is left: a process may have started another one since the list was made.
    while others := [process for process in members("mnt", mine) if process.pid != os.getpid()]:
        for process in others:
            process.end()


def remove_control_groups(directory: Path) -> None:
    for node in (directory / "cgroups").read_text().split():
        try:
            cgroups.remove(node)
        except ClusterError as error:
            print(f"keeper: {error}", file=sys.stderr, flush=True)


def main() -> NoReturn:
    directory, remove = Path(sys.argv[1]), "--remove" in sys.argv[2:]
    make_login_side(directory)
    child, controller = start_controller()
    try:
        print(controller, flush=True)
        wait_for_the_end(child)
    finally:
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        end_everything(child)
        remove_control_groups(directory)
        if remove:
            shutil.rmtree(directory, ignore_errors=True)
    sys.exit(0)


if __name__ == "__main__":
    main()
