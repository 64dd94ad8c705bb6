"""What is said of jobs and their nodes: a reason is a code with its values, and becomes a sentence
here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from peakmark.errors import MORE_MEMORY, OUT_OF_MEMORY

_GRANTED = f"{OUT_OF_MEMORY}: it used more memory than it had been granted"
_ENDED = {
    "TIMEOUT": "TIMEOUT: it passed its time limit; runtime_factor in the site file's section slurm makes limits longer",
    "CANCELLED": "CANCELLED: somebody cancelled it",
    "NODE_FAIL": "NODE_FAIL: its node was lost",
    "PREEMPTED": "PREEMPTED: another job took its node",
    "BOOT_FAIL": "BOOT_FAIL: its node did not start",
    OUT_OF_MEMORY: f"{_GRANTED} ({{}}); {MORE_MEMORY}",
    "whole node": f"{_GRANTED}{{}}, all that Slurm gives of its node: a smaller pool:, smaller blocks: or nodes with more memory",
    "exit code": "{}, exit code {}",
}
_SENTENCES = {
    **{code: f"Slurm ended {{job}}: {fact}" for code, fact in _ENDED.items()},
    "ended": "Slurm ended {job}: {}",
    "ended on": "Slurm ended {job} on {}: {}",
    "forgotten": "Slurm has forgotten {job} before anybody saw how it ended, and there is no record",
    "told": "",
    "refused": "Slurm takes no such job: {}; {}",
    "later": "Slurm takes no further jobs for now ({}): {} are in its queue, the rest follows as it takes them",
    "silent": "{}: waiting until it answers; jobs go on meanwhile",
    "nodes away": "{} since {}: {}. They begin when it is back. If it stays away for {} (give_up_after), their cells "
    "fail, and the same command measures them later",
    "given up": "{}, for {} now (give_up_after)",
    "idle": "no job has run for {}: {}, and Slurm says {!r}. squeue --me lists them, Ctrl-C ends them",
    "retry": "{job} ended on {}: {}. It is submitted again ({} of {} retries)",
}
STATES = frozenset(_ENDED)
"""Ends of a job that have a sentence of their own."""


@dataclass(frozen=True)
class JobReason:
    """Why something is as it is: ``str`` makes the sentence, empty where the job has told it
    itself.

    values  what the sentence names, in its order
    job     number of the job that it speaks of; empty where it speaks of all alike
    """

    code: str
    values: tuple[object, ...] = ()
    job: str = ""

    def __str__(self) -> str:
        return _SENTENCES[self.code].format(*self.values, job=f"job {self.job}".strip())

    def to_json(self) -> dict[str, Any]:
        """Code and values, without the job."""
        return {"code": self.code, "values": [str(value) for value in self.values]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> JobReason | None:
        """Inverse of ``to_json``, None of a code that has no sentence."""
        return cls(data["code"], tuple(data["values"])) if data.get("code") in _SENTENCES else None
