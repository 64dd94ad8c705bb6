"""What a second measurement of slow nodes and suspected links shows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from peakmark import statistics
from peakmark.analysis import fleet
from peakmark.analysis.fleet import PointOf
from peakmark.analysis.links import is_mapped
from peakmark.analysis.row import Row, Rows
from peakmark.messages import Message, Severity, message
from peakmark.storage.results import Results


def second_verdicts(results: Results, tables: Rows) -> dict[str, Message]:
    """Say of each suspect of this campaign whether it is slow again; nothing where it has none."""
    suspects = results.config.get("suspects") or {}
    if not suspects:
        return {}
    measured: dict[str, dict[tuple[str, PointOf], Row]] = defaultdict(dict)
    for name, rows in tables.items():
        for row in filter(_is_judged, rows):
            measured[row.key.node][name, fleet.place(row)] = row
    verdicts = {}
    for suspect, healthy in suspects.items():
        shares = []
        for point, row in measured[suspect].items():
            others = [measured[name][point] for name in healthy if point in measured[name]]
            if others:
                values = [other.measured.values for other in others]
                shares.append(behind(row.measured.values, values, row.table.lower_is_better))
        verdicts[suspect] = _verdict(suspect, healthy, shares)
    return verdicts


def _is_judged(row: Row) -> bool:
    usable = is_mapped(row) if row.is_pair else row.own and row.level is not Severity.WRONG
    return bool(usable) and row.measured.summary.n >= statistics.ENOUGH


class Behind(NamedTuple):
    """Shares by which a suspect's median is behind that of the healthy ones, and by which the better
    end of its interval is behind the slowest of them.
    """

    median: float
    least: float

    @property
    def is_slow(self) -> bool:
        """Whether the whole interval is behind each healthy one by more than ``fleet.DELTA``."""
        return self.least > fleet.DELTA


def behind(
    own: Sequence[float], others: Sequence[Sequence[float]], lower_is_better: bool
) -> Behind:
    """Compare the repetitions of a suspect's row with those of the healthy ones."""
    median, interval = statistics.median(own), statistics.median_interval(own)
    centres = [statistics.median(values) for values in others]
    usual = statistics.median(centres)
    if lower_is_better:
        return Behind(median / usual - 1, interval.low / max(centres) - 1)
    return Behind(1 - median / usual, 1 - interval.high / min(centres))


def _verdict(suspect: str, healthy: Sequence[str], shares: Sequence[Behind]) -> Message:
    """Return the verdict on a suspect: confirmed where it is slow in one row at least."""
    slow = [share.median for share in shares if share.is_slow]
    case = "confirmed" if slow else "not-confirmed"
    return message(
        "second-measurement",
        case=case if shares else "missing",
        node=_shown(suspect),
        beside=tuple(map(_shown, healthy)),
        rows=len(slow),
        of=len(shares),
        behind=statistics.median(slow or [0.0]),
        least=statistics.ENOUGH,
    )


def _shown(name: str) -> str:
    """Return the name of a node, or of a link with an arrow."""
    return name.replace("+", " → ")
