"""A Slurm cluster as one object: start it, hurt it, mend it, end it. Using it is in login.py."""

import contextlib
import dataclasses
import json
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import cgroups, daemons
from .config import LOGIN, Layout
from .errors import ClusterError
from .hosts import Hosts, end_keeper, start_keeper
from .login import Login
from .processes import Process, members, namespace, wait_until
from .requirements import why_not

STATE = "cluster.json"


class Cluster(Login):
    """One running cluster. Made by `start`, `running` or `attach`; all methods raise ClusterError."""

    def __init__(
        self, layout: Layout, hosts: Hosts, login_mounts: int, owner: "subprocess.Popen[str] | None"
    ) -> None:
        super().__init__(layout, hosts)
        self._login_mounts = login_mounts
        self._owner = owner

    # -- beginning and end

    @classmethod
    def start(cls, nodes: int = 2, *, directory: Path | None = None, **options: Any) -> "Cluster":
        """Start a cluster and return when all nodes are idle. It ends with `down`, or when this
        process ends in any way.

        The options are those of config.Layout. `directory` must not exist or be empty; by default
        it is a new one in the temporary directory, and it is removed in the end in both cases.
        """
        if reason := why_not(**options):
            raise ClusterError(reason)
        if options.get("cgroups"):
            # All clusters of the machine have their control groups in one place, named by the
            # nodes.
            options["prefix"] = f"{options.get('prefix', 'node')}{secrets.token_hex(3)}-"
        where = _state_directory(directory)
        try:
            layout = Layout(where, nodes, **options)
            daemons.write_files(layout)
            owner, hosts = start_keeper(where, True, layout.path("log/keeper.log"))
        except BaseException:
            shutil.rmtree(where, ignore_errors=True)
            raise
        try:
            mounts = namespace(hosts.keeper.pid, "mnt")
            assert mounts is not None
            cluster = cls(layout, hosts, mounts, owner)
            cluster._start_daemons()
            return cluster
        except BaseException:
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
        try:
            state = json.loads((directory / STATE).read_text())
        except FileNotFoundError:
            raise ClusterError(
                f"no test cluster runs in {directory}; start one with `up`"
            ) from None
        given: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value
            for key, value in state["layout"].items()
        }
        layout = Layout(**{**given, "directory": Path(given["directory"])})
        nodes = {name: Process(*process) for name, process in state["nodes"].items()}
        hosts = Hosts(Process(*state["keeper"]), Process(*state["controller"]), nodes)
        return cls(layout, hosts, state["login_mounts"], None)

    def _start_daemons(self) -> None:
        daemons.start_munge(self.hosts, self.layout)
        if self.layout.accounting:
            daemons.start_database(self.hosts, self.layout)
            daemons.start_slurmdbd(self.hosts, self.layout)
        daemons.start_slurmctld(self.hosts, self.layout)
        for name in self.layout.names:
            self.start_node(name)
        for name in self.layout.names:
            self.wait_for_node(name, "IDLE")

    def _save(self) -> None:
        state = {
            "layout": {**dataclasses.asdict(self.layout), "directory": str(self.layout.directory)},
            "keeper": dataclasses.astuple(self.hosts.keeper),
            "controller": dataclasses.astuple(self.hosts.controller),
            "nodes": {
                name: dataclasses.astuple(process) for name, process in self.hosts.nodes.items()
            },
            "login_mounts": self._login_mounts,
        }
        temporary = self.layout.path(STATE + ".new")
        temporary.write_text(json.dumps(state, indent=1) + "\n")
        temporary.replace(self.layout.path(STATE))

    def release(self) -> None:
        """Let the cluster live on when this process ends, until somebody calls `down`."""
        if self._owner and self._owner.stdin:
            self._owner.stdin.write("R")
            self._owner.stdin.close()
            self._owner = None

    def down(self) -> None:
        """End every process of the cluster and remove its state directory. Does nothing to a
        cluster that is gone already.
        """
        if self._owner:
            end_keeper(self._owner)
            self._owner = None
        elif not self.hosts.keeper.end(signal.SIGTERM, 20.0):
            self.hosts.keeper.end()
        # All that follows finds nothing to do, unless somebody has killed the keeper.
        self.hosts.controller.end()
        for process in members("mnt", self._login_mounts):
            process.end()
        if self.layout.cgroups:
            for name in self.layout.names:
                cgroups.remove(name)
        shutil.rmtree(self.layout.directory, ignore_errors=True)

    # -- trouble, and the way back

    def kill_slurmd(self, name: str) -> None:
        """SIGKILL to a node's slurmd only: jobs on the node go on."""
        self.hosts.end_daemon(name, "slurmd")

    def start_slurmd(self, name: str) -> None:
        daemons.start_slurmd(self.hosts, self.layout, name)

    def kill_node(self, name: str) -> None:
        """Every process of a node ends at once, jobs included, and its network is gone."""
        self.hosts.remove_node(name)
        self._save()

    def start_node(self, name: str) -> None:
        """Make a node (again) and start its slurmd; does not wait for it."""
        self.hosts.add_node(name)
        self.hosts.hide(name, self.layout.without)
        self._save()
        self.start_slurmd(name)

    def drain(self, name: str, reason: str) -> None:
        """Take a node out of service as an administrator does: what runs goes on, nothing new
        begins.
        """
        self.run(["scontrol", "update", f"NodeName={name}", "State=DRAIN", f"Reason={reason}"])

    def resume(self, name: str) -> None:
        """Put a node back to work."""
        self.run(["scontrol", "update", f"NodeName={name}", "State=RESUME"], check=False)

    def stop_controller(self) -> None:
        """End slurmctld as an administrator does; it writes down the queue first."""
        self.hosts.end_daemon(LOGIN, "slurmctld", signal.SIGTERM)

    def kill_controller(self) -> None:
        """SIGKILL to slurmctld: it may forget the jobs of the last seconds, since it saves the
        queue every few seconds.
        """
        self.hosts.end_daemon(LOGIN, "slurmctld")

    def start_controller(self) -> None:
        daemons.start_slurmctld(self.hosts, self.layout)

    def reset(self, seconds: float = 60.0) -> None:
        """Bring everything back that was killed, cancel all jobs, and wait until all nodes are
        idle: the state after `start`.
        """
        if not any(process.name == "slurmctld" for process in self.processes(LOGIN)):
            self.start_controller()
        for name in self.layout.names:
            if name not in self.hosts.nodes:
                self.start_node(name)
            elif not any(process.name == "slurmd" for process in self.processes(name)):
                self.start_slurmd(name)
        if self.run(["squeue", "--noheader"]).stdout:
            self.run(["scancel", "--user=root"])
        for name in self.layout.names:
            if not {"DRAIN", "DOWN"}.isdisjoint(self.node_states(name)):
                self.resume(name)
            self.wait_for_node(name, "IDLE", seconds=seconds)
        wait_until(
            lambda: not self.run(["squeue", "--noheader"]).stdout,
            seconds,
            "no job is left in the queue",
            0.1,
        )


def _state_directory(directory: Path | None) -> Path:
    if directory is None:
        # The sockets of a cluster do not fit below some of the long temporary directories that CI
        # systems give.
        base = tempfile.gettempdir()
        return Path(
            tempfile.mkdtemp(prefix="testcluster-", dir=base if len(base) <= 25 else "/tmp")
        ).resolve()
    where = directory.resolve()
    if where.exists() and (not where.is_dir() or any(where.iterdir())):
        raise ClusterError(
            f"{where} is not empty; give the cluster a new directory, or end what runs there with `down`"
        )
    where.mkdir(parents=True, exist_ok=True)
    return where
