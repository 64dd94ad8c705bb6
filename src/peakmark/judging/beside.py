"""Where the own program and a reference differ, and which of them varies: by workload and by block
size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from peakmark import statistics
from peakmark.judging.label_formatter import LabelFormatter
from peakmark.judging.measured import DEFAULT
from peakmark.judging.ranking import groups
from peakmark.judging.ratios import Pair
from peakmark.judging.row import Row


def sentences(labels: LabelFormatter, program: str, pairs: Sequence[Pair]) -> Iterator[str]:
    """Medians of the ratios where workloads or sizes differ in them, and the factor between the
    highest and the lowest figure of either program where one varies more; nothing where they are
    alike, by the factor that makes two programs disagree.
    """
    parts = []
    for called, of in (("by workload", labels.workload), ("by size", labels.block)):
        middles = medians(((of(row), ratio.value) for row, _, ratio in pairs), DEFAULT.band)
        if middles:
            shown = [f"{name} {labels.times(middle)}" for name, middle in middles.items()]
            parts.append(f"{called} {', '.join(shown)}")
    if parts:
        yield f"In the median {'; '.join(parts)}."
    own, of_own = _widest(labels, [(row, row.measured.centre) for row, *_ in pairs])
    theirs, of_theirs = _widest(labels, [(row, series.centre) for row, series, _ in pairs])
    if max(own, theirs) > DEFAULT.band * min(own, theirs):
        yield (
            f"From row to row of one workload the figures of {labels.program(labels.table.own)} differ by up to a factor of"
            f" {labels.times(own)} ({of_own}), those of {program} by up to"
            f" {labels.times(theirs)} ({of_theirs})."
        )


def medians(values: Iterable[tuple[str, float]], factor: float) -> dict[str, float]:
    """The median of the positive values of each name; empty where no two of them are more than
    ``factor`` apart.
    """
    named: dict[str, list[float]] = {}
    for name, value in values:
        named.setdefault(name, []).append(value)
    middles = {name: statistics.median(each) for name, each in named.items()}
    return middles if middles and max(middles.values()) > factor * min(middles.values()) else {}


def _widest(labels: LabelFormatter, figures: Sequence[tuple[Row, float]]) -> tuple[float, str]:
    """The largest factor between two rows of one workload, and the workload."""
    at = {row.key: value for row, value in figures}
    named = [
        (name, [at[row.key] for row in group])
        for name, group in groups([row for row, _ in figures], labels)
    ]
    return max((max(values) / min(values), name) for name, values in named)
