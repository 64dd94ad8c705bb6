"""pmbw, the parallel memory bandwidth benchmark.

pmbw is the closest reference tool for repeated access to a block, and for dependent loads. It divides an
area among the threads and scans the area repeatedly, with sequential reads or writes. It has no copies
and no random blocks. Each routine runs for 1 to 1.5 s, whatever ``seconds`` the cell sets.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from peakmark.catalogue import POOLS
from peakmark.cell import Cell
from peakmark.errors import ParseError, Unavailable
from peakmark.formatting import format_size, parse_size, plural
from peakmark.tools import base, common
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
)
from peakmark.tools.common import Output
from peakmark.tools.programs.rambench import block_of, pool_of, store_of

STATS = "pmbw.txt"
"""File into which pmbw writes its results."""
_AREAS = """
1KiB 2KiB 3KiB 4KiB 6KiB 8KiB 12KiB 16KiB 20KiB 24KiB 28KiB 32KiB 40KiB 48KiB 64KiB
96KiB 128KiB 192KiB 256KiB 384KiB 512KiB 768KiB 1MiB 1.25MiB 1.5MiB 1.75MiB 2MiB
2.25MiB 2.5MiB 2.75MiB 3MiB 4MiB 5MiB 6MiB 7MiB 8MiB 9MiB 10MiB 12MiB 14MiB 16MiB
20MiB 24MiB 28MiB 32MiB 40MiB 48MiB 56MiB 64MiB 128MiB 256MiB 512MiB 1GiB 2GiB 4GiB
8GiB 16GiB 32GiB 64GiB 128GiB 256GiB 512GiB 1TiB
"""
AREAS = frozenset(map(parse_size, _AREAS.split()))
"""The only sizes of the area, in bytes, that pmbw measures (version 0.6.3)."""
_SPACING = (4 << 20) + (16 << 10)
"""Smallest distance in bytes between the parts of two threads in the area."""
_STRIDE = 512
"""A thread's part is a multiple of this number of bytes: the widest unrolled loop has 16 accesses of
32 B.
"""
_START_S = 0.2
"""Seconds that pmbw takes to start."""
_FILL_RATE = 2e9
"""Rate in B/s at which one thread fills the memory on a slow machine."""
_SECONDS_PER_ROUTINE = 2.0
"""Seconds that pmbw spends on a routine: a trial run, then the measured run of 1 to 1.5 s."""

# Kinds of routines: how the names of their routines begin. CHASE is a single routine.
READ, WRITE, CHASE = "ScanRead", "ScanWrite", "PermRead64SimpleLoop"
_POINTER = 8
"""Bytes that a load of CHASE reads: the address of the next load."""
# Workload -> the kinds of routines from whose results its value is computed.
_KINDS = {"RS": (READ,), "WS": (WRITE,), "RWS": (READ, WRITE), "LAT": (CHASE,)}
# Formula of RWS in the details. ``read`` and ``write`` are the rates of the two kinds.
_ESTIMATE = "2 / (1 / read + 1 / write): pmbw has no copy; loads and stores are taken not to overlap, so this is no limit"


class Pmbw(Instrument):
    """pmbw. It measures RS and WS of the memory in blocks and pools, and LAT.

    RWS is an estimate from the rates of reading and writing. pmbw writes through the caches, so it
    does not measure rows for which peakmark's kernel uses streaming stores. If the kernel writes with the
    C library, its stores may be of either kind. Therefore the details state the kind of pmbw's stores.
    """

    name = "pmbw"
    rows = (
        Coverage("memory", ("RS", "WS", "RWS"), variants=("block", *POOLS)),
        Coverage("memory", ("LAT",)),
    )
    build = "git clone https://github.com/bingmann/pmbw && cd pmbw && ./configure && make && sudo make install"

    def find(self, path: str) -> Tool:
        """Return pmbw, after a check of its help text. pmbw prints its version only with results."""
        if "-f <match>" not in base.ask(path, "-h"):
            raise Unavailable(f"{path} does not look like pmbw: its help has no -f <match>")
        return Tool(self.name, path, "unknown")

    def check(self, cell: Cell) -> None:
        super().check(cell)
        area = area_of(cell)
        if area not in AREAS:
            raise Unavailable(
                f"pmbw measures a fixed list of array sizes, and {format_size(area)} in all for"
                f" {plural(cell.concurrency, 'thread')} is not among them",
                "use a power of two of blocks and threads",
            )

    def prepare(self, cell: Cell, tool: Tool, workspace: Workspace) -> Command:
        area, threads = area_of(cell), cell.concurrency
        memory = memory_for(area, threads)
        common.need_memory(self.name, memory, workspace)
        # ``-f list`` prints the names of all routines.
        offered = base.ask(tool.path, "-f", "list").split()
        # -M: memory, -p and -P: smallest and largest number of threads, -s and -S: smallest and largest area.
        words = f"-M {memory + 1} -p {threads} -P {threads} -s {area} -S {area}"
        for kind in needs(cell):
            words += "".join(f" -f {routine}" for routine in widest(kind, offered))
        words += f" -o {STATS}"
        argv = [*common.pinned(workspace, threads), tool.path, *words.split()]
        return self.command(cell, argv, outputs=(STATS,))

    def parse(self, cell: Cell, done: Completed) -> Parsed:
        if STATS not in done.files:
            raise ParseError(
                f"pmbw wrote no {STATS}: it silently skips sizes that do not fit its memory (-M)"
            )
        # In argv, the name of each routine follows an option -f.
        pairs = zip(done.argv, done.argv[1:], strict=False)
        wanted = {routine for option, routine in pairs if option == "-f"}
        results = read_results(done.files[STATS])
        missing = sorted(wanted - results.keys())
        if missing:
            raise ParseError(f"pmbw: no result of {', '.join(missing)} in {STATS}")
        # Check that each routine ran with the cell's threads and size.
        for name, result in results.items():
            size = (result.whole("nthreads"), result.whole("areasize"))
            if size != (cell.concurrency, area_of(cell)):
                raise ParseError(
                    f"pmbw: {name} ran another size or number of threads than the cell's"
                )
        row = _row(cell, {name: results[name] for name in sorted(wanted)})
        # Every result has the version.
        version = str(next(iter(results.values()))["version"])
        return Parsed((row,), version)

    def estimate(self, cell: Cell) -> Cost:
        # ``widest`` selects two routines of each kind, a simple and an unrolled one. CHASE has only one.
        kinds = _KINDS[cell.workload]
        routines = 2 * len(kinds)
        if kinds == (CHASE,):
            routines = 1
        # Before the first routine, one thread fills all memory.
        memory = memory_for(area_of(cell), cell.concurrency)
        return Cost(
            fixed_s=_START_S + routines * _SECONDS_PER_ROUTINE,
            work_s=memory / _FILL_RATE,
            memory_bytes=memory,
        )


def needs(cell: Cell) -> tuple[str, ...]:
    """Return the kinds of routines, ``READ``, ``WRITE`` or ``CHASE``, whose results give the value of a cell.

    Raises:
        Unavailable: peakmark's kernel measures the row with streaming stores.
    """
    if cell.workload in ("WS", "RWS") and store_of(cell) == "streaming":
        raise Unavailable(
            "pmbw writes through the caches, but this row uses streaming stores",
            "set store: temporal",
        )
    return _KINDS[cell.workload]


def area_of(cell: Cell) -> int:
    """Return the bytes of pmbw's area: of the pool, or of the blocks of all threads."""
    if cell.variant in POOLS:
        return pool_of(cell)
    return block_of(cell) * cell.concurrency


def memory_for(area: int, threads: int) -> int:
    """Return the bytes of memory, a power of two, that pmbw needs to measure ``area``.

    With less memory pmbw would skip this size. The option ``-M`` allocates the largest power of two
    below its argument, so callers pass one byte more.
    """
    # A thread's part in bytes: both divisions round up. The parts begin at least _SPACING apart.
    share = -(-area // threads // _STRIDE) * _STRIDE
    need = max(area, threads * max(share, _SPACING))
    return int(1 << (need - 1).bit_length())  # the next power of two


def widest(kind: str, offered: Sequence[str]) -> list[str]:
    """Return the routines of one kind that use the widest registers: one simple, one unrolled.

    Raises:
        Unavailable: pmbw has no routine of this kind on this CPU.
    """
    if kind == CHASE and CHASE in offered:
        return [CHASE]
    by_width: dict[int, list[str]] = {}  # bits of a register -> names of the routines
    for name in offered:
        match = re.fullmatch(rf"{kind}([0-9]+)Ptr(?:Simple|Unroll)Loop", name)
        if match:
            by_width.setdefault(int(match[1]), []).append(name)
    if not by_width:
        raise Unavailable(f"pmbw has no routine {kind} on this CPU")
    return by_width[max(by_width)]


def read_results(text: str) -> dict[str, Output]:
    """Parse the RESULT lines into routine -> its values, such as ``bandwidth`` and ``time``, as text.

    Raises:
        ParseError: a line is truncated or inconsistent.
    """
    results: dict[str, Output] = {}
    if not text.endswith("\n"):
        raise ParseError("pmbw: the last line of its result file is cut or missing")
    for line in text.splitlines():
        if not line.startswith("RESULT\t"):
            raise ParseError(f"pmbw: {line[:60]!r} is not a RESULT line")
        fields = (field.partition("=") for field in line.split("\t")[1:])
        result = Output("pmbw", {name: value for name, _, value in fields})
        name, seconds = result["funcname"], result.number("time")
        volume = result.number("bandwidth") * seconds
        common.agree(volume, result.whole("testvol"), 1e-6, "pmbw: bandwidth")
        # What pmbw calls rate is the time of one access, in s.
        time = result.number("rate") * result.whole("testaccess")
        common.agree(time, seconds, 1e-6, "pmbw: rate")
        results[name] = result
    return results


def _row(cell: Cell, results: Mapping[str, Output]) -> Measurement:
    """Return the measurement of a cell from the results of its routines."""
    details: dict[str, Any] = {"area": area_of(cell)}
    if cell.workload == "LAT":
        result = results[CHASE]
        details |= {"routine": CHASE, "seconds": result.number("time")}
        return Measurement.of(cell, "latency", _load_s(result, cell.concurrency), details)
    best = [_best(kind, results) for kind in _KINDS[cell.workload]]
    rates = [result.number("bandwidth") for result in best]
    details["routine"] = ", ".join(result["funcname"] for result in best)
    if cell.workload != "RS":
        details["store"] = "temporal"
    if cell.workload != "RWS":
        details["seconds"] = best[0].number("time")
        return Measurement.of(cell, "throughput", rates[0], details)
    read, write = rates
    details |= {"estimate": True, "formula": _ESTIMATE, "read": read, "write": write}
    return Measurement.of(cell, "throughput", 2 / (1 / read + 1 / write), details)


def _load_s(result: Output, threads: int) -> float:
    """Return the seconds of one dependent load.

    pmbw's ``rate`` is the time divided by the accesses of all threads. It is therefore multiplied by the
    number of threads. On x86-64 pmbw 0.6.3 counts a load as one access of 8 B, on Arm as two accesses
    of 4 B (funcs_arm64.h: REGISTER_PERM with 4). testvol / testaccess gives the bytes of an access.
    """
    size = result.whole("testvol") / result.whole("testaccess")
    if size not in (_POINTER, _POINTER / 2):
        raise ParseError(
            f"pmbw: an access of {CHASE} has {size:g} B by testvol / testaccess, not 8 B, or 4 B as on Arm"
        )
    return result.number("rate") * threads * _POINTER / size


def _best(kind: str, results: Mapping[str, Output]) -> Output:
    """Return the result of the fastest routine of a kind (``READ`` or ``WRITE``)."""
    found = [result for name, result in results.items() if name.startswith(kind)]
    return max(found, key=lambda result: result.number("bandwidth"))


INSTRUMENT = Pmbw()
