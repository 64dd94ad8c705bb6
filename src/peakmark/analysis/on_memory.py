"""Checks of memory: pools that caches hold, stores that are not those of the limit."""

from __future__ import annotations

from collections.abc import Iterator

from peakmark.analysis.measured import DEFAULT, Measured
from peakmark.catalogue import POOLS
from peakmark.messages import Message, Severity, message
from peakmark.units import format_size

STORES = ("temporal", "streaming", "libc")


def pool_in_cache(row: Measured) -> Iterator[Message]:
    if row.subsystem != "memory" or row.variant not in POOLS:
        return
    caches = [cache for cache in row.fact("cpu", "caches") or () if cache["type"] != "instruction"]
    pools = row.details("working_set_bytes") or row.details("working_set")
    if not caches or not pools:
        return
    last = max(caches, key=lambda cache: int(cache["level"]))
    # Where the placement is not known, each thread reaches one cache.
    reached = [
        run.context["placed"]["last_level_bytes"] for run in row.runs if run.context.get("placed")
    ]
    held = max(reached, default=0) or int(last["size"]) * min(int(last["count"]), row.concurrency)
    if min(pools) < DEFAULT.pool * held:
        sizes = zip(
            ("pool", "held", "needed"), (min(pools), held, DEFAULT.pool * held), strict=True
        )
        named = {name: format_size(int(size)) for name, size in sizes}
        yield message(
            "pool-in-cache", Severity.WRONG, times=DEFAULT.pool, level=str(last["level"]), **named
        )


def stores(row: Measured) -> Iterator[Message]:
    """Of which kind a memory row's stores are, where it could be another."""
    known = {str(run.details["store"]) for run in row.runs if run.details.get("store")}
    if row.subsystem == "memory" and row.variant in POOLS:
        if len(known) > 1:
            yield message("stores-differ", Severity.UNSURE, stores=tuple(sorted(known)))
        for store in known if len(known) == 1 else ():
            yield message("stores", case=store if store in STORES else "", store=store)
