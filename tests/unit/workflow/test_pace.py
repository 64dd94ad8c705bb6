"""Snakemake's limit of jobs a second is nobody's wish unless somebody names it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from snakemake.scheduling.job_scheduler import JobRateLimiter
from snakemake.settings.types import MaxJobsPerTimespan

from peakmark.workflow import head


@pytest.mark.parametrize(
    ("words", "stays"),
    [
        ([], False),
        (["--profile", "slurm", "--jobs", "5"], False),
        (["--max-jobs-per-timespan", "50/1m"], True),
        (["--max-jobs-per-timespan=50/1m"], True),
        (["--max-jobs-per-second", "50"], True),
    ],
)
def test_only_a_limit_that_is_asked_for_stays(words: list[str], stays: bool) -> None:
    scheduler = SimpleNamespace(job_rate_limiter=JobRateLimiter(MaxJobsPerTimespan(50, "1m")))
    head.disable_rate_limit(scheduler, words)
    assert (scheduler.job_rate_limiter is not None) == stays
