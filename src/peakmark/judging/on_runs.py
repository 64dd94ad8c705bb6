"""Checks of the repetitions themselves: how many, how long, how far apart, what else went on."""

from __future__ import annotations

from collections.abc import Iterator

from peakmark import statistics
from peakmark.catalogue.workloads import KERNELS
from peakmark.formatting import significant
from peakmark.judging import disturbance, on_cores, spread
from peakmark.judging.measured import Measured, Thresholds
from peakmark.judging.notes import Level, Note


def scatter(row: Measured, _: Thresholds) -> Iterator[Note]:
    in_time = [run.value for run in row.in_time]
    first, trend = spread.first_differs(in_time), spread.drifts(in_time)
    if first is not None:
        text = f"the first repetition is {first:+.0%} from the others: warm up longer (warmup:)"
        yield Note("first-differs", text, Level.UNSURE)
    elif trend is not None:
        text = (
            f"values drift by {trend.relative:+.0%} from the first to the last repetition (p = {trend.p:.2g}"
            f"{disturbance.heat(row.noises)}): the machine changed meanwhile (heat, filling disk, other users); repeat on an idle node"
        )
        yield Note("drift", text, Level.UNSURE)
    if spread.is_wide(in_time):
        text = f"values spread by {row.summary.cv:.0%} of their mean: repeat on an idle node, or more often, or longer"
        yield Note("spread", text, Level.UNSURE)
    odd = spread.outliers([run.value for run in row.runs])
    if odd.places:
        numbers = ", ".join(str(index + 1) for index in odd.places)
        yield Note("outlier", f"repetition {numbers} of {odd.total} lies far from the others and is kept", Level.NOTE)


def disturbed(row: Measured, thresholds: Thresholds) -> Iterator[Note]:
    spare = 0.0 if on_cores.lost_time(row) else row.spare_cpus
    yield from disturbance.find(row.noises, thresholds.others, thresholds.steal, spare=spare)
    for host, noises in row.server_noises.items():
        where = f" on {host}, the server's node,"
        yield from disturbance.find(noises, thresholds.others, thresholds.steal, where)


def few(row: Measured, _: Thresholds) -> Iterator[Note]:
    n = row.summary.n
    if n == 1:
        text = f"measured once: nothing is known of the spread; set repetitions: {statistics.ENOUGH} or more"
        yield Note("few", text, Level.NOTE)
    elif not row.summary.enough:
        text = (
            f"n = {n}: the range from lowest to highest value encloses the median in {row.summary.level:.0%} of cases only;"
            f" no single row is called faster than another; set repetitions: {statistics.ENOUGH} or more for 95 %"
        )
        yield Note("few", text, Level.NOTE)


def short(row: Measured, thresholds: Thresholds) -> Iterator[Note]:
    seconds = row.details("seconds")
    if row.instrument in KERNELS.values() and seconds and max(seconds) < thresholds.shortest:
        text = (
            f"runs of {significant(max(seconds), 2)} s: caches, clocks and neighbours may not have settled; set seconds: 1"
            " or more for figures to hand in"
        )
        yield Note("short-runs", text, Level.NOTE)
