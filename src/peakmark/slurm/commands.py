"""Call a command of Slurm, and raise its message if it fails."""

from __future__ import annotations

import os
import re
import subprocess

from peakmark.errors import PeakmarkError

LIMIT_S = 60.0
"""Time limit of a command in seconds: slurmctld answers within seconds or not at all."""
_OPTION = re.compile(
    "(SLURM|SBATCH|SRUN|SALLOC|SATTACH|SBCAST|SQUEUE|SINFO|SCANCEL|SCONTROL|SACCT|SACCTMGR|SPRIO|SSHARE|SSTAT|SREPORT|SDIAG)_"
)
"""Start of the names of environment variables that Slurm's commands read as options."""
_REACHING = re.compile(r"SLURM_(CONF|JWT|SACK_\w+)")
"""Variables with which the commands find their cluster and authenticate the user."""
_ABSENT = re.compile("configuration source|contact slurm controller|Unable to establish")
"""Words in the message of a command that finds no controller."""


class SlurmError(PeakmarkError):
    """Slurm did not answer, or refused.

    Attributes:
        reason: message of the command that refused, or of the system that did not start it.
        silent: whether no answer came in time, or the answer does not show what Slurm did.
    """

    def __init__(self, fact: str, reason: str = "", silent: bool = False) -> None:
        super().__init__(fact)
        self.reason, self.silent = reason, silent


def ask(*argv: str, text: str = "") -> str:
    """Run a Slurm command that reads ``text``, and return its standard output.

    Raises:
        SlurmError: the command failed. The error has the command's message.
    """
    try:
        done = subprocess.run(
            argv,
            env=environment(),
            input=text,
            capture_output=True,
            encoding="utf-8",
            errors="replace",  # comments and reasons hold any bytes
            timeout=LIMIT_S,
            check=False,
            start_new_session=True,  # Ctrl-C and SIGHUP must not reach the command
        )
    except FileNotFoundError:
        raise SlurmError(
            f"{argv[0]} is not on PATH: start this on a login node of the cluster, or measure this machine without --slurm"
        ) from None
    except OSError as error:  # such as an argument list longer than the kernel allows
        refusal = f"{argv[0]} cannot be started: {error.strerror}"
        raise SlurmError(refusal, reason=refusal) from None
    except subprocess.TimeoutExpired:
        silence = f"{argv[0]} got no answer from Slurm within {LIMIT_S:.0f} s: is slurmctld up?"
        raise SlurmError(silence, silent=True) from None
    if done.returncode:
        message = done.stderr.strip() or f"exit code {done.returncode}"
        reason = " ".join(message.split())
        raise SlurmError(_failure(argv[0], message), reason)
    return done.stdout


def _failure(program: str, message: str) -> str:
    """Return the sentence on a failed command, with the last line of its message as the reason."""
    last = message.splitlines()[-1].strip()
    why = re.sub(rf"^{re.escape(program)}: (error|fatal): ", "", last)
    if _ABSENT.search(why):
        why += ": is this a login node, and is slurmctld up?"
    return f"{program} failed: {why}"


def environment() -> dict[str, str]:
    """Return the environment without the variables that Slurm's commands read as options.

    These may come from a job around this process, or from the user. SQUEUE_PARTITION, for example, would
    hide jobs. On a login node, SLURM_CLUSTERS is kept if it names one cluster, because the commands might
    not reach this cluster otherwise. Inside a job they reach the cluster of the job.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if _REACHING.fullmatch(name) or not _OPTION.match(name)
    }
    cluster = os.environ.get("SLURM_CLUSTERS", "")
    is_one = re.fullmatch(r"[\w.-]+", cluster) and cluster != "all"
    if is_one and "SLURM_JOB_ID" not in os.environ:
        kept["SLURM_CLUSTERS"] = cluster
    return kept
