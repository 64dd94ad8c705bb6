"""What sbatch says when it takes no job."""

from __future__ import annotations

import pytest
from tests.unit.slurm.conftest import NO_ANSWER, refusal

from peakmark.slurm import submission

POLICY = "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"
"""What Slurm says of every limit of an account or a QOS."""
FAILED = "sbatch: error: Batch job submission failed:"


@pytest.mark.parametrize(
    "words",
    [
        f"sbatch: error: QOSMaxSubmitJobPerUserLimit {FAILED} {POLICY}",
        f"sbatch: error: AssocMaxSubmitJobLimit {FAILED} Job violates",
        f"{FAILED} Unable to contact slurm controller (connect failure)",
        "sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying",
        f"{FAILED} Socket timed out on send/recv operation",
    ],
)
def test_what_may_go_better_later(words: str) -> None:
    assert submission.is_temporary(refusal(words))


@pytest.mark.parametrize(
    ("limit", "remedy"),
    [
        ("QOSMaxNodePerJobLimit", "network=[]"),
        ("QOSMaxNodePerUserLimit", "network=[]"),
        ("AssocGrpNodeLimit", "network=[]"),
        ("QOSMaxWallDurationPerJobLimit", "slurm.runtime_factor"),
        ("QOSMaxCpuMinutesPerJobLimit", "slurm.runtime_factor"),
        ("AssocMaxMemPerJob", "slurm.memory"),
        ("QOSMaxMemoryPerNode", "slurm.memory"),
        ("QOSGrpCpuLimit", "concurrency"),
        ("QOSMinNode", "slurm.qos"),
        ("QOSMaxGRESPerJob", "slurm.qos"),
    ],
)
@pytest.mark.parametrize("failed", ["allocation failure:", FAILED])
def test_a_limit_is_told_by_its_name(limit: str, remedy: str, failed: str) -> None:
    error = refusal(f"sbatch: error: {limit} {failed} {POLICY}")
    assert not submission.is_temporary(error)
    sentence = submission.refusal(error).text
    assert limit in sentence and remedy in sentence
    assert "slurm_account" not in sentence  # accounting is no account


def test_a_policy_without_the_name_of_its_limit_asks_for_no_account() -> None:
    error = refusal(f"allocation failure: {POLICY}")
    assert "slurm_account" not in str(submission.refusal(error))


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        (f"{FAILED} Invalid account or account/partition combination", "slurm.account"),
        ("allocation failure: Invalid qos specification", "slurm.qos"),
        ("allocation failure: Requested time limit is invalid (missing)", "slurm.runtime_factor"),
        ("allocation failure: Memory required by task is not available", "slurm.memory"),
        ("allocation failure: Invalid partition name specified", "slurm.partition"),
        ("allocation failure: Required partition not available (inactive)", "slurm.partition"),
        ("allocation failure: Requested node configuration is not available", "slurm.partition"),
        ("allocation failure: Invalid feature specification", "slurm.constraint"),
        ("allocation failure: Requested reservation is invalid", "slurm.extra"),
        ("sbatch: error: Invalid generic resource (gres) specification", "slurm.extra"),
        ("sbatch: error: say your account, please", "slurm.account"),
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
    assert not submission.is_temporary(refusal(words))
    sentence = submission.refusal(refusal(words)).text
    assert remedy in sentence and "sbatch" not in sentence


def test_a_lost_answer_is_no_refusal() -> None:
    assert submission.is_temporary(NO_ANSWER) and submission.is_unanswered(NO_ANSWER)
    assert "60 s" in submission.text(NO_ANSWER)
