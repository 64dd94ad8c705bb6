"""What tests of hostile files and words share."""

import copy
import json
import shutil
import signal
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.unit import campaign_data as make

from peakmark import files
from peakmark.cell import Cell
from peakmark.errors import PeakmarkError
from peakmark.storage import records

KERNELS = Path(__file__).resolve().parents[2] / "build" / "kernels"
OPTIONS = {"seconds": 0.02, "warmup": 0.0, "seed": 1, "isa": "auto"}
CELL = Cell("cpu", "cpubench", "SP", "", None, 1, "any", 0, OPTIONS)
LIMIT_S = 60
SECONDS = 20.0
"""Of CPU: far above what reading any file takes, far below the minute and more that an anchor bomb
took.
"""


@dataclass
class Said:
    """How a command ended and what it printed."""

    returncode: int
    stdout: str
    stderr: str


def change(path, **values):
    """Change keys of a JSON file, and those of a mapping in it one by one."""
    content = json.loads(path.read_text())
    for key, value in values.items():
        both = isinstance(value, dict) and isinstance(content.get(key), dict)
        content[key] = {**content[key], **value} if both else value
    path.write_text(json.dumps(content))


def stored(folder, of=CELL, **changes):
    """A sealed record of ``of``, changed before it was sealed."""
    path = folder / "cells" / f"{of.id}.json"
    measured = make.measurement(of, "rate", 4e9) | changes.pop("measured", {})
    record = (
        make.record(of, [measured], context=changes.pop("context", None)) | {"raw": {}} | changes
    )
    files.write_text(path, records.text_of(record))
    return path


def copied(small, tmp_path, name="before"):
    return Path(shutil.copytree(small, tmp_path / "results" / name))


def refused(said, *words):
    """One sentence for people."""
    assert said.strip() and "\n" not in said.strip()
    for word in words:
        assert word in said, said
    for ugly in ("Traceback", "Error(", "<class", "NoneType", "\\Z"):
        assert ugly not in said, said


def refuses(check, *words):
    """A check that ends in one sentence with these words."""
    with pytest.raises(PeakmarkError) as caught:
        check()
    refused(str(caught.value), *words)


@contextmanager
def in_time():
    """What takes this long is a failure, however busy the machine is: a hang, or an anchor bomb."""

    def fail(*_):
        raise AssertionError(f"it took {SECONDS} s of CPU")

    before = signal.signal(signal.SIGVTALRM, fail)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def one_grid(subsystem, **grid):
    """A configuration of one grid, which the keys given change."""
    blocks = {"memory": ["64KiB"], "disk": ["4KiB"], "network": ["1KiB"]}
    first = {"cpu": "DP", "memory": "RWS", "disk": "RR", "network": "TCP"}[subsystem]
    base = {"workloads": [first], "concurrency": [1]}
    if subsystem in blocks:
        base["blocks"] = blocks[subsystem]
    return {subsystem: [{**base, **grid}], "tools_on": "nodes"}


def places(value, path=()):
    """The paths of all that is in a JSON value."""
    if path:
        yield path
    keyed = value if isinstance(value, dict) else {}
    for key, inner in (*keyed.items(), *enumerate(value if isinstance(value, list) else ())):
        yield from places(inner, (*path, key))


VALUES = (
    None, True, False, -1, 0, 1, 2**63, 10**20, 1e30, -1e30, 1e21, 1e-15, 1e-99, 0.5, "", " ", "x", "never", "1e400", "nan", "0x10",
    "1KiB", "1.5B", "999999999TiB", "1_000", "\0", "a\0b", "\033[2Jx", "a\nb", "a'b", 'a"b', ";id", "../../precious", "/etc/passwd",
    "../../../../../../etc", "-rf", "--help", "$(id)", "`id`", "{x}", "é½٣東", "x" * 5000, "x" * 300, "any", "2026-99-99T00:00:00",
    [], [None], [1, [2]], {}, {"": None}, {"nope": 1}, {"a": {"nope": 1}}, [{}], [[[[]]]], "precious/thesis.pdf",
    {"seconds": 1, "blocks": [], "total": "x", "size": -1},
)  # fmt: skip
EXTREMES = (
    10**400, -(10**400), 1e300, -1e300, 1e308, 1e-300, 5e-324, float("nan"), float("inf"),
)  # fmt: skip
"""Which nothing that is read may hold, so that few inputs have one."""


def any_value(chance):
    """A value that few expect."""
    return copy.deepcopy(chance.choice(EXTREMES if chance.random() < 0.1 else VALUES))


def changed(value, chance, times=1):
    """A copy in which some values are replaced, removed, named otherwise, or stand twice."""
    copied = copy.deepcopy(value)
    for _ in range(times):
        known = list(places(copied))
        if not known:
            return any_value(chance)
        *path, last = chance.choice(known)
        inner = copied
        for step in path:
            inner = inner[step]
        way = chance.random()
        if way < 0.1:
            del inner[last]
        elif way < 0.2 and isinstance(inner, dict):
            name = chance.choice([word for word in VALUES if isinstance(word, str)])
            inner[name] = inner.pop(last)
        elif way < 0.25 and isinstance(inner, list):
            inner.append(copy.deepcopy(inner[last]))
        else:
            inner[last] = any_value(chance)
    return copied
