"""fio: reads and writes with O_DIRECT, one workload per cell, with percentiles of the latency.

The files are laid out with data before the clock starts, writes overwrite them, and ``end_fsync``
ends a write: fio counts it into ``runtime`` (seen with fio 3.33: an fsync delayed by 1.5 s made a
runtime of 1.0 s 2.5 s long), so bytes / runtime is what reached the device. With
``group_reporting`` runtime is that of the longest thread.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

from peakmark.cell import Cell
from peakmark.errors import ParseError
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
from peakmark.tools.documents import Document, is_number
from peakmark.tools.programs.diskbench import DiskBench, engine_of, file_size, sync_s

_PATTERN = {"RS": "read", "WS": "write", "RR": "randread", "WR": "randwrite"}
_PERCENTILES = {"p50": "50.000000", "p90": "90.000000", "p99": "99.000000", "p999": "99.900000"}
_START_S = 1.0
_CAUTIOUS = 150e6


class Fio(common.Instrument):
    """disk RS WS RR WR in B/s with 1/s and latency, variants ``psync`` and ``io_uring-qdN``."""

    name = "fio"
    workloads: ClassVar[Mapping[str, tuple[str, ...]]] = {"disk": tuple(_PATTERN)}
    executables = ("fio",)
    package = "fio"
    heading = "fio"
    rows = (Coverage("disk", ("WS", "RS", "WR", "RR")),)
    options = ("size", "seconds")
    columns: ClassVar[Mapping[str, int]] = {"disk_throughput": 2, "disk_latency": 2, "disk_iops": 2}
    homes: ClassVar[Mapping[str, str]] = {"fio": "https://github.com/axboe/fio"}
    version = ("--version", r"^fio-(\S+)")
    variants = DiskBench.variants

    def has_variant(self, variant: str) -> bool:
        return DiskBench().has_variant(variant)

    def check(self, cell: Cell) -> None:
        super().check(cell)
        engine_of(cell)
        file_size(cell, "threads")

    def prepare(self, cell: Cell, tool: Tool, workspace: Workspace) -> Invocation:
        self.check(cell)
        record = common.needed_block(cell)
        common.need_sectors(record, workspace)
        engine, depth = engine_of(cell)
        argv = [
            tool.path,
            "--name=peakmark",
            "--directory=.",
            f"--size={file_size(cell, 'threads')}",
            f"--bs={record}",
        ]
        argv += [
            f"--rw={_PATTERN[cell.workload]}",
            "--direct=1",
            f"--ioengine={engine}",
            f"--iodepth={depth}",
        ]
        argv += [
            f"--numjobs={cell.concurrency}",
            "--thread",
            "--group_reporting",
            "--fallocate=none",
        ]
        argv += [f"--overwrite={int(cell.options.get('fill') != 'new')}"]
        argv += ["--sync=1"] if cell.options.get("sync") == "each" else []
        total = amount_of(cell)
        if total is None:
            argv += ["--time_based", f"--runtime={_milliseconds(common.seconds_of(cell))}"]
            if (warmup := common.warmup_of(cell, 0.0)) > 0:
                argv.append(f"--ramp_time={_milliseconds(warmup)}")
        else:
            share = max(1, total // cell.concurrency // record) * record
            argv.append(f"--io_size={share}")
        if cell.workload in ("WS", "WR"):
            argv.append("--end_fsync=1")
        seed = common.option_number(cell, "seed", None, zero=True)
        if seed is not None:
            argv.append(f"--randseed={int(seed)}")
        # Submission and completion, as every other program counts them; fio's own choice leaves the
        # submission out.
        argv += ["--lat_percentiles=1", "--output-format=json"]
        return Invocation(self.command(cell, argv))

    def parse(self, cell: Cell, done: Completed) -> Parsed:
        # Some versions print notes before the document.
        _, brace, rest = done.stdout.partition("{")
        if not brace:
            message = common.first_line(done.stderr + done.stdout)
            raise ParseError(f"fio printed no JSON: {message or 'it printed nothing'}")
        document = Document.read(brace + rest, self.name)
        version = str(document.at("fio version")).removeprefix("fio-")
        jobs = document.at("jobs")
        if not isinstance(jobs, list) or len(jobs) != 1 or not isinstance(jobs[0], dict):
            raise ParseError("fio: jobs does not hold exactly one group")
        job = Document(jobs[0], self.name)
        if job.at("error") != 0:
            message = common.first_line(done.stderr)
            raise ParseError(
                f"fio reports error {job.at('error')} for its job: {message or 'without a message'}"
            )
        side = job.part("read" if cell.workload in ("RS", "RR") else "write")
        asked = job.part("job options")
        if asked.get("rw") != _PATTERN[cell.workload] or asked.get("bs") != str(cell.block):
            raise ParseError("fio ran another pattern or record size than the cell's")
        nbytes = side.number("io_bytes")
        seconds = side.number("runtime") / 1e3
        operations = side.number("total_ios")
        common.agree(nbytes / seconds, side.number("bw_bytes"), 5e-3, "fio: bw_bytes")
        latency = _percentiles(side)
        engine, depth = engine_of(cell)
        details = {
            "seconds": seconds,
            "work": nbytes,
            "engine": engine,
            "depth": depth,
            **{key: cell.options[key] for key in ("sync", "fill") if key in cell.options},
            "user_percent": job.number_or_none("usr_cpu"),
            "system_percent": job.number_or_none("sys_cpu"),
        }
        rows = (
            ("throughput", nbytes / seconds, "B/s", details),
            ("iops", operations / seconds, "1/s", {"seconds": seconds}),
            ("latency", side.number("lat_ns.mean") / 1e9, "s", latency),
        )
        return Parsed(tuple(Measurement.of(cell, *row) for row in rows), version=version)

    def estimate(self, cell: Cell) -> Cost:
        total = amount_of(cell)
        size = file_size(cell, "threads") * cell.concurrency
        fixed = _START_S + (0.0 if total else common.seconds_of(cell) + common.warmup_of(cell, 0.0))
        waits = sync_s(cell, total or 0)
        seconds = fixed + (size + (total or 0)) / _CAUTIOUS + waits
        return Cost(
            seconds=seconds, disk_bytes=size, memory_bytes=64 << 20, fixed_s=fixed, waits_s=waits
        )


def amount_of(cell: Cell) -> int | None:
    """Bytes to move, None where a time is asked. New files are new once only: one pass, whatever
    the time.
    """
    total = common.option_size(cell, "total", None)
    if cell.options.get("fill") != "new":
        return total
    whole = file_size(cell, "threads") * cell.concurrency
    return whole if total is None else min(total, whole)


def _percentiles(side: Document) -> dict[str, Any]:
    """p50 p90 p99 p999 max of the whole latency in s. Errors: ParseError when one is missing."""
    of = (
        "lat_ns" if side.get("lat_ns.percentile") is not None else "clat_ns"
    )  # outputs that did not ask for it
    percentiles = side.part(f"{of}.percentile").values
    latency = {"max": side.number("lat_ns.max") / 1e9}
    for key, name in _PERCENTILES.items():
        value = percentiles.get(name, 0)
        if not is_number(value) or value <= 0:
            raise ParseError(f"fio: percentile {name} is missing in its JSON")
        latency[key] = value / 1e9
    return latency


def _milliseconds(seconds: float) -> str:
    """A time as fio reads it: a fraction of a second would be cut to whole seconds."""
    return f"{math.ceil(seconds * 1000)}ms"


INSTRUMENT = Fio()
