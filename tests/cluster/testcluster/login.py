"""What a person does on the login side of a cluster: run commands, submit jobs, look at jobs and
nodes.
"""

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from .config import LOGIN, Layout
from .errors import ClusterError
from .hosts import Hosts, tail
from .processes import Process, wait_until
from .requirements import search_path

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


class Login:
    """The user's side of a running cluster; all methods raise ClusterError."""

    def __init__(self, layout: Layout, hosts: Hosts) -> None:
        self.layout = layout
        self.hosts = hosts

    def alive(self) -> bool:
        return self.hosts.keeper.alive() and self.hosts.controller.alive()

    # -- commands on the login side and on nodes

    def command(self, command: Sequence[str], cwd: Path | None = None) -> list[str]:
        """The command line that runs `command` on the login side; it becomes that command, with the
        same process id.
        """
        return [*self.hosts.enter_login((cwd or Path.cwd()).resolve()), *command]

    @staticmethod
    def environment(given: Mapping[str, str] | None = None) -> dict[str, str]:
        """The caller's environment for a command on the login side, without what belongs to another
        Slurm.
        """
        foreign = re.compile(r"(SLURM|SBATCH|SALLOC|SRUN|SQUEUE|SINFO|SACCT|SCANCEL|SCONTROL)_")
        kept = {
            name: value
            for name, value in (os.environ if given is None else given).items()
            if not foreign.match(name)
        }
        return {**kept, "PATH": kept.get("PATH", search_path())}

    def popen(
        self,
        command: Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        **options: Any,
    ) -> "subprocess.Popen[str]":
        """subprocess.Popen on the login side. Its pid is the command's own; it ends with the
        cluster at the latest.
        """
        self._must_run()
        return subprocess.Popen(
            self.command(command, cwd), env=self.environment(env), text=True, **options
        )

    def run(
        self, command: Sequence[str], *, cwd: Path | None = None, env: Mapping[str, str] | None = None,
        check: bool = True, timeout: float = 60.0, input: str | None = None, on: str = LOGIN,
    ) -> "subprocess.CompletedProcess[str]":  # fmt: skip
        """Run a command to its end, on the login side or (past Slurm) `on` a node, with its output
        as text.

        Raises ClusterError when `check` and it fails, or when it takes longer than `timeout`
        seconds; then it is killed.
        """
        self._must_run()
        inside = ["env", f"--chdir={(cwd or Path.cwd()).resolve()}"]
        line = (
            self.command(command, cwd)
            if on == LOGIN
            else [*self.hosts.enter(on), *inside, *command]
        )
        stdin: dict[str, IO[Any] | int | str] = (
            {"stdin": subprocess.DEVNULL} if input is None else {"input": input}
        )
        words = " ".join(command)
        try:
            done: subprocess.CompletedProcess[str] = subprocess.run(  # type: ignore[call-overload]
                line,
                env=self.environment(env),
                capture_output=True,
                text=True,
                timeout=timeout,
                check=False,
                **stdin,
            )
        except subprocess.TimeoutExpired:
            raise ClusterError(
                f"`{words}` did not come to an end within {timeout:g} s on {on}"
            ) from None
        if check and done.returncode:
            raise ClusterError(
                f"`{words}` ended with exit code {done.returncode} on {on}:\n{done.stdout}{done.stderr}"
            )
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
        return int(
            self.run(["sbatch", "--parsable", *options], cwd=cwd, input=text).stdout.split(";")[0]
        )

    def job(self, number: int) -> dict[str, str]:
        """What `scontrol show job` tells of a job, such as {"JobState": "RUNNING", "NodeList":
        "node1", ...}.
        """
        return _fields(self.run(["scontrol", "--oneliner", "show", "job", str(number)]).stdout)

    def wait_for_job(self, number: int, *states: str, seconds: float = 60.0) -> dict[str, str]:
        """Wait until a job is in one of these states (by default: any in which it has ended) and
        return its fields.
        """
        wanted, seen = states or ENDED, dict[str, str]()

        def there() -> bool:
            seen.update(self.job(number))
            return seen["JobState"] in wanted

        try:
            wait_until(there, seconds, f"job {number} is {' or '.join(wanted)}", 0.1)
        except ClusterError as error:
            raise ClusterError(
                f"{error}; it is {seen['JobState']} ({seen.get('Reason')})"
            ) from None
        return seen

    def expire(self, number: int) -> None:
        """Make a running job's time limit end now; the controller, which looks every 30 s, then
        ends it with TIMEOUT.
        """
        self.run(["scontrol", "update", f"JobId={number}", "EndTime=now"])

    # -- nodes

    def node_states(self, name: str) -> list[str]:
        """The state of a node and its flags, such as ["IDLE"] or ["DOWN", "NOT_RESPONDING"]."""
        return (
            _fields(self.run(["scontrol", "--oneliner", "show", "node", name]).stdout)["State"]
            .rstrip("*")
            .split("+")
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

    def wait_for_process(self, host: str, name: str, seconds: float = 30.0) -> None:
        """Wait until a program of this name (at most 15 characters) runs on a host.

        A job is RUNNING for Slurm a moment before its node knows of it, and one whose node is lost
        in between is queued again, whatever --no-requeue says. Who wants to disturb a running job
        waits for its process.
        """
        wait_until(
            lambda: name in {process.name for process in self.processes(host)},
            seconds,
            f"{name} runs on {host}",
        )


def _fields(text: str) -> dict[str, str]:
    return dict(re.findall(r"(\S+?)=(\S*)", text))
