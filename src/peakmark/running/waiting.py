"""Why a job waits, by what Slurm says of it."""

from __future__ import annotations

from peakmark import slurm

_GONE = ("ReqNodeNotAvail", "DOWN", "DRAINED", "NodeDown", "BadConstraints")
_STUCK = (
    *_GONE,
    *("PartitionDown", "PartitionInactive", "Held", "held"),
    *("Invalid", "NotAllowed", "PartitionNodeLimit", "PartitionTimeLimit"),
)
"""Words in Slurm's reason why a job waits that no other job's end will change."""
_OTHERS = ("Resources", "Priority")


def waits(job: slurm.Job) -> bool:
    """Whether it has not begun."""
    return job.state in slurm.WAITING


def stuck(job: slurm.Job) -> bool:
    """Whether no end of another job lets this one begin."""
    return job.state == "REQUEUE_HOLD" or any(word in job.reason for word in _STUCK)


def nodes_gone(job: slurm.Job) -> bool:
    """Whether the nodes that it asks for take no jobs, or not this one."""
    return any(word in job.reason for word in _GONE)


def for_others(job: slurm.Job) -> bool:
    """Whether it waits for the end of other jobs, and not for a limit or for one of its own kind."""
    return job.reason in _OTHERS
