"""Two campaigns, or a campaign and published results, row by row: what became better or worse, and how sure that is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from peakmark.errors import ConfigError
from peakmark.formatting import significant, size
from peakmark.judging import published, rows, statistics
from peakmark.storage.results import Results
from peakmark.tables.layout import BY_NAME, TABLES, Table

Verdict = Literal["better", "worse", "no difference shown", "cannot tell"]
VERDICTS: tuple[Verdict, ...] = ("better", "worse", "no difference shown", "cannot tell")


@dataclass(frozen=True, order=True)
class Point:
    """What is compared with its like; block in bytes, 0 where there is none; variant "" where a side does not tell it."""

    table: str
    instrument: str
    workload: str
    variant: str
    block: int
    concurrency: int
    node: str


@dataclass(frozen=True)
class Side:
    """One side: its name, and its values in SI units by point. ``bare`` says that its points have no variant and node.

    doubtful  points whose rows carry a note that casts doubt on them
    """

    name: str
    values: Mapping[Point, tuple[float, ...]]
    bare: bool
    doubtful: frozenset[Point] = frozenset()


@dataclass(frozen=True)
class Comparison:
    """One row on both sides. ratio: median after / before, with its interval; above 1 is more, which may be worse.

    doubtful  A, B or both: sides on which a note casts doubt on the row
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
        values = {
            Point(table, instrument, _workload(table, workload), "", block or 0, concurrency, ""): tuple(numbers)
            for (table, workload, block, concurrency, instrument), numbers in found.runs().items()
        }
        return Side(found.name, values, bare=True)
    known = ", ".join(sorted(one.stem for one in published.FOLDER.glob("*.csv")))
    raise ConfigError(
        f"{name!r} is neither the folder of a campaign, such as results/quick, nor published results: {known}, or the "
        "path of a CSV file"
    )


def _workload(table: str, workload: str) -> str:
    return f"LAT-{workload}" if table == "network_latency" else workload


def _campaign(path: Path) -> Side:
    values: dict[Point, tuple[float, ...]] = {}
    doubtful = set()
    for name, found in rows.build(Results.read(path)).items():
        for row in found:
            key = row.key
            for instrument, series in row.series.items():
                place = (key.workload, key.variant, key.block or 0, key.concurrency, key.node)
                point = Point(name, instrument, *place)
                values[point] = series.values
                if any(note.doubt for note in row.marks_of(instrument)):
                    doubtful.add(point)
    return Side(path.name, values, bare=False, doubtful=frozenset(doubtful))


def _bare_point(point: Point) -> Point | None:
    """The name of a point in published results, None for caches, which nobody published."""
    if point.variant == "block":
        return None
    workload, block = published.stands_for(point.workload, point.block or None)
    return Point(point.table, point.instrument, workload, "", published.rounded(block) or 0, point.concurrency, "")


def _bare(side: Side) -> dict[Point, tuple[float, ...]]:
    """A campaign's points as published results name them: without variant and node, DRAM only, blocks in powers of 1024."""
    found: dict[Point, tuple[float, ...]] = {}
    for point, values in side.values.items():
        bare = _bare_point(point)
        if bare is None:
            continue
        # Two nodes or two variants for one published row: which of them is meant is not for us to say.
        if bare in found:
            raise ConfigError(
                f"{side.name} has several nodes or variants of {describe(bare)}: published results name none; compare a "
                "campaign of one node and one variant"
            )
        found[bare] = values
    return found


def compare(
    before: Side, after: Side, confidence: float = 0.95, tolerance: float = 0.0
) -> tuple[list[Comparison], int, int]:
    """(rows that both have in the order of the tables, rows that only ``before`` has, rows that only ``after`` has)."""
    bare = before.bare or after.bare
    old = _bare(before) if bare and not before.bare else dict(before.values)
    new = _bare(after) if bare and not after.bare else dict(after.values)
    doubts = {
        name: side.doubtful | ({_bare_point(point) for point in side.doubtful} if bare else set())
        for name, side in (("A", before), ("B", after))
    }
    found = []
    for point in sorted(old.keys() & new.keys(), key=_place):
        lower = BY_NAME[point.table].lower_is_better
        doubtful = " and ".join(name for name, points in doubts.items() if point in points)
        judged = judge(old[point], new[point], lower, confidence, tolerance)
        found.append(Comparison(point, old[point], new[point], *judged, doubtful))
    return found, len(old.keys() - new.keys()), len(new.keys() - old.keys())


def _place(point: Point) -> tuple[object, ...]:
    table = BY_NAME[point.table]
    instruments = [series.instrument for series in table.series]
    return (
        TABLES.index(table),
        point.node,
        instruments.index(point.instrument),
        *table.order(point.workload, point.variant, point.concurrency, point.block),
    )


def describe(point: Point) -> str:
    """``disk_throughput diskbench RS psync 1 MiB x4``."""
    parts = [point.table, point.instrument, point.workload, point.variant, size(point.block or None)]
    node = point.node if point.node not in ("", "any") else ""
    return " ".join(part for part in (*parts, f"x{point.concurrency}", node) if part)


def report(before: Side, after: Side, confidence: float = 0.95, tolerance: float = 0.0) -> tuple[str, Counter[Verdict]]:
    """The comparison as text, and how often each verdict was given.

    Errors: ConfigError when the two have no row in common.
    """
    found, only_before, only_after = compare(before, after, confidence, tolerance)
    if not found:
        raise ConfigError(
            f"{before.name} and {after.name} have no row in common: they measured other workloads, blocks or thread counts"
        )
    counts: Counter[Verdict] = Counter(one.verdict for one in found)
    width = max(len(describe(one.point)) for one in found)
    lines = [f"A {before.name}   B {after.name}   ratio of medians B / A, {confidence:.0%} interval (bootstrap)", ""]
    lines += [_line(one, width) for one in found]
    lines += ["", "; ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS)]
    judged = len(found) - counts["cannot tell"]
    if judged:
        by_chance = judged * (1 - confidence) / 2
        lines.append(
            f"{judged} rows were judged: if nothing had changed, chance alone would call about "
            f"{significant(by_chance, 2)} of them better and as many worse"
        )
    doubtful = sum(bool(one.doubtful) for one in found)
    if doubtful:
        which = (
            "row carries notes that cast doubt on it" if doubtful == 1 else "rows carry notes that cast doubt on them"
        )
        lines.append(f"{doubtful} {which}: see the reports before believing a verdict")
    if counts["cannot tell"]:
        lines.append(f"cannot tell: too few values; {statistics.ENOUGH} repetitions on both sides are enough")
    if only_before or only_after:
        lines.append(f"not compared: {only_before} rows that only A has, {only_after} rows that only B has")
    return "\n".join(lines), counts


def _line(one: Comparison, width: int) -> str:
    old, new = (statistics.median(values) * one.table.factor for values in (one.before, one.after))
    unit = one.table.shown or one.table.quantity
    interval = f"{one.low:.3f} to {one.high:.3f}" if min(len(one.before), len(one.after)) > 1 else "no interval"
    values = f"{significant(old):>10} -> {significant(new):>10} {unit:<8}"
    counts = f"n {len(one.before)}, {len(one.after)}"
    return f"{describe(one.point):<{width}}  {values} {one.ratio:7.3f} ({interval})  {counts}  {one.verdict}" + (
        f" (doubtful: {one.doubtful})" if one.doubtful else ""
    )
