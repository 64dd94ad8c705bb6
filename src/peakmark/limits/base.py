"""The answer every part gives: a limit with its formula in words and its source, or the reason why
there is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from peakmark.catalogue import SUBSYSTEMS
from peakmark.messages import Message, message
from peakmark.units import quantity

Kind = Literal["limit", "at_most", "best_seen", "none"]
Origin = Literal["measured", "read", "site", "datasheet", "published", "unknown"]


@dataclass(frozen=True)
class Limit:
    """The physical limit of one table row, in SI base units.

    value     op/s, B/s, bit/s, 1/s: at most; s: at least. None when unknown: then the efficiency
              stays empty
    bound     instead of an unknown value: what nothing can exceed, or the best that was published;
              never the base of an efficiency
    formula   in words with the numbers in it: ``2 cores x 3.2 GHz (observed clock) x 16 operations
              per cycle = ...``
    detail    what stands in brackets behind it, and several formulas may share: how a core does so
              many operations
    source    where the numbers are from
    cores     where the number of cores is from; "" where no such number is in the formula
    origin    measured (holds a clock measured beside the row), read (from this machine), site (site
              file), datasheet (table by CPU model: the most such a CPU can have), published, unknown
    reason    why it is unknown and how to supply it; None otherwise
    remarks   what a reader must know about this limit, for example which unit a published formula
              mixed up
    finding   what about the machine keeps the limit below what the CPU could have, such as empty
              memory channels
    bandwidth of a latency under load: B/s of the memory, None where it is unknown
    clock     which one it holds at: observed, nominal or maximum; "" where no clock is in it
    """

    value: float | None
    unit: str
    formula: str
    source: str
    origin: Origin
    reason: Message | None = None
    remarks: tuple[Message, ...] = ()
    finding: Message | None = None
    clock: str = ""
    detail: str = ""
    cores: str = ""
    bound: float | None = None
    bandwidth: float | None = None

    @property
    def kind(self) -> Kind:
        """How much it says: a limit, a bound that nothing exceeds (``at_most``; of times at least),
        the best published (``best_seen``), or nothing.
        """
        if self.value is not None:
            return "limit"
        if self.bound is None:
            return "none"
        return "best_seen" if self.origin == "published" else "at_most"

    @property
    def sources(self) -> tuple[str, ...]:
        """Where the numbers are from, each part by itself."""
        return (self.source, f"cores: {self.cores}") if self.cores else (self.source,)

    @property
    def explained(self) -> str:
        """The formula with its detail."""
        return f"{self.formula} ({self.detail})" if self.detail else self.formula


@dataclass(frozen=True)
class Question:
    """One row and what is known about its machine.

    facts         of the node, by part
    site          values of the site file for this node
    clock_hz      median of the clocks measured beside the row, if there are any
    loopback      the row's client and server were one machine, whatever interface the facts name
    clock_loaded  the clocks were observed under the row's own work, not before and after it
    placed        cores, sockets, NUMA nodes and caches that the row's threads could reach, by its
                  records; without it the facts say what the first job on the host was given
    store         how a memory row writes (temporal, streaming, libc), by its records; None where
                  nothing tells
    """

    subsystem: str
    workload: str
    variant: str
    block: int | None
    concurrency: int
    metric: str
    facts: Mapping[str, Any]
    site: Mapping[str, Any]
    clock_hz: float | None = None
    loopback: bool = False
    clock_loaded: bool = False
    placed: Mapping[str, Any] | None = None
    store: str | None = None

    @property
    def unit(self) -> str:
        """SI base unit of the answer."""
        return SUBSYSTEMS[self.subsystem].units.get(self.metric, "")

    def fact(self, part: str, name: str) -> Any:
        """A fact of the machine, None if unknown."""
        return (self.facts.get(part) or {}).get(name)

    def stated(self, part: str, name: str) -> Any:
        """A value of the site file, None where it has none."""
        return (self.site.get(part) or {}).get(name)

    def known(self, part: str, name: str) -> Any:
        """A value of the site file, else the fact of the machine."""
        stated = self.stated(part, name)
        return self.fact(part, name) if stated is None else stated

    def reached(self, name: str) -> Any:
        """What the row's threads could reach, None where its records do not tell."""
        return (self.placed or {}).get(name)

    def site_source(self, part: str) -> str:
        """How the site file's value is cited."""
        source = self.stated(part, "source")
        name = f"site file {self.site['name']}" if self.site.get("name") else "site file"
        return f"{name} ({source})" if source else name

    def limit(self, value: float, formula: str, source: str, origin: Origin, **more: Any) -> Limit:
        """The answer, in the row's unit."""
        return Limit(value, self.unit, formula, source, origin, **more)

    def bound(self, bound: float, formula: str, source: str, origin: Origin, **more: Any) -> Limit:
        """The answer that the limit is unknown and this a bound of it."""
        if origin != "published":
            formula = f"at {'least' if self.unit == 's' else 'most'} {formula}"
        return Limit(None, self.unit, formula, source, origin, bound=bound, **more)

    def by_site(self, value: float, part: str, what: str = "") -> Limit:
        """The answer that a value of the site file is."""
        formula = f"{quantity(value, self.unit)}{what} as the site file says"
        return self.limit(float(value), formula, self.site_source(part), "site")

    def unknown(
        self, case: str, *remarks: Message, key: str = "", place: str = "", **values: Any
    ) -> Limit:
        """The answer that there is none.

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
