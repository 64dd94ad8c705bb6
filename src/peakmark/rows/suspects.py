"""Confirm suspects: check whether they are slow again in a second measurement with healthy parts.

A suspect is a node or a link; the healthy nodes or links are measured in the same campaign.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from peakmark import statistics
from peakmark.rows.fleet import DELTA, Values, values_of
from peakmark.rows.schema import is_mapped, is_pair, is_usable
from peakmark.tools.tables import BY_NAME


class Lag(NamedTuple):
    """Shares by which a suspect is behind the healthy nodes or links in one row.

    Attributes:
        median: share by which the suspect's median is behind the median of the healthy medians.
        least: share by which the better end of the suspect's interval is behind the slowest healthy
            median.
    """

    median: float
    least: float

    @property
    def is_slow(self) -> bool:
        """Return whether the whole interval is behind every healthy median by more than ``DELTA``."""
        return self.least > DELTA


def list_suspects(
    rows: pd.DataFrame, runs: pd.DataFrame, suspects: Mapping[str, Sequence[str]]
) -> pd.DataFrame:
    """Return a line of ``fleet`` for each suspect. It is confirmed if it is slow in at least one row.

    Args:
        rows: frame ``rows`` with places and severities.
        runs: frame ``runs``.
        suspects: suspected node or link -> healthy nodes or links that were measured for comparison.
    """
    if not suspects:
        return pd.DataFrame()
    usable = (is_usable(rows) & ~is_pair(rows)) | is_mapped(rows)
    measured = rows[usable & rows["n"].ge(statistics.ENOUGH)]
    values = values_of(measured, runs)
    lines = []
    for name, healthy in suspects.items():
        lags = lags_of(name, healthy, values)
        slow = [lag.median for lag in lags if lag.is_slow]
        line: dict[str, Any] = {"kind": "suspect", "name": name, "confirmed": bool(slow)}
        line |= {"rows": len(slow), "judged": len(lags), "beside": json.dumps(list(healthy))}
        if slow:
            line["behind"] = statistics.median(slow)
        lines.append(line)
    return pd.DataFrame(lines)


def lags_of(name: str, healthy: Sequence[str], values: Values) -> list[Lag]:
    """Return how far a suspect is behind, for each row that at least one healthy node or pair measured."""
    lags = []
    for (node, place), own in values.items():
        others = [values[other, place] for other in healthy if (other, place) in values]
        if node == name and others:
            table, _, _ = place.partition("/")
            lags.append(lag_of(own, others, BY_NAME[table].lower_is_better))
    return lags


def lag_of(own: Sequence[float], others: Sequence[Sequence[float]], lower_is_better: bool) -> Lag:
    """Return by how much a suspect is behind in one row.

    Args:
        own: repetitions of the suspect.
        others: repetitions of each healthy node or link.
        lower_is_better: whether the repetitions are times.
    """
    median, interval = statistics.median(own), statistics.median_interval(own)
    healthy_medians = [statistics.median(values) for values in others]
    usual = statistics.median(healthy_medians)
    if lower_is_better:
        slowest = max(healthy_medians)
        return Lag(median=median / usual - 1, least=interval.low / slowest - 1)
    slowest = min(healthy_medians)
    return Lag(median=1 - median / usual, least=1 - interval.high / slowest)
