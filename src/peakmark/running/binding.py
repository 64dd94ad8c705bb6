"""Where Slurm chooses the nodes, a row stays on those of its first repetition, and so do the programs beside it.

The first job of a row is handed over as it is; the others stay back until it has begun, and then ask for its nodes. A row leaves
nodes that take no jobs any more, or that others have had for long: its other jobs then run anywhere, and the row says that it mixes
hosts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from peakmark import slurm
from peakmark.cell import Cell
from peakmark.formatting import duration
from peakmark.planning import grouping, jobs
from peakmark.planning.cluster import ANY
from peakmark.planning.plan import Plan
from peakmark.running.reasons import JobReason
from peakmark.running.task import Task
from peakmark.storage import integrity

PATIENCE_S = 900.0
"""So long a job waits for nodes on which no other job of this run is: whoever has them is somebody else."""


@dataclass
class Rows:
    """What is known of the nodes of rows.

    together  which cells are one row
    nodes  row -> its nodes as Slurm writes them: ``n1``, of cells of two nodes ``n[1-2]``
    first  row -> the job that decides them
    kept   row -> the jobs that wait for that
    free   rows that have left their nodes
    ours   nodes on which a job of this run was when Slurm was last asked
    """

    together: Callable[[Cell], str] = grouping.together
    nodes: dict[str, str] = field(default_factory=dict)
    first: dict[str, Task] = field(default_factory=dict)
    kept: dict[str, list[Task]] = field(default_factory=dict)
    free: set[str] = field(default_factory=set)
    ours: set[str] = field(default_factory=set)

    def lets(self, task: Task) -> bool:
        """Whether a job may be handed over now: one of its row decides the nodes, all others ask for them. Any other is kept."""
        row = self._row(task)
        if row is None or task.number is not None:
            return True
        task.nodes = self.nodes.get(row, "")
        if task.nodes or row in self.free or self.first.setdefault(row, task) is task:
            return True
        self.kept.setdefault(row, []).append(task)
        return False

    def took_over(self, task: Task) -> None:
        """A job of an earlier run: as good as any to decide where its row runs."""
        row = self._row(task)
        if row is not None and row not in self.nodes:
            self.first.setdefault(row, task)

    @property
    def ask(self) -> bool:
        """Whether Slurm may know nodes that a row waits for."""
        return any(task.number is not None for task in self.first.values())

    def look(self, known: Mapping[str, slurm.Job], active: Collection[str]) -> list[Task]:
        """Learn the nodes of first jobs that have begun. Returns jobs that need not stay back any longer.

        known   all that Slurm knows, by their number
        active  numbers of those that have not ended
        """
        running = {known[number].nodes for number in active if number in known and not known[number].waits}
        self.ours = {name for nodes in running for name in _names(nodes)}
        freed = []
        for row, task in list(self.first.items()):
            job = known.get(task.number or "")
            ended = task.number is not None and task.number not in active
            failed = ended and job is not None and job.state in slurm.ENDED_BADLY and not task.is_made()
            begun = job is not None and job.nodes and not job.waits and not failed
            if job is not None and begun:
                self.nodes[row] = job.nodes
            if begun or ended:
                freed += self.without(task)
        return freed

    def without(self, task: Task) -> list[Task]:
        """The first job of its row has begun, or never will. Returns those that it has kept back."""
        row = self._row(task)
        if row is None or self.first.get(row) is not task:
            return []
        del self.first[row]
        return self.kept.pop(row, [])

    def why_leave(self, task: Task, job: slurm.Job, unusable: Mapping[str, str], now: float) -> JobReason | None:
        """Why a waiting job should not wait any longer for the nodes of its row."""
        names = _names(task.nodes)
        down = next((JobReason("unusable", (name, unusable[name])) for name in sorted(names) if name in unusable), None)
        if down is not None or job.lacks_nodes:
            return down or JobReason("waits", (job.reason,))
        if self.ours & names or not job.waits_for_others:
            task.others_since = None
            return None
        task.others_since = now if task.others_since is None else task.others_since
        long = now - task.others_since >= PATIENCE_S
        return JobReason("others", (task.nodes, duration(PATIENCE_S))) if long else None

    def leave(self, task: Task) -> None:
        """The row runs anywhere from now on."""
        row = self._row(task)
        if row is not None:
            self.nodes.pop(row, None)
            self.free.add(row)

    def back(self) -> list[Task]:
        """All jobs that stay back."""
        return [task for tasks in list(self.kept.values()) for task in tasks]  # asked by another thread at the end

    def _row(self, task: Task) -> str | None:
        """None where a job's nodes are not Slurm's choice, or where it measures many rows, each of them whole."""
        return self.together(task.cells[0]) if len(task.cells) == 1 and task.cells[0].node == ANY else None


@functools.lru_cache(maxsize=1024)
def _names(nodes: str) -> frozenset[str]:
    """``n[1-2]`` -> n1, n2; as it is where Slurm does not tell."""
    if not {"[", ","} & set(nodes):
        return frozenset([nodes])
    try:
        return frozenset(slurm.hostnames(nodes))
    except slurm.SlurmError:
        return frozenset([nodes])


def known(plan: Plan, findings: Mapping[str, integrity.Finding]) -> dict[str, str]:
    """Row -> nodes on which an earlier run has measured it, where Slurm has them by the name that they give themselves and
    they are large enough for what is left of it.
    """
    names = {name for kind in plan.cluster.kinds for name in kind["nodes"]} if plan.cluster else set()
    nodes: dict[str, str] = {}
    for cell in plan.cells:
        data = findings[cell.id].data if findings[cell.id].state == integrity.GOOD else None
        if data is None or cell.node != ANY or plan.together(cell) in nodes:
            continue
        hosts = [str(host).partition(".")[0] for key in ("host", "server_host") if (host := data["context"].get(key))]
        if names.issuperset(hosts) and not set(hosts) & set(jobs.too_small([cell], plan)):
            nodes[plan.together(cell)] = ",".join(hosts)
    return nodes
