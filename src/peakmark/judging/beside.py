"""Where the own program and a reference differ, and which of them varies: by workload and by block size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from peakmark import statistics
from peakmark.formatting import significant
from peakmark.judging.measured import DEFAULT
from peakmark.judging.ranking import groups
from peakmark.judging.ratios import Pair
from peakmark.judging.words import Words


def sentences(words: Words, program: str, pairs: Sequence[Pair]) -> Iterator[str]:
    """Medians of the ratios where workloads or sizes differ in them, and the factor between the highest and the lowest figure
    of either program where one varies more; nothing where they are alike, by the factor that makes two programs disagree.
    """
    parts = []
    for called, of in (("by workload", words.workload), ("by size", words.block)):
        found = medians(((of(row), ratio.value) for row, _, ratio in pairs), DEFAULT.band)
        if found:
            shown = [f"{name} {significant(middle, 3, words.mark)}" for name, middle in found.items()]
            parts.append(f"{called} {', '.join(shown)}")
    if parts:
        yield f"In the median {'; '.join(parts)}."
    (own, of_own), (theirs, of_theirs) = (_widest(words, pairs, value) for value in (_own, _theirs))
    if max(own, theirs) > DEFAULT.band * min(own, theirs):
        yield (
            f"From row to row of one workload the figures of {words.program(words.table.own)} differ by up to a factor of"
            f" {significant(own, 3, words.mark)} ({of_own}), those of {program} by up to"
            f" {significant(theirs, 3, words.mark)} ({of_theirs})."
        )


def medians(values: Iterable[tuple[str, float]], factor: float) -> dict[str, float]:
    """The median of the positive values of each name; empty where no two of them are more than ``factor`` apart."""
    named: dict[str, list[float]] = {}
    for name, value in values:
        named.setdefault(name, []).append(value)
    found = {name: statistics.median(each) for name, each in named.items()}
    return found if found and max(found.values()) > factor * min(found.values()) else {}


def _own(pair: Pair) -> float:
    return pair[0].measured.centre


def _theirs(pair: Pair) -> float:
    return pair[1].centre


def _widest(words: Words, pairs: Sequence[Pair], value: Callable[[Pair], float]) -> tuple[float, str]:
    """The largest factor between two rows of one workload, and the workload."""
    at = {pair[0].key: value(pair) for pair in pairs}
    found = [(name, [at[row.key] for row in group]) for name, group in groups([row for row, *_ in pairs], words)]
    return max((max(values) / min(values), name) for name, values in found)
