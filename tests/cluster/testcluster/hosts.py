"""The hosts of a cluster as namespaces: made, used and ended. Knows nothing of Slurm."""

import select
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from . import config
from .processes import ClusterError, Process, describe, members, namespace
from .requirements import search_path

KEEPER = [sys.executable, "-I", str(Path(__file__).resolve().with_name("keeper.py"))]
START_SECONDS = 60.0
# A mount namespace alone would be entered at its root, outside of a chroot that all of this may run
# in.
MOUNTS = ("--mount", "--root", "--wd")


@dataclass
class Hosts:
    """First processes of the login side, of the daemons' process table, and of each node."""

    keeper: Process
    controller: Process
    mounts: int
    """Number of the login side's mount namespace."""
    nodes: dict[str, Process] = field(default_factory=dict)

    def first(self, name: str) -> Process:
        """The process that keeps a host alive: of a node, or of the daemons on the login side."""
        if name != config.LOGIN and name not in self.nodes:
            raise ClusterError(f"the cluster has no running node {name!r}")
        return self.controller if name == config.LOGIN else self.nodes[name]

    def enter(self, name: str) -> list[str]:
        """Begin a command line that runs the rest on this host, in its process table."""
        target = f"--target={self.first(name).pid}"
        return ["nsenter", target, *MOUNTS, "--net", "--uts", "--pid", "--"]

    def enter_login(self, directory: Path) -> list[str]:
        """Begin a command line that runs the rest on the login side, as a process of this machine.

        nsenter and env replace themselves, so the process id is the command's. The working
        directory is entered inside: one opened outside would belong to the machine's mounts.
        """
        target = f"--target={self.keeper.pid}"
        inside = ["env", f"--chdir={directory}"]
        return ["nsenter", target, *MOUNTS, "--net", "--uts", "--", *inside]

    def add_node(self, name: str, without: Sequence[str]) -> None:
        """Make the namespaces of a node and connect it to the bridge.

        A device lies over each program in ``without``, so that nobody on the node can execute it.
        """
        # The keeper's mounts show the machine's /proc, where the node's first process learns its
        # outer id.
        table = f"--pid=/proc/{self.controller.pid}/ns/pid"
        command = ["nsenter", f"--target={self.keeper.pid}", *MOUNTS, "--net", "--uts", table, "--"]
        command += [
            "setsid", "--fork", "unshare", "--mount", "--net", "--uts", "--pid", "--fork",
            "--kill-child",
        ]  # fmt: skip
        command += [*KEEPER, "--host", name, "--sys"]
        with _start(command, stderr=subprocess.PIPE) as child:
            self.nodes[name] = _first_process(child, f"the namespaces of {name}")
        pid = self.nodes[name].pid
        for target, batch in (
            (self.keeper.pid, config.cable_commands(name, pid)),
            (pid, config.interface_commands(name)),
        ):
            checked(["nsenter", f"--target={target}", "--net", "--", "ip", "-batch", "-"], batch)
        for program in without:
            find = [*self.enter(name), "sh", "-c", 'command -v "$1" || true', "sh", program]
            while path := checked(find).strip():
                checked([*self.enter(name), "mount", "--bind", "/dev/null", path])

    def remove_node(self, name: str) -> None:
        """End every process of a node at once, as a power cut would; its network goes with it."""
        self.first(name).end()
        del self.nodes[name]

    def daemon(
        self, name: str, command: Sequence[str], log: Path, environment: Mapping[str, str]
    ) -> None:
        """Start a long-running program in a session on a host; its output is appended to a log."""
        with log.open("ab") as stream:
            done = subprocess.run(
                [*self.enter(name), "setsid", "--fork", *command],
                env={**base_environment(), **environment}, cwd="/", timeout=START_SECONDS,
                stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, check=False,
            )  # fmt: skip
        if done.returncode:
            raise ClusterError(f"could not start {command[0]} on {name}{tail(log)}")

    def processes(self, name: str) -> list[Process]:
        """All processes in this host's process table but the one that keeps it alive."""
        first = self.first(name)
        number = namespace(first.pid, "pid")
        return [process for process in members("pid", number) if process.pid != first.pid]


def base_environment() -> dict[str, str]:
    """For daemons: nothing of the caller's environment but what every program needs."""
    return {"PATH": search_path(), "HOME": "/root", "LANG": "C.UTF-8"}


def _start(command: Sequence[str], **options: object) -> "subprocess.Popen[str]":
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, **options}
    return subprocess.Popen(command, env=base_environment(), text=True, **streams)  # type: ignore


def _first_process(child: "subprocess.Popen[str]", what: str, log: Path | None = None) -> Process:
    """The process whose id the child prints as its first line."""
    assert child.stdout
    ready, _, _ = select.select([child.stdout], [], [], START_SECONDS)
    line = child.stdout.readline().strip() if ready else ""
    process = describe(int(line)) if line else None
    if process is None:
        child.kill()
        said = child.stderr.read() if ready and child.stderr else "no answer"
        reason = tail(log) if log else f": {said}"
        raise ClusterError(f"{what} could not be made{reason.rstrip()}")
    return process


def checked(command: Sequence[str], text: str | None = None) -> str:
    """Standard output of a short command with this input; ClusterError when it fails."""
    line = " ".join(command)
    try:
        done = subprocess.run(
            command, env=base_environment(), input=text, capture_output=True, text=True,
            timeout=START_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise ClusterError(f"`{line}` did not end within {START_SECONDS:g} s") from None
    if done.returncode:
        raise ClusterError(f"`{line}` failed: {' '.join((done.stderr or done.stdout).split())}")
    return done.stdout


def start_keeper(directory: Path, log: Path) -> tuple["subprocess.Popen[str]", Hosts]:
    """Make the login side. The cluster ends when the child's standard input is closed."""
    command = ["unshare", "--mount", "--net", "--uts", "--", *KEEPER, str(directory)]
    pipe = {"stdin": subprocess.PIPE, "start_new_session": True, "cwd": "/"}
    with log.open("ab") as stream:
        child = _start(command, stderr=stream, **pipe)
    try:
        controller = _first_process(child, "the login side of the cluster", log)
        keeper, mounts = describe(child.pid), namespace(child.pid, "mnt")
        if keeper is None or mounts is None:
            raise ClusterError(f"the keeper ended at once{tail(log)}")
        return child, Hosts(keeper, controller, mounts)
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
    text = log.read_text(errors="replace").splitlines()[-lines:] if log.exists() else []
    return f"\nlast lines of {log}:\n  " + "\n  ".join(text) if text else ""
