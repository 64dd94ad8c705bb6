"""Checks of the repetitions themselves: how many, how long, how far apart, what else went on."""

from __future__ import annotations

from collections.abc import Iterator

from peakmark.catalogue.workloads import KERNELS
from peakmark.judging import disturbance, on_cores, spread
from peakmark.judging.measured import DEFAULT, Measured
from peakmark.judging.notes import Level, Note, note
from peakmark.statistics import ENOUGH


def scatter(row: Measured) -> Iterator[Note]:
    in_time = [run.value for run in row.in_time]
    first, trend = spread.first_differs(in_time), spread.drifts(in_time)
    if first is not None:
        yield note("first-differs", Level.UNSURE, more=first)
    elif trend is not None:
        yield note("drift", Level.UNSURE, more=trend.relative, p=trend.p, heat=disturbance.heat(row.noises))
    if row.summary.cv is not None and spread.is_wide(in_time):
        yield note("spread", Level.UNSURE, spread=row.summary.cv)
    odd = spread.outliers([run.value for run in row.runs])
    if odd.places:
        yield note("outlier", places=tuple(index + 1 for index in odd.places), total=odd.total)


def hosts(row: Measured) -> Iterator[Note]:
    by_host: dict[str, list[float]] = {}
    for run in row.runs:
        by_host.setdefault(run.where, []).append(run.value)
    apart = spread.hosts_differ(by_host)
    if apart is not None:
        yield note("hosts-differ", highest=apart.highest, lowest=apart.lowest, share=apart.share, p=apart.p)


def disturbed(row: Measured) -> Iterator[Note]:
    spare = 0.0 if on_cores.lost_time(row) else row.spare_cpus
    yield from disturbance.find(row.noises, spare=spare)
    for host, noises in row.server_noises.items():
        yield from disturbance.find(noises, host)


def few(row: Measured) -> Iterator[Note]:
    n = row.summary.n
    if n == 1:
        yield note("few", case="once", enough=ENOUGH)
    elif not row.summary.enough:
        yield note("few", n=n, level=row.summary.level, enough=ENOUGH)


def short(row: Measured) -> Iterator[Note]:
    seconds = row.details("seconds")
    if row.instrument in KERNELS.values() and seconds and max(seconds) < DEFAULT.shortest:
        yield note("short-runs", seconds=max(seconds))
