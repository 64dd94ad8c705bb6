"""Checks of disks: did the bytes reach the device, and was it held back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from peakmark.catalogue.workloads import KERNELS
from peakmark.formatting import significant
from peakmark.judging.measured import Measured, Thresholds
from peakmark.judging.notes import Level, Note
from peakmark.units import quantity

RAM_FILE_SYSTEMS = ("tmpfs", "ramfs", "devtmpfs", "hugetlbfs")


NEAR_LIMIT = 0.7  # share of a cgroup's limit from which on it is the limit that is measured


def never_reached_device(row: Measured, thresholds: Thresholds) -> Iterator[Note]:
    if row.subsystem != "disk":
        return
    names = {run.details.get("filesystem") for run in row.runs} | {row.fact("storage", "filesystem")}
    ram = sorted(name for name in names if name in RAM_FILE_SYSTEMS)
    if ram:
        text = f"{ram[0]} is a file system in memory: this is no disk figure; set scratch: to a directory on a disk"
        yield Note("ram-file-system", text, Level.WRONG)
        return
    shares = [
        run.details["device_bytes"] / run.details["work"]
        for run in row.runs
        if isinstance(run.details.get("device_bytes"), int | float) and run.details.get("work")
    ]
    if shares and min(shares) < thresholds.device:
        text = (
            f"the device moved only {min(shares):.0%} of the bytes: the rest came from or stayed in a cache;"
            " use a file system that supports O_DIRECT"
        )
        yield Note("cached", text, Level.WRONG)
    elif any(run.details.get("direct") is False for run in row.runs):
        text = "the file system refused O_DIRECT: the page cache takes part; set scratch: to one that supports it"
        yield Note("buffered", text, Level.WRONG)


def unflushed(row: Measured, thresholds: Thresholds) -> Iterator[Note]:
    """A flush that takes no time means that nothing waited in the disk: it protects its cache, or a host keeps the data."""
    if row.subsystem != "disk" or row.instrument != KERNELS["disk"] or not row.workload.startswith("W"):
        return
    pairs = [(run.details.get("flush_seconds"), run.details.get("work")) for run in row.runs]
    known = [(float(flush), float(work)) for flush, work in pairs if flush is not None and work]
    if not known or row.metric != "throughput":
        return
    flush, work = max(known, key=lambda pair: pair[0])
    if flush < thresholds.flush and work > thresholds.flushed:
        held = bool(row.fact("cpu", "virtualised"))
        where = "a host that keeps the data in its memory" if held else "a cache that is safe from a loss of power"
        text = (
            f"the flush took only {quantity(flush, 's', 2)} after {work / 1e6:.0f} MB, as with {where}: compare with the disk's"
            " datasheet, or write more than that cache holds"
        )
        yield Note("flush", text, Level.UNSURE if held else Level.NOTE)


def limited_disk(row: Measured, _: Thresholds) -> Iterator[Note]:
    """A limit of the cgroup that the measurement came near to; one far above it changes nothing."""
    limits: Mapping[str, int] = next((run.context["io_limits"] for run in row.runs if run.context.get("io_limits")), {})
    way = {"R": "read", "W": "write"}.get(row.workload[:1], "")
    block = row.block or 1
    rate = {"throughput": row.centre / block, "iops": row.centre, "latency": row.concurrency / row.centre}
    operations = rate.get(row.metric, 0.0)
    for name, value, unit in ((f"{way}_bps", operations * block, "B/s"), (f"{way}_iops", operations, "1/s")):
        limit = limits.get(name)
        if limit and value > NEAR_LIMIT * limit:
            text = (
                f"a cgroup lets this job {way} at most {_rate(limit, unit)} on the disk: that limit was measured,"
                " not the disk; ask for a job without it (io.max, blkio.throttle)"
            )
            yield Note("io-limit", text, Level.WRONG)


def _rate(limit: float, unit: str) -> str:
    """Bytes per second as the tables of disks have them, whatever their size."""
    return f"{significant(limit / 1e6, 3)} MB/s" if unit == "B/s" else quantity(limit, unit, 3)
