"""The triad of STREAM in the output of hpcc, which runs STREAM before HPL.

hpcc runs it on one process while the others wait (Single), and on all processes at once (Star), which it
reports as the mean of a process. It counts 24 bytes for each element, and reports the best of nine passes
over its vectors. Its C code has ordinary stores. The size of the vectors follows from HPL's matrix.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from peakmark.catalogue import SUBSYSTEMS
from peakmark.tools.base import ByProduct, Measurement
from peakmark.tools.common import Output

STREAM = ByProduct("hpcc-stream", "STREAM (hpcc)", "memory", "TRIAD")
VARIANT = "pool-temporal"
"""Variant of the rows that show STREAM: STREAM uses ordinary stores, and so does this variant."""
ELEMENT = 24
"""Bytes that STREAM counts for an element of the triad: two loads and a store of 8 bytes each."""
_MOST_RATE = 1e16
"""Rate in B/s that no memory of a node reaches."""
_MOST_COUNT = 1 << 48
"""Number of processes, threads or elements that no node can have."""


def triads(text: str) -> list[Measurement]:
    """Return the triads in ``hpccoutf.txt``: of one process, and of all if there are several.

    A triad is left out if hpcc did not measure it, found errors in its result, or printed a number that
    is not possible. HPL's result, which has checks of its own, remains valid then.
    """
    summary = Output("hpcc", dict(re.findall(r"^(\w+)=(\S+)[ \t]*$", text, re.MULTILINE)))
    processes = _count(summary, "CommWorldProcs")
    threads = _count(summary, "STREAM_Threads")
    elements = _count(summary, "STREAM_VectorSize")
    if not (processes and threads and elements):
        return []
    tests = {"SingleSTREAM": 1}
    if processes > 1:
        tests["StarSTREAM"] = processes
    return list(_rows(text, summary, tests, threads, elements))


def _rows(
    text: str, summary: Output, tests: dict[str, int], threads: int, elements: int
) -> Iterator[Measurement]:
    """Yield the triad of each test that has a valid one.

    Args:
        text: the whole output.
        summary: the values of its last section.
        tests: name of a test -> number of processes that run at once.
        threads: threads of a process.
        elements: length of a process's vectors.
    """
    unit = SUBSYSTEMS[STREAM.subsystem].units["throughput"]
    for test, processes in tests.items():
        rate = summary.number_or_none(f"{test}_Triad")
        if not rate or not _is_valid(text, test):
            continue
        value = rate * 1e9 * processes
        if value > _MOST_RATE:
            continue
        details = {"store": "temporal", "test": test, "working_set_bytes": ELEMENT * elements}
        row = (STREAM.workload, VARIANT, None, processes * threads, "throughput")
        yield Measurement(*row, value, unit, details)


def _count(summary: Output, name: str) -> int | None:
    """Return a positive whole number of the summary, None if it is missing or not possible."""
    value = summary.number_or_none(name)
    if not value or value != int(value) or value > _MOST_COUNT:
        return None
    return int(value)


def _is_valid(text: str, test: str) -> bool:
    """Return whether the section of a test is complete and reports no errors."""
    section = re.search(
        rf"^Begin of {test} section\.$(.*?)^End of ", text, re.DOTALL | re.MULTILINE
    )
    if section is None:
        return False
    return re.search(r"^Node\(s\) with error 0$", section[1], re.MULTILINE) is not None
