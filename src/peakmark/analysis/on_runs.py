"""Checks of the repetitions themselves: how many, how long, how far apart, what else went on."""

from __future__ import annotations

from collections.abc import Iterator

from peakmark.analysis import disturbance, on_cores, spread
from peakmark.analysis.measured import DEFAULT, Measured
from peakmark.catalogue import KERNELS
from peakmark.messages import Message, Severity, message
from peakmark.statistics import ENOUGH


def scatter(row: Measured) -> Iterator[Message]:
    in_time = [run.value for run in row.in_time]
    first, trend = spread.first_differs(in_time), spread.drifts(in_time)
    if first is not None:
        yield message("first-differs", Severity.UNSURE, more=first)
    elif trend is not None:
        yield message(
            "drift",
            Severity.UNSURE,
            more=trend.relative,
            p=trend.p,
            heat=disturbance.heat(row.noises),
        )
    if row.summary.cv is not None and spread.is_wide(in_time):
        yield message("spread", Severity.UNSURE, spread=row.summary.cv)
    odd = spread.outliers([run.value for run in row.runs])
    if odd.places:
        yield message("outlier", places=tuple(index + 1 for index in odd.places), total=odd.total)


def hosts(row: Measured) -> Iterator[Message]:
    by_host: dict[str, list[float]] = {}
    for run in row.runs:
        by_host.setdefault(run.where, []).append(run.value)
    apart = spread.hosts_differ(by_host)
    if apart is not None:
        yield message(
            "hosts-differ", highest=apart.highest, lowest=apart.lowest, share=apart.share, p=apart.p
        )


def disturbed(row: Measured) -> Iterator[Message]:
    spare = 0.0 if on_cores.lost_time(row) else row.spare_cpus
    yield from disturbance.find(row.noises, spare=spare)
    for host, noises in row.server_noises.items():
        yield from disturbance.find(noises, host)


def few(row: Measured) -> Iterator[Message]:
    n = row.summary.n
    if n == 1:
        yield message("few", case="once", enough=ENOUGH)
    elif not row.summary.enough:
        yield message("few", n=n, level=row.summary.level, enough=ENOUGH)


def short(row: Measured) -> Iterator[Message]:
    seconds = row.details("seconds")
    if row.instrument in KERNELS.values() and seconds and max(seconds) < DEFAULT.shortest:
        yield message("short-runs", seconds=max(seconds))
