"""What physics forbids and what noise makes doubtful, as notes on a row.

Pure functions. A note marks a row; it never changes or removes a value.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import combinations

from peakmark.catalogue.subsystems import SUBSYSTEMS
from peakmark.catalogue.workloads import POOLS
from peakmark.judging import on_cores, on_disk, on_memory, on_network, on_runs
from peakmark.judging.measured import DEFAULT, Measured, Thresholds
from peakmark.judging.notes import ORDER, Level, Note, note
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
    for pair in combinations((name for name, value in values.items() if value > 0), 2):
        low, high = sorted(values[name] for name in pair)
        factor = high / low
        if factor > thresholds.band and (own is None or own in pair):
            first, second = ((headings or {}).get(name, name) for name in pair)
            known = factor <= thresholds.explained and not set(pair).isdisjoint(explained)
            level = Level.NOTE if known else Level.UNSURE
            notes.append(note("disagreement", level, first=first, second=second, factor=factor, compare=compare))
    return notes


def _above_limit(row: Measured, thresholds: Thresholds) -> Iterator[Note]:
    share = efficiency(row.centre, row.limit)
    if share is None or share <= thresholds.limit:
        return
    case = ""
    if row.limit.clock == "nominal":
        case = "nominal"
    elif row.subsystem == "disk":
        case = "disk"
    elif row.subsystem == "memory" and row.variant in POOLS:
        case = "pool"
    yield note("above-limit", Level.WRONG, case=case, share=share)


def _residual(row: Measured, _: Thresholds) -> Iterator[Note]:
    residuals = row.details("residual") if row.instrument == "hpl" else []
    if residuals and not max(residuals) < HPL_THRESHOLD:
        yield note("residual", Level.WRONG, residual=max(residuals), allowed=HPL_THRESHOLD)


CHECKS: tuple[Callable[[Measured, Thresholds], Iterator[Note]], ...] = (
    _above_limit,
    on_disk.never_reached_device,
    on_disk.unflushed,
    on_cores.slow_core,
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
