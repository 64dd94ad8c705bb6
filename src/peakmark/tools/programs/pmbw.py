"""pmbw, the parallel memory bandwidth benchmark: the nearest reference for block re-use and for
dependent loads.

It divides one area by the number of threads and scans it again and again: sequential reads and
writes only, no copy, no random blocks. Measured for 1 to 1.5 s per routine, whatever the cell's
``seconds`` say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from peakmark.catalogue.workloads import POOLS
from peakmark.cell import Cell
from peakmark.errors import ParseError
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
from peakmark.tools.programs.rambench import block_of, check_variant, pool_of, store_of

STATS = "pmbw.txt"
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

# pmbw measures these array sizes and no others (version 0.6.3), up to 1 TiB.
AREAS = frozenset(
    [
        KIB * n
        for n in (
            1,
            2,
            3,
            4,
            6,
            8,
            12,
            16,
            20,
            24,
            28,
            32,
            40,
            48,
            64,
            96,
            128,
            192,
            256,
            384,
            512,
            768,
        )
    ]
    + [MIB * n // 4 for n in (4, 5, 6, 7, 8, 9, 10, 11)]
    + [
        MIB * n
        for n in (
            3,
            4,
            5,
            6,
            7,
            8,
            9,
            10,
            12,
            14,
            16,
            20,
            24,
            28,
            32,
            40,
            48,
            56,
            64,
            128,
            256,
            512,
        )
    ]
    + [GIB << n for n in range(11)]
)
# Threads' parts of the area lie at least this far apart.
_SPACING = 4 * MIB + 16 * KIB
_STRIDE = 512  # and are whole turns of the widest unrolled loop: 16 accesses of 32 B
_SECONDS_PER_ROUTINE = 2.0

READ, WRITE, CHASE = "ScanRead", "ScanWrite", "PermRead64SimpleLoop"
_NEEDS = {
    "RS": (READ,),
    "WS": (WRITE,),
    "RWS": (READ, WRITE),
    "LAT": (CHASE,),
    "ALL": (READ, WRITE),
}
_NOT_LIKE = {
    "RR": "it has no random reads of blocks, its random read is a chain of 8-byte loads",
    "WR": "it has no random writes",
    "RWR": "it has neither a copy nor random access to blocks",
}
_ESTIMATE = "2 / (1 / read + 1 / write): pmbw has no copy; loads and stores are taken not to overlap, so this is no limit"


class Pmbw(common.Instrument):
    """memory RS WS RWS (an estimate from both) in variants ``block`` and ``pool``; LAT; ALL is RS,
    WS and RWS.

    It writes through the caches: beside streaming stores it only reads; beside copies of the C
    library, which stores as it sees fit, the row says so.
    """

    name = "pmbw"
    workloads: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "memory": ("RS", "WS", "RWS", "LAT", "ALL")
    }
    executables = ("pmbw",)
    heading = "pmbw"
    rows = (
        Coverage("memory", ("RS", "WS", "RWS"), variants=("block", *POOLS)),
        Coverage("memory", ("LAT",)),
    )
    columns: ClassVar[Mapping[str, int]] = {"memory_throughput": 1, "memory_latency": 1}
    homes: ClassVar[Mapping[str, str]] = {"pmbw": "https://panthema.net/2013/pmbw/"}
    variants = ("block", *POOLS, "")

    def find(self, path: str) -> Tool:
        if "-f <match>" not in common.ask(path, "-h"):
            raise Unavailable(
                "other-program", path=path, program=self.name, printed="a help without -f <match>"
            )
        return Tool(
            name=self.name, path=path, version="unknown"
        )  # it tells its version in results only

    def check(self, cell: Cell) -> None:
        if cell.workload in _NOT_LIKE:
            raise Unavailable(
                "nothing-like",
                program=self.name,
                workload=cell.workload,
                why=_NOT_LIKE[cell.workload],
            )
        super().check(cell)
        check_variant(cell)
        area = area_of(cell)
        if area not in AREAS:
            raise Unavailable("area", program=self.name, area=area, threads=cell.concurrency)

    def prepare(self, cell: Cell, tool: Tool, workspace: Workspace) -> Invocation:
        self.check(cell)
        area = area_of(cell)
        memory = memory_for(area, cell.concurrency)
        common.need_memory(self.name, memory, workspace)
        offered = common.ask(tool.path, "-f", "list").split()
        routines = [name for kind in needs(cell) for name in widest(kind, offered)]
        threads = str(cell.concurrency)
        argv = [*common.pinned(workspace, cell.concurrency), tool.path, "-M", str(memory + 1)]
        argv += ["-p", threads, "-P", threads, "-s", str(area), "-S", str(area)]
        for routine in routines:
            argv += ["-f", routine]
        argv += ["-o", STATS]
        return Invocation(self.command(cell, argv, outputs=(STATS,)))

    def parse(self, cell: Cell, done: Completed) -> Parsed:
        if STATS not in done.files:
            raise ParseError(
                f"pmbw left no {STATS}: it skips a size that does not fit its memory (-M) without a word"
            )
        wanted = {done.argv[i + 1] for i, word in enumerate(done.argv[:-1]) if word == "-f"}
        results = read_results(done.files[STATS])
        area = area_of(cell)
        for name, result in results.items():
            if result["nthreads"] != cell.concurrency or result["areasize"] != area:
                raise ParseError(
                    f"pmbw: {name} ran another size or number of threads than the cell's"
                )
        missing = sorted(wanted - results.keys())
        if missing or not wanted:
            raise ParseError(f"pmbw: no result of {', '.join(missing) or 'any routine'} in {STATS}")
        version = next(iter(results.values()))["version"]
        measurements = _rows(cell, {name: results[name] for name in sorted(wanted)})
        warnings = common.crowded(done.argv, cell.concurrency)
        return Parsed(measurements=tuple(measurements), version=str(version), warnings=warnings)

    def estimate(self, cell: Cell) -> Cost:
        routines = 2 * len(_NEEDS.get(cell.workload, (READ,))) if cell.workload != "LAT" else 1
        memory = memory_for(area_of(cell), cell.concurrency)
        # One thread fills all memory before the first routine; each routine is tried, then run for
        # 1.5 s.
        fixed = 0.2 + routines * _SECONDS_PER_ROUTINE
        return Cost(seconds=fixed + memory / 2e9, memory_bytes=memory, fixed_s=fixed)


def needs(cell: Cell) -> tuple[str, ...]:
    """Kinds of routines for a cell. Errors: Unavailable where its stores are none of pmbw's."""
    streaming = store_of(cell) == "streaming"
    if streaming and cell.workload in ("WS", "RWS"):
        raise Unavailable("store-streaming", program="pmbw")
    return (READ,) if cell.workload == "ALL" and streaming else _NEEDS[cell.workload]


def area_of(cell: Cell) -> int:
    """pmbw's area in bytes: all threads' blocks together, or the pool."""
    return pool_of(cell) if cell.variant in POOLS else block_of(cell) * cell.concurrency


def memory_for(area: int, threads: int) -> int:
    """The power of two that pmbw must allocate so that it does not skip ``area``.

    ``-M`` takes the largest power of two strictly below its argument: pass one byte more than this.
    """
    share = -(-area // threads // _STRIDE) * _STRIDE  # both divisions round up
    need = max(area, threads * max(share, _SPACING))
    return int(1 << (need - 1).bit_length())


def widest(kind: str, offered: Sequence[str]) -> list[str]:
    """Of the routines pmbw offers here, those of one kind with the widest registers: both loops by
    pointer.

    Errors: Unavailable when it has none.
    """
    if kind == CHASE:
        names = [CHASE] if CHASE in offered else []
    else:
        by_width: dict[int, list[str]] = {}
        for name in offered:
            match = re.fullmatch(rf"{kind}([0-9]+)Ptr(?:Simple|Unroll)Loop", name)
            if match:
                by_width.setdefault(int(match.group(1)), []).append(name)
        names = by_width[max(by_width)] if by_width else []
    if not names:
        raise Unavailable("routine", program="pmbw", routine=kind, isa="auto")
    return names


def read_results(text: str) -> dict[str, dict[str, Any]]:
    """RESULT lines by routine; numbers of threads and area as int, bandwidth (B/s), time and rate
    (s) as float.

    Errors: ParseError for a line that is cut, repeated or contradicts itself.
    """
    results: dict[str, dict[str, Any]] = {}
    if not text.endswith("\n"):
        raise ParseError("pmbw: the last line of its result file is cut or missing")
    for line in text.splitlines():
        if not line.startswith("RESULT\t"):
            raise ParseError(f"pmbw: {line[:60]!r} is not a RESULT line")
        fields = dict(field.split("=", 1) for field in line.split("\t")[1:] if "=" in field)
        try:
            entry: dict[str, Any] = {"version": fields["version"]}
            for key in ("nthreads", "areasize", "testvol", "testaccess"):
                entry[key] = common.whole(fields[key], f"pmbw: {key}")
            for key in ("time", "bandwidth", "rate"):
                entry[key] = common.number(fields[key], f"pmbw: {key}")
            name = fields["funcname"]
        except KeyError as error:
            raise ParseError(f"pmbw: {error} is missing in a RESULT line") from error
        common.agree(entry["bandwidth"] * entry["time"], entry["testvol"], 1e-6, "pmbw: bandwidth")
        common.agree(entry["rate"] * entry["testaccess"], entry["time"], 1e-6, "pmbw: rate")
        if name in results:
            raise ParseError(
                f"pmbw: {name} has two results, was another pmbw writing to the same file?"
            )
        results[name] = entry
    return results


def _rows(cell: Cell, results: dict[str, dict[str, Any]]) -> list[Measurement]:
    if cell.workload == "LAT":
        result = results.get(CHASE)
        if result is None:
            raise ParseError(f"pmbw: no result of {CHASE}")
        # rate divides by the accesses of all threads: one thread waits that many times longer.
        latency = result["rate"] * cell.concurrency
        return [
            _row(
                cell, "LAT", "latency", latency, "s", {"routine": CHASE, "seconds": result["time"]}
            )
        ]
    best: dict[str, tuple[float, str, float]] = {}
    for kind, workload in ((READ, "RS"), (WRITE, "WS")):
        for name, result in results.items():
            if name.startswith(kind):
                best[workload] = max(
                    best.get(workload, (0.0, "", 0.0)), (result["bandwidth"], name, result["time"])
                )
    rows = [
        _row(cell, workload, "throughput", value, "B/s", {"routine": name, "seconds": seconds})
        for workload, (value, name, seconds) in best.items()
        if cell.workload in (workload, "ALL")
    ]
    if cell.workload == "RWS" or (cell.workload == "ALL" and WRITE in needs(cell)):
        if len(best) != 2:
            raise ParseError("pmbw: reads and writes are both needed for the estimate of a copy")
        (read, reader, _), (write, writer, _) = best["RS"], best["WS"]
        details: dict[str, Any] = {
            "estimate": True,
            "formula": _ESTIMATE,
            "routine": f"{reader}, {writer}",
        }
        details |= {"read": read, "write": write}
        rows.append(_row(cell, "RWS", "throughput", 2 / (1 / read + 1 / write), "B/s", details))
    if not rows:
        raise ParseError(f"pmbw: no result for {cell.workload}")
    return rows


def _row(
    cell: Cell, workload: str, metric: str, value: float, unit: str, details: dict[str, Any]
) -> Measurement:
    stores = {"store": "temporal"} if workload in ("WS", "RWS") else {}
    return Measurement.of(
        cell, metric, value, unit, {"area": area_of(cell), **stores, **details}, workload
    )


INSTRUMENT = Pmbw()
