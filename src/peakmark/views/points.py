"""The points of a table, each with the rows of all programs and the messages about the point."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from peakmark.messages import Message
from peakmark.rows import schema
from peakmark.rows.schema import CampaignFrames
from peakmark.tools.tables import Table

Line = Any
"""A line of ``rows``, as ``schema.lines`` yields it."""


@dataclass(frozen=True)
class Point:
    """A point of a table.

    Attributes:
        own: the line of peakmark's kernel; ``n`` is 0 if the kernel measured nothing.
        measured: instrument -> its line, for each program that measured the point.
        notes: all messages about the point.
    """

    own: Line
    measured: Mapping[str, Line]
    notes: tuple[Message, ...]

    @property
    def is_measured(self) -> bool:
        """Return whether peakmark's kernel measured the point."""
        return bool(self.own.n)

    @cached_property
    def remarks(self) -> tuple[Message, ...]:
        """Return the messages without those that are printed once for the campaign."""
        return tuple(note for note in self.notes if not note.is_shared)

    @cached_property
    def endpoints(self) -> tuple[tuple[str, str], ...]:
        """Return the hosts of client and server of every pair; pairs within one machine are left out."""
        clients, servers = self.own.clients.split("; "), self.own.servers.split("; ")
        pairs = zip(clients, servers, strict=True)
        return tuple(pair for pair in pairs if pair[0] != pair[1])


def points_of(frames: CampaignFrames, rows: pd.DataFrame) -> list[Point]:
    """Return the points of rows, in their order.

    Args:
        frames: the campaign.
        rows: rows of the campaign. Each point has the rows of all its programs.
    """
    notes = notes_by_point(frames, rows)
    own: dict[str, Line] = {}
    measured: dict[str, dict[str, Line]] = defaultdict(dict)
    for line in schema.lines(rows):
        if line.is_own:
            own[line.point] = line
        if line.n:
            measured[line.point][line.instrument] = line
    return [Point(line, measured[name], tuple(notes[name])) for name, line in own.items()]


def notes_by_point(frames: CampaignFrames, rows: pd.DataFrame) -> Mapping[str, Sequence[Message]]:
    """Return the messages about each point of rows."""
    wanted = frames.warnings[frames.warnings["point"].isin(rows["point"])]
    notes: dict[str, list[Message]] = defaultdict(list)
    # Many points have the same message: read each message once.
    known: dict[Any, Message] = {}
    for line in schema.lines(wanted):
        words = line[2:]  # all columns but index and point
        if words not in known:
            known[words] = schema.message_of_line(line)
        notes[line.point].append(known[words])
    return notes


def rows_of(frames: CampaignFrames, table: Table) -> pd.DataFrame:
    """Return the rows of a table."""
    return frames.rows[frames.rows["table"].eq(table.name)]
