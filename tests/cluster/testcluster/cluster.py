"""A Slurm cluster as one object: start it, use it, hurt it, end it."""

import contextlib
import dataclasses
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from . import daemons
from .config import LOGIN, Layout
from .errors import ClusterError
from .hosts import Hosts, end_keeper, start_keeper, tail
from .processes import Process, members, namespace, wait_until
from .requirements import search_path, why_not

STATE = "cluster.json"
ENDED = (
    "BOOT_FAIL",
    "CANCELLED",
    "COMPLETED",
    "DEADLINE",
    "FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "PREEMPTED",
    "TIMEOUT",
)


class Cluster:
    """One running cluster. Made by `start`, `running` or `attach`; all methods raise ClusterError."""

    def __init__(self, layout: Layout, hosts: Hosts, login_mounts: int, owner: "subprocess.Popen[str] | None") -> None:
        self.layout = layout
        self.hosts = hosts
        self._login_mounts = login_mounts
        self._owner = owner

    # -- beginning and end

    @classmethod
    def start(
        cls,
        nodes: int = 2,
        *,
        cpus: int = 2,
        memory: int = 4096,
        accounting: bool = False,
        directory: Path | None = None,
    ) -> "Cluster":
        """Start a cluster and return when all nodes are idle. It ends with `down`, or when this process ends in any way.

        `memory` is MiB per node. `directory` must not exist or be empty; by default it is a new one in the temporary directory, and
        it is removed in the end in both cases.
        """
        if reason := why_not(accounting):
            raise ClusterError(reason)
        where = _state_directory(directory)
        try:
            layout = Layout(where, nodes, cpus, memory, accounting)
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
            raise ClusterError(f"no test cluster runs in {directory}; start one with `up`") from None
        layout = Layout(**{**state["layout"], "directory": Path(state["layout"]["directory"])})
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
            "nodes": {name: dataclasses.astuple(process) for name, process in self.hosts.nodes.items()},
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

    def alive(self) -> bool:
        return self.hosts.keeper.alive() and self.hosts.controller.alive()

    def down(self) -> None:
        """End every process of the cluster and remove its state directory. Does nothing to a cluster that is gone already."""
        if self._owner:
            end_keeper(self._owner)
            self._owner = None
        elif not self.hosts.keeper.end(signal.SIGTERM, 20.0):
            self.hosts.keeper.end()
        # All that follows finds nothing to do, unless somebody has killed the keeper.
        self.hosts.controller.end()
        for process in members("mnt", self._login_mounts):
            process.end()
        shutil.rmtree(self.layout.directory, ignore_errors=True)

    # -- commands on the login side and on nodes

    def command(self, command: Sequence[str], cwd: Path | None = None) -> list[str]:
        """The command line that runs `command` on the login side; it becomes that command, with the same process id."""
        return [*self.hosts.enter_login((cwd or Path.cwd()).resolve()), *command]

    @staticmethod
    def environment(given: Mapping[str, str] | None = None) -> dict[str, str]:
        """The caller's environment for a command on the login side, without what belongs to another Slurm."""
        foreign = re.compile(r"(SLURM|SBATCH|SALLOC|SRUN|SQUEUE|SINFO|SACCT|SCANCEL|SCONTROL)_")
        kept = {
            name: value for name, value in (os.environ if given is None else given).items() if not foreign.match(name)
        }
        return {**kept, "PATH": kept.get("PATH", search_path())}

    def popen(
        self, command: Sequence[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None, **options: Any
    ) -> "subprocess.Popen[str]":
        """subprocess.Popen on the login side. Its pid is the command's own; it ends with the cluster at the latest."""
        self._must_run()
        return subprocess.Popen(self.command(command, cwd), env=self.environment(env), text=True, **options)

    def run(
        self, command: Sequence[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None,
        check: bool = True, timeout: float = 60.0, input: str | None = None, on: str = LOGIN,
    ) -> "subprocess.CompletedProcess[str]":  # fmt: skip
        """Run a command to its end, on the login side or (past Slurm) `on` a node, with its output as text.

        Raises ClusterError when `check` and it fails, or when it takes longer than `timeout` seconds; then it is killed.
        """
        self._must_run()
        inside = ["env", f"--chdir={(cwd or Path.cwd()).resolve()}"]
        line = self.command(command, cwd) if on == LOGIN else [*self.hosts.enter(on), *inside, *command]
        stdin: dict[str, IO[Any] | int | str] = {"stdin": subprocess.DEVNULL} if input is None else {"input": input}
        words = " ".join(command)
        try:
            done: subprocess.CompletedProcess[str] = subprocess.run(  # type: ignore[call-overload]
                line, env=self.environment(env), capture_output=True, text=True, timeout=timeout, check=False, **stdin
            )
        except subprocess.TimeoutExpired:
            raise ClusterError(f"`{words}` did not come to an end within {timeout:g} s on {on}") from None
        if check and done.returncode:
            raise ClusterError(f"`{words}` ended with exit code {done.returncode} on {on}:\n{done.stdout}{done.stderr}")
        return done

    def _must_run(self) -> None:
        if not self.alive():
            raise ClusterError(
                f"the test cluster in {self.layout.directory} does not run any more; start one with `up`"
            )

    # -- jobs

    def sbatch(self, script: str, *options: str, cwd: Path | None = None) -> int:
        """Submit a shell script (its text) and return the job id."""
        text = script if script.startswith("#!") else f"#!/bin/sh\n{script}\n"
        return int(self.run(["sbatch", "--parsable", *options], cwd=cwd, input=text).stdout.split(";")[0])

    def job(self, number: int) -> dict[str, str]:
        """What `scontrol show job` tells of a job, such as {"JobState": "RUNNING", "NodeList": "node1", ...}."""
        return _fields(self.run(["scontrol", "--oneliner", "show", "job", str(number)]).stdout)

    def wait_for_job(self, number: int, *states: str, seconds: float = 60.0) -> dict[str, str]:
        """Wait until a job is in one of these states (by default: any in which it has ended) and return its fields."""
        wanted, seen = states or ENDED, dict[str, str]()

        def there() -> bool:
            seen.update(self.job(number))
            return seen["JobState"] in wanted

        try:
            wait_until(there, seconds, f"job {number} is {' or '.join(wanted)}", 0.1)
        except ClusterError as error:
            raise ClusterError(f"{error}; it is {seen['JobState']} ({seen.get('Reason')})") from None
        return seen

    def expire(self, number: int) -> None:
        """Make a running job's time limit end now; the controller, which looks every 30 s, then ends it with TIMEOUT."""
        self.run(["scontrol", "update", f"JobId={number}", "EndTime=now"])

    # -- trouble, and the way back

    def node_states(self, name: str) -> list[str]:
        """The state of a node and its flags, such as ["IDLE"] or ["DOWN", "NOT_RESPONDING"]."""
        return (
            _fields(self.run(["scontrol", "--oneliner", "show", "node", name]).stdout)["State"].rstrip("*").split("+")
        )

    def wait_for_node(self, name: str, *states: str, seconds: float = 60.0) -> None:
        """Wait until the node's state is one of these, with no flag added."""
        what = f"node {name} is {' or '.join(states)}"
        try:
            wait_until(lambda: "+".join(self.node_states(name)) in states, seconds, what, 0.1)
        except ClusterError as error:
            raise ClusterError(
                f"{error}; it is {'+'.join(self.node_states(name))}{tail(self.slurmd_log(name))}"
            ) from None

    def slurmd_log(self, name: str) -> Path:
        return self.layout.path(f"log/slurmd-{name}.out")

    def processes(self, name: str) -> list[Process]:
        """What runs on a node (or "login": the daemons), as process ids of this machine."""
        return self.hosts.processes(name)

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
        self._save()
        self.start_slurmd(name)

    def stop_controller(self) -> None:
        """End slurmctld as an administrator does; it writes down the queue first."""
        self.hosts.end_daemon(LOGIN, "slurmctld", signal.SIGTERM)

    def kill_controller(self) -> None:
        """SIGKILL to slurmctld: it may forget the jobs of the last seconds, since it saves the queue every few seconds."""
        self.hosts.end_daemon(LOGIN, "slurmctld")

    def start_controller(self) -> None:
        daemons.start_slurmctld(self.hosts, self.layout)

    def reset(self, seconds: float = 60.0) -> None:
        """Bring everything back that was killed, cancel all jobs, and wait until all nodes are idle: the state after `start`."""
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
                self.run(["scontrol", "update", f"NodeName={name}", "State=RESUME"], check=False)
            self.wait_for_node(name, "IDLE", seconds=seconds)
        wait_until(lambda: not self.run(["squeue", "--noheader"]).stdout, seconds, "no job is left in the queue", 0.1)


def _fields(text: str) -> dict[str, str]:
    return dict(re.findall(r"(\S+?)=(\S*)", text))


def _state_directory(directory: Path | None) -> Path:
    if directory is None:
        return Path(tempfile.mkdtemp(prefix="testcluster-")).resolve()
    where = directory.resolve()
    if where.exists() and (not where.is_dir() or any(where.iterdir())):
        raise ClusterError(
            f"{where} is not empty; give the cluster a new directory, or end what runs there with `down`"
        )
    where.mkdir(parents=True, exist_ok=True)
    return where
