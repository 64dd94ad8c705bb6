"""Faults on the test cluster at random moments, and the way back."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from testcluster import Cluster
from testcluster.config import LOGIN
from testcluster.errors import ClusterError

from workflow import Workflow

KINDS = {
    "kernel": "a kernel killed while it measures",
    "measure": "the measuring process of a node killed",
    "scancel": "a running job cancelled",
    "slurmd": "slurmd of a node killed, back after a while",
    "node": "a node lost with all its processes, back after a while",
    "controller": "slurmctld restarted",
    "controller-kill": "slurmctld killed, back after a while",
    "snakemake": "Snakemake killed",
    "truncate": "a finished record cut in the middle",
    "edit": "a number in a finished record changed",
}
WEIGHTS = {
    "kernel": 8,
    "measure": 3,
    "scancel": 3,
    "slurmd": 2,
    "node": 1,
    "controller": 2,
    "controller-kill": 1,
}
WEIGHTS |= {"snakemake": 1, "truncate": 3, "edit": 3}
KERNELS = ("cpubench", "rambench", "diskbench", "netbench")


class Memory(Protocol):
    """What remembers finished records."""

    damaged: set[str]
    texts: dict[str, str]
    guard: threading.Lock


@dataclass
class Breaker:
    """Breaks one thing after the other while a Snakemake runs, ``left`` in all; ``counts`` says
    what it did.
    """

    cluster: Cluster
    workflow: Workflow
    memory: Memory
    chance: random.Random
    every_s: float
    left: int
    counts: Counter[str] = field(default_factory=Counter)
    snakemake: int = 0

    @contextmanager
    def breaking(self, snakemake: int) -> Iterator[None]:
        """Faults come while the block runs. ``snakemake``: the process that may be killed."""
        self.snakemake = snakemake
        over = threading.Event()
        thread = threading.Thread(target=self._go_on, args=(over,))
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _go_on(self, over: threading.Event) -> None:
        while self.left > 0 and not over.wait(self.chance.expovariate(1 / self.every_s)):
            kind = self.chance.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
            with suppress(ClusterError, OSError):
                if getattr(self, "_" + kind.replace("-", "_"))(over):
                    self.counts[kind] += 1
                    self.left -= 1

    # -- one fault each; whether there was something to break

    def _one_of(self, those: Callable[[Cluster, str], list[int]]) -> bool:
        found = those(self.cluster, self.chance.choice(self.cluster.layout.names))
        if found:
            os.kill(self.chance.choice(found), signal.SIGKILL)
        return bool(found)

    def _kernel(self, over: threading.Event) -> bool:
        """Kernels live for a fraction of a second: look until one is there."""
        return any(self._one_of(kernels) or over.wait(0.01) for _ in range(200))

    def _measure(self, over: threading.Event) -> bool:
        return any(self._one_of(measuring) or over.wait(0.01) for _ in range(200))

    def _scancel(self, _: threading.Event) -> bool:
        numbers = self.cluster.run(
            ["squeue", "--noheader", "--states=running", "--format=%i"]
        ).stdout.split()
        if numbers:
            self.cluster.run(["scancel", self.chance.choice(numbers)])
        return bool(numbers)

    def _slurmd(self, over: threading.Event) -> bool:
        node = self.chance.choice(self.cluster.layout.names)
        self.cluster.kill_slurmd(node)
        over.wait(self.chance.uniform(0.5, 9.0))
        self.cluster.start_slurmd(node)
        self.mend()
        return True

    def _node(self, over: threading.Event) -> bool:
        node = self.chance.choice(self.cluster.layout.names)
        self.cluster.kill_node(node)
        over.wait(self.chance.uniform(0.5, 9.0))
        self.cluster.start_node(node)
        self.mend()
        return True

    def _controller(self, _: threading.Event) -> bool:
        self.cluster.stop_controller()
        self.cluster.start_controller()
        return True

    def _controller_kill(self, over: threading.Event) -> bool:
        self.cluster.kill_controller()
        over.wait(self.chance.uniform(0.0, 3.0))
        self.cluster.start_controller()
        return True

    def _snakemake(self, _: threading.Event) -> bool:
        os.kill(self.snakemake, signal.SIGKILL)
        return True

    def _record(self) -> Path | None:
        """A finished record that has not been damaged yet."""
        with self.memory.guard:
            names = sorted(set(self.memory.texts) - self.memory.damaged)
            if not names:
                return None
            name = self.chance.choice(names)
            self.memory.damaged.add(name)
            del self.memory.texts[name]
        return self.workflow.results / "cells" / f"{name}.json"

    def _truncate(self, _: threading.Event) -> bool:
        path = self._record()
        if path is None:
            return False
        text = path.read_text()
        path.write_text(text[: self.chance.randrange(len(text))])
        return True

    def _edit(self, _: threading.Event) -> bool:
        path = self._record()
        if path is None:
            return False
        record = json.loads(path.read_text())
        record["measurements"][0]["value"] *= 1.5
        path.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")
        return True

    # -- the way back

    def mend(self) -> None:
        """What an administrator does: start what was killed, put nodes back to work. Jobs stay as
        they are.
        """
        if not any(process.name == "slurmctld" for process in self.cluster.processes(LOGIN)):
            self.cluster.start_controller()
        for name in self.cluster.layout.names:
            if name not in self.cluster.hosts.nodes:
                self.cluster.start_node(name)
            elif not any(process.name == "slurmd" for process in self.cluster.processes(name)):
                self.cluster.start_slurmd(name)
            with suppress(ClusterError):
                if not {"DRAIN", "DOWN"}.isdisjoint(self.cluster.node_states(name)):
                    self.cluster.resume(name)


def kernels(cluster: Cluster, node: str) -> list[int]:
    """Process ids of the own kernels on a node."""
    return [process.pid for process in cluster.processes(node) if process.name in KERNELS]


def measuring(cluster: Cluster, node: str) -> list[int]:
    """Of the processes that measure a cell, or all of a job. Each one's guard, its child, has the
    same words.
    """
    found = {
        process.pid
        for process in cluster.processes(node)
        if b"\0measure\0--plan\0" in _words(process.pid)
    }
    return sorted(pid for pid in found if _parent(pid) not in found)


def _words(pid: int) -> bytes:
    """The command line of a process, nothing of one that is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _parent(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except OSError:
        return None
