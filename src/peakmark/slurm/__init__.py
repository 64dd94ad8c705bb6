"""Call Slurm's commands. Each exported function calls one command once, and raises an error if it fails.

These functions know nothing of campaigns. The modules ``queue`` and ``failures`` submit and judge the
jobs of a campaign.
"""

from peakmark.slurm.commands import ENDED_BADLY as ENDED_BADLY
from peakmark.slurm.commands import LAUNCH_FAILED as LAUNCH_FAILED
from peakmark.slurm.commands import NODE_LOST as NODE_LOST
from peakmark.slurm.commands import Job as Job
from peakmark.slurm.commands import Node as Node
from peakmark.slurm.commands import Partition as Partition
from peakmark.slurm.commands import SlurmError as SlurmError
from peakmark.slurm.commands import address as address
from peakmark.slurm.commands import cancel as cancel
from peakmark.slurm.commands import environment as environment
from peakmark.slurm.commands import is_here as is_here
from peakmark.slurm.commands import job as job
from peakmark.slurm.commands import job_nodes as job_nodes
from peakmark.slurm.commands import jobs as jobs
from peakmark.slurm.commands import nodes as nodes
from peakmark.slurm.commands import nodes_unavailable as nodes_unavailable
from peakmark.slurm.commands import partition_names as partition_names
from peakmark.slurm.commands import partitions as partitions
from peakmark.slurm.commands import seconds as seconds
from peakmark.slurm.commands import submit as submit
from peakmark.slurm.commands import switches as switches
