"""fio, which reads and writes with O_DIRECT and reports percentiles of the latency.

The files are filled with data before the clock starts, and writes overwrite them. A write ends with an
fsync (``end_fsync``), which fio includes in ``runtime``: with fio 3.33, an fsync delayed by 1.5 s
extended a runtime of 1.0 s to 2.5 s. Bytes / runtime is therefore the rate of the device. With
``group_reporting``, runtime is the time of the slowest thread.
"""

from __future__ import annotations

import math
import re

from peakmark.catalogue import disk_variant
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
from peakmark.tools.programs.diskbench import engine_of, file_size, nodes_of, sync_s

_PATTERN = {"RS": "read", "WS": "write", "RR": "randread", "WR": "randwrite"}
"""Workload -> value of fio's option ``rw``."""
_PERCENTILES = {"p50": "50.000000", "p90": "90.000000", "p99": "99.000000", "p999": "99.900000"}
"""Percentile in the details of a latency -> its name in fio's JSON, in percent."""
_CAUTIOUS_RATE = 150e6
"""Rate in B/s of a slow disk."""
_HUGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
"""Environment in which malloc of glibc 2.35 and later asks for huge pages, as diskbench does. With it and
``--iomem_align``, buffers lie in huge pages (docs/performance.md, *Buffers in huge pages*).
"""


class Fio(Instrument):
    """fio. Each cell measures one disk workload in B/s and 1/s, and the latency of its operations.

    Its variants are ``psync`` and ``io_uring-qdN``.
    """

    name = "fio"
    rows = (Coverage("disk", tuple(_PATTERN), variants=()),)
    place = 2
    package = "fio"
    spack = "fio"
    conda = "fio"
    build = "git clone https://github.com/axboe/fio && cd fio && ./configure && make"
    version = ("--version", r"^fio-(\S+)")
    options = ("size", "seconds")

    def check(self, cell: Cell) -> None:
        super().check(cell)
        # Both raise an error if the cell is not possible: for its variant, or for a file below one record.
        engine_of(cell)
        file_size(cell, "threads")

    def prepare(self, cell: Cell, tool: Tool, workspace: Workspace) -> Command:
        record = common.needed_block(cell)
        common.need_sectors(record, workspace)
        # Version 2 counts in KiB and µs, and its JSON lacks the fields that ``parse`` reads.
        if re.match(r"[12]\.", tool.version):
            raise Unavailable(
                f"fio {tool.version} is too old: peakmark reads the output of fio 3.0 and later",
                f"install a newer fio: {self.build}",
            )
        engine, depth = engine_of(cell)
        total, seed = amount_of(cell), common.option_number(cell, "seed")
        # --iomem_align and _HUGE_PAGES place the buffers in huge pages, as diskbench does.
        # --overwrite=1 writes the files before they are measured. With fill: new, the measured writes create them.
        words = (
            f"--name=peakmark --directory=. --bs={record} --size={file_size(cell, 'threads')}"
            f" --rw={_PATTERN[cell.workload]} --direct=1 --ioengine={engine} --iodepth={depth}"
            f" --numjobs={cell.concurrency} --thread --group_reporting --fallocate=none"
            " --iomem_align=2m"
            f" --overwrite={int(cell.options.get('fill') != 'new')}"
        )
        if cell.options.get("sync") == "each":
            words += " --sync=1"
        if total is None:
            words += f" --time_based --runtime={_milliseconds(common.seconds_of(cell))}"
            if warmup := common.warmup_of(cell):
                words += f" --ramp_time={_milliseconds(warmup)}"
        else:
            # The bytes of each thread, in whole records.
            words += f" --io_size={max(1, total // cell.concurrency // record) * record}"
        if cell.workload in ("WS", "WR"):
            words += " --end_fsync=1"
        if seed is not None:
            words += f" --randseed={int(seed)}"
        # Include the submission in latencies, as all other programs do. fio's default excludes it.
        words += " --lat_percentiles=1 --output-format=json"
        argv = [tool.path, *words.split()]
        preparation = None
        if disk_variant(cell.variant).nodes and cell.options.get("fill") != "new":
            # Fill the files first, so that all nodes measure at the same moment.
            preparation = self.command(cell, [*argv, "--create_only=1"])
        return self.command(cell, argv, preparation=preparation, env=_HUGE_PAGES)

    def parse(self, cell: Cell, done: Completed) -> Parsed:
        # Check that fio ran the cell without an error. The error for an output without JSON quotes the first line, so
        # stderr comes first.
        output = Output.of_json(self.name, done.stderr + done.stdout)
        jobs = output["jobs"]
        if not isinstance(jobs, list) or len(jobs) != 1 or not isinstance(jobs[0], dict):
            raise ParseError("fio: jobs does not hold exactly one group")
        job = Output(self.name, jobs[0])
        if job["error"] != 0:
            message = first_line(done.stderr) or "without a message"
            raise ParseError(f"fio reports error {job['error']} for its job: {message}")
        job.expect({"job options.rw": _PATTERN[cell.workload], "job options.bs": str(cell.block)})
        # Compute the rate from work and time, and check it against the rate that fio prints, to 0.5 %.
        side = "read" if cell.workload in ("RS", "RR") else "write"
        work, operations = job.number(f"{side}.io_bytes"), job.number(f"{side}.total_ios")
        seconds = job.number(f"{side}.runtime") / 1e3  # fio prints ms
        common.agree(work / seconds, job.number(f"{side}.bw_bytes"), 5e-3, "fio: bw_bytes")
        # An output without percentiles of the whole latency has those of the completion (clat).
        prefix = f"{side}.lat_ns.percentile"
        if f"{prefix}.{_PERCENTILES['p50']}" not in job:
            prefix = f"{side}.clat_ns.percentile"
        latency = {key: job.number(f"{prefix}.{name}") / 1e9 for key, name in _PERCENTILES.items()}
        latency["max"] = job.number(f"{side}.lat_ns.max") / 1e9
        mean = job.number(f"{side}.lat_ns.mean") / 1e9
        # The throughput keeps the settings and the CPU time, the latency its percentiles.
        engine, depth = engine_of(cell)
        details = {"seconds": seconds, "work": work, "engine": engine, "depth": depth}
        details |= {key: cell.options[key] for key in ("sync", "fill") if key in cell.options}
        details["user_percent"] = job.number_or_none("usr_cpu")
        details["system_percent"] = job.number_or_none("sys_cpu")
        rows = (
            Measurement.of(cell, "throughput", work / seconds, details),
            Measurement.of(cell, "iops", operations / seconds, {"seconds": seconds}),
            Measurement.of(cell, "latency", mean, latency),
        )
        return Parsed(rows, str(output["fio version"]).removeprefix("fio-"))

    def estimate(self, cell: Cell) -> Cost:
        total = amount_of(cell)
        size, nodes = file_size(cell, "threads") * cell.concurrency, nodes_of(cell)
        fixed_s = 1.0  # to start
        if total is None:
            fixed_s += common.seconds_of(cell) + common.warmup_of(cell)
        return Cost(
            fixed_s=fixed_s,
            work_s=(size + (total or 0)) / _CAUTIOUS_RATE * nodes,
            waits_s=sync_s(cell, total or 0) * nodes,
            memory_bytes=64 << 20,
            disk_bytes=size * nodes,
        )


def amount_of(cell: Cell) -> int | None:
    """Return the most bytes that all threads of a node read or write; None if only a time limits them.

    With ``fill: new`` the size of the files limits them too, even if the cell sets a time: new files are written only
    once, because a second pass would overwrite them.
    """
    total = common.option_size(cell, "total")
    if cell.options.get("fill") != "new":
        return total
    whole = file_size(cell, "threads") * cell.concurrency
    if total is None:
        return whole
    return min(total, whole)


def _milliseconds(seconds: float) -> str:
    """Return a time as text in whole milliseconds, rounded up: fio truncates fractions of a second."""
    return f"{math.ceil(seconds * 1000)}ms"


INSTRUMENT = Fio()
