"""Whether the suspects of a second measurement are slow again, beside healthy nodes or links."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from peakmark import statistics
from peakmark.rows.fleet import DELTA, Values, is_mapped, is_pair, is_usable, values_of
from peakmark.tools.tables import BY_NAME


class Lag(NamedTuple):
    """Shares by which a suspect is behind the healthy ones in one row.

    Attributes:
        median: share by which its median is behind.
        least: share by which the better end of its interval is behind the slowest of them.
    """

    median: float
    least: float

    @property
    def is_slow(self) -> bool:
        """Return whether the whole interval is behind each healthy one by more than ``fleet.DELTA``."""
        return self.least > DELTA


def list_suspects(
    rows: pd.DataFrame, runs: pd.DataFrame, suspects: Mapping[str, Sequence[str]]
) -> pd.DataFrame:
    """Return a line of ``fleet`` for each suspect; it is confirmed where it is slow in one row at least.

    Args:
        rows: see ``schema.ROWS``, with places and severities.
        runs: see ``schema.RUNS``.
        suspects: slow node or link -> the healthy ones that were measured beside it.
    """
    if not suspects:
        return pd.DataFrame()
    usable = (is_usable(rows) & ~is_pair(rows)) | is_mapped(rows)
    measured = rows[usable & rows["n"].ge(statistics.ENOUGH)]
    values = values_of(measured, runs)
    lines = []
    for name, healthy in suspects.items():
        shares = shares_of(name, healthy, values)
        slow = [share.median for share in shares if share.is_slow]
        line: dict[str, Any] = {"kind": "suspect", "name": name, "confirmed": bool(slow)}
        line |= {"rows": len(slow), "judged": len(shares), "beside": json.dumps(list(healthy))}
        if slow:
            line["behind"] = statistics.median(slow)
        lines.append(line)
    return pd.DataFrame(lines)


def shares_of(name: str, healthy: Sequence[str], values: Values) -> list[Lag]:
    """Return how far a suspect is behind in each row that a healthy one has too."""
    shares = []
    for (node, place), own in values.items():
        others = [values[other, place] for other in healthy if (other, place) in values]
        if node == name and others:
            table, _, _ = place.partition("/")
            shares.append(behind(own, others, BY_NAME[table].lower_is_better))
    return shares


def behind(own: Sequence[float], others: Sequence[Sequence[float]], lower_is_better: bool) -> Lag:
    """Compare the repetitions of a suspect's row with those of the healthy ones."""
    median, interval = statistics.median(own), statistics.median_interval(own)
    centres = [statistics.median(values) for values in others]
    usual = statistics.median(centres)
    if lower_is_better:
        return Lag(median / usual - 1, interval.low / max(centres) - 1)
    return Lag(1 - median / usual, 1 - interval.high / min(centres))
