"""One row of a table: what each instrument measured at one point, its limit, and its warnings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import median
from typing import Any, NamedTuple

from peakmark.catalogue import SUBSYSTEMS
from peakmark.config.layouts import LayoutTable
from peakmark.errors import Sentence
from peakmark.formatting import natural
from peakmark.limits import Limit
from peakmark.messages import Message, Severity, Value, message, worst
from peakmark.statistics import Summary, median_interval, summarise
from peakmark.storage.results import StoredRecord
from peakmark.tools.common import PERCENTILES, percentile_times, read_histogram
from peakmark.tools.programs import hpl
from peakmark.tools.tables import Table

Details = Mapping[str, Any]
"""What a record tells of a measurement, or of what went on meanwhile, by name."""
Messages = Iterator[Message]


@dataclass(frozen=True)
class RunValue:
    """One repetition: its value in SI units, the measurement's details, the record's context and
    the cell's options.
    """

    value: float
    details: Details = field(default_factory=dict)
    context: Details = field(default_factory=dict)
    options: Details = field(default_factory=dict)

    @property
    def where(self) -> str:
        """The host that measured; of two the client and the server: ``node1 → node2``."""
        host = str(self.context.get("host") or "")
        server = self.context.get("server_host")
        return f"{host} → {server}" if server and server != host else host

    def share(self, limit: Limit, clock_hz: float | None) -> float:
        """Share of the limit or bound that it reached, at its own clock where the limit holds at the
        observed one, ``clock_hz``; 0 without either.
        """
        share = limit.share(self.value)
        clock = seen_clock([self])
        if share and clock and clock_hz and limit.clock == "observed":
            share *= clock_hz / clock
        return share or 0.0

    def known(self, name: str) -> Any:
        """A detail, else the context's entry of that name, else None."""
        value = self.details.get(name)
        return self.context.get(name) if value is None else value


CLOCKS = ("nominal", "maximum")
"""Of which the share of the limit is told too."""


def seen_clock(runs: Sequence[RunValue]) -> float | None:
    """Median of the clocks under the work of the runs that could tell it; if none could, of those
    before and after; Hz.
    """
    return _clock(runs, "clock_hz_loaded") or idle_clock(runs)


def idle_clock(runs: Sequence[RunValue]) -> float | None:
    """Median of the clocks before and after the work, without the work's own instructions; Hz."""
    return _clock(runs, "clock_hz_before", "clock_hz_after")


def _clock(runs: Sequence[RunValue], *names: str) -> float | None:
    clocks = [float(clock) for run in runs for name in names if (clock := run.known(name))]
    return median(clocks) if clocks else None


MOST = 1.05
"""Share of the physical limit beyond which a figure is wrong."""
ABOVE = "above-limit"
"""Why a repetition is left out: no measurement of the row can be so good."""


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
    runs: Sequence[RunValue]
    summary: Summary
    centre: float
    limit: Limit
    facts: Mapping[str, Any] = field(default_factory=dict)
    nominal_hz: float | None = None

    def fact(self, part: str, name: str) -> Any:
        """A fact of the machine, None where there is none."""
        return (self.facts.get(part) or {}).get(name)

    @cached_property
    def in_time(self) -> list[RunValue]:
        """The runs as they were measured: a repetition that had failed came after the others."""
        return sorted(self.runs, key=lambda run: str(run.context.get("started") or ""))

    @cached_property
    def is_pinned(self) -> bool:
        """Whether its threads have CPUs of their own."""
        return SUBSYSTEMS[self.subsystem].pinned

    @cached_property
    def placed(self) -> list[Details]:
        """What the threads of each run could reach, where the record tells."""
        return [run.context["placed"] for run in self.runs if run.context.get("placed")]

    @cached_property
    def noises(self) -> list[tuple[Value, list[Details]]]:
        """What else went on, of every run that tells it: on its node, and on those of its servers.
        Each with where that was, as part of a sentence.
        """
        by_host: dict[str, list[Details]] = {"": []}
        for run in self.in_time:
            for host, name in (("", "noise"), (run.context.get("server_host"), "server_noise")):
                if run.context.get(name):
                    by_host.setdefault(str(host), []).append(run.context[name])
        return [
            (message("server", hosts=frozenset([host])) if host else "", noises)
            for host, noises in by_host.items()
        ]

    def details(self, name: str) -> list[float]:
        """A numeric detail of every run that has it."""
        values = [run.known(name) for run in self.runs]
        return [
            float(value)
            for value in values
            if isinstance(value, int | float) and not isinstance(value, bool)
        ]


class Key(NamedTuple):
    """What makes a row: block in bytes, None where there is none.

    node  the node, or client and server of a pair: ``node1+node2``
    word  what was asked for instead of a number of threads, empty for a number; ``concurrency`` is
          then what it meant, 0 where nothing has been measured yet that tells
    """

    node: str
    workload: str
    variant: str
    block: int | None
    concurrency: int
    word: str = ""


@dataclass(frozen=True, kw_only=True)
class Repetition(RunValue):
    """One measured value in SI units, with its repetition and the record that holds it.

    left_out  codes of why it is not part of the summary: what disturbed it before it was measured
              again, or ``ABOVE``; empty where it is
    """

    repetition: int
    record: StoredRecord
    left_out: tuple[str, ...] = ()


def solved_too_little(point: Repetition) -> bool:
    """Return whether it is a run of HPL too small for a share of the limit."""
    return point.record.cell.instrument == "hpl" and hpl.is_too_small(point.details)


def hosts_of(points: Iterable[RunValue], end: str = "host") -> list[str]:
    """The hosts that measured, or those of the servers (``server_host``), in the order of their
    names.
    """
    return sorted({str(host) for point in points if (host := point.context.get(end))}, key=natural)


class Percentile(NamedTuple):
    """A percentile in SI units with its interval over repetitions, None without histograms: that of
    the median, widened to the value.
    """

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Series:
    """What one instrument measured in one row; ``centre`` is the summarised value that the table
    shows, in SI units.

    efficiency  share of the limit; None without a limit, and of HPL where its matrix is too small
    left_out  repetitions that are not part of the summary, nor of ``points``
    """

    points: tuple[Repetition, ...]
    summary: Summary
    centre: float
    efficiency: float | None
    left_out: tuple[Repetition, ...] = ()

    @classmethod
    def of(
        cls,
        points: Iterable[Repetition],
        limit: Limit,
        clock_hz: float | None,
        centre: str,
    ) -> Series:
        """The points without those above the limit or bound; if most are, it is the limit that is in
        doubt.

        Args:
            points: in any order, with those that were measured again.
            limit: of the row.
            clock_hz: at which the limit holds.
            centre: ``median`` or ``mean``.
        """
        left_out = [point for point in points if point.left_out]
        good = [point for point in points if not point.left_out]
        good.sort(key=lambda point: point.repetition)
        wrong = [point for point in good if point.share(limit, clock_hz) > MOST]
        if 2 * len(wrong) > len(good):
            wrong = []
        counted = tuple(point for point in good if point not in wrong)
        left_out += [replace(point, left_out=(ABOVE,)) for point in wrong]
        summary = summarise([point.value for point in counted])
        value = float(getattr(summary, centre))
        is_telling = not any(map(solved_too_little, counted))
        efficiency = limit.efficiency(value) if is_telling else None
        return cls(counted, summary, value, efficiency, tuple(left_out))

    @cached_property
    def disturbed(self) -> tuple[float, ...]:
        """Values that were disturbed and measured again."""
        return tuple(point.value for point in self.left_out if ABOVE not in point.left_out)

    @property
    def measured_again(self) -> int:
        """How many of its repetitions were disturbed and measured again."""
        return len({point.record.path for point in self.left_out if ABOVE not in point.left_out})

    @cached_property
    def above(self) -> tuple[Repetition, ...]:
        """Repetitions that physics forbids."""
        return tuple(point for point in self.left_out if ABOVE in point.left_out)

    @cached_property
    def values(self) -> tuple[float, ...]:
        """Every repetition that counts, in order."""
        return tuple(point.value for point in self.points)

    @property
    def hosts(self) -> list[str]:
        """The hosts that measured."""
        return hosts_of(self.points)

    @cached_property
    def histogram(self) -> Counter[int]:
        """Operations of all repetitions by the bucket of their time; empty where a repetition has
        no histogram.
        """
        texts = [point.details.get("histogram", "") for point in self.points]
        return sum(map(read_histogram, texts), Counter()) if all(texts) else Counter()

    def percentiles(self, name: str) -> list[float]:
        """A percentile of each repetition in SI units, such as ``p99``; empty where one lacks it or
        had too few operations, so that it equals the longest time.
        """
        details = [point.details for point in self.points]
        known = all(each.get(name) not in (None, 0, each.get("max")) for each in details)
        return [float(each[name]) for each in details] if known else []

    def percentile(self, name: str) -> Percentile | None:
        """A percentile of the operations of all repetitions, or the median of the repetitions'
        where one has no histogram; None where ``percentiles`` has none.
        """
        values = self.percentiles(name)
        merged = percentile_times(self.histogram, [PERCENTILES[name]])
        if not values or not merged:
            return Percentile(median(values)) if values else None
        interval = median_interval(values)
        return Percentile(merged[0], min(interval.low, *merged), max(interval.high, *merged))

    def detail(self, name: str) -> float | None:
        """Median of a numeric detail, of the repetitions that know it."""
        known = [float(value) for point in self.points if (value := point.details.get(name))]
        return median(known) if known else None

    @property
    def instead_of(self) -> str:
        """The instrument whose part it has, as that one's build cannot; empty where it has its own."""
        return str(self.points[0].options.get("instead_of", ""))

    @cached_property
    def step(self) -> float:
        """The smallest difference that the instrument tells, in SI units; 0 where it gives all
        digits it has.
        """
        return max(float(point.details.get("resolution", 0.0)) for point in self.points)


class ReachedClock(NamedTuple):
    """The clock that cores had under their work.

    Attributes:
        hz: median of the repetitions that nothing disturbed.
        share: of the best that this CPU is known to reach with the same work, at most 1; None where
            nothing else is known.
    """

    hz: float
    share: float | None


class SlowRow(NamedTuple):
    """A node that is slower than its class in one row.

    Attributes:
        behind: by what share of the class's value the node's median is worse.
        low: the least that it may be behind, by the interval of the median.
        high: the most.
        p: chance of a healthy node of the class so far behind.
    """

    behind: float
    low: float
    high: float
    p: float


@dataclass(frozen=True)
class Row:
    """One row of one table. ``series`` has an entry for each instrument that measured it; values in
    SI units.

    warnings  what a reader must know about the row, the heaviest first
    missing  planned repetitions of the own kernel without a measurement
    layout_table  the first table of the configured layout that prints the row, which has its names
    shares     share of the limit that holds at the nominal and at the maximum clock, where the
               limit takes a clock
    clock      of a CPU row, None where no undisturbed repetition tells one
    unequal_nodes  instrument -> in what the nodes of its repetitions and of the own kernel's are not
               equal
    node_class  name of the class of equal nodes, empty where there is one class only
    slow       that the node is slower than its class in this row, None where that is not shown
    """

    table: Table
    key: Key
    series: Mapping[str, Series]
    limit: Limit
    warnings: tuple[Message, ...] = ()
    missing: int = 0
    layout_table: LayoutTable | None = None
    shares: Mapping[str, float] = field(default_factory=dict)
    clock: ReachedClock | None = None
    unequal_nodes: Mapping[str, str] = field(default_factory=dict)
    node_class: str = ""
    slow: SlowRow | None = None

    @cached_property
    def remarks(self) -> tuple[Message, ...]:
        """The marks without those that are said of the whole campaign."""
        return tuple(note for note in self.warnings if not note.is_shared)

    def of_program(self, note: Message, sentence: Sentence) -> Sentence:
        """The words of a note behind the name of the program that it is about, as the row's table
        calls it.
        """
        for program in self.table.series:
            if program.instrument == note.about:
                return sentence._replace(fact=f"{program.heading}: {sentence.fact}")
        return sentence

    def said(self, notes: Iterable[Message]) -> tuple[str, ...]:
        """Notes as sentences, each once."""
        return tuple(dict.fromkeys(str(self.of_program(note, note.sentence)) for note in notes))

    def warnings_of(self, instrument: str) -> tuple[Message, ...]:
        """The notes that are about the figure of one instrument, or about the row as such."""
        return tuple(note for note in self.warnings if note.about in ("", instrument))

    @cached_property
    def own_warnings(self) -> tuple[Message, ...]:
        """The notes on the own kernel's figure."""
        return self.warnings_of(self.table.own.instrument)

    @cached_property
    def specific_warnings(self) -> tuple[Message, ...]:
        """What speaks against the own kernel's figure."""
        return tuple(note for note in self.own_warnings if note.is_warning and not note.is_shared)

    @cached_property
    def level(self) -> Severity | None:
        """``wrong`` or ``unsure``, None where nothing speaks against the own kernel's figure."""
        return worst(self.own_warnings)

    def is_wrong_but_for(self, code: str = "") -> bool:
        """Whether the own kernel's figure is wrong by another warning than this one."""
        wrong = {note.code for note in self.own_warnings if note.severity is Severity.WRONG}
        return not wrong <= {code}

    @cached_property
    def comparable(self) -> bool:
        """Whether the own kernel's figure may stand beside those of other rows: a value above a
        limit that the site file states is right where the limit is doubtful.
        """
        doubtful = "above-limit" if self.limit.origin == "site" else ""
        return self.own is not None and not self.is_wrong_but_for(doubtful)

    @cached_property
    def endpoints(self) -> tuple[tuple[str, str], ...]:
        """Host of the client and host of the server, of every pair of two that measured the row;
        empty for one machine.
        """
        contexts = (point.context for series in self.series.values() for point in series.points)
        pairs = {
            (str(context["host"]), str(context.get("server_host") or context["host"]))
            for context in contexts
        }
        return tuple(sorted(pair for pair in pairs if pair[0] != pair[1]))

    @cached_property
    def loopback(self) -> bool:
        """Whether it was measured within one machine, where no network lies between the two ends."""
        points = self.own.points if self.own else ()
        networks = (point.context.get("network") or {} for point in points)
        return any(network.get("loopback") for network in networks)

    def column_of(self, instrument: str) -> Series | None:
        """What stands in an instrument's column: its own figures, or those of the one that filled
        the row for it.
        """
        filling = (series for series in self.series.values() if series.instead_of == instrument)
        return self.series.get(instrument) or next(filling, None)

    @cached_property
    def is_pair(self) -> bool:
        """Whether ``pairs`` names client and server, ``node1+node2``."""
        return "+" in self.key.node

    @cached_property
    def own(self) -> Series | None:
        """The own kernel's measurements, None for a hole."""
        return self.series.get(self.table.own.instrument)

    @cached_property
    def measured(self) -> Series:
        """The own kernel's measurements of a row that is no hole. Errors: ValueError for a hole."""
        if self.own is None:
            raise ValueError(
                f"{self.table.name} {self.key}: the own kernel has not measured this row"
            )
        return self.own


Rows = Mapping[str, Sequence[Row]]
"""Name of a table -> its rows."""
