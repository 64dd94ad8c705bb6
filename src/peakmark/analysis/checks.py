"""What physics forbids and what noise makes doubtful, as notes on a row.

Pure functions. A note marks a row; it never changes or removes a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from peakmark.analysis import on_cores, on_disk, on_memory, on_network, on_runs
from peakmark.analysis.measured import DEFAULT, Measured
from peakmark.catalogue import POOLS
from peakmark.limits import efficiency
from peakmark.messages import ORDER, Message, Severity, message

HPL_THRESHOLD = 16.0  # HPL's own limit of the scaled residual


def check_row(row: Measured) -> list[Message]:
    """All notes on a row, the heaviest first."""
    notes = [note for check in CHECKS for note in check(row)]
    return sorted(notes, key=lambda note: ORDER.index(note.severity))


def _above_limit(row: Measured) -> Iterator[Message]:
    share = efficiency(row.centre, row.limit)
    if share is None or share <= DEFAULT.limit:
        return
    case = ""
    if row.limit.clock == "nominal":
        case = "nominal"
    elif row.subsystem == "disk":
        case = "disk"
    elif row.subsystem == "memory" and row.variant in POOLS:
        case = "pool"
    yield message("above-limit", Severity.WRONG, case=case, share=share)


def _residual(row: Measured) -> Iterator[Message]:
    residuals = row.details("residual") if row.instrument == "hpl" else []
    if residuals and not max(residuals) < HPL_THRESHOLD:
        yield message("residual", Severity.WRONG, residual=max(residuals), allowed=HPL_THRESHOLD)


CHECKS: tuple[Callable[[Measured], Iterator[Message]], ...] = (
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
    on_runs.hosts,
    on_runs.disturbed,
    on_runs.few,
    on_runs.short,
    on_network.loopback,
)
