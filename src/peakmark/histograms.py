"""Histograms of times as the kernels print them and records keep them: counts in logarithmic buckets,
128 for each power of two, in ns. ``src/kernels/common/histogram.h`` has the layout.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate

from peakmark.errors import ParseError

FORMAT = "^[0-9]{1,4}( [1-9][0-9]{0,17})+(;[0-9]{1,4}( [1-9][0-9]{0,17})+)*\\Z"
"""Runs of neighbouring buckets: the index of the first one, then the counts."""
SUB_BITS = 7
SHARES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}
"""Detail of a latency -> the share of all operations that took no longer."""


SHOWN = {"p50": "p50", "p99": "p99", "p999": "p99.9"}
"""Percentiles that tables show and comparisons judge -> their headings."""


def read(text: str) -> Counter[int]:
    """The counts by bucket. Raises ParseError when the text is no histogram."""
    if not re.fullmatch(FORMAT, text):
        raise ParseError(f"{text[:60]!r} is no histogram")
    counts: Counter[int] = Counter()
    for run in text.split(";"):
        first, *numbers = map(int, run.split())
        counts.update(dict(enumerate(numbers, first)))
    return counts


def percentiles(counts: Counter[int], shares: Sequence[float]) -> list[float]:
    """The times in s that shares of all operations do not exceed, by nearest rank, within 0.8 %.

    Args:
        counts: operations by bucket.
        shares: between 0 and 1, ascending.

    Returns:
        A time for each share, as far as there are operations beyond it.
    """
    buckets = sorted(counts)
    until = list(accumulate(counts[bucket] for bucket in buckets))
    ranks = [max(1, math.ceil(share * counts.total())) for share in shares]
    times = []
    for rank in ranks:
        if rank >= counts.total():
            break
        place = bisect_left(until, rank)
        bucket, number = buckets[place], counts[buckets[place]]
        shift = max(bucket >> SUB_BITS, 1) - 1
        low, width = bucket - (shift << SUB_BITS) << shift, (1 << shift) - 1
        times.append((low + width * (rank - 0.5 - until[place] + number) / number) * 1e-9)
    return times
