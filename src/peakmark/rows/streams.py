"""STREAM of hpcc in the rows of the triad: its values are in records of HPL."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from peakmark.cell import Cell
from peakmark.rows import schema
from peakmark.tools import by_product_of
from peakmark.tools.hpcc_stream import STREAM

ARRAYS = 3
"""Number of arrays of the triad."""
Line = Any
"""A line of ``runs``, as ``schema.lines`` yields it."""
PLACE = ["table", "node", "workload", "variant", "concurrency"]
"""Columns that are equal in a value of STREAM and in the points that show it."""


def cell_of_value(cell: Cell, workload: str) -> Cell:
    """Return the cell of a value: for a by-product, with the by-product's program and subsystem."""
    by_product = by_product_of(cell.instrument, workload)
    if by_product is None:
        return cell
    return replace(cell, subsystem=by_product.subsystem, instrument=by_product.name, word="")


def last_level_bytes(facts: Mapping[str, Any]) -> int | None:
    """Return the size of one last-level cache of a host, None if it is not known."""
    caches = (facts.get("cpu") or {}).get("caches") or ()
    sizes = {int(cache["level"]): int(cache["size"]) for cache in caches}
    return sizes[max(sizes)] if sizes else None


def is_of_memory(working_set_bytes: float, facts: Mapping[str, Any]) -> bool:
    """Return whether each vector of STREAM is known to be larger than the last-level cache.

    Args:
        working_set_bytes: bytes of the three vectors of a process.
        facts: facts of the host.
    """
    cache = last_level_bytes(facts)
    return cache is not None and working_set_bytes / ARRAYS > cache


def cached_by_point(rows: pd.DataFrame, runs: pd.DataFrame) -> Mapping[str, list[Line]]:
    """Return for each point of the triad the hidden lines of STREAM: caches may have held its vectors.

    Args:
        rows: frame from ``rows.build_rows``.
        runs: frame from ``copy_streams_to_points``, in which these lines have no table.
    """
    found: dict[str, list[Line]] = defaultdict(list)
    hidden = runs[runs["instrument"].eq(STREAM.name) & runs["table"].eq("")]
    keys = PLACE[1:]  # without the table
    points = rows.loc[rows["is_own"], ["point", *keys]]
    for line in schema.lines(hidden.drop(columns="point").merge(points, on=keys)):
        found[line.point].append(line)
    return found


def copy_streams_to_points(runs: pd.DataFrame) -> pd.DataFrame:
    """Copy the lines of STREAM to each point of the triad with the same variant and concurrency.

    STREAM has no blocks, so points of all block sizes get a copy. Lines that no point got are kept
    without a table.
    """
    is_stream = runs["instrument"].eq(STREAM.name) & runs["table"].ne("")
    others, streams = runs[~is_stream], runs[is_stream]
    columns = ["point", *schema.POINT]
    points = others.loc[others["workload"].eq(STREAM.workload), columns].drop_duplicates()
    is_shown = pd.MultiIndex.from_frame(streams[PLACE]).isin(
        pd.MultiIndex.from_frame(points[PLACE])
    )
    copies = points.merge(streams[is_shown], on=PLACE, suffixes=("", "_of_stream"))
    unused = streams[~is_shown].assign(table="")
    return pd.concat([others, copies[list(runs)], unused], ignore_index=True)
