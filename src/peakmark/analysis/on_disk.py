"""Checks of disks: did the bytes reach the device, and was it held back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from peakmark.analysis.measured import DEFAULT, Measured
from peakmark.catalogue import KERNELS
from peakmark.messages import Message, Severity, message

RAM_FILE_SYSTEMS = ("tmpfs", "ramfs", "devtmpfs", "hugetlbfs")
NEAR_LIMIT = 0.7  # share of a cgroup's limit from which on it is the limit that is measured


def never_reached_device(row: Measured) -> Iterator[Message]:
    if row.subsystem != "disk":
        return
    names = {run.details.get("filesystem") for run in row.runs} | {
        row.fact("storage", "filesystem")
    }
    ram = sorted(name for name in names if name in RAM_FILE_SYSTEMS)
    if ram:
        yield message("ram-file-system", Severity.WRONG, file_system=ram[0])
        return
    shares = [
        run.details["device_bytes"] / run.details["work"]
        for run in row.runs
        if isinstance(run.details.get("device_bytes"), int | float) and run.details.get("work")
    ]
    if shares and min(shares) < DEFAULT.device:
        yield message("cached", Severity.WRONG, share=min(shares))
    elif any(run.details.get("direct") is False for run in row.runs):
        yield message("buffered", Severity.WRONG)


def unflushed(row: Measured) -> Iterator[Message]:
    """A flush that takes no time means that nothing waited in the disk: it protects its cache, or a
    host keeps the data.
    """
    if (
        row.subsystem != "disk"
        or row.instrument != KERNELS["disk"]
        or not row.workload.startswith("W")
    ):
        return
    pairs = [(run.details.get("flush_seconds"), run.details.get("work")) for run in row.runs]
    known = [(float(flush), float(work)) for flush, work in pairs if flush is not None and work]
    if not known or row.metric != "throughput":
        return
    flush, work = max(known, key=lambda pair: pair[0])
    if flush < DEFAULT.flush and work > DEFAULT.flushed:
        held = bool(row.fact("cpu", "virtualised"))
        level = Severity.UNSURE if held else Severity.NOTE
        where = message("hosts-memory" if held else "safe-cache")
        yield message("flush", level, flush=flush, megabytes=work / 1e6, where=where)


def limited_disk(row: Measured) -> Iterator[Message]:
    """A limit of the cgroup that the measurement came near to; one far above it changes nothing."""
    limits: Mapping[str, int] = next(
        (run.context["io_limits"] for run in row.runs if run.context.get("io_limits")), {}
    )
    way = {"R": "read", "W": "write"}.get(row.workload[:1], "")
    block = row.block or 1
    rate = {
        "throughput": row.centre / block,
        "iops": row.centre,
        "latency": row.concurrency / row.centre,
    }
    operations = rate.get(row.metric, 0.0)
    # Bytes per second as the tables of disks have them, whatever their size.
    for name, value, unit, factor in (
        ("bps", operations * block, "MB/s", 1e-6),
        ("iops", operations, "IOPS", 1.0),
    ):
        limit = limits.get(f"{way}_{name}")
        if limit and value > NEAR_LIMIT * limit:
            yield message(
                "io-limit", Severity.WRONG, way=way, rate=message(unit, rate=limit * factor)
            )
