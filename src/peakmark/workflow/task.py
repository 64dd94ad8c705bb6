"""One job of a campaign: what Slurm is told of it, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from peakmark.cell import Cell
from peakmark.messages import Message


@dataclass(eq=False)
class Task:
    """A job to be: ``place`` in the plan's order, ``output`` that it makes, all that sbatch is
    told.

    nodes       those on which Slurm may run it, of which it takes ``node_count``
    before      when the output that is there already was written (ns), None where there is none
    unanswered  sbatch was called and got no answer: Slurm may have the job
    away_since  since when too many of its nodes have been away
    """

    place: int
    cells: tuple[Cell, ...]
    output: Path
    comment: str
    options: tuple[str, ...]
    script: str
    nodes: tuple[str, ...] = ()
    node_count: int = 1
    before: int | None = None
    number: str | None = None
    misses: int = 0
    unanswered: bool = False
    retries: int = 0
    away_since: float | None = None

    def __lt__(self, other: Task) -> bool:
        return self.place < other.place

    def retry(self) -> Task:
        """The same, to be submitted once more."""
        return replace(self, number=None, misses=0, away_since=None, retries=self.retries + 1)

    def is_made(self) -> bool:
        """Whether the output is there, and is not the one from before."""
        return written(self.output) not in (None, self.before)


def written(path: Path) -> int | None:
    """When a file was written (ns), None where there is none."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None


@dataclass(frozen=True)
class Ended:
    """``why`` it failed, None when it did not."""

    task: Task
    why: Message | None = None
