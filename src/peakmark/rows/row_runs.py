"""One row with its runs: the input of the checks."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from peakmark import statistics
from peakmark.catalogue import SUBSYSTEMS
from peakmark.messages import Message, Trust, message, words

Messages = Iterator[Message]
Line = Any
"""A line of ``rows`` or ``runs``, as ``schema.lines`` yields it."""

CONFIRMED = 0.04
"""Undisturbed runs confirm a row's value if their median differs from it by less than this share. It is
less than the spread of a quiet machine (docs/method.md).
"""


@dataclass(frozen=True)
class NoiseOfHost:
    """Other activity on one host during the runs of a row.

    Attributes:
        where: the host, as part of a sentence; empty for the node itself.
        runs: a mapping for each run, with ``seconds``, ``steal``, ``others``, ``busy``, ``users``,
            ``throttled_seconds``, ``hot`` and ``counters``; ``seconds`` is None if the run was too
            short to measure other activity.
    """

    where: str
    runs: Sequence[Mapping[str, Any]]

    @property
    def long_runs(self) -> list[Mapping[str, Any]]:
        """Return the runs that were long enough to measure other activity."""
        return [run for run in self.runs if run["seconds"]]


@dataclass(frozen=True)
class RowRuns:
    """A row with its runs.

    Attributes:
        row: a line of ``rows``.
        runs: the row's kept lines of ``runs``, in the order of the repetitions; at least one.
        facts: facts of the machine from which the limit was computed.
    """

    row: Line
    runs: Sequence[Line]
    facts: Mapping[str, Any]

    def fact(self, part: str, name: str) -> Any:
        """Return a fact of the machine, None if it is not known."""
        return (self.facts.get(part) or {}).get(name)

    @cached_property
    def in_time(self) -> list[Line]:
        """Return the runs in order of time: a repetition that failed at first ran after later ones."""
        return sorted(self.runs, key=lambda run: run.time or 0.0)

    @cached_property
    def is_pinned(self) -> bool:
        """Return whether each thread is pinned to its own CPU."""
        return SUBSYSTEMS[self.row.subsystem].pinned

    def values_of(self, column: str) -> list[Any]:
        """Return the values of a column that are not missing, one for each run that has one."""
        values = [getattr(run, column) for run in self.runs]
        return [value for value in values if value is not None]

    def texts(self, column: str) -> list[str]:
        """Return the texts of a column that are not empty, one for each run that has one."""
        texts = [getattr(run, column) for run in self.runs]
        return [text for text in texts if text]

    @cached_property
    def noises(self) -> list[NoiseOfHost]:
        """Return the activity of other programs, and throttling, during the row's runs.

        The first entry is for the node that measured: the client's, if there is a server. Each of the
        others is for a server's node.
        """
        here = [_noise(run, "") for run in self.in_time if run.noise_known]
        found = [NoiseOfHost("", here)]
        servers = [run for run in self.in_time if run.server_noise_known]
        for host in dict.fromkeys(run.server_host for run in servers):
            of_host = [_noise(run, "server_") for run in servers if run.server_host == host]
            found.append(NoiseOfHost(words("server", hosts=host), of_host))
        return found

    # -- disturbances

    @cached_property
    def clean_runs(self) -> list[Line]:
        """Return the undisturbed runs in the order of time; empty if they do not confirm the row's value.

        They confirm the value if they are more than half of all runs and their median differs from the
        value by less than ``CONFIRMED``.
        """
        clean = [run for run in self.in_time if not run.causes]
        if 2 * len(clean) <= len(self.runs):
            return []
        median = statistics.median([run.value for run in clean])
        if abs(self.row.value - median) >= CONFIRMED * median:
            return []
        return clean

    def trust_of(self, code: str) -> Trust:
        """Return how a cause of disturbance lowers the trust.

        A cause that disturbed at least half of the runs calls for care. If no cause disturbed so many,
        all causes do, unless the undisturbed runs confirm the row's value.
        """
        counts: Counter[str] = Counter()
        for run in self.runs:
            counts.update(run.causes.split())
        weights = {cause: trust_of(count, len(self.runs)) for cause, count in counts.items()}
        if code not in weights:
            return Trust.OK
        is_doubtful = Trust.CARE not in weights.values() and not self.clean_runs
        return Trust.CARE if is_doubtful else weights[code]

    def repeated(
        self,
        code: str,
        amounts: Sequence[float],
        least: float = 0.0,
        trust: Trust | None = None,
        where: str | None = None,
        **values: str,
    ) -> Messages:
        """Yield a message with the largest amount, and the number of runs with amounts above ``least``.

        Args:
            code: code of a message with the values ``share`` and ``often``.
            amounts: an amount for each run that recorded one.
            least: if no amount is above it, there is no message.
            trust: trust of the message; None computes it with ``trust_of``.
            where: host to name in the message, empty for the node itself; None names no place.
            values: further fields of the message.
        """
        count = sum(amount > least for amount in amounts)
        if not count:
            return
        often = _where_and_how_often(where, count, len(amounts))
        trust = trust or self.trust_of(code)
        yield message(code, trust, share=max(amounts), often=often, **values)


def trust_of(disturbed: int, n: int) -> Trust:
    """Return the trust in a value if a cause disturbed ``disturbed`` of ``n`` runs."""
    return Trust.CARE if 2 * disturbed >= n else Trust.OK


def _where_and_how_often(where: str | None, count: int, n: int) -> str:
    """Return the host and ``in COUNT of N runs`` as part of a message. ``where``: see ``repeated``."""
    if where is None:
        return in_how_many(count, n)
    if n > 1:
        return in_how_many(count, n, where)
    # With a single run the message names only the host; for the node itself it says ``meanwhile``.
    return words("meanwhile", where=where)


def in_how_many(count: int, n: int, where: str = "") -> str:
    """Return ``in COUNT of N runs`` as part of a message; empty if there is a single run."""
    return words("often", where=where, count=count, n=n) if n > 1 else ""


def _noise(run: Line, prefix: str) -> dict[str, Any]:
    """Return the activity of other programs, and throttling, during a run on the node of the run.

    With the prefix ``server_``, return both for the node of the run's server.
    """
    names = ("seconds", "steal", "others", "busy", "users", "throttled_seconds", "hot", "counters")
    columns = {name: f"{prefix}{name}" for name in names} | {"seconds": f"{prefix}noise_seconds"}
    values = {name: getattr(run, column) for name, column in columns.items()}
    return values | {"counters": json.loads(values["counters"] or "{}")}
