"""One job of a campaign: what Slurm is told of it, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from peakmark.cell import Cell
from peakmark.running.reasons import JobReason


@dataclass(eq=False)
class Task:
    """A job to be: ``place`` in the plan's order, ``output`` that it makes, all that sbatch is told.

    before      when the output that is there already was written (ns), None where there is none
    unanswered  sbatch was called and got no answer: Slurm may have the job
    nodes       those of its row, where Slurm has chosen them for another job; empty where it is free or the plan names one
    leaves      it is being taken out of Slurm's queue, to wait for any nodes
    others_since  since when none but others have been seen on them
    """

    place: int
    cells: tuple[Cell, ...]
    output: Path
    comment: str
    options: tuple[str, ...]
    script: str
    before: int | None = None
    number: str | None = None
    misses: int = 0
    unanswered: bool = False
    nodes: str = ""
    leaves: bool = False
    others_since: float | None = None
    stuck_since: float | None = None

    def __lt__(self, other: Task) -> bool:
        return self.place < other.place

    def again(self) -> Task:
        """The same to be handed over once more, wherever there is room."""
        return replace(self, number=None, misses=0, nodes="", leaves=False, others_since=None, stuck_since=None)

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
    why: JobReason | None = None
