"""When jobs began and ended, to a millisecond: from the log of slurmctld, as scontrol and sacct
tell whole seconds only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

LINE = re.compile(r"\[(?P<when>[-0-9T:.]+)\] (?P<text>.*)")
BEGUN = re.compile(
    r"(?:sched: Allocate|_start_job: Started) JobId=(\S+)(?: in \S+ on| NodeList=)\s*(\S+)"
)
ENDED = re.compile(r"_job_complete: JobId=(\S+) done")


@dataclass(frozen=True)
class Job:
    """A job that has ended: seconds since 1970, and how many nodes it had."""

    name: str
    began: float
    ended: float
    nodes: int

    @property
    def node_seconds(self) -> float:
        return (self.ended - self.began) * self.nodes


def _events(text: str) -> Iterable[tuple[float, str]]:
    for line in text.splitlines():
        if found := LINE.match(line):
            yield datetime.fromisoformat(found["when"]).timestamp(), found["text"]


def count(hosts: str) -> int:
    """How many nodes ``node[1-3,7]`` or ``node1`` are."""
    inside = re.search(r"\[(.+)\]", hosts)
    if not inside:
        return 1
    bounds = [part.split("-") for part in inside[1].split(",")]
    return sum(int(part[-1]) - int(part[0]) + 1 for part in bounds)


def ended_jobs(log: Path, after: int = 0) -> list[Job]:
    """The jobs that have ended, by the lines after the first ``after`` characters of the log."""
    begun: dict[str, tuple[float, int]] = {}
    found = []
    for when, text in _events(log.read_text(errors="replace")[after:]):
        if start := BEGUN.search(text):
            begun[start[1]] = (when, count(start[2]))
        elif (end := ENDED.search(text)) and end[1] in begun:
            began, nodes = begun.pop(end[1])
            found.append(Job(end[1], began, when, nodes))
    return found
