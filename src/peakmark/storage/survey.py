"""The records of a whole campaign, read by every CPU that may be used, and what is equal in them
kept in memory once.

Read one by one, 100,000 records take 27 s and, as each has strings and lists of its own for the
same words, 1.3 GiB.
"""

from __future__ import annotations

import functools
import gc
import marshal
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from peakmark.cell import Cell
from peakmark.storage import integrity
from peakmark.storage.integrity import Finding

PART = 1000
"""Records that one process reads at a time."""


def survey(directory: Path, planned: Sequence[Cell]) -> dict[str, Finding]:
    """Cell id -> what is known of its record, for all cells of a plan. What findings say must not
    be changed: they share it.
    """
    folder = directory / "cells"
    if not folder.is_dir():
        return {cell.id: Finding(integrity.ABSENT) for cell in planned}
    parts = [planned[start : start + PART] for start in range(0, len(planned), PART)]
    return dict(zip((cell.id for cell in planned), _all(folder, parts), strict=True))


def _all(folder: Path, parts: Sequence[Sequence[Cell]]) -> Iterator[Finding]:
    look = functools.partial(_read, folder)
    workers = min(len(os.sched_getaffinity(0)), len(parts))
    # A process of several threads may leave its children locks that nobody opens: there one CPU
    # does it all.
    if workers < 2 or threading.active_count() > 1:
        for part in parts:
            yield from look(part)
        return
    with _kept(), ProcessPoolExecutor(workers, multiprocessing.get_context("fork"), _begin) as pool:
        for findings in pool.map(look, parts):
            yield from findings


@contextmanager
def _kept() -> Iterator[None]:
    """What is read meanwhile is there to stay: the search for garbage in it, again and again, took
    a fifth of the time.
    """
    searched = gc.isenabled()
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        if searched:
            gc.enable()


def _begin() -> None:
    # Ctrl-C reaches every process of the terminal: the first one says so and ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _read(folder: Path, part: Sequence[Cell]) -> list[Finding]:
    once = _Once()
    findings = (integrity.look(folder / f"{cell.id}.json", cell) for cell in part)
    return [
        replace(finding, data=once.of(finding.data)) if finding.data else finding
        for finding in findings
    ]


class _Once:
    """Gives for each text, list and object of JSON the first one that equals it, so that a pickle
    too holds it once.
    """

    def __init__(self) -> None:
        # Lists and objects by their bytes, which tell 1, 1.0 and true apart.
        self.known: dict[str | bytes, Any] = {}

    def of(self, value: Any) -> Any:
        kind = type(value)
        if kind is str:
            return self.known.setdefault(value, value)
        if kind is not dict and kind is not list:
            return value
        known, content = (
            self.known,
            marshal.dumps(value, 2),
        )  # later versions tell apart what equals
        if content not in known:
            if kind is dict:
                known[content] = {
                    known.setdefault(key, key): member
                    if type(member) in _NUMBERS
                    else self.of(member)
                    for key, member in value.items()
                }
            else:
                known[content] = list(map(self.of, value))
        return known[content]


_NUMBERS = frozenset((int, float, bool))  # which a pickle holds each time
