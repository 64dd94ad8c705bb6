"""What is promised of the method, beside how often it was broken."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks import results

PROMISED = (
    (["called slow", "turbo"], None),
    (["called slow"], 0.001),
    (["slow nodes not found by pairs", "noise of 1%"], 0.1),
    (["slow nodes not found", "8% behind", "noise of 1%", "of 64 "], 0.1),
    (["slow nodes not found", "8% behind", "noise of 1%", "of 1000 "], 0.1),
    (["with care"], 0.05),
    (["called different"], 0.05),
    (["unchanged campaigns"], 0.05),
    (["false claims"], 0.05),
    (["that miss"], 0.05),
    (["one placement called several"], 0.05),
)
"""Words of a promise's name, and the largest share that keeps it; the first line that fits counts."""


@dataclass(frozen=True)
class Count:
    """How many of those that were judged broke what is promised, such as to claim no difference
    that is none.
    """

    claimed: float
    judged: int

    @property
    def share(self) -> float:
        return self.claimed / self.judged if self.judged else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the share."""
        if not self.judged:
            return math.nan, math.nan
        return wilson(self.claimed, self.judged)


def wilson(count: float, of: float) -> tuple[float, float]:
    """Return the 95 % interval of a rate.

    Source: Wilson, Probable Inference, the Law of Succession, and Statistical Inference, JASA 22
    (1927), pages 209-212.
    """
    z, share = 1.96, count / of
    middle = share + z * z / (2 * of)
    variance = share * (1 - share) / of
    half = z * math.sqrt(variance + (z / (2 * of)) ** 2)
    scale = 1 + z * z / of
    return max(0.0, (middle - half) / scale), (middle + half) / scale


Counts = Iterator[tuple[str, Count]]
"""Name of a promise, and how often it was broken."""


def promised(name: str) -> float | None:
    """The largest share that keeps a promise; None where the report tells what was not found."""
    return next((most for words, most in PROMISED if all(word in name for word in words)), None)


def table(counts: Sequence[tuple[str, Count]]) -> str:
    """A Markdown table: measured beside promised."""
    lines = []
    for name, one in counts:
        low, high = one.interval
        shares = [f"{one.share:.2%}", f"{low:.1%} to {high:.1%}"] if one.judged else ["none", ""]
        most = promised(name)
        target = "none" if most is None else f"at most {100 * most:g}%"
        lines.append([name, str(one.judged), f"{round(one.claimed, 1):g}", *shares, target])
    headings = ["promise", "cases", "broken", "share", "95 % interval", "promised"]
    return results.markdown(headings, lines)


def broken(counts: Sequence[tuple[str, Count]]) -> list[str]:
    """Promises that were broken more often than chance explains, a sentence each."""
    found = []
    for name, one in counts:
        most = promised(name)
        if most is not None and one.interval[0] > most:
            found.append(f"{name}: {one.share:.2%}, promised is at most {100 * most:g}%")
    return found
