"""What a check looks at: one row as one instrument measured it, its runs, and the thresholds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from peakmark.catalogue import SUBSYSTEMS
from peakmark.limits import Limit
from peakmark.statistics import Summary


@dataclass(frozen=True)
class Thresholds:
    """Shares and factors beyond which a row is marked.

    limit    share of the physical limit                     clock  change of the clock during or
             between repetitions
    loss     share of UDP messages that did not arrive: above it a rate is not a throughput in the
             sense of RFC 2544, which has no loss at all; ``heavy``: so much that the sender's rate
             decides what arrives; ``most``: more than did arrive
    device   least share of the bytes that the disk moved    pool   least multiple of the last cache
             that a pool must be
    band     factor between two instruments for the same quantity; ``explained``: where it is known
             in what they differ
    lowered  by how much less the clock is under the work than before and after it
    others   CPUs' worth of time used by other programs      steal  share of the CPUs' time taken by
             the hypervisor
    shortest seconds that a run should last                  core   least share of a core's pipes
    cpu      least share of the run in which a thread that computes had its CPU
    flush    seconds below which a flush moved nothing       flushed  bytes after which that is
             remarkable
    """

    limit: float = 1.05
    clock: float = 0.05
    lowered: float = 0.04
    loss: float = 0.01
    heavy: float = 0.1
    most: float = 0.5
    device: float = 0.9
    pool: float = 4.0
    band: float = 1.5
    explained: float = 2.0
    others: float = 0.2
    steal: float = 0.02
    shortest: float = 0.5
    core: float = 0.75
    cpu: float = 0.97
    flush: float = 1e-3
    flushed: float = 1e8


DEFAULT = Thresholds()


@dataclass(frozen=True)
class RunValue:
    """One repetition: its value in SI units, the measurement's details, the record's context and
    the cell's options.
    """

    value: float
    details: Mapping[str, Any] = field(default_factory=dict)
    context: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def where(self) -> str:
        """The host that measured; of two the client and the server: ``node1 → node2``."""
        host = str(self.context.get("host") or "")
        server = self.context.get("server_host")
        return f"{host} → {server}" if server and server != host else host

    def known(self, name: str) -> Any:
        """A detail, else the context's entry of that name, else None."""
        value = self.details.get(name)
        return self.context.get(name) if value is None else value


@dataclass(frozen=True)
class Measured:
    """What one instrument measured in one row; ``runs`` in the order of the repetitions, at least
    one.

    centre  the summarised value that the table shows (median or mean)
    nominal_hz  the CPU's nominal clock by the site file; without it the facts say it
    """

    subsystem: str
    instrument: str
    workload: str
    variant: str
    block: int | None
    concurrency: int
    metric: str
    unit: str
    runs: Sequence[RunValue]
    summary: Summary
    centre: float
    limit: Limit
    facts: Mapping[str, Any] = field(default_factory=dict)
    nominal_hz: float | None = None

    def fact(self, part: str, name: str) -> Any:
        """A fact of the machine, None where there is none."""
        return (self.facts.get(part) or {}).get(name)

    @property
    def in_time(self) -> list[RunValue]:
        """The runs as they were measured: a repetition that had failed came after the others."""
        return sorted(self.runs, key=lambda run: str(run.context.get("started") or ""))

    @property
    def noises(self) -> list[Mapping[str, Any]]:
        """What else went on, of every run that tells it."""
        return [run.context["noise"] for run in self.in_time if run.context.get("noise")]

    @property
    def server_noises(self) -> dict[str, list[Mapping[str, Any]]]:
        """The same on the nodes of the servers, by host."""
        by_host: dict[str, list[Mapping[str, Any]]] = {}
        for run in self.in_time:
            if run.context.get("server_noise"):
                by_host.setdefault(str(run.context.get("server_host")), []).append(
                    run.context["server_noise"]
                )
        return by_host

    @property
    def spare_cpus(self) -> float:
        """CPUs of the node that the row's own threads leave to others; 0 where the threads are not
        pinned or all are used.
        """
        total = self.fact("cpu", "threads")
        if not SUBSYSTEMS[self.subsystem].pinned or not isinstance(total, int):
            return 0.0
        return float(max(0, total - self.concurrency))

    def details(self, name: str) -> list[float]:
        """A numeric detail of every run that has it."""
        values = [run.known(name) for run in self.runs]
        return [
            float(value)
            for value in values
            if isinstance(value, int | float) and not isinstance(value, bool)
        ]
