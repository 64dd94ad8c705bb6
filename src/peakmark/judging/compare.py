"""Two campaigns, or a campaign and published results, row by row: what became better or worse, and how sure that is."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from peakmark import statistics
from peakmark.catalogue.tables import BY_NAME, TABLES, Table
from peakmark.config import published
from peakmark.errors import ConfigError
from peakmark.formatting import listed, size
from peakmark.judging import alike, chance, notes, rows
from peakmark.judging.row import Series
from peakmark.storage.results import Results

Verdict = Literal["better", "worse", "no difference shown", "cannot tell", "not alike"]
VERDICTS: tuple[Verdict, ...] = ("better", "worse", "no difference shown", "cannot tell", "not alike")
CLAIMS: tuple[Verdict, ...] = ("better", "worse")
TOLERANCE = 0.03
"""By so much a row may differ without a verdict: campaigns of one machine at two times seldom differ by less."""
LEAST_ROWS = 3
"""Of fewer rows no drift of their table is computed."""


@dataclass(frozen=True, order=True)
class Point:
    """What is compared with its like; block in bytes, 0 where there is none; variant "" where a side does not tell it.

    word  what was asked for instead of a number of threads, empty for a number; ``concurrency`` is then 0: two threads and
          all cores of a node with two are not the same question
    """

    table: str
    instrument: str
    workload: str
    variant: str
    block: int
    concurrency: int
    node: str
    word: str = ""


@dataclass(frozen=True)
class Side:
    """One side: its name, and its values in SI units by point. ``bare`` says that its points have no variant and node.

    doubts   points whose figure is ``wrong`` or ``unsure``
    terms    what was asked of a point, in words: two that differ in them are not alike
    machine  what the machines are, in words
    remarks  what published results note on their own values
    threads  how many a word meant, of points that have one
    mixed    the hosts of points whose repetitions are from several
    drift    by table, how its rows moved together from the first half of the campaign to the second, as a logarithm
    """

    name: str
    values: Mapping[Point, tuple[float, ...]]
    bare: bool
    doubts: Mapping[Point, str] = field(default_factory=dict)
    terms: Mapping[Point, Mapping[str, str]] = field(default_factory=dict)
    machine: Mapping[str, str] = field(default_factory=dict)
    drift: Mapping[str, float] = field(default_factory=dict)
    remarks: Mapping[Point, Sequence[str]] = field(default_factory=dict)
    threads: Mapping[Point, int] = field(default_factory=dict)
    mixed: Mapping[Point, str] = field(default_factory=dict)

    @property
    def nodes(self) -> list[str]:
        """The nodes of the points, in the order of their names."""
        return sorted({point.node for point in self.values})


@dataclass(frozen=True)
class Comparison:
    """One row on both sides. ratio: median after / before, with its interval; above 1 is more, which may be worse.

    doubtful   ``unsure: A and B``: how the figures of the sides are in doubt, empty where they are not
    tolerance  the share by which the row may differ without a verdict
    """

    point: Point
    before: tuple[float, ...]
    after: tuple[float, ...]
    ratio: float
    low: float
    high: float
    verdict: Verdict
    reason: str
    doubtful: str = ""
    tolerance: float = 0.0

    @property
    def table(self) -> Table:
        """The table to which the row belongs."""
        return BY_NAME[self.point.table]


def judge(
    before: Sequence[float],
    after: Sequence[float],
    lower_is_better: bool,
    confidence: float = 0.95,
    tolerance: float = 0.0,
) -> tuple[float, float, float, Verdict, str]:
    """(ratio, low, high, verdict, reason) of two samples.

    better, worse         the whole interval of the ratio lies beyond 1 by more than ``tolerance``, and the ranks are as
                          uneven as like and like would rarely be: intervals of so few values alone are too bold
    no difference shown   not both; a difference that is smaller than the interval may be there
    cannot tell           too few values: even wholly apart they would not be rarer than chance
    """
    ratio, low, high = statistics.ratio_interval(before, after, confidence)
    if not statistics.can_differ(len(before), len(after), confidence):
        counts = f"{len(before)} and {len(after)}"
        return ratio, low, high, "cannot tell", f"{counts} values are too few: chance alone sets them apart as far"
    if statistics.rank_test(before, after) > 1 - confidence:
        return ratio, low, high, "no difference shown", ""
    if low > 1 + tolerance:
        return ratio, low, high, "worse" if lower_is_better else "better", ""
    if high < 1 - tolerance:
        return ratio, low, high, "better" if lower_is_better else "worse", ""
    return ratio, low, high, "no difference shown", ""


def read(name: str) -> Side:
    """A side by the folder of a campaign, or by the name or path of published results.

    Errors: PeakmarkError when it is neither, or damaged.
    """
    path = Path(name)
    if path.is_dir():
        return _campaign(path)
    if name.endswith(".csv") or (published.FOLDER / f"{name}.csv").is_file():
        found = published.load(name)
        values = {_published_point(key): tuple(numbers) for key, numbers in found.runs().items()}
        remarks = {_published_point(key): texts for key, texts in found.remarks().items()}
        return Side(found.name, values, bare=True, remarks=remarks)
    known = ", ".join(sorted(one.stem for one in published.FOLDER.glob("*.csv")))
    raise ConfigError(
        f"{name!r} is neither the folder of a campaign, such as results/quick, nor published results: {known}, or the "
        "path of a CSV file"
    )


def _published_point(key: published.PublishedKey) -> Point:
    table, workload, block, concurrency, instrument = key
    return Point(table, instrument, _workload(table, workload), "", block or 0, concurrency, "")


def _workload(table: str, workload: str) -> str:
    return f"LAT-{workload}" if table == "network_latency" else workload


def _campaign(path: Path) -> Side:
    values: dict[Point, tuple[float, ...]] = {}
    doubts: dict[Point, str] = {}
    terms: dict[Point, dict[str, str]] = {}
    changes: dict[str, list[float]] = {}
    threads: dict[Point, int] = {}
    mixed: dict[Point, str] = {}
    results = Results.read(path)
    for name, found in rows.build(results).items():
        for row in found:
            key = row.key
            for instrument, series in row.series.items():
                count = 0 if key.word else key.concurrency
                point = Point(name, instrument, key.workload, key.variant, key.block or 0, count, key.node, key.word)
                values[point] = series.values
                terms[point] = alike.terms(series)
                if key.word:
                    threads[point], terms[point][f"threads of {key.word}"] = key.concurrency, str(key.concurrency)
                if len(series.hosts) > 1:
                    mixed[point] = listed(series.hosts)
                changes.setdefault(name, []).extend(_halves(series))
                level = notes.worst(row.marks_of(instrument))
                if level is not None:
                    doubts[point] = str(level)
    machine, drift = alike.machine(results), drift_of(changes)
    return Side(path.name, values, False, doubts, terms, machine, drift, threads=threads, mixed=mixed)


def _halves(series: Series) -> list[float]:
    in_time = sorted(series.points, key=lambda point: str(point.record.data["context"]["started"]))
    return halves([point.value for point in in_time])


def halves(in_time: Sequence[float]) -> list[float]:
    """By how much the later half of a row's positive values differs from the earlier one, as the logarithm of their ratio:
    one value, none of fewer than four repetitions.
    """
    half = len(in_time) // 2
    if half < 2 or min(in_time) <= 0:
        return []
    return [math.log(statistics.median(in_time[-half:]) / statistics.median(in_time[:half]))]


def drift_of(changes: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """By table, what its rows have in common of what ``halves`` says of each: how the machine moved meanwhile."""
    return {table: statistics.median(found) for table, found in changes.items() if len(found) >= LEAST_ROWS}


def drifts(before: Side, after: Side, level: float) -> float:
    """The share by which a table may have moved between two campaigns, by how tables moved within each.

    Each table of each side is one look at how far the machine moves in half a campaign. Between the campaigns it moves as
    in a walk by steps of chance, sqrt(2) times as far; Student's t of so few looks, divided among the tables, allows for how
    little they tell.
    """
    looks = [*before.drift.values(), *after.drift.values()]
    if not looks:
        return 0.0
    typical = math.sqrt(sum(look * look for look in looks) / len(looks))
    tables = max(1, len({*before.drift, *after.drift}))
    return math.expm1(chance.quantile(level / tables, len(looks)) * math.sqrt(2) * typical)


def _bare_point(side: Side, point: Point) -> Point | None:
    """The name of a point in published results, None for caches, which nobody published."""
    if point.variant == "block":
        return None
    workload, block = published.stands_for(point.workload, point.block or None)
    count = side.threads.get(point, point.concurrency)
    return Point(point.table, point.instrument, workload, "", published.rounded(block) or 0, count, "")


def _bare(side: Side) -> dict[Point, Point]:
    """A campaign's points by the names that published results give them: without variant, node and word, DRAM only,
    blocks in powers of 1024.
    """
    found: dict[Point, Point] = {}
    # Two threads as a number come before a word that meant two: the first is what was published.
    for point in sorted(side.values, key=lambda one: bool(one.word)):
        bare = _bare_point(side, point)
        if bare is None:
            continue
        twin = found.get(bare)
        if point.word and twin is not None and (twin.node, twin.variant) == (point.node, point.variant):
            continue
        # 1 MB and 1 MiB stand for one published size: the binary one does where a campaign has both.
        if twin is not None and replace(twin, block=point.block) == point:
            found[bare] = twin if published.rounded(twin.block) == twin.block else point
            continue
        # Two nodes or two variants for one published row: which of them is meant is not for us to say.
        if twin is not None:
            raise ConfigError(
                f"{side.name} has several nodes or variants of {describe(bare)}: published results name none; compare a "
                "campaign of one node and one variant"
            )
        found[bare] = point
    return found


def compare(
    before: Side, after: Side, confidence: float = 0.95, tolerance: float = TOLERANCE, repeat: Side | None = None
) -> tuple[list[Comparison], int, int]:
    """(rows that both have in the order of the tables, rows that only ``before`` has, rows that only ``after`` has).

    A claim must hold by itself, see ``judge``, and stand among all rows that are judged: the false discovery rate over
    them is at most 1 - ``confidence``. ``repeat`` is a second campaign of what ``before`` measured: how far the two differ is the
    drift that a row may have without a verdict.
    """
    bare = before.bare or after.bare
    one_node = not bare and len(before.nodes) == len(after.nodes) == 1
    old, new = (_named(side, bare, one_node) for side in (before, after))
    drift = {} if repeat is None else _between(before, repeat)
    moved = max(tolerance, drifts(before, after, 1 - confidence))
    found = []
    for point in sorted(old.keys() & new.keys(), key=_place):
        first, second = old[point], new[point]
        allowed = max(moved, drift.get(point.table, 0.0))
        lower = BY_NAME[point.table].lower_is_better
        differ = alike.differences(before.terms.get(first, {}), after.terms.get(second, {}))
        differ += alike.mixing(before.mixed.get(first, ""), after.mixed.get(second, ""))
        judged = judge(before.values[first], after.values[second], lower, confidence, allowed)
        if differ:
            judged = (*judged[:3], "not alike", "; ".join(differ))
        doubtful = _doubtful(before.doubts.get(first, ""), after.doubts.get(second, ""))
        found.append(Comparison(point, before.values[first], after.values[second], *judged, doubtful, allowed))
    return _standing(found, confidence), len(old.keys() - new.keys()), len(new.keys() - old.keys())


def _named(side: Side, bare: bool, one_node: bool) -> dict[Point, Point]:
    """The points of a side by the names they have in the comparison: nodes do not matter where each side has one."""
    if one_node:
        return {replace(point, node=""): point for point in side.values}
    return _bare(side) if bare and not side.bare else {point: point for point in side.values}


def _doubtful(before: str, after: str) -> str:
    """``unsure: A and B``, ``wrong: A; unsure: B``, nothing without doubt."""
    words = {"A": before, "B": after}
    kinds = [kind for kind in ("wrong", "unsure") if kind in words.values()]
    return "; ".join(f"{kind}: {' and '.join(name for name, word in words.items() if word == kind)}" for kind in kinds)


def _between(before: Side, repeat: Side) -> dict[str, float]:
    """By table, the share by which 19 of 20 rows differ at most between a campaign and its repeat."""
    shares: dict[str, list[float]] = {}
    for point, values in before.values.items():
        if point in repeat.values:
            ratio = statistics.median(repeat.values[point]) / statistics.median(values)
            shares.setdefault(point.table, []).append(abs(math.log(ratio)))
    return {table: sorted(found)[math.ceil(0.95 * len(found)) - 1] for table, found in shares.items()}


def _standing(found: Sequence[Comparison], confidence: float) -> list[Comparison]:
    """The comparisons, without the claims that chance would bring among so many rows."""
    judged = [one for one in found if one.verdict not in ("cannot tell", "not alike")]
    chances = [chance.welch(one.before, one.after) if one.verdict in CLAIMS else 1.0 for one in judged]
    stands = {id(one) for one, holds in zip(judged, chance.discoveries(chances, 1 - confidence), strict=True) if holds}
    reason = f"chance would bring it among {len(judged)} rows"
    return [
        replace(one, verdict="no difference shown", reason=reason)
        if one.verdict in CLAIMS and id(one) not in stands
        else one
        for one in found
    ]


def _place(point: Point) -> tuple[object, ...]:
    table = BY_NAME[point.table]
    instruments = [series.instrument for series in table.series]
    # A word mostly means more threads than any number beside it.
    count = sys.maxsize if point.word else point.concurrency
    return (
        TABLES.index(table),
        point.node,
        instruments.index(point.instrument),
        *table.order(point.workload, point.variant, count, point.block),
        point.word,
    )


def describe(point: Point) -> str:
    """``disk_throughput diskbench RS psync 1 MiB x4``; ``cpu cpubench DP xcores``."""
    parts = [point.table, point.instrument, point.workload, point.variant, size(point.block or None)]
    node = point.node if point.node not in ("", "any") else ""
    return " ".join(part for part in (*parts, f"x{point.word or point.concurrency}", node) if part)
