"""Latency under load: what the curve of latency over traffic says of a memory."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from peakmark.analysis.row import Row
from peakmark.analysis.shapes import curve_of, medians
from peakmark.messages import Message, message

KNEE = 2.0
"""The knee is where the latency is so many times the idle one."""


class LoadedPoint(NamedTuple):
    """Traffic in B/s, and the latency of a dependent load in s."""

    rate: float
    latency: float


def curve(row: Row) -> list[LoadedPoint]:
    """The points of a mix from idle to no pauses: medians of the repetitions."""
    return [LoadedPoint(*map(float, point[:2])) for point in medians(curve_of([row]))]


def knee(points: Sequence[LoadedPoint]) -> float | None:
    """The traffic in B/s at which the latency first is twice that of the first point, in proportion
    between two points; None where it never is.
    """
    limit = KNEE * points[0].latency
    for before, after in pairwise(points):
        if before.latency < limit <= after.latency:
            share = (limit - before.latency) / (after.latency - before.latency)
            return before.rate + share * (after.rate - before.rate)
    return None


def finding(row: Row) -> Message:
    """Idle latency, saturation and knee of a measured row."""
    points = curve(row)
    saturation = max(points, key=lambda point: point.rate)
    doubled, bandwidth = knee(points), row.limit.bandwidth
    share = message("loaded-share", share=saturation.rate / bandwidth) if bandwidth else ""
    return message(
        "loaded",
        case="" if doubled else "flat",
        reads=int(row.key.variant.removeprefix("r")),
        idle=points[0].latency,
        saturation=saturation.rate,
        latency=saturation.latency,
        share=share,
        knee=doubled or 0.0,
    )
