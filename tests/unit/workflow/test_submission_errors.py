"""What sbatch says when it takes no job."""

from __future__ import annotations

import pytest
from tests.unit.workflow.slurm_site import ACCOUNT, LIMIT, NO_ANSWER, refusal

from peakmark.workflow import submission_errors


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
    assert submission_errors.later(refusal(words))


POLICY = "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"
"""What Slurm says of every limit of an account or a QOS."""


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
@pytest.mark.parametrize(
    "failed", ["allocation failure:", "sbatch: error: Batch job submission failed:"]
)
def test_a_limit_is_told_by_its_name(limit: str, remedy: str, failed: str) -> None:
    error = refusal(f"sbatch: error: {limit} {failed} {POLICY}")
    assert not submission_errors.later(error)
    sentence = submission_errors.reason(error).text
    assert limit in sentence and remedy in sentence
    assert "slurm_account" not in sentence  # accounting is no account


def test_a_policy_without_the_name_of_its_limit_asks_for_no_account() -> None:
    error = refusal(f"allocation failure: {POLICY}")
    assert "slurm_account" not in str(submission_errors.reason(error))


@pytest.mark.parametrize(
    ("words", "remedy"),
    [
        (ACCOUNT, "slurm.account"),
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
    assert not submission_errors.later(refusal(words))
    sentence = submission_errors.reason(refusal(words)).text
    assert remedy in sentence and "sbatch" not in sentence


def test_a_lost_answer_is_no_refusal() -> None:
    assert submission_errors.later(NO_ANSWER) and submission_errors.unanswered(NO_ANSWER)
    assert not submission_errors.away(NO_ANSWER)
    assert "60 s" in submission_errors.said(NO_ANSWER)
