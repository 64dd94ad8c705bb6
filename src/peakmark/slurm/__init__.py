"""Slurm's commands: a function here calls its command once and returns or raises what came of it.

The functions exported here know nothing of campaigns; the modules ``queue`` and ``failures`` do.
"""

from peakmark.slurm.commands import NumberError, SlurmError, environment
from peakmark.slurm.hostlists import hostlist
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
    "hostlist",
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
