"""IOZone: sequential and random reads and writes with O_DIRECT, all four patterns in one execution
(workload ALL).

The files are written once, then overwritten. WS is the second pass (``rewrite``), because diskbench
too overwrites files. RS is the first pass of reading. IOZone's kB is 1024 B. With several processes it
sleeps two seconds around each phase, and it counts their work until the first of them is done. A
single process does not sleep.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from peakmark.cell import Cell
from peakmark.errors import ParseError, Unavailable
from peakmark.formatting import format_size
from peakmark.tools import base, common
from peakmark.tools.base import (
    Completed,
    Cost,
    Coverage,
    Instrument,
    Invocation,
    Measurement,
    Parsed,
    Tool,
    Workspace,
    first_line,
)
from peakmark.tools.common import Output
from peakmark.tools.programs.diskbench import file_size, sync_s

USUAL_LARGEST = 16 << 20
"""Largest record, in bytes, of the builds of distributions. It is assumed where the measuring build
cannot be asked.
"""
TOO_LARGE = 23
"""Exit code for a record larger than the build takes."""
_KB = 1024
"""Bytes of IOZone's kB."""
_SLEEPS_S = 20.0
"""Seconds of the sleeps of several processes: six phases with two of 2 s each, most of them shared."""
_CAUTIOUS_THROUGHPUT = 150e6
"""B/s at which a slow disk moves data."""
_CAUTIOUS_OPERATION_S = 200e-6
"""Seconds of one request of a process on a slow disk."""

_PHASES = {
    "initial writers": "write",
    "rewriters": "rewrite",
    "readers": "read",
    "re-readers": "reread",
    "random readers": "random read",
    "random writers": "random write",
}
"""Phases with several processes -> the columns with one, for -i 0 -i 1 -i 2."""
_WRITING = 3
"""Number of phases that write."""
_WORKLOADS = {
    "RS": ("read", "reread"),
    "WS": ("rewrite", "write"),
    "RR": ("random read", ""),
    "WR": ("random write", ""),
}
"""Workload -> the phase of its value, and a phase that its details keep."""
_CHILDREN = re.compile(
    r"^\tChildren see throughput for\s+([0-9]+)\s+(\S.*?)\s*=\s*(\S+)\s+([kK]B|ops)/sec\s*$",
    re.MULTILINE,
)
"""Result of one phase. Versions up to 3.420 write KB, later ones kB: both mean 1024 bytes."""
_HEADER = re.compile(
    r"^\s+[kK]B\s+reclen\s+write\s+rewrite\s+read\s+reread\s+read\s+write\b.*\n", re.MULTILINE
)
_DIRECT = re.compile(r"O_DIRECT(?:IO)? feature enabled|VX_DIRECT enabled")
"""Output of option -I. Builds with DONT_HAVE_O_DIRECT accept the option and print nothing."""
_VERSION = r"Version \$Revision: ([0-9.]+) \$"


class Iozone(Instrument):
    """disk ALL (RS WS RR WR) in B/s; with the option ``ops`` 1/s and a latency derived from it.
    Variant ``psync``.
    """

    name = "iozone"
    rows = (Coverage("disk", ("WS", "RS", "WR", "RR"), variants=("psync",), cell="ALL"),)
    heading = "IOZone"
    package = "iozone3"
    component = "non-free"
    opensuse = "iozone"
    spack = "iozone"
    build = (
        "curl -O https://www.iozone.org/src/current/iozone3_506.tar && tar xf iozone3_506.tar"
        " && make -C iozone3_506/src/current linux-AMD64"
    )
    homes = ("https://www.iozone.org/",)
    version = ("-v", _VERSION)
    options = ("ops", "size")
    instead = "fio"

    def largest(self, path: str) -> int:
        """Return the bytes of the largest record that this build takes.

        It is asked for one of 1 GiB with ``-h``, so that it measures nothing. Raise Unavailable
        when it cannot be executed.
        """
        answer = base.ask(path, "-r", "1g", "-h")
        default = USUAL_LARGEST
        if "Usage: iozone" in answer:  # it accepted 1 GiB
            default = 1 << 30
        return _largest(answer) or default

    def check(self, cell: Cell) -> None:
        super().check(cell)
        record = common.needed_block(cell)
        common.need_multiple("IOZone", _KB, record)
        file_size(cell, "processes")

    def prepare(self, cell: Cell, tool: Tool, workspace: Workspace) -> Invocation:
        record, size = common.needed_block(cell), file_size(cell, "processes")
        common.need_sectors(record, workspace)
        words = "-I -e"
        if cell.options.get("sync") == "each":
            words += " -o"
        if in_ops(cell):
            words += " -O"
        words += f" -i 0 -i 1 -i 2 -r {record // _KB}k -s {size // _KB}k"
        if cell.concurrency == 1:
            words += " -f"
        else:
            words += f" -t {cell.concurrency} -F"
        files = [f"iozone.{number}" for number in range(cell.concurrency)]
        argv = [tool.path, *words.split(), *files]
        return Invocation(self.command(cell, argv, ok_codes=(0, TOO_LARGE)))

    def parse(self, cell: Cell, done: Completed) -> Parsed:
        text, record = done.stdout, common.needed_block(cell)
        largest = _largest(text)
        if largest is not None and record > largest:
            raise Unavailable(
                f"the largest record of this build of IOZone is {format_size(largest)},"
                f" the cell's is {format_size(record)}"
            )
        if not text.rstrip().endswith("iozone test complete."):
            raise ParseError(f"IOZone did not come to its end: {common.excerpt(done.stderr, text)}")
        ops = in_ops(cell)
        if ("OPS Mode" in text) != ops or ("output is in kbytes/sec" in text.lower()) == ops:
            unit = "kB"
            if ops:
                unit = "operations"
            raise ParseError(f"IOZone's output is not in {unit} per second")
        if not re.search(rf"^\tRecord Size {record // _KB} [kK]B$", text, re.MULTILINE):
            raise ParseError("IOZone did not use the cell's record size")
        if not _DIRECT.search(text):
            raise Unavailable(
                "this build of IOZone cannot write past the page cache: it was compiled without"
                " O_DIRECT, and its values would be those of memory",
                "compile it with a target that has O_DIRECT, as linux-AMD64 or linux-arm, or use fio",
            )
        read = _single
        if cell.concurrency > 1:
            read = _several
        phases = read(text, cell)
        rows: list[Measurement] = []
        for workload in _WORKLOADS:
            rows += _rows(cell, workload, phases)
        return Parsed(tuple(rows), common.found(_VERSION, text))

    def estimate(self, cell: Cell) -> Cost:
        size, record = file_size(cell, "processes"), common.needed_block(cell)
        total = size * cell.concurrency
        slowest = max(total / _CAUTIOUS_THROUGHPUT, size / record * _CAUTIOUS_OPERATION_S)
        fixed_s = 0.5
        if cell.concurrency > 1:
            fixed_s += _SLEEPS_S
        return Cost(
            fixed_s=fixed_s,
            work_s=len(_PHASES) * slowest,
            waits_s=sync_s(cell, _WRITING * total),
            memory_bytes=cell.concurrency * (max(record, USUAL_LARGEST) + (4 << 20)),
            disk_bytes=total,
        )


def _largest(text: str) -> int | None:
    """Return the largest record, in bytes, that IOZone names when it refuses one; None otherwise."""
    refused = r"record size \d+ [kK]B is greater than maximum buffer size (\d+) [kK]B"
    largest = common.found(refused, text)
    return int(largest) * _KB if largest else None


def in_ops(cell: Cell) -> bool:
    """Return whether the cell measures operations per second."""
    return bool(cell.options.get("ops"))


def _single(text: str, cell: Cell) -> Output:
    """Return the table row with one process by column. The table's header spans two lines."""
    header = _HEADER.search(text)
    if header is None:
        raise ParseError("IOZone's table has not the columns of -i 0 -i 1 -i 2")
    columns = ("size", "record", *_PHASES.values())
    values = first_line(text[header.end() :]).split()
    if len(values) != len(columns):
        raise ParseError(f"IOZone's table row holds {len(values)} numbers, not {len(columns)}")
    row = Output("IOZone", dict(zip(columns, values, strict=True)))
    row.expect(
        {"size": str(file_size(cell, "processes") // _KB), "record": str((cell.block or 0) // _KB)}
    )
    return row


def _several(text: str, cell: Cell) -> Output:
    """Return the ``Children see throughput`` value of each phase."""
    phases = Output("IOZone", {})
    wanted = (str(cell.concurrency), "kB")
    if in_ops(cell):
        wanted = (str(cell.concurrency), "ops")
    for count, phase, value, unit in _CHILDREN.findall(text):
        if (count, unit.replace("K", "k")) != wanted or phase not in _PHASES:
            raise ParseError(
                f"IOZone: the cell is not for phase {phase!r} of {count} processes in {unit}/sec"
            )
        phases[_PHASES[phase]] = value
    return phases


def _rows(cell: Cell, workload: str, phases: Output) -> Iterator[Measurement]:
    """Yield the measurements of one workload."""
    phase, other = _WORKLOADS[workload]
    details: dict[str, object] = {"file_bytes": file_size(cell, "processes")}
    if workload.startswith("W"):
        details["sync"] = cell.options.get("sync", "end")
        details["fill"] = "overwrite"
        if workload == "WS" and cell.options.get("fill") == "new":
            phase, other = other, phase
            details["fill"] = "new"
    details["phase"] = phase
    scale = 1 if in_ops(cell) else _KB
    if other:
        details[other] = phases.number(other) * scale
    value = phases.number(phase) * scale
    if not in_ops(cell):
        yield Measurement.of(cell, "throughput", value, details, workload)
        return
    yield Measurement.of(cell, "iops", value, details, workload)
    # One request in flight per process: a process waits concurrency / iops for each.
    derived = {**details, "derived": True, "formula": "concurrency / iops"}
    yield Measurement.of(cell, "latency", cell.concurrency / value, derived, workload)


INSTRUMENT = Iozone()
