"""What sbatch says when it takes no job."""

from __future__ import annotations

import pytest
from tests.unit.running.slurm_site import ACCOUNT, LIMIT

from peakmark.running import refusals


@pytest.mark.parametrize(
    "words",
    [
        LIMIT,
        "sbatch failed: sbatch: error: AssocMaxSubmitJobLimit sbatch: error: Batch job submission failed: Job violates",
        "sbatch failed: sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)",
        "sbatch got no answer from Slurm within 60 s: is slurmctld up?",
        "sbatch failed: sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying",
        "sbatch failed: sbatch: error: Batch job submission failed: Socket timed out on send/recv operation",
    ],
)
def test_what_may_go_better_later(words: str) -> None:
    assert refusals.later(words)


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        (ACCOUNT, "slurm.account"),
        (
            "sbatch: error: QOSMaxWallDurationPerJobLimit sbatch: error: Batch job submission failed: Job violates",
            "slurm.",
        ),
        ("allocation failure: Memory specification can not be satisfied", "slurm.memory"),
        ("allocation failure: Node count specification invalid", "slurm.partition"),
        ("sbatch: error: exclusive jobs are not allowed here", "slurm.exclusive: false"),
        ("allocation failure: Access/permission denied", "slurm.partition"),
    ],
)
def test_what_will_not_is_a_sentence_with_a_remedy(words: str, remedy: str) -> None:
    assert not refusals.later(words)
    assert remedy in refusals.sentence(words) and "sbatch" not in refusals.sentence(words)
