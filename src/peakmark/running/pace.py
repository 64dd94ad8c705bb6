"""How fast Snakemake hands jobs over: as fast as it can, unless the command line says otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from peakmark.config import given


def lift(scheduler: Any, words: Sequence[str]) -> None:
    """Take away the limit of a hundred jobs a second that Snakemake sets by itself, not one that the command line names.

    While there is a limit, each job that has ended leaves a timer that makes Snakemake go through all open jobs again each
    second, until the campaign ends. After 200 cells that took an eighth of a CPU, beside what was measured. ``scheduler``:
    Snakemake's own, before it hands over the first job.
    """
    if not given.named(words, ("--max-jobs-per-timespan", "--max-jobs-per-second")):
        scheduler.job_rate_limiter = None
