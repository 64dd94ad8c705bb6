"""IOZone, which reads and writes with O_DIRECT. One execution measures all four patterns (ALL).

- The files are written once, then overwritten. WS is the second pass (``rewrite``), because diskbench
  also overwrites files. RS is the first pass of reading.
- IOZone's kB is 1024 B.
- With several processes, IOZone sleeps for two seconds around each phase, and counts their work until
  the first process has finished. With one process it does not sleep.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from peakmark.cell import Cell
from peakmark.errors import ParseError, Unavailable
from peakmark.tools import common
from peakmark.tools.base import (
    Command,
    Completed,
    Cost,
    Coverage,
    Instrument,
    Measurement,
    Parsed,
    Tool,
    Workspace,
    first_line,
)
from peakmark.tools.common import Output
from peakmark.tools.programs.diskbench import file_size, sync_s

RECORD_MAX = 16 << 20
"""Largest record in bytes that IOZone accepts, unless it is compiled with another maximum."""
_KB = 1024
"""Bytes in IOZone's kB."""
_SLEEP_S = 2.0
"""Seconds that several processes of IOZone sleep before each phase, and again after it."""
_CAUTIOUS_THROUGHPUT = 150e6
"""Rate in B/s of a slow disk."""
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
"""Phase in the output of several processes -> column in the output of one process.

The phases are those of the options -i 0 -i 1 -i 2.
"""
_WRITING_PHASES = 3
"""Number of phases that write: write, rewrite and random write."""
_WORKLOADS = {
    "RS": ("read", "reread"),
    "WS": ("rewrite", "write"),
    "RR": ("random read", ""),
    "WR": ("random write", ""),
}
"""Workload -> its phase, and a phase for the details of the measurement.

The rate of the first phase is the measured value. The rate of the second one is kept in the
details; it is empty for workloads without a second phase.
"""
_CHILDREN = re.compile(
    r"^\tChildren see throughput for\s+([0-9]+)\s+(\S.*?)\s*=\s*(\S+)\s+([kK]B|ops)/sec\s*$"
    r"\n\t.*\n\tMin throughput per \w+\s*=\s*(\S+).*(?:\n\t.*){2}\n\tMin xfer\s*=\s*(\S+)",
    re.MULTILINE,
)
"""Result of one phase, the lowest rate of a process, and how much the process that did least moved.

Versions up to 3.420 print KB, later ones kB. Both mean 1024 bytes.
"""
_PARTIAL = "partial"
"""In place of the rate of a phase in which not all processes took part."""
# Headings of the table that one process prints, up to the end of their line.
_HEADER = re.compile(
    r"^\s+[kK]B\s+reclen\s+write\s+rewrite\s+read\s+reread\s+read\s+write\b.*\n", re.MULTILINE
)
_DIRECT = re.compile(r"O_DIRECT(?:IO)? feature enabled|VX_DIRECT enabled")
"""Output of option -I. Builds with DONT_HAVE_O_DIRECT accept the option and print nothing."""
_VERSION = r"Version \$Revision: ([0-9.]+) \$"


class Iozone(Instrument):
    """IOZone. One execution measures RS, WS, RR and WR of the disk, in the variant ``psync``.

    Values are in B/s. With the option ``ops`` they are in 1/s, with a latency derived from them.
    """

    name = "iozone"
    rows = (Coverage("disk", ("WS", "RS", "WR", "RR"), variants=("psync",), cell="ALL"),)
    heading = "IOZone"
    package = "iozone3"
    component = "non-free"
    spack = "iozone"
    build = (
        "curl -O https://www.iozone.org/src/current/iozone3_506.tar && tar xf iozone3_506.tar"
        " && make -C iozone3_506/src/current linux-AMD64"
    )
    version = ("-v", _VERSION)
    options = ("ops", "size")

    def check(self, cell: Cell) -> None:
        super().check(cell)
        record = common.needed_block(cell)
        common.need_multiple("IOZone", _KB, record)
        common.need_between(cell, "records", record, _KB, RECORD_MAX, in_bytes=True)
        file_size(cell, "processes")  # raises an error if a file would be too small

    def prepare(self, cell: Cell, tool: Tool, workspace: Workspace) -> Command:
        record, size = common.needed_block(cell), file_size(cell, "processes")
        common.need_sectors(record, workspace)
        # -I: O_DIRECT, -e: an fsync counts too, -o: O_SYNC, -O: operations per second instead of kB/s,
        # -i: the tests (0 writes and rewrites, 1 reads and rereads, 2 random accesses), -r and -s: sizes of record and
        # file, -f: file of one process, -t and -F: number of processes and their files.
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
        return self.command(cell, argv)

    def parse(self, cell: Cell, done: Completed) -> Parsed:
        text = done.stdout
        record = common.needed_block(cell)
        if not text.rstrip().endswith("iozone test complete."):
            raise ParseError(f"IOZone did not finish: {common.excerpt(done.stderr, text)}")
        # Check that the output has the cell's unit and record size, and that O_DIRECT was used. In operations, IOZone
        # announces ``OPS Mode``; otherwise it says that its output is in kBytes/sec.
        ops = in_ops(cell)
        says_ops, says_kb = "OPS Mode" in text, "output is in kbytes/sec" in text.lower()
        if says_ops != ops or says_kb == ops:
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
        # The output of one process is a table, that of several processes has a line for each phase.
        read = _single
        if cell.concurrency > 1:
            read = _several
        phases = read(text, cell)
        rows: list[Measurement] = []
        for workload in _WORKLOADS:
            rows += _rows(cell, workload, phases)
        if not rows:
            raise Unavailable(
                "IOZone stopped before all of its processes had moved data", "use larger files"
            )
        return Parsed(tuple(rows), common.found(_VERSION, text))

    def estimate(self, cell: Cell) -> Cost:
        size, record = file_size(cell, "processes"), common.needed_block(cell)
        total = size * cell.concurrency
        # A phase is bound by the rate of the disk, or by the requests of a process, which come one after the other. The
        # larger of the two times counts.
        slowest = max(total / _CAUTIOUS_THROUGHPUT, size / record * _CAUTIOUS_OPERATION_S)
        fixed_s = 0.5  # to start
        if cell.concurrency > 1:
            # Several processes wait for each other, before each phase and after it.
            fixed_s += 2 * _SLEEP_S * len(_PHASES)
        # Each process has a buffer for the largest record, plus 4 MiB for the rest.
        return Cost(
            fixed_s=fixed_s,
            work_s=len(_PHASES) * slowest,
            waits_s=sync_s(cell, _WRITING_PHASES * total),
            memory_bytes=cell.concurrency * (RECORD_MAX + (4 << 20)),
            disk_bytes=total,
        )


def in_ops(cell: Cell) -> bool:
    """Return whether the cell measures operations per second."""
    return bool(cell.options.get("ops"))


def _single(text: str, cell: Cell) -> Output:
    """Parse the table that a run with one process prints, and return column -> value as text.

    Raises:
        ParseError: the table has other columns or sizes than those of the cell.
    """
    header = _HEADER.search(text)
    if header is None:
        raise ParseError("IOZone's table lacks the columns of -i 0 -i 1 -i 2")
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
    """Parse the output of a run with several processes into column of ``_single`` -> value as text.

    The values are those of the lines ``Children see throughput``. A phase is ``_PARTIAL`` if a process moved
    nothing: IOZone stops all processes when the first one ends, which with tiny files is the only one that ran. It
    is also partial if the sum of the rates is less than each process's lowest rate allows.

    Raises:
        ParseError: a line has another number of processes or another unit than the cell, or an
            unknown phase.
    """
    phases = Output("IOZone", {})
    wanted = (str(cell.concurrency), "kB")
    if in_ops(cell):
        wanted = (str(cell.concurrency), "ops")
    for count, phase, value, unit, lowest, least in _CHILDREN.findall(text):
        # Versions up to 3.420 print KB.
        if (count, unit.replace("K", "k")) != wanted or phase not in _PHASES:
            raise ParseError(
                f"IOZone: the cell is not for phase {phase!r} of {count} processes in {unit}/sec"
            )
        name = _PHASES[phase]
        rates = Output("IOZone", {name: value, "lowest": lowest})
        # A process that moved nothing has no rate.
        is_whole = least.strip("0.") and (
            int(count) * rates.number("lowest") < 1.001 * rates.number(name)
        )
        phases[name] = value if is_whole else _PARTIAL
    return phases


def _rows(cell: Cell, workload: str, phases: Output) -> Iterator[Measurement]:
    """Yield the measurements of one workload: its throughput, or its IOPS and latency if the cell measures ops."""
    # The rate of ``phase`` is the value. That of ``other``, which may be empty, is kept in the details.
    phase, other = _WORKLOADS[workload]
    details: dict[str, object] = {"file_bytes": file_size(cell, "processes")}
    if workload.startswith("W"):
        details["sync"] = cell.options.get("sync", "end")
        details["fill"] = "overwrite"
        if workload == "WS" and cell.options.get("fill") == "new":
            # The first pass writes new files, so its rate is the value.
            phase, other = other, phase
            details["fill"] = "new"
    if phases.get(phase) == _PARTIAL:
        return
    details["phase"] = phase
    scale = 1 if in_ops(cell) else _KB  # rates are in operations/s or kB/s
    if other and phases.get(other) != _PARTIAL:
        details[other] = phases.number(other) * scale
    value = phases.number(phase) * scale
    if not in_ops(cell):
        yield Measurement.of(cell, "throughput", value, details, workload)
        return
    yield Measurement.of(cell, "iops", value, details, workload)
    # Each process has one request in flight, so each request takes concurrency / iops.
    derived = {**details, "derived": True, "formula": "concurrency / iops"}
    yield Measurement.of(cell, "latency", cell.concurrency / value, derived, workload)


INSTRUMENT = Iozone()
