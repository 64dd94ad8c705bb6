"""Checks of memory: pools that caches hold, stores that are not those of the limit."""

from __future__ import annotations

from collections.abc import Iterator

from peakmark.catalogue.workloads import POOLS
from peakmark.judging.measured import Measured, Thresholds
from peakmark.judging.notes import Level, Note
from peakmark.units import format_size


def pool_in_cache(row: Measured, thresholds: Thresholds) -> Iterator[Note]:
    if row.subsystem != "memory" or row.variant not in POOLS:
        return
    caches = [cache for cache in row.fact("cpu", "caches") or () if cache["type"] != "instruction"]
    pools = row.details("working_set_bytes") or row.details("working_set")
    if not caches or not pools:
        return
    last = max(caches, key=lambda cache: int(cache["level"]))
    # Records of earlier versions do not tell which caches were reached: a thread reaches one.
    reached = [run.context["placed"]["last_level_bytes"] for run in row.runs if run.context.get("placed")]
    held = max(reached, default=0) or int(last["size"]) * min(int(last["count"]), row.concurrency)
    if min(pools) < thresholds.pool * held:
        text = (
            f"the pool of {format_size(int(min(pools)))} is less than {thresholds.pool:g} times the L{last['level']}"
            f" caches that its threads reach ({format_size(held)}): part of it is served by them; make pool: auto, or at least"
            f" {format_size(int(thresholds.pool * held))}"
        )
        yield Note("pool-in-cache", text, Level.WRONG)


_STORES = {
    "temporal": "ordinary stores, through the caches: each line is read before it is written, which is not counted",
    "streaming": "streaming stores, around the caches",
    "non-temporal": "streaming stores, around the caches",  # records of earlier versions
    "libc": "the stores of the C library: memcpy or memset of each block",
}


def stores(row: Measured, _: Thresholds) -> Iterator[Note]:
    """Of which kind a memory row's stores are, where it could be another."""
    known = {str(run.details["store"]) for run in row.runs if run.details.get("store")}
    if row.subsystem == "memory" and row.variant in POOLS:
        if len(known) > 1:
            text = f"repetitions wrote in different ways ({', '.join(sorted(known))}): measure the row anew"
            yield Note("stores-differ", text, Level.UNSURE)
        for store in known if len(known) == 1 else ():
            yield Note("stores", _STORES.get(store, store), Level.NOTE)
