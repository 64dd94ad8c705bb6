"""Limits and the question about one: a limit has a formula in words and a source, or the reason why
it is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

from peakmark.catalogue import SUBSYSTEMS
from peakmark.config.site import for_host
from peakmark.formatting import quantity
from peakmark.messages import Message, message

Kind = Literal["limit", "at_most", "none"]
"""A limit; a bound that nothing exceeds (a time: falls below); neither of them."""
Origin = Literal["measured", "read", "site", "datasheet", "unknown"]
"""Where a limit's numbers are from; ``Limit`` explains each."""


@dataclass(frozen=True)
class Limit:
    """The physical limit of one table row, in SI base units.

    value      op/s, B/s, bit/s, 1/s: at most; s: at least. None where it is unknown: then the
               efficiency stays empty
    bound      in place of an unknown value: what nothing can exceed; never the base of an efficiency
    formula    in words with the numbers in it: ``2 cores x 3.2 GHz (observed clock) x 16 operations
               per cycle = ...``
    detail     text in brackets behind the formula, which several formulas may share: how a core
               reaches the operations per cycle
    source     where the numbers are from
    cores      where the number of cores is from; "" where the formula has no number of cores
    origin     measured (holds a clock measured with the row), read (from this machine), site (site
               file), datasheet (table by CPU model: the most that the model can have), unknown
    reason     why it is unknown and how to supply it; None otherwise
    remarks    what a reader must know about this limit, for example which unit a published formula
               mixed up
    finding    the state of the machine that keeps the limit below what the CPU could have, such as
               empty memory channels
    bandwidth  for a latency under load: B/s of the memory, None where it is unknown
    name       what it is the limit of, where the machine has another limit too
    clock      the clock in it: observed, nominal or maximum; "" where the formula has none
    """

    value: float | None
    unit: str
    formula: str
    source: str
    origin: Origin
    reason: Message | None = None
    remarks: tuple[Message, ...] = ()
    finding: Message | None = None
    name: str = ""
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
        """Return the value or, where it is unknown, the bound; None without either."""
        return self.bound if self.value is None else self.value

    def share(self, value: float) -> float | None:
        """Return the share of the limit or, without one, of the bound; None when neither is known."""
        if self.most is None or value <= 0:
            return None
        return self.most / value if self.unit == "s" else value / self.most

    def efficiency(self, value: float) -> float | None:
        """Return the share of the limit that was reached; None where the limit is unknown.

        ``value`` is the row's summary: ratios must not be averaged (Hoefler and Belli, SC '15,
        rule 4). 1.0 is all of the limit; a time has limit / measured.
        """
        return self.share(value) if self.kind == "limit" else None

    def part(self, share: float, which: str, why: str = "") -> Limit:
        """Return the limit or bound of a part of the machine.

        Args:
            share: of the whole, between 0 and 1.
            which: words of the formula that name the part, before its value.
            why: words of the formula behind that value.
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
        """Return the source of the numbers, and that of the number of cores."""
        if self.cores:
            return (self.source, f"cores: {self.cores}")
        return (self.source,)

    @property
    def explained(self) -> str:
        """Return the formula with its detail."""
        return f"{self.formula} ({self.detail})" if self.detail else self.formula


class Clock(NamedTuple):
    """A clock in Hz, its name (observed, nominal, maximum), and where it is from."""

    hz: float
    name: str
    origin: Origin

    def text(self, digits: int = 4) -> str:
        """Return the clock in words: ``3.2 GHz (observed clock)``."""
        return f"{quantity(self.hz, 'Hz', digits)} ({self.name} clock)"


@dataclass(frozen=True)
class Question:
    """One row, named as in its record, and the known facts of its machine.

    facts         facts of the node as ``machine.collect`` returns them, by part; {} without any
    site          site file as ``site.load`` returns it; its entries for this host override the rest
    clock_hz      median of the clocks measured with the row, None without any
    loopback      whether client and server were one machine, whatever interface the facts name
    clock_loaded  whether the clocks were observed under the row's own work, not before and after it
    placed        cores, sockets, NUMA nodes and caches that the row's threads could reach, by its
                  records; without it, the facts give what the host's first job could reach
    store         how a memory row writes (temporal, streaming, libc), by its records; None where
                  the records do not tell
    isa           instruction that the row's kernel ran, by its records; None where they do not tell
    """

    subsystem: str
    workload: str
    variant: str
    block: int | None
    concurrency: int
    metric: str
    facts: Mapping[str, Any]
    site: Mapping[str, Any] = field(default_factory=dict)
    clock_hz: float | None = None
    loopback: bool = False
    clock_loaded: bool = False
    placed: Mapping[str, Any] | None = None
    store: str | None = None
    isa: str | None = None

    @property
    def unit(self) -> str:
        """Return the SI base unit of the limit."""
        return SUBSYSTEMS[self.subsystem].units.get(self.metric, "")

    def fact(self, part: str, name: str) -> Any:
        """Return a fact of the machine, None if unknown."""
        return (self.facts.get(part) or {}).get(name)

    @cached_property
    def site_of_host(self) -> Mapping[str, Any]:
        """Return the site file's values for the node."""
        return for_host(self.site, self.facts.get("host"))

    def stated(self, part: str, name: str) -> Any:
        """Return a value of the site file, None where it has none."""
        return (self.site_of_host.get(part) or {}).get(name)

    def known(self, part: str, name: str) -> Any:
        """Return the site file's value, else the fact of the machine."""
        stated = self.stated(part, name)
        return self.fact(part, name) if stated is None else stated

    def reached(self, name: str) -> Any:
        """Return what the row's threads could reach, None where its records do not tell."""
        return (self.placed or {}).get(name)

    @cached_property
    def design(self) -> str | None:
        """Return the name of the core's design, by the site file, else by CPUID."""
        name = self.known("cpu", "microarchitecture")
        return None if name is None else str(name)

    @cached_property
    def cores(self) -> tuple[int | None, str]:
        """Return (cores that the row keeps busy, where their number is from).

        They are no more than its threads, and no more than the job was given.
        """
        placed, job = "cores its threads were placed on", "physical cores the job was given"
        if self.fact("cpu", "virtualised"):
            placed = job = (
                "cores as a virtual machine shows them: what is behind one, its host knows"
            )
        counts = (
            (self.stated("cpu", "cores"), self.site_source("cpu")),
            (self.reached("cores"), placed),
            (self.fact("limits", "physical_cores_allowed"), job),
        )
        for count, source in counts:
            if count is not None:
                return min(self.concurrency, int(count)), source
        return None, ""

    @cached_property
    def clocks(self) -> dict[str, Clock]:
        """Return the clocks that are known, by name: observed with the row, nominal, maximum."""
        read = self.fact("cpu", "clock_hz") or {}
        part = "cpu"
        if self.subsystem == "gpu":
            part, read = "gpu", {"maximum": self.fact("gpu", "clock_hz")}
        observed = self.clock_hz
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
        """Return the clock that the site file asks for, else the first that is known, else None."""
        first_known = next(iter(self.clocks.values()), None)
        if self.subsystem == "gpu":
            return first_known
        wanted = str(self.stated("cpu", "clock"))
        return self.clocks.get(wanted, first_known)

    def site_source(self, part: str) -> str:
        """Return the words that cite the site file as the source of a value."""
        source, name = self.stated(part, "source"), "site file"
        if self.site.get("name"):
            name = f"site file {self.site['name']}"
        return f"{name} ({source})" if source else name

    def limit(self, value: float, formula: str, source: str, origin: Origin, **more: Any) -> Limit:
        """Return a limit in the row's unit."""
        return Limit(value, self.unit, formula, source, origin, **more)

    def bound(self, bound: float, formula: str, source: str, origin: Origin, **more: Any) -> Limit:
        """Return an unknown limit with a bound, in the row's unit."""
        side = "least" if self.unit == "s" else "most"
        formula = f"at {side} {formula}"
        return Limit(None, self.unit, formula, source, origin, bound=bound, **more)

    def by_site(self, value: float, part: str, what: str = "") -> Limit:
        """Return the limit that the site file states."""
        formula = f"{quantity(value, self.unit)}{what} as the site file says"
        return self.limit(float(value), formula, self.site_source(part), "site")

    def unknown(
        self, case: str, *remarks: Message, key: str = "", place: str = "", **values: Any
    ) -> Limit:
        """Return an unknown limit, with the reason and how to supply it.

        Args:
            case: why, a case of ``no-limit`` in ``messages.yaml``; ``values`` are its fields.
            key: key of the site file that would supply it, such as ``disk.throughput.RS``.
            place: case of ``state-limit``: where the value of the key is found.
        """
        reason = message("no-limit", case=case, **values)
        if key:
            section, _, name = key.rpartition(".")
            names = (f".{name}",)
            reason = message("state-limit", case=place, fact=reason, key=section, names=names)
        return Limit(None, self.unit, "", "", "unknown", reason, remarks)
