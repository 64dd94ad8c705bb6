"""What physics forbids and what noise makes doubtful: notes on a row, facts first, then the remedy.

Pure functions. A note marks a row; it never changes or removes a value.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

from peakmark.catalogue.subsystems import SUBSYSTEMS
from peakmark.catalogue.workloads import POOLS
from peakmark.formatting import significant
from peakmark.judging import on_cores, on_disk, on_memory, on_network, on_runs
from peakmark.judging.measured import DEFAULT, Measured, Thresholds
from peakmark.judging.notes import ORDER, Level, Note
from peakmark.limits import efficiency

HPL_THRESHOLD = 16.0  # HPL's own limit of the scaled residual


def check_row(row: Measured, thresholds: Thresholds = DEFAULT) -> list[Note]:
    """All notes on a row, the heaviest first."""
    notes = [note for check in CHECKS for note in check(row, thresholds)]
    return sorted(notes, key=lambda note: ORDER.index(note.level))


def check_agreement(
    values: Mapping[str, float],
    thresholds: Thresholds = DEFAULT,
    own: str | None = None,
    compare: str = SUBSYSTEMS["cpu"].differs,
    headings: Mapping[str, str] | None = None,
    explained: Collection[str] = (),
) -> list[Note]:
    """Notes for instruments that disagree about one quantity by more than the band.

    values  summarised value by instrument, in one unit; own: compare this one with each other (default: all pairs)
    compare  in what they may differ; headings: what instruments are called, if not by their names
    explained  instruments of which it is known in what they differ: a doubt from a larger factor on only
    """
    notes = []
    names = [name for name, value in values.items() if value > 0]
    for number, first in enumerate(names):
        for second in names[number + 1 :]:
            if own is not None and own not in (first, second):
                continue
            ratio = values[first] / values[second]
            factor = max(ratio, 1 / ratio)
            if factor > thresholds.band:
                one, other = ((headings or {}).get(name, name) for name in (first, second))
                text = (
                    f"{one} and {other} are a factor of {significant(factor, 2)} apart: they do not measure the same, or one did"
                    f" not run as meant; compare their {compare} and what each counts before using either"
                )
                known = factor <= thresholds.explained and not {first, second}.isdisjoint(explained)
                notes.append(Note("disagreement", text, Level.NOTE if known else Level.UNSURE))
    return notes


def _above_limit(row: Measured, thresholds: Thresholds) -> Iterator[Note]:
    share = efficiency(row.centre, row.limit)
    if share is None or share <= thresholds.limit:
        return
    remedy = "the limit or what was counted is wrong; state the machine's own values in the site file"
    if row.limit.clock == "nominal":
        remedy = (
            "the limit holds at the nominal clock and the cores ran faster; set cpu.clock: observed in the site file"
        )
    elif row.subsystem == "disk":
        remedy = (
            "a cache answered instead of the disk, or the datasheet is another disk's; make size: larger than memory"
        )
    elif row.subsystem == "memory" and row.variant in POOLS:
        remedy = "caches served part of it, or the memory has more channels than stated; make pool: larger"
    yield Note("above-limit", f"{share:.0%} of the physical limit: {remedy}", Level.WRONG)


def _residual(row: Measured, _: Thresholds) -> Iterator[Note]:
    residuals = row.details("residual") if row.instrument == "hpl" else []
    if residuals and not max(residuals) < HPL_THRESHOLD:
        text = f"HPL's residual is {max(residuals):.3g}, allowed is less than {HPL_THRESHOLD:g}: the result is wrong"
        yield Note("residual", text, Level.WRONG)


CHECKS: tuple[Callable[[Measured, Thresholds], Iterator[Note]], ...] = (
    _above_limit,
    on_disk.never_reached_device,
    on_disk.unflushed,
    on_cores.slow_core,
    on_cores.crowded,
    on_cores.waited,
    on_memory.pool_in_cache,
    on_memory.stores,
    on_cores.clock,
    on_cores.clock_lowered,
    on_cores.below_nominal,
    on_cores.narrower,
    on_cores.placement,
    on_network.udp_loss,
    on_network.lost_round_trips,
    on_disk.limited_disk,
    on_network.shaped,
    _residual,
    on_cores.concurrency,
    on_runs.scatter,
    on_runs.disturbed,
    on_runs.few,
    on_runs.short,
    on_network.loopback,
)
