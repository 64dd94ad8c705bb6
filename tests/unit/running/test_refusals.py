"""What sbatch says when it takes no job."""

from __future__ import annotations

import pytest
from tests.unit.running.slurm_site import ACCOUNT, LIMIT, NO_ANSWER, refusal

from peakmark.running import refusals


@pytest.mark.parametrize(
    "words",
    [
        LIMIT,
        "sbatch: error: AssocMaxSubmitJobLimit sbatch: error: Batch job submission failed: Job violates",
        "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)",
        "sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying",
        "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation",
    ],
)
def test_what_may_go_better_later(words: str) -> None:
    assert refusals.later(refusal(words))


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        (ACCOUNT, "slurm.account"),
        (
            "sbatch: error: QOSMaxWallDurationPerJobLimit sbatch: error: Batch job submission failed: Job violates",
            "slurm.",
        ),
        ("allocation failure: Memory specification can not be satisfied", "slurm.memory"),
        # Of --mem=0 where MaxMemPerCPU allows less than the node has; sbatch --test-only takes it.
        (
            "sbatch: error: CPU count per node can not be satisfied sbatch: error: Batch job submission failed: "
            "Requested node configuration is not available",
            "slurm.memory",
        ),
        ("allocation failure: Node count specification invalid", "slurm.partition"),
        ("sbatch: error: exclusive jobs are not allowed here", "slurm.exclusive: false"),
        ("allocation failure: Access/permission denied", "slurm.partition"),
    ],
)
def test_what_will_not_is_a_sentence_with_a_remedy(words: str, remedy: str) -> None:
    assert not refusals.later(refusal(words))
    sentence = str(refusals.reason(refusal(words)))
    assert remedy in sentence and "sbatch" not in sentence


def test_a_lost_answer_is_no_refusal() -> None:
    assert refusals.later(NO_ANSWER) and refusals.unanswered(NO_ANSWER) and not refusals.away(NO_ANSWER)
    assert "no answer from Slurm within 60 s" in refusals.said(NO_ANSWER)
