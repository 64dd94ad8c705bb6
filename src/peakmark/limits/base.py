"""``Limit``, the physical limit of a row, and ``Question``, the row and the facts it is computed from.

A limit has a formula in words and a source, or the reason why it is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

from peakmark.catalogue import SUBSYSTEMS
from peakmark.config.site import for_host
from peakmark.config.types import SiteValues
from peakmark.formatting import quantity
from peakmark.messages import message, words

Kind = Literal["limit", "at_most", "none"]
"""``limit``: the limit is known. ``at_most``: only a bound is known, which is the most for
rates and the least for times. ``none``: neither is known.
"""
Origin = Literal["measured", "read", "site", "datasheet", "unknown"]
"""Source of a limit's numbers, see ``Limit.origin``."""


@dataclass(frozen=True)
class Limit:
    """The physical limit of one table row, in SI base units.

    Attributes:
        value: the limit: a highest rate, or a lowest time in seconds. None if it is unknown.
        unit: SI unit of the value.
        formula: formula in words with its numbers, such as ``2 cores x 3.2 GHz (observed clock) x 16
            operations per cycle = ...``.
        source: source of the numbers.
        origin: kind of source. ``measured``: the clock was measured with the row; ``read``: from this
            machine; ``site``: from the site file; ``datasheet``: from a table of CPU models, with the
            best that the model can have; ``unknown``.
        reason: why the limit is unknown and how to supply it.
        remarks: remarks that a reader needs to interpret the limit.
        finding: sentence about a state of the machine that lowers the limit, such as empty memory channels.
        clock: clock in the formula: observed, nominal or maximum; empty without a clock.
        detail: text in brackets after the formula, such as how a core reaches its operations per cycle.
        cores: source of the number of cores; empty if the formula has none.
        bound: value that nothing can exceed, if the limit is unknown. Efficiencies never use it.
        bandwidth: bandwidth of the memory in B/s, if known; only limits of a latency under load have it.
    """

    value: float | None
    unit: str
    formula: str
    source: str
    origin: Origin
    reason: str = ""
    remarks: tuple[str, ...] = ()
    finding: str = ""
    clock: str = ""
    detail: str = ""
    cores: str = ""
    bound: float | None = None
    bandwidth: float | None = None

    @property
    def kind(self) -> Kind:
        if self.value is not None:
            return "limit"
        return "none" if self.bound is None else "at_most"

    @property
    def most(self) -> float | None:
        """Return the value of the limit. If it is unknown, return the bound, which may be None."""
        return self.bound if self.value is None else self.value

    def share(self, value: float) -> float | None:
        """Return the share of the limit that ``value`` reaches.

        If the limit is unknown, return the share of the bound; None without a bound, and for a value that is
        not positive. For times the share is limit / value.

        Args:
            value: summarised value of the row. Shares of single values must not be averaged (Hoefler
                and Belli, SC '15, rule 4).
        """
        if self.most is None or value <= 0:
            return None
        return self.most / value if self.unit == "s" else value / self.most

    def part(self, share: float, which: str, why: str = "") -> Limit:
        """Return the limit or bound for a part of the machine. A limit with neither is returned unchanged.

        Args:
            share: the part's share of the whole limit, between 0 and 1.
            which: text that names the part, such as ``one of 2 NUMA nodes has``. In the formula it comes
                before the part's value.
            why: text that comes after the part's value.
        """
        if self.most is None:
            return self
        part = share * self.most
        formula = f"{self.formula}, of which {which} {quantity(part, self.unit)}{why}"
        if self.value is None:
            return replace(self, bound=part, formula=formula)
        return replace(self, value=part, formula=formula)

    @property
    def sources(self) -> tuple[str, ...]:
        """Return the source of the numbers and, if cores are counted, the source of the number of cores."""
        if self.cores:
            return (self.source, f"cores: {self.cores}")
        return (self.source,)


class Clock(NamedTuple):
    """A clock of the CPU or GPU from which limits are computed, with its source.

    Attributes:
        hz: the clock in Hz.
        name: observed (measured by peakmark), nominal or maximum.
        origin: kind of source, see ``Limit.origin``.
    """

    hz: float
    name: str
    origin: Origin

    def text(self, digits: int = 0) -> str:
        """Return the clock as text, such as ``3.2 GHz (observed clock)``; for ``digits`` see ``quantity``."""
        return f"{quantity(self.hz, 'Hz', digits)} ({self.name} clock)"


@dataclass(frozen=True)
class Question:
    """One row, and the known facts of its machine.

    Attributes:
        subsystem: subsystem of the row.
        workload: workload of the row.
        variant: variant of the row.
        block: block size of the row in bytes.
        concurrency: number of threads, processes or streams.
        metric: metric of the row.
        facts: machine facts as ``machine.facts.collect`` returns them; {} if there are none.
        site: values of the site file. Its entries for this host override its general ones.
        clock_hz: highest of the clocks measured with the row, if any.
        loopback: whether client and server ran on one machine.
        clock_loaded: whether the clocks were observed under the load of the row, instead of before
            and after it.
        placed: cores, sockets, NUMA nodes and caches of the row's threads, from its records. If None,
            those of the host's first job are used.
        store: how a memory row writes (temporal, streaming, libc), from its records, if known.
        isa: instruction that the row's kernel ran, from its records, if known.
    """

    subsystem: str
    workload: str
    variant: str
    block: int | None
    concurrency: int
    metric: str
    facts: Mapping[str, Any]
    site: SiteValues = field(default_factory=SiteValues)
    clock_hz: float | None = None
    loopback: bool = False
    clock_loaded: bool = False
    placed: Mapping[str, Any] | None = None
    store: str | None = None
    isa: str | None = None

    @property
    def unit(self) -> str:
        """Return the SI unit of the limit; empty if the row's subsystem does not have the metric."""
        return SUBSYSTEMS[self.subsystem].units.get(self.metric, "")

    def fact(self, part: str, name: str) -> Any:
        """Return the fact ``name`` in a part of the facts, such as ``cpu``; None if it is unknown."""
        return (self.facts.get(part) or {}).get(name)

    @cached_property
    def site_of_host(self) -> SiteValues:
        """Return the values of the site file for the row's host.

        An entry for this host overrides the general entry of the same value.
        """
        return for_host(self.site, self.facts.get("host"))

    def stated(self, part: str, name: str) -> Any:
        """Return a value of the site file; None if the file does not state it, or has no such part or value."""
        return getattr(getattr(self.site_of_host, part, None), name, None)

    def known(self, part: str, name: str) -> Any:
        """Return the value in the site file; if it has none, the fact of the machine."""
        stated = self.stated(part, name)
        return self.fact(part, name) if stated is None else stated

    def placed_fact(self, name: str) -> Any:
        """Return a fact on where the row's threads ran; None if the row's records lack the fact."""
        return (self.placed or {}).get(name)

    @cached_property
    def design(self) -> str | None:
        """Return the name of the microarchitecture from the site file or, by default, from the facts.

        Return None if neither has it, for example on a CPU with several kinds of cores.
        """
        name = self.known("cpu", "microarchitecture")
        return None if name is None else str(name)

    @cached_property
    def cores(self) -> tuple[int | None, str]:
        """Return (number of cores that the row keeps busy, source of the number of cores).

        The row cannot keep more cores busy than it has threads. Without a known number of cores, the result is
        (None, empty text).
        """
        # Texts that name the source: where the threads were placed, or which cores the job had.
        of_threads, of_job = "cores its threads were placed on", "physical cores the job was given"
        if self.fact("cpu", "virtualised"):
            of_threads = of_job = (
                "cores as a virtual machine shows them; on the host one may be a hardware thread"
            )
        # The first known number counts.
        counts = (
            (self.site_of_host.cpu.cores, self.site_source("cpu")),
            (self.placed_fact("cores"), of_threads),
            (self.fact("limits", "physical_cores_allowed"), of_job),
        )
        for count, source in counts:
            if count is not None:
                return min(self.concurrency, int(count)), source
        return None, ""

    @cached_property
    def clocks(self) -> dict[str, Clock]:
        """Return the known clocks of the CPU, or of the GPU for GPU rows: name -> clock.

        They are in the order of preference: observed, nominal, maximum. For the last two, the site file
        overrides what was read from the machine.
        """
        read = self.fact("cpu", "clock_hz") or {}  # name -> clock in Hz, or None
        part = "cpu"
        if self.subsystem == "gpu":
            # Rows over GPUs of several models have no limit, so the first GPU represents all.
            gpus = self.fact("gpu", "gpus") or [{}]
            part, read = "gpu", {"maximum": gpus[0].get("clock_hz")}
        observed = self.clock_hz
        # If no clock was measured with the row, take the one of the facts, measured with a single thread.
        if observed is None:
            observed = read.get("observed")
        clocks = {}
        if observed is not None:
            clocks["observed"] = Clock(observed, "observed", "measured")
        for name in ("nominal", "maximum"):
            stated = self.stated(part, f"{name}_hz")
            if stated is not None:
                clocks[name] = Clock(stated, name, "site")
            elif read.get(name) is not None:
                clocks[name] = Clock(read[name], name, "read")
        return clocks

    @cached_property
    def clock(self) -> Clock | None:
        """Return the clock that the site file selects or, by default, the first known clock.

        Return None if no clock is known.
        """
        first_known = next(iter(self.clocks.values()), None)
        if self.subsystem == "gpu":
            return first_known  # ``cpu.clock`` of the site file selects clocks of CPUs
        return self.clocks.get(str(self.site_of_host.cpu.clock), first_known)

    def site_source(self, part: str) -> str:
        """Return the text that cites the site file, and the source that it states for its part ``part``."""
        source, name = self.stated(part, "source"), "site file"
        if self.site.name:
            name = f"site file {self.site.name}"
        return f"{name} ({source})" if source else name

    def limit(self, value: float, formula: str, source: str, origin: Origin, **more: Any) -> Limit:
        """Return a known limit in the row's unit. ``more`` are further attributes of ``Limit``."""
        return Limit(value, self.unit, formula, source, origin, **more)

    def bound(self, bound: float, formula: str, source: str, origin: Origin, **more: Any) -> Limit:
        """Return an unknown limit with a bound, in the row's unit. ``more`` are further attributes of ``Limit``."""
        side = "least" if self.unit == "s" else "most"
        formula = f"at {side} {formula}"
        return Limit(None, self.unit, formula, source, origin, bound=bound, **more)

    def by_site(self, value: float, part: str, what: str = "") -> Limit:
        """Return the limit that the site file states.

        Args:
            value: the stated value in SI units.
            part: part of the site file that has the value and its source, such as ``memory``.
            what: text that follows the value in the formula.
        """
        formula = f"{quantity(value, self.unit)}{what} as the site file says"
        return self.limit(float(value), formula, self.site_source(part), "site")

    def unknown(
        self, case: str, *remarks: str, key: str = "", place: str = "", **values: Any
    ) -> Limit:
        """Return an unknown limit, with the reason and how to supply it.

        Args:
            case: the reason, a case of ``no-limit`` in ``messages.yaml``.
            remarks: remarks about the limit.
            key: key of the site file that would supply the limit, such as ``disk.throughput.RS``; empty if
                no key does.
            place: case of ``state-limit`` in ``messages.yaml``, which says where to find the value; empty for
                the general text.
            values: fields of the reason.
        """
        reason = message("no-limit", case=case, **values).text
        if key:
            reason = words(f"state-limit {place}".rstrip(), fact=reason, key=key)
        return Limit(None, self.unit, "", "", "unknown", reason, remarks)
