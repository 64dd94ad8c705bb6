"""Measure a row of a class once on this node, and find out whether something disturbed it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from peakmark.catalogue import NOT_POSSIBLE
from peakmark.errors import MeasurementError, Unavailable
from peakmark.formatting import percent, quantity
from peakmark.machine import job_limits
from peakmark.machine.host import Host
from peakmark.run import noise

LOWERED = 0.99
"""Share of the class's limit of the clock below which this node's limit counts as lowered."""


class ClassRow(NamedTuple):
    """A row that good nodes of this class reach, as ``rows.expectations`` lists it.

    Attributes:
        name: name in messages and for ``--rows``, such as ``cpu DP xcores``.
        threads: number of threads.
        unit: SI unit of the values; lower values are better if it is s.
        highest: highest end of the intervals of the nodes' medians.
        bound: value that every good node reaches.
        is_cpu: whether the row is proportional to the CPU time of its threads.
        is_private: whether the row uses only the cores of its threads, and no memory of the whole node.
        argv: name of the kernel, and its options without the amount of work.
        cpus: CPUs that the threads are pinned to.
        overhead_s: seconds of the command besides measuring.
        clock_limit_hz: lowest limit of these CPUs' clocks (``scaling_max_freq``), if known.
        is_headline: whether the row is checked by default.
    """

    name: str
    threads: int
    unit: str
    highest: float
    bound: float
    is_cpu: bool
    is_private: bool
    argv: list[str]
    cpus: list[int]
    overhead_s: float
    clock_limit_hz: float | None
    is_headline: bool

    def is_reached_by(self, value: float) -> bool:
        """Return whether a value is at least as good as ``bound``."""
        if self.unit == "s":
            return value <= self.bound
        return value >= self.bound


class Try(NamedTuple):
    """One measurement of a row.

    Attributes:
        value: measured value in the unit of the row.
        disturbance: what disturbed it, in words; empty if nothing did.
        quota: CPUs whose time the control group allows, if they are fewer than the threads; else None.
        wrong_cpu: CPU that computed a wrong result, or None.
    """

    value: float
    disturbance: str = ""
    quota: float | None = None
    wrong_cpu: int | None = None


def find_kernel(folder: Path, name: str) -> Path:
    """Return the path of a kernel that was compiled for this architecture, or in the folder itself.

    Raises:
        Unavailable: the kernel was not compiled.
    """
    for path in (folder / os.uname().machine / name, folder / name):
        if os.access(path, os.X_OK):
            return path.resolve()
    raise Unavailable(
        f"the kernel {name} is not in {folder.resolve()}",
        "compile it with `make kernels`, or name its folder with --kernels",
    )


def measure(row: ClassRow, kernel: Path, seconds: float, limit_s: float) -> Try:
    """Measure a row once.

    Args:
        row: the row.
        kernel: path of the kernel.
        seconds: time to measure.
        limit_s: seconds after which the kernel is killed.

    Raises:
        Unavailable: this machine cannot measure the row, or not within the time.
        MeasurementError: the kernel failed.
    """
    argv = [str(kernel), *row.argv[1:], "--seconds", f"{seconds:.3f}"]
    before = noise.read(tuple(row.cpus))
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=limit_s,
            env={"LC_ALL": "C", "PATH": os.defpath},
            cwd="/",
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{kernel.name} did not measure {row.name} in time") from None
    except OSError as error:
        raise Unavailable(f"{kernel} cannot be executed ({error.strerror})") from error
    after = noise.read(tuple(row.cpus))
    try:
        printed = json.loads(done.stdout)
    except ValueError:
        printed = {}
    if printed.get("wrong_cpus"):
        return Try(0.0, wrong_cpu=printed["wrong_cpus"][0])
    if done.returncode == NOT_POSSIBLE:
        raise Unavailable(f"{row.name}: {done.stderr.strip() or 'this machine cannot measure it'}")
    value = printed.get("value")
    if done.returncode or not isinstance(value, float | int) or value <= 0:
        said = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise MeasurementError(
            f"{kernel.name} failed in {row.name} with exit code {done.returncode}: {said[0]}"
        )
    quota = _quota(row)
    during = noise.between(before, after) or {}
    disturbances = _disturbances(row, printed, during, quota)
    cap = _lowered_clock(before.state["clock_limit_hz"], row.clock_limit_hz)
    return Try(float(value), " and ".join(filter(None, [*disturbances, cap])), quota)


def _quota(row: ClassRow) -> float | None:
    """Return the CPUs whose time the control group allows, if they are fewer than the threads."""
    quota: float | None = job_limits.collect(Host())["cpu_quota"]
    if quota and quota < row.threads:
        return quota
    return None


def _disturbances(
    row: ClassRow, printed: Mapping[str, Any], during: Mapping[str, Any], quota: float | None
) -> list[str]:
    """Return in words how other programs and the hypervisor disturbed a try.

    The time for which a quota of the control group holds the threads back is no disturbance.
    """
    context = {
        "noise": {"during": during},
        "placed": {"threads": row.threads, "cpus": row.cpus},
        "allowed": {"cpu_quota": quota},
    }
    amounts = noise.find("cpu" if row.is_cpu else "memory", context, printed)
    disturbances = []
    if "other-load" in amounts:
        disturbances.append(f"other programs used {amounts['other-load']:.1f} CPUs")
    if "steal" in amounts:
        disturbances.append(f"the hypervisor took {percent(amounts['steal'])} % of the CPU time")
    # Other load and steal make threads wait, so that waiting is named only without them.
    if "waited" in amounts and not disturbances:
        disturbances.append(
            f"the threads waited for a CPU {percent(amounts['waited'])} % of the time"
        )
    return disturbances


def _lowered_clock(limit_hz: float | None, usual_hz: float | None) -> str:
    """Return a sentence part if this node's clock limit (Hz) is below the one of its class, else nothing."""
    if not limit_hz or not usual_hz or limit_hz >= LOWERED * usual_hz:
        return ""
    return (
        f"the clock was limited to {quantity(limit_hz, 'Hz')} (class: {quantity(usual_hz, 'Hz')})"
    )
