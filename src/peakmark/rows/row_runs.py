"""One row with its runs, as the checks see it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from peakmark import statistics
from peakmark.catalogue import SUBSYSTEMS
from peakmark.messages import Message, Severity, Value, message

Messages = Iterator[Message]
Line = Any
"""A line of ``rows`` or ``runs``, as ``schema.lines`` yields it."""

STANDS = 0.04
"""Share by which disturbed runs may move the value of a row that is not in doubt: less than a quiet
machine spreads (docs/method.md).
"""


@dataclass(frozen=True)
class NoiseOfHost:
    """What else went on during the runs of a row on one host.

    Attributes:
        where: the host as part of a sentence; empty for the node itself.
        runs: a mapping for each run, with ``seconds``, ``steal``, ``others``, ``busy``, ``users``,
            ``throttled_seconds``, ``hot`` and ``counters``; ``seconds`` is None where the run was
            too short to tell.
    """

    where: Value
    runs: Sequence[Mapping[str, Any]]

    @property
    def told(self) -> list[Mapping[str, Any]]:
        """Return the runs that were long enough to tell."""
        return [run for run in self.runs if run["seconds"]]


@dataclass(frozen=True)
class RowRuns:
    """A row with its runs.

    Attributes:
        row: a line of ``rows``.
        runs: its lines of ``runs`` that count, in the order of the repetitions; at least one.
        facts: of the machine that the limit was made of.
    """

    row: Line
    runs: Sequence[Line]
    facts: Mapping[str, Any]

    def fact(self, part: str, name: str) -> Any:
        """Return a fact of the machine, None where there is none."""
        return (self.facts.get(part) or {}).get(name)

    @cached_property
    def in_time(self) -> list[Line]:
        """Return the runs in the order of time. A repetition that had failed ran after the others."""
        return sorted(self.runs, key=lambda run: run.time or 0.0)

    @cached_property
    def is_pinned(self) -> bool:
        """Return whether each thread is pinned to a CPU of its own."""
        return SUBSYSTEMS[self.row.subsystem].pinned

    def known(self, column: str) -> list[Any]:
        """Return a column of every run that has it."""
        values = [getattr(run, column) for run in self.runs]
        return [value for value in values if value is not None]

    def told(self, column: str) -> list[str]:
        """Return the texts of a column that are not empty, of all runs."""
        texts = [getattr(run, column) for run in self.runs]
        return [text for text in texts if text]

    @cached_property
    def noises(self) -> list[NoiseOfHost]:
        """Return what else ran meanwhile: on the node, then on the nodes of its servers."""
        here = [_noise(run, "") for run in self.in_time if run.noise_known]
        found = [NoiseOfHost("", here)]
        servers = [run for run in self.in_time if run.server_noise_known]
        for host in dict.fromkeys(run.server_host for run in servers):
            of_host = [_noise(run, "server_") for run in servers if run.server_host == host]
            found.append(NoiseOfHost(message("server", hosts=frozenset([host])), of_host))
        return found

    # -- disturbances

    @cached_property
    def clean_runs(self) -> list[Line]:
        """Return the undisturbed runs in the order of time, if they confirm the row's value.

        They confirm it if they are more than half of all runs, and their median lies within
        ``STANDS`` of it. Otherwise return an empty list.
        """
        clean = [run for run in self.in_time if not run.causes]
        if 2 * len(clean) <= len(self.runs):
            return []
        median = statistics.median([run.value for run in clean])
        if abs(self.row.value - median) >= STANDS * median:
            return []
        return clean

    def severity_of(self, code: str) -> Severity:
        """Return the severity of a disturbance.

        A disturbance of at least half of the runs is unsure. If none disturbed that many, each is
        unsure, unless the undisturbed runs confirm the row's value.
        """
        counts: Counter[str] = Counter()
        for run in self.runs:
            counts.update(run.causes.split())
        weights = {cause: severity_of(count, len(self.runs)) for cause, count in counts.items()}
        if code not in weights:
            return Severity.NOTE
        is_unexplained = Severity.UNSURE not in weights.values() and not self.clean_runs
        return Severity.UNSURE if is_unexplained else weights[code]

    def repeated(
        self,
        code: str,
        amounts: Sequence[float],
        least: float = 0.0,
        severity: Severity | None = None,
        where: Value | None = None,
    ) -> Messages:
        """Yield a message where an amount is above ``least``: the largest, and in how many runs.

        Args:
            code: of a message with ``share`` and ``often``.
            amounts: of each run that tells one.
            least: what is worth a message.
            severity: of the message; None for that of a disturbance.
            where: it went on; None for what needs no place.
        """
        count = sum(amount > least for amount in amounts)
        if not count:
            return
        often = in_how_many(count, len(amounts), where or "")
        if not often and where is not None:
            often = message("meanwhile", where=where)
        severity = severity or self.severity_of(code)
        yield message(code, severity, share=max(amounts), often=often)


def severity_of(disturbed: int, n: int) -> Severity:
    """Return the severity of what changed the values of so many of ``n`` runs."""
    return Severity.UNSURE if 2 * disturbed >= n else Severity.NOTE


def in_how_many(count: int, n: int, where: Value = "") -> Value:
    """Return in how many of ``n`` runs, as part of a message; nothing of a single run."""
    return message("often", where=where, count=count, n=n) if n > 1 else ""


def _noise(run: Line, prefix: str) -> dict[str, Any]:
    """Return what else went on during a run, on its node or on that of its server."""
    names = ("seconds", "steal", "others", "busy", "users", "throttled_seconds", "hot", "counters")
    columns = {name: f"{prefix}{name}" for name in names} | {"seconds": f"{prefix}noise_seconds"}
    values = {name: getattr(run, column) for name, column in columns.items()}
    return values | {"counters": json.loads(values["counters"] or "{}")}
