"""IOZone: sequential and random reads and writes with O_DIRECT, all four patterns in one execution
(workload ALL).

The files are written once, then over-written: WS is the second pass (``rewrite``), because
diskbench too writes files that are there. RS is the first pass of reading. IOZone's kB is 1024 B.
With several processes it sleeps two seconds around each phase and reports what its children did
until the first of them was done; a single process does not sleep.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from peakmark.cell import Cell
from peakmark.errors import ConfigError, ParseError
from peakmark.reasons import Unavailable
from peakmark.tools import common
from peakmark.tools.base import (
    Completed,
    Cost,
    Coverage,
    Invocation,
    Measurement,
    Parsed,
    Tool,
    Workspace,
)
from peakmark.tools.programs.diskbench import file_size, sync_s

USUAL_LARGEST = 16 << 20
"""Largest record of builds as distributions carry them, taken where the build that will measure
cannot be asked.
"""
TOO_LARGE = 23  # exit code
_KB = 1024
_SLEEPS_S = 20.0  # six phases with two sleeps of 2 s each, most of them shared
_PASSES, _WRITING = 6, 3  # phases, and those of them that write
_CAUTIOUS_THROUGHPUT = 150e6
_CAUTIOUS_OPERATION_S = 200e-6

# Columns of the single-file table for -i 0 -i 1 -i 2, and the phases of throughput mode, by the
# same names.
_COLUMNS = ("write", "rewrite", "read", "reread", "random read", "random write")
_PHASES = {
    "initial writers": "write",
    "rewriters": "rewrite",
    "readers": "read",
    "re-readers": "reread",
    "random readers": "random read",
    "random writers": "random write",
}
# workload -> (phase it is read from, phase kept beside it)
_WORKLOADS = {
    "RS": ("read", "reread"),
    "WS": ("rewrite", "write"),
    "RR": ("random read", None),
    "WR": ("random write", None),
}
_CHILDREN = re.compile(
    r"^\tChildren see throughput for\s+([0-9]+)\s+(\S.*?)\s*=\s*(\S+)\s+(kB|ops)/sec\s*$",
    re.MULTILINE,
)
_HEADER = re.compile(
    r"^\s+kB\s+reclen\s+write\s+rewrite\s+read\s+reread\s+read\s+write\b", re.MULTILINE
)


class Iozone(common.Instrument):
    """disk ALL (RS WS RR WR) in B/s; with the option ``ops`` 1/s and a latency derived from it.
    Variant ``psync``.
    """

    name = "iozone"
    workloads: ClassVar[Mapping[str, tuple[str, ...]]] = {"disk": ("ALL",)}
    executables = ("iozone",)
    package = "iozone3"
    heading = "IOZone"
    rows = (Coverage("disk", ("WS", "RS", "WR", "RR"), variants=("psync",), cell="ALL"),)
    options = ("ops", "size")
    instead = "fio"
    columns: ClassVar[Mapping[str, int]] = {"disk_throughput": 1, "disk_latency": 1, "disk_iops": 1}
    homes: ClassVar[Mapping[str, str]] = {"iozone": "https://www.iozone.org/"}
    component = "non-free"
    version = ("-v", r"Version \$Revision: ([0-9.]+) \$")
    variants = ("psync",)

    def largest(self, path: str) -> int:
        """Bytes of the largest record that this build takes: what it says of one of 1 GiB, with
        ``-h``, so that nothing is measured. Errors: Unavailable when it cannot be executed.
        """
        answer = common.ask(path, "-r", "1g", "-h")
        return _largest(answer) or (1 << 30 if "Usage: iozone" in answer else USUAL_LARGEST)

    def check(self, cell: Cell) -> None:
        super().check(cell)
        record = common.needed_block(cell)
        if record % _KB:
            raise Unavailable("lines", program="IOZone", line=_KB, block=record)
        file_size(cell, "processes")

    def prepare(self, cell: Cell, tool: Tool, workspace: Workspace) -> Invocation:
        self.check(cell)
        record = common.needed_block(cell)
        common.need_sectors(record, workspace)
        size = file_size(cell, "processes")
        argv = [tool.path, "-I", "-e"]
        argv += ["-o"] if cell.options.get("sync") == "each" else []
        argv += ["-O"] if in_ops(cell) else []
        argv += ["-i", "0", "-i", "1", "-i", "2"]
        argv += ["-r", f"{record // _KB}k", "-s", f"{size // _KB}k"]
        names = [f"iozone.{i}" for i in range(cell.concurrency)]
        argv += (
            ["-f", *names] if cell.concurrency == 1 else ["-t", str(cell.concurrency), "-F", *names]
        )
        return Invocation(self.command(cell, argv, ok_codes=(0, TOO_LARGE)))

    def parse(self, cell: Cell, done: Completed) -> Parsed:
        text = done.stdout
        largest, record = _largest(text), common.needed_block(cell)
        if largest is not None and record > largest:
            raise Unavailable(
                "largest-record", program="this build of IOZone", largest=largest, record=record
            )
        if not text.rstrip().endswith("iozone test complete."):
            raise ParseError(f"IOZone did not come to its end: {common.excerpt(done.stderr, text)}")
        ops = in_ops(cell)
        if ("OPS Mode" in text) != ops or ("Output is in kBytes/sec" in text) == ops:
            raise ParseError(
                f"IOZone's output is not in {'operations' if ops else 'kB'} per second"
            )
        match = re.search(r"^\tRecord Size ([0-9]+) kB$", text, re.MULTILINE)
        if match is None or int(match.group(1)) * _KB != common.needed_block(cell):
            raise ParseError("IOZone did not use the cell's record size")
        phases = (
            _throughput_mode(text, cell.concurrency, ops)
            if cell.concurrency > 1
            else _table(text, cell)
        )
        version = re.search(r"Version \$Revision: ([0-9.]+) \$", text)
        rows = [row for workload in _WORKLOADS for row in _rows(cell, workload, phases, ops)]
        return Parsed(measurements=tuple(rows), version=version.group(1) if version else None)

    def estimate(self, cell: Cell) -> Cost:
        size, record = file_size(cell, "processes"), common.needed_block(cell)
        total = size * cell.concurrency
        seconds = _PASSES * max(total / _CAUTIOUS_THROUGHPUT, size / record * _CAUTIOUS_OPERATION_S)
        waits = sync_s(cell, _WRITING * total)
        fixed = 0.5 + (_SLEEPS_S if cell.concurrency > 1 else 0.0)
        memory = cell.concurrency * (max(record, USUAL_LARGEST) + (4 << 20))
        seconds += fixed + waits
        return Cost(
            seconds=seconds, disk_bytes=total, memory_bytes=memory, fixed_s=fixed, waits_s=waits
        )


def _largest(text: str) -> int | None:
    """The largest record that IOZone names when it refuses one, in bytes."""
    refused = re.search(r"record size \d+ kB is greater than maximum buffer size (\d+) kB", text)
    return int(refused.group(1)) * _KB if refused else None


def in_ops(cell: Cell) -> bool:
    """Whether operations per second are measured. Errors: ConfigError when the option is no truth
    value.
    """
    value = cell.options.get("ops")
    if value is not None and not isinstance(value, bool):
        raise ConfigError(f"cell {cell.id}: option ops={value!r} is not allowed, use true or false")
    return bool(value)


def _table(text: str, cell: Cell) -> dict[str, float]:
    """The row of single-file mode by column. Its header spans two lines; -i 0 -i 1 -i 2 fill the
    first six columns.
    """
    header = _HEADER.search(text)
    if header is None:
        raise ParseError("IOZone's table has not the columns of -i 0 -i 1 -i 2")
    after = text[text.index("\n", header.start()) :].strip("\n")
    cells = common.first_line(after).split()
    if len(cells) != 2 + len(_COLUMNS):
        raise ParseError(f"IOZone's table row holds {len(cells)} numbers, not {2 + len(_COLUMNS)}")
    if [common.whole(text, "IOZone: size") * _KB for text in cells[:2]] != [
        file_size(cell, "processes"),
        cell.block,
    ]:
        raise ParseError("IOZone's table row is for another size or record than the cell's")
    return {
        name: common.number(text, f"IOZone: {name}")
        for name, text in zip(_COLUMNS, cells[2:], strict=True)
    }


def _throughput_mode(text: str, processes: int, ops: bool) -> dict[str, float]:
    """``Children see throughput`` of each phase."""
    phases: dict[str, float] = {}
    for count, phase, value, unit in _CHILDREN.findall(text):
        if int(count) != processes or (unit == "ops") != ops or phase not in _PHASES:
            raise ParseError(
                f"IOZone: phase {phase!r} of {count} processes in {unit}/sec was not asked for"
            )
        phases[_PHASES[phase]] = common.number(value, f"IOZone: {phase}")
    missing = [name for name in _COLUMNS if name not in phases]
    if missing:
        raise ParseError(f"IOZone: no result for {', '.join(missing)}")
    return phases


def _rows(cell: Cell, workload: str, phases: dict[str, float], ops: bool) -> list[Measurement]:
    phase, beside = _WORKLOADS[workload]
    written = {}
    if workload.startswith("W"):
        new = workload == "WS" and cell.options.get("fill") == "new"
        phase, beside = (beside, phase) if new and beside else (phase, beside)
        written = {"sync": cell.options.get("sync", "end"), "fill": "new" if new else "overwrite"}
    scale = 1 if ops else _KB
    details: dict[str, Any] = {
        "phase": phase,
        **written,
        "file_bytes": file_size(cell, "processes"),
    }
    if beside is not None:
        details[beside] = phases[beside] * scale

    def row(metric: str, value: float, unit: str, extra: dict[str, Any]) -> Measurement:
        return Measurement.of(cell, metric, value, unit, {**details, **extra}, workload)

    if not ops:
        return [row("throughput", phases[phase] * scale, "B/s", {})]
    # One request in flight per process: a process waits concurrency / iops for each.
    derived = {"derived": True, "formula": "concurrency / iops"}
    return [
        row("iops", phases[phase], "1/s", {}),
        row("latency", cell.concurrency / phases[phase], "s", derived),
    ]


INSTRUMENT = Iozone()
