"""The entries of a published set, for tests of it and of its tables."""

from __future__ import annotations

from peakmark.config import published


def entries_of(name: str) -> tuple[published.Entry, ...]:
    return published.load(name).entries
