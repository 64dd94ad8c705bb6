"""Call Slurm's commands. Each exported function calls one command once, and raises an error if it fails.

These functions know nothing of campaigns. The modules ``queue`` and ``failures`` submit and judge the
jobs of a campaign.
"""

from peakmark.slurm.commands import SlurmError as SlurmError
from peakmark.slurm.commands import environment as environment
from peakmark.slurm.inventory import Node as Node
from peakmark.slurm.inventory import Partition as Partition
from peakmark.slurm.inventory import address as address
from peakmark.slurm.inventory import nodes as nodes
from peakmark.slurm.inventory import nodes_unavailable as nodes_unavailable
from peakmark.slurm.inventory import partition_names as partition_names
from peakmark.slurm.inventory import partitions as partitions
from peakmark.slurm.inventory import switches as switches
from peakmark.slurm.user_jobs import ENDED_BADLY as ENDED_BADLY
from peakmark.slurm.user_jobs import NODE_LOST as NODE_LOST
from peakmark.slurm.user_jobs import Job as Job
from peakmark.slurm.user_jobs import cancel as cancel
from peakmark.slurm.user_jobs import job as job
from peakmark.slurm.user_jobs import job_nodes as job_nodes
from peakmark.slurm.user_jobs import jobs as jobs
from peakmark.slurm.user_jobs import submit as submit
