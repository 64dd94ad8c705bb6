"""Call Slurm's commands. Each exported function calls one command once, and raises an error if it fails.

These functions know nothing of campaigns. The modules ``queue`` and ``failures`` submit and judge the
jobs of a campaign.
"""

from peakmark.slurm.commands import NumberError, SlurmError, environment
from peakmark.slurm.inventory import (
    Node,
    Partition,
    address,
    nodes,
    nodes_unavailable,
    partition_names,
    partitions,
    switches,
)
from peakmark.slurm.user_jobs import (
    ENDED_BADLY,
    NODE_LOST,
    Job,
    cancel,
    job,
    job_nodes,
    job_numbers,
    jobs,
    submit,
)

__all__ = [
    "ENDED_BADLY",
    "NODE_LOST",
    "Job",
    "Node",
    "NumberError",
    "Partition",
    "SlurmError",
    "address",
    "cancel",
    "environment",
    "job",
    "job_nodes",
    "job_numbers",
    "jobs",
    "nodes",
    "nodes_unavailable",
    "partition_names",
    "partitions",
    "submit",
    "switches",
]
