"""A Slurm cluster as one object: start it, use it, hurt it, mend it, end it."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from . import daemons
from .config import Layout
from .hosts import Hosts, end_keeper, start_keeper, tail
from .processes import ClusterError, Process, members, wait_until
from .requirements import search_path, why_not

STATE = "cluster.json"
FOREIGN = re.compile(r"(SLURM|SBATCH|SALLOC|SRUN|SQUEUE|SINFO|SACCT|SCANCEL|SCONTROL)_")


class Cluster:
    """One running cluster. Made by `start`, `running` or `attach`; all methods raise ClusterError."""

    def __init__(
        self, layout: Layout, hosts: Hosts, owner: "subprocess.Popen[str] | None" = None
    ) -> None:
        self.layout = layout
        self.hosts = hosts
        self._owner = owner

    # -- beginning and end

    @classmethod
    def start(cls, nodes: int = 2, **options: Any) -> "Cluster":
        """Start a cluster and return when all nodes are idle. It ends with this process.

        Args:
            nodes: how many.
            options: those of ``Layout``.
        """
        if reason := why_not(**options):
            raise ClusterError(reason)
        # Some CI systems give a temporary directory whose name is too long for sockets.
        base = tempfile.gettempdir()
        short = base if len(base) <= 25 else "/tmp"
        where = Path(tempfile.mkdtemp(prefix="testcluster-", dir=short)).resolve()
        owner = None
        try:
            layout = Layout(where, nodes, **options)
            daemons.write_files(layout)
            owner, hosts = start_keeper(where, layout.path("log/keeper.log"))
            cluster = cls(layout, hosts, owner)
            daemons.start_all(hosts, layout)
            for name in layout.names:
                cluster.start_node(name)
            for name in layout.names:
                cluster.wait_for_node(name, "IDLE")
            return cluster
        except BaseException:
            if owner:
                end_keeper(owner)
            shutil.rmtree(where, ignore_errors=True)
            raise

    @classmethod
    @contextlib.contextmanager
    def running(cls, nodes: int = 2, **options: Any) -> Iterator["Cluster"]:
        """`start` for a with statement: the cluster is gone afterwards, whatever happened."""
        cluster = cls.start(nodes, **options)
        try:
            yield cluster
        finally:
            cluster.down()

    @classmethod
    def attach(cls, directory: Path) -> "Cluster":
        """The cluster that runs in this state directory, started by another process."""
        path = directory / STATE
        if not path.exists():
            raise ClusterError(f"no test cluster runs in {directory}; start one with `up`")
        layout, hosts = msgspec.json.decode(
            path.read_bytes(), type=tuple[Layout, Hosts], dec_hook=lambda kind, value: kind(value)
        )
        return cls(layout, hosts)

    def _save(self) -> None:
        temporary = self.layout.path(STATE + ".new")
        temporary.write_bytes(msgspec.json.encode((self.layout, self.hosts), enc_hook=str))
        temporary.replace(self.layout.path(STATE))

    def release(self) -> None:
        """Let the cluster live on when this process ends, until somebody calls `down`."""
        if self._owner and self._owner.stdin:
            self._owner.stdin.write("R")
            self._owner.stdin.close()
            self._owner = None

    def down(self) -> None:
        """End all processes of the cluster and remove its files; a cluster that is gone is none."""
        if self._owner:
            end_keeper(self._owner)
            self._owner = None
        elif not self.hosts.keeper.end(signal.SIGTERM, 20.0):
            self.hosts.keeper.end()
        # All that follows has nothing to do, unless somebody has killed the keeper.
        self.hosts.controller.end()
        for process in members("mnt", self.hosts.mounts):
            process.end()
        shutil.rmtree(self.layout.directory, ignore_errors=True)

    def alive(self) -> bool:
        """Whether it has not been ended."""
        return self.hosts.keeper.alive() and self.hosts.controller.alive()

    # -- commands on the login side

    def command(self, command: Sequence[str], cwd: Path | None = None) -> list[str]:
        """The command line that becomes this command on the login side, with its process id."""
        if not self.alive():
            where = self.layout.directory
            raise ClusterError(f"the test cluster in {where} does not run any more")
        return [*self.hosts.enter_login((cwd or Path.cwd()).resolve()), *command]

    @staticmethod
    def environment(variables: Mapping[str, str] | None = None) -> dict[str, str]:
        """Variables (default: the caller's) without those of another Slurm."""
        known = os.environ if variables is None else variables
        kept = {name: value for name, value in known.items() if not FOREIGN.match(name)}
        return {"PATH": search_path(), **kept}

    def popen(
        self,
        command: Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        **options: Any,
    ) -> "subprocess.Popen[str]":
        """subprocess.Popen on the login side; the process ends with the cluster at the latest."""
        line = self.command(command, cwd)
        return subprocess.Popen(line, env=self.environment(env), text=True, **options)

    def run(
        self, command: Sequence[str], *, cwd: Path | None = None, check: bool = True,
        env: Mapping[str, str] | None = None, timeout: float = 60.0, input: str = "",
    ) -> "subprocess.CompletedProcess[str]":  # fmt: skip
        """Run a command on the login side to its end, with its output as text.

        Raises:
            ClusterError: when ``check`` and it fails, or when it takes longer than ``timeout``
                seconds; then it is killed.
        """
        line, words = self.command(command, cwd), " ".join(command)
        how: dict[str, Any] = {"capture_output": True, "text": True, "check": False}
        try:
            done: subprocess.CompletedProcess[str] = subprocess.run(
                line, env=self.environment(env), input=input, timeout=timeout, **how
            )
        except subprocess.TimeoutExpired:
            raise ClusterError(f"`{words}` did not end within {timeout:g} s") from None
        if check and done.returncode:
            code, output = done.returncode, done.stdout + done.stderr
            raise ClusterError(f"`{words}` ended with exit code {code}:\n{output}")
        return done

    def _fields(self, kind: str, name: str) -> dict[str, str]:
        text = self.run(["scontrol", "--oneliner", "show", kind, name]).stdout
        return dict(re.findall(r"(\S+?)=(\S*)", text))

    # -- nodes

    def node_states(self, name: str) -> list[str]:
        """The state of a node and its flags, such as ["IDLE"] or ["DOWN", "NOT_RESPONDING"]."""
        return self._fields("node", name)["State"].rstrip("*").split("+")

    def wait_for_node(self, name: str, state: str, seconds: float = 60.0) -> None:
        """Wait until this is the node's state, with no flag added."""
        try:
            reached = lambda: self.node_states(name) == [state]  # noqa: E731
            wait_until(reached, seconds, f"node {name} is {state}", 0.1)
        except ClusterError as error:
            now, log = "+".join(self.node_states(name)), self.layout.path(f"log/slurmd-{name}.out")
            raise ClusterError(f"{error}; it is {now}{tail(log)}") from None

    def processes(self, name: str) -> list[Process]:
        """What runs on a node (or "login": the daemons), as process ids of this machine."""
        return self.hosts.processes(name)

    # -- trouble, and the way back

    def kill_node(self, name: str) -> None:
        """End every process of a node at once, jobs included, and its network."""
        self.hosts.remove_node(name)
        self._save()

    def start_node(self, name: str) -> None:
        """Make a node (again) and start its slurmd; do not wait for it."""
        self.hosts.add_node(name, self.layout.without)
        self._save()
        daemons.start_slurmd(self.hosts, self.layout, name)

    def reset(self) -> None:
        """Bring back killed nodes, cancel all jobs, and wait until all nodes are idle."""
        for name in self.layout.names:
            if name not in self.hosts.nodes:
                self.start_node(name)
        squeue = ["squeue", "--noheader"]
        if self.run(squeue).stdout:
            self.run(["scancel", "--user=root"])
        for name in self.layout.names:
            if not {"DRAIN", "DOWN"}.isdisjoint(self.node_states(name)):
                resume = ["scontrol", "update", f"NodeName={name}", "State=RESUME"]
                self.run(resume, check=False)
            self.wait_for_node(name, "IDLE")
        wait_until(lambda: not self.run(squeue).stdout, 60.0, "no job is left in the queue", 0.1)
