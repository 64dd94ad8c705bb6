"""What sbatch says when it takes no job: whether to try again, and what would mend it."""

from __future__ import annotations

import re

from peakmark.running.reasons import JobReason
from peakmark.slurm import SlurmError

_LATER = re.compile(
    r"MaxSubmit|submit limit|rate limit|[Uu]nable to contact|timed? ?out|temporarily|try again|[Cc]onnection|"
    r"standby|Zero Bytes|Communication|slurmctld is|in recovery|Resource temporarily",
)
_UNANSWERED = re.compile(r"timed? ?out|[Cc]onnection|Zero Bytes|Communication")
_NEVER = re.compile(r"(MaxWall|MaxCpus|MaxCPU|MaxNode|MaxMem|MaxTRES|MinCpus|MinTRES)\w*PerJob|MaxWallDuration")
_NODES = re.compile(r"[Rr]equired nodes? not available|nodes are busy|ReqNodeNotAvail|down, drained")

_REMEDIES = (
    (
        r"too long|[Aa]rgument list",
        "there are too many small nodes to leave out: name the large ones in nodes:, or a feature of theirs, slurm.constraint in the "
        "site file",
    ),
    (r"account", "name one: slurm.account in the site file, or --default-resources slurm_account=NAME"),
    (r"qos", "name one: slurm.qos in the site file"),
    (
        r"[Ee]xclusive|OverSubscribe",
        "slurm.exclusive: false in the site file asks for a node without asking for it alone",
    ),
    (r"[Mm]emory|CPU count per node", "slurm.memory: per_cpu or none in the site file asks for it in another way"),
    (
        r"[Tt]ime limit|MaxWall",
        "slurm.partition in the site file names one with longer jobs; slurm.runtime_factor makes them shorter",
    ),
    (
        r"[Nn]ode count|configuration is not available",
        "slurm.partition in the site file names another; cells of the network take two nodes",
    ),
    (
        r"permi|denied|[Aa]ccess",
        "slurm.partition names a partition that takes your jobs from this node; sinfo lists them",
    ),
    (r"partition", "slurm.partition in the site file, or --default-resources slurm_partition=NAME; sinfo lists them"),
)
_REMEDY = "the site file's section slurm has what can be changed"


def later(error: SlurmError) -> bool:
    """Whether the same submission may succeed later: a limit of jobs in the queue, or a controller that is away."""
    return error.silent or (bool(_LATER.search(error.said)) and not _NEVER.search(error.said))


def unanswered(error: SlurmError) -> bool:
    """Whether Slurm may have taken the job all the same: the answer was lost, not the question."""
    return error.silent or bool(_UNANSWERED.search(error.said))


def away(error: SlurmError) -> bool:
    """Whether only the state of nodes speaks against it: the job may wait in the queue."""
    return bool(_NODES.search(error.said))


def said(error: SlurmError) -> str:
    """sbatch's words without its own name in every line."""
    text = re.sub(r"^(sbatch: )?(error: )?", "", error.said or error.fact)
    return re.sub(r"\s*sbatch: (error: )?", "; ", text).strip("; ")


def reason(error: SlurmError) -> JobReason:
    """sbatch's words and what would mend it."""
    remedy = next((text for pattern, text in _REMEDIES if re.search(pattern, error.said)), _REMEDY)
    return JobReason("refused", (said(error), remedy))
