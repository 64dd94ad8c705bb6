"""What sbatch says when it takes no job: whether to try again, and what would mend it."""

from __future__ import annotations

import re

from peakmark.messages import Message, message
from peakmark.slurm import SlurmError

_LATER = re.compile(
    r"submit limit|rate limit|[Uu]nable to contact|timed? ?out|temporarily|try again|[Cc]onnection|"
    r"standby|Zero Bytes|Communication|slurmctld is|in recovery|Resource temporarily",
)
_UNANSWERED = re.compile(r"timed? ?out|[Cc]onnection|Zero Bytes|Communication")
_NODES = re.compile(
    r"[Rr]equired nodes? not available|nodes are busy|ReqNodeNotAvail|down, drained"
)
_LIMIT = re.compile(r"\b(?:QOS|Assoc)(?:Max|Min|Grp|Time|Job|NotAllowed|Resource|Usage)\w*")
"""Slurm's name of a limit, such as QOSMaxNodePerJobLimit; one sentence follows that is the same for
all.
"""
_OTHER_JOBS = re.compile(r"Submit|Jobs|QOSJobLimit")
"""In the name of a limit: it counts jobs in the queue, of which some will end."""

NO_NETWORK = "only the network cells take two nodes: `network: []` in the configuration, or --config network=[], leaves them out"
_TIME = "slurm.partition in the site file names one with longer jobs; slurm.runtime_factor makes them shorter"
_MEMORY = "slurm.memory: per_cpu or none in the site file asks for it in another way"
_ACCOUNT = "name one: slurm.account in the site file, or --default-resources slurm_account=NAME"
_QOS = "name one: slurm.qos in the site file"
_PARTITION = "slurm.partition in the site file, or --default-resources slurm_partition=NAME; sinfo lists them"
_OTHER_PARTITION = "slurm.partition in the site file names another"
_EXTRA = "slurm.extra in the site file asks for it"

_OF_LIMITS = (
    (r"(Max|Grp)Node(Per|Limit)", NO_NETWORK),
    (r"Wall|Time|Minutes", _TIME),
    (r"Mem", _MEMORY),
    (
        r"Cpu|CPU",
        "fewer threads (concurrency:) with slurm.exclusive: false in the site file ask for fewer CPUs",
    ),
)
"""In the name of a limit -> what to do about it."""
_OF_ANY_LIMIT = "slurm.qos or slurm.account in the site file names another; sacctmgr show qos lists their limits"

_REMEDIES = (
    ("CPU count per node", _MEMORY),
    (
        "Argument list too long",
        "there are too many small nodes to leave out: name the large ones in nodes:, or a feature of theirs, slurm.constraint in the "
        "site file",
    ),
    ("Invalid account", _ACCOUNT),
    ("Invalid qos", _QOS),
    ("accounting/QOS policy", _OF_ANY_LIMIT),
    ("QOS usage threshold", _OF_ANY_LIMIT),
    ("Requested time limit is invalid", _TIME),
    ("Memory required by task is not available", _MEMORY),
    ("Memory specification can not be satisfied", _MEMORY),
    ("Node count specification invalid", _OTHER_PARTITION),
    ("configuration is not available", _OTHER_PARTITION),
    (
        "Access/permission denied",
        "slurm.partition names a partition that takes your jobs from this node; sinfo lists them",
    ),
    ("not permitted to use this partition", _PARTITION),
    ("nvalid partition", _PARTITION),
    ("No partition specified", _PARTITION),
    ("partition not available", _PARTITION),
    ("partition configuration not available", _PARTITION),
    (
        "Invalid feature",
        "slurm.constraint in the site file names one; sinfo --format='%N %f' lists them",
    ),
    ("reservation", _EXTRA),
    ("generic resource", _EXTRA),
    # A site's own plugin says what it likes.
    (
        r"\b([Ee]xclusive|OverSubscribe)\b",
        "slurm.exclusive: false in the site file asks for a node without asking for it alone",
    ),
    (r"(?i)\baccount\b", _ACCOUNT),
    (r"(?i)\bqos\b", _QOS),
    (r"(?i)\bpartition\b", _PARTITION),
    (r"(?i)\bmemory\b", _MEMORY),
    (r"(?i)\btime limit\b", _TIME),
)
"""Slurm's sentences (slurm_errno.c) -> what to do about them."""
_REMEDY = "the site file's section slurm has what can be changed"


def later(error: SlurmError) -> bool:
    """Whether the same submission may succeed later: a limit of jobs in the queue, or a controller
    that is away.
    """
    limit = _LIMIT.search(error.said)
    if limit is not None:
        return bool(_OTHER_JOBS.search(limit[0]))
    return error.silent or bool(_LATER.search(error.said))


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


def reason(error: SlurmError) -> Message:
    """sbatch's words and what would mend it."""
    return message("job-refused", reason=said(error), advice=_remedy(error))


def _remedy(error: SlurmError) -> str:
    limit = _LIMIT.search(error.said)
    words, remedies = (limit[0], _OF_LIMITS) if limit else (error.said, _REMEDIES)
    for pattern, remedy in remedies:
        if re.search(pattern, words):
            return remedy
    return _OF_ANY_LIMIT if limit else _REMEDY
