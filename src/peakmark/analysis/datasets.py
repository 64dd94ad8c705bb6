"""One side of a comparison: a campaign, its values by the rows they stand for.

Two campaigns that were measured in turn are compared by pairs of repetitions. What the machine does
meanwhile is in both halves of a pair and goes out of their ratio. Which half comes first alternates
from round to round.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

from peakmark.analysis import build_rows, comparability
from peakmark.analysis.row import Key, Repetition
from peakmark.errors import RecordError
from peakmark.formatting import natural, size
from peakmark.messages import worst
from peakmark.storage.results import Results
from peakmark.tools.common import SHOWN_PERCENTILES

GAP_S = 60.0
"""So long after its other half has ended a repetition may begin: halves of two runs of the command
are no pair.
"""


class Turn(NamedTuple):
    """One repetition of a row: its value in SI units, when it was begun and ended, in seconds of
    the clock, and where.
    """

    value: float
    begun: float
    ended: float
    host: str = ""


Turns = Mapping[int, Turn]


def turns(points: Iterable[Repetition]) -> dict[int, Turn]:
    """The repetitions of a series by their number."""
    by_repetition = {}
    for point in points:
        context = point.context
        begun = datetime.fromisoformat(str(context["started"])).timestamp()
        ended = begun + float(context["seconds"] or 0)
        by_repetition[point.repetition] = Turn(point.value, begun, ended, str(context["host"]))
    return by_repetition


def pairs(before: Turns, after: Turns) -> list[tuple[float, float]]:
    """The values of the repetitions that both sides have, one right after the other on one host."""
    both = [(before[number], after[number]) for number in sorted(before.keys() & after.keys())]
    return [
        (turn.value, other.value)
        for turn, other in both
        if turn.host == other.host and _gap(turn, other) <= GAP_S
    ]


def _gap(turn: Turn, other: Turn) -> float:
    first, second = sorted((turn, other), key=lambda each: each.begun)
    return second.begun - first.ended


@dataclass(frozen=True, order=True)
class ComparedPoint:
    """What is compared with its like; block in bytes, 0 where there is none.

    word  what was asked for instead of a number of threads, empty for a number; ``concurrency`` is
          then 0: two threads and all cores of a node with two are not the same question
    percentile  the detail of a latency that is compared, such as ``p99``; empty for the mean
    """

    table: str
    instrument: str
    workload: str
    variant: str
    block: int
    concurrency: int
    node: str
    word: str = ""
    percentile: str = ""


def point_of(table: str, instrument: str, key: Key) -> ComparedPoint:
    """The point of a program's values in a campaign's row."""
    count = 0 if key.word else key.concurrency
    return ComparedPoint(
        table, instrument, key.workload, key.variant, key.block or 0, count, key.node, key.word
    )


@dataclass(frozen=True)
class DatasetRow:
    """What a side has at one point.

    values   in SI units
    warning  ``wrong`` or ``unsure``, empty where nothing speaks against the figure
    settings  what was asked and recorded, by title: two that differ in them are not alike
    unequal_nodes  in what the nodes of its repetitions are not equal
    turns    the repetitions in time, of a campaign
    """

    values: tuple[float, ...]
    warning: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    unequal_nodes: str = ""
    turns: Turns = field(default_factory=dict)

    @property
    def by_round(self) -> dict[int, float]:
        """The values by the number of their repetition."""
        by_round = {number: turn.value for number, turn in self.turns.items()}
        return by_round or dict(enumerate(self.values))


@dataclass(frozen=True)
class Dataset:
    """One side: its name, and what it has by point.

    machine  all facts of the machines, by title
    hosts    of a campaign
    config   file of the configuration, which --interleave takes
    beside   the campaign with which it was measured in turn, empty without one
    """

    name: str
    entries: Mapping[ComparedPoint, DatasetRow]
    machine: Mapping[str, str] = field(default_factory=dict)
    hosts: frozenset[str] = frozenset()
    config: str = "campaign.yaml"
    beside: str = ""

    @property
    def nodes(self) -> list[str]:
        """The nodes of the points, in the order of their names."""
        return sorted({point.node for point in self.entries}, key=natural)

    @property
    def starts(self) -> list[float]:
        """When its repetitions were begun, in seconds of the clock."""
        return sorted(turn.begun for row in self.entries.values() for turn in row.turns.values())


def read(name: str) -> Dataset:
    """A side by the folder of a campaign. Errors: PeakmarkError when it is none, or damaged."""
    path = Path(name)
    if not path.is_dir():
        raise RecordError(f"{name!r} is not the folder of a campaign, such as results/quick")
    entries: dict[ComparedPoint, DatasetRow] = {}
    results = Results.read(path)
    facts = cache(partial(comparability.facts, results))
    for name, table_rows in build_rows(results).items():
        for row in table_rows:
            for instrument, series in row.series.items():
                settings = comparability.settings(series, row.key.workload)
                contexts = [point.context for point in series.points]
                ends = ("host", "server_host")
                hosts = frozenset(context.get(end) for context in contexts for end in ends)
                settings |= comparability.recorded(series, facts(hosts))
                if row.key.word:
                    settings[f"threads of {row.key.word}"] = str(row.key.concurrency)
                entry = DatasetRow(
                    series.values,
                    str(worst(row.warnings_of(instrument)) or ""),
                    settings,
                    unequal_nodes=row.unequal_nodes.get(instrument, ""),
                    turns=turns(series.points),
                )
                point = point_of(name, instrument, row.key)
                entries[point] = entry
                for percentile in SHOWN_PERCENTILES:
                    values = series.percentiles(percentile)
                    pairs = zip(series.points, values, strict=False)
                    times = turns(replace(each, value=value) for each, value in pairs)
                    if times:
                        part = replace(entry, values=tuple(values), turns=times)
                        entries[replace(point, percentile=percentile)] = part
    side = Dataset(
        path.name,
        entries,
        machine=comparability.machine(results),
        hosts=frozenset(results.facts),
        config=str(path / "config.json"),
        beside=str(results.plan.get("beside") or ""),
    )
    return replace(side, machine={**side.machine, "node": ", ".join(side.nodes)})


def describe(point: ComparedPoint) -> str:
    """``disk_throughput diskbench RS psync 1 MiB x4``; ``cpu cpubench DP xcores``."""
    parts = [point.table, point.instrument, point.workload, point.variant]
    node = point.node if point.node not in ("", "any") else ""
    name = SHOWN_PERCENTILES.get(point.percentile, "")
    parts += [size(point.block or None), f"x{point.word or point.concurrency}", node, name]
    return " ".join(filter(None, parts))
