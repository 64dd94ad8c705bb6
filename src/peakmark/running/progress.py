"""What the progress bar is told of a campaign; Snakefile, executor and logger plugin live in the same process."""

from __future__ import annotations

from collections.abc import Callable

estimates: dict[str, float] = {}
"""Output of each job that this run may start -> its expected seconds."""

steps: dict[str, dict[str, float]] = {}
"""Output of each job of several cells -> the cells that it will measure, in running order, with the expected seconds of each."""

behind: dict[str, int] = {}
"""Output of a job of several cells -> how many of these it has behind it."""

started: float | None = None
"""When the first job began to measure, by ``time.monotonic``: what it waited before is no measure of what is left."""

listener: Callable[[], None] | None = None
"""Called when a job of several cells has come further."""


def reached(output: str, cell: str) -> None:
    """The job that makes ``output`` measures this cell now. Where repetitions are decided in rounds it begins again at the
    first row: then what is behind it stays.
    """
    place = next((number for number, name in enumerate(steps.get(output, ())) if name == cell), 0)
    if place > behind.get(output, 0):
        behind[output] = place
        if listener is not None:
            listener()


def over(output: str) -> None:
    """The job has ended, however it did: nothing of it is ahead any more."""
    if output in steps:
        behind[output] = len(steps[output])
        if listener is not None:
            listener()


def cells() -> tuple[int, int]:
    """Of the cells in jobs of several: how many these have behind them, and how many there are."""
    return sum(behind.values()), sum(map(len, steps.values()))


def spent(output: str) -> float:
    """Expected seconds of what a job of several cells has behind it."""
    return sum(list(steps.get(output, {}).values())[: behind.get(output, 0)])
