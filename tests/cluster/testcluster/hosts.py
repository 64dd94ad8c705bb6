"""The hosts of a cluster as namespaces: making them, running things on them, ending them. Knows
nothing of Slurm.
"""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from . import config
from .errors import ClusterError
from .processes import Process, describe, members, namespace
from .requirements import search_path

HERE = Path(__file__).resolve().parent
START_SECONDS = 60.0
MOUNTS = ("--mount", "--root", "--wd")
"""A mount namespace alone would be entered at its own root, outside of a chroot that all of this
may run in.
"""


class Hosts:
    """The login side (with the daemons' process table) and the nodes made so far."""

    def __init__(self, keeper: Process, controller: Process, nodes: dict[str, Process]) -> None:
        self.keeper = keeper
        self.controller = controller
        self.nodes = nodes

    def enter(self, name: str) -> list[str]:
        """The beginning of a command line that runs the rest on this host, in its process table."""
        first = self.controller if name == config.LOGIN else self.node(name)
        return ["nsenter", f"--target={first.pid}", *MOUNTS, "--net", "--uts", "--pid", "--"]

    def enter_login(self, directory: Path) -> list[str]:
        """The beginning of a command line that runs the rest on the login side as a plain process
        of this machine.

        nsenter and env replace themselves, so the process id is the command's own. The working
        directory must be entered inside: one opened outside would belong to the machine's mounts.
        """
        return [
            "nsenter",
            f"--target={self.keeper.pid}",
            *MOUNTS,
            "--net",
            "--uts",
            "--",
            "env",
            f"--chdir={directory}",
        ]

    def node(self, name: str) -> Process:
        if name not in self.nodes:
            raise ClusterError(
                f"the cluster has no running node {name!r}; it has {', '.join(sorted(self.nodes)) or 'none'}"
            )
        return self.nodes[name]

    def add_node(self, name: str) -> None:
        """Make the namespaces of a node and connect it to the bridge."""
        keeper, table = self.keeper.pid, self.controller.pid
        pid = first_line(
            # The mounts of the keeper show the machine's /proc, from which the node's first process
            # learns its outer id.
            ["nsenter", f"--target={keeper}", *MOUNTS, "--net", "--uts", f"--pid=/proc/{table}/ns/pid", "--",
             "setsid", "--fork", "unshare", "--mount", "--net", "--uts", "--pid", "--fork", "--kill-child",
             sys.executable, "-I", str(HERE / "holder.py"), name, "--sys"],
            f"the namespaces of {name}",
        )  # fmt: skip
        self.nodes[name] = alive(pid, f"the first process of {name}")
        for target, commands in (
            (keeper, config.cable_commands(name, pid)),
            (pid, config.interface_commands(name)),
        ):
            checked(
                ["nsenter", f"--target={target}", "--net", "--", "ip", "-batch", "-"],
                f"the network of {name}",
                commands,
            )

    def hide(self, name: str, programs: Sequence[str]) -> None:
        """Make programs of this machine look as if the node had none of them: a device lies over
        each, which nobody can execute.
        """
        for program in programs:
            while found := checked(
                [*self.enter(name), "sh", "-c", 'command -v "$1" || true', "sh", program],
                f"{program} on {name}",
            ).strip():
                checked(
                    [*self.enter(name), "mount", "--bind", "/dev/null", found],
                    f"{program} on {name}",
                )

    def remove_node(self, name: str) -> None:
        """End every process of a node at once, as a power cut would; its network goes with it."""
        self.node(name).end()
        del self.nodes[name]

    def daemon(
        self,
        name: str,
        command: Sequence[str],
        log: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Start a long-running program on a host, in its own session, with what it prints appended
        to `log`.
        """
        with log.open("ab") as stream:
            done = subprocess.run(
                [*self.enter(name), "setsid", "--fork", *command],
                env={**base_environment(), **(environment or {})}, cwd="/",
                stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, timeout=START_SECONDS, check=False,
            )  # fmt: skip
        if done.returncode:
            raise ClusterError(f"could not start {command[0]} on {name}{tail(log)}")

    def processes(self, name: str) -> list[Process]:
        """Everything that runs in the process table of this host, without the process that keeps it
        alive.
        """
        first = self.controller if name == config.LOGIN else self.node(name)
        number = namespace(first.pid, "pid")
        return (
            []
            if number is None
            else [process for process in members("pid", number) if process.pid != first.pid]
        )

    def end_daemon(self, name: str, program: str, number: int = signal.SIGKILL) -> None:
        """Send a signal to a program on one host and wait for its end. Raises ClusterError when it
        does not run or does not end.
        """
        found = [process for process in self.processes(name) if process.name == program]
        if not found:
            raise ClusterError(f"{program} does not run on {name}")
        if [process for process in found if not process.end(number)]:
            raise ClusterError(f"{program} on {name} did not end upon signal {number}")


def base_environment() -> dict[str, str]:
    """For daemons: nothing of the caller's environment but what every program needs."""
    return {"PATH": search_path(), "HOME": "/root", "LANG": "C.UTF-8"}


def alive(pid: int, what: str) -> Process:
    process = describe(pid)
    if process is None:
        raise ClusterError(f"{what} ended at once")
    return process


def first_line(command: Sequence[str], what: str) -> int:
    """Run a command that leaves a process behind and learn that process's id from the first line it
    prints.
    """
    child = subprocess.Popen(
        command,
        env=base_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout and child.stderr
    with child.stdout, child.stderr:
        ready, _, _ = select.select([child.stdout], [], [], START_SECONDS)
        line = child.stdout.readline().strip() if ready else ""
        if not line:
            child.kill()
        child.wait()
        if not line:
            raise ClusterError(
                f"{what} could not be made: {' '.join(child.stderr.read().split()) if ready else 'no answer'}"
            )
    return int(line)


def checked(command: Sequence[str], what: str, given: str | None = None) -> str:
    """The standard output of a short command. Raises ClusterError with its complaint when it fails."""
    try:
        done = subprocess.run(
            command,
            env=base_environment(),
            input=given,
            capture_output=True,
            text=True,
            timeout=START_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ClusterError(
            f"{what}: `{' '.join(command)}` did not come to an end within {START_SECONDS:g} s"
        ) from None
    if done.returncode:
        raise ClusterError(
            f"{what}: `{' '.join(command)}` failed: {' '.join((done.stderr or done.stdout).split())}"
        )
    return done.stdout


def start_keeper(directory: Path, remove: bool, log: Path) -> tuple["subprocess.Popen[str]", Hosts]:
    """Make the login side. The cluster ends when the returned process's standard input is closed
    (see keeper.py).
    """
    options = ["--remove"] if remove else []
    with log.open("ab") as stream:
        child = subprocess.Popen(
            ["unshare", "--mount", "--net", "--uts", "--", sys.executable, "-I", str(HERE / "keeper.py"), str(directory), *options],
            env=base_environment(), cwd="/", start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stream, text=True,
        )  # fmt: skip
    assert child.stdout
    try:
        ready, _, _ = select.select([child.stdout], [], [], START_SECONDS)
        line = child.stdout.readline().strip() if ready else ""
        if not line:
            raise ClusterError(f"the login side of the cluster could not be made{tail(log)}")
        return child, Hosts(
            alive(child.pid, "the keeper"), alive(int(line), "the controller's first process"), {}
        )
    except BaseException:
        end_keeper(child)
        raise


def end_keeper(child: "subprocess.Popen[str]") -> None:
    """Close the pipe, upon which the keeper ends everything, and wait for it."""
    if child.stdin and not child.stdin.closed:
        child.stdin.close()
    try:
        child.wait(START_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    if child.stdout:
        child.stdout.close()


def tail(log: Path, lines: int = 8) -> str:
    """The end of a log, to be added to a message; empty when there is none."""
    try:
        text = log.read_text(errors="replace").splitlines()[-lines:]
    except OSError:
        return ""
    return f"\nlast lines of {os.fspath(log)}:\n  " + "\n  ".join(text) if text else ""
