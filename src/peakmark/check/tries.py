"""Measure a row once on this node, and find out whether something disturbed it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from peakmark.check.campaign import ClassRow, Recipe
from peakmark.errors import MeasurementError, Unavailable
from peakmark.formatting import percent
from peakmark.machine import job_limits
from peakmark.machine.host import Host
from peakmark.run import noise

NOT_POSSIBLE = 77
"""Exit code with which a kernel reports that this machine cannot measure the row."""
CAPPED = 0.99
"""Share of a CPU's highest clock below which its limit counts as lowered."""
_CPU = "/sys/devices/system/cpu"


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


def measure(row: ClassRow, recipe: Recipe, kernel: Path, seconds: float, limit_s: float) -> Try:
    """Measure a row once.

    Args:
        row: the row.
        recipe: command of the row.
        kernel: path of the kernel.
        seconds: time to measure.
        limit_s: seconds after which the kernel is killed.

    Raises:
        Unavailable: this machine cannot measure the row, or not within the time.
        MeasurementError: the kernel failed.
    """
    argv = [str(kernel), *recipe.argv[1:], "--seconds", f"{seconds:.3f}"]
    before = noise.read(recipe.cpus)
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
        raise Unavailable(f"{row.instrument} did not measure {row.name} in time") from None
    except OSError as error:
        raise Unavailable(f"{kernel} cannot be executed ({error.strerror})") from error
    during = noise.between(before, noise.read(recipe.cpus)) or {}
    printed = _printed(done.stdout)
    if printed.get("wrong_cpus"):
        return Try(0.0, wrong_cpu=printed["wrong_cpus"][0])
    if done.returncode == NOT_POSSIBLE:
        raise Unavailable(f"{row.name}: {done.stderr.strip() or 'this machine cannot measure it'}")
    value = printed.get("value")
    if done.returncode or not isinstance(value, float | int) or value <= 0:
        said = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise MeasurementError(
            f"{row.instrument} failed in {row.name} with exit code {done.returncode}: {said[0]}"
        )
    return _judged(row, recipe, float(value), printed, during)


def _printed(text: str) -> Mapping[str, Any]:
    """Return the JSON object that a kernel printed; empty if there is none."""
    try:
        printed = json.loads(text)
    except ValueError:
        return {}
    if not isinstance(printed, dict):
        return {}
    return printed


def _judged(
    row: ClassRow,
    recipe: Recipe,
    value: float,
    printed: Mapping[str, Any],
    during: Mapping[str, Any],
) -> Try:
    """Return a try with what disturbed it: other programs, the hypervisor, or a limit of the clock.

    The time for which a quota of the control group holds the threads back is no disturbance.
    """
    host = Host()
    quota = job_limits.collect(host)["cpu_quota"]
    threads = row.concurrency
    context = {
        "noise": {"during": during},
        "placed": {"threads": threads, "cpus": recipe.cpus},
        "allowed": {"cpu_quota": quota},
    }
    amounts = noise.find(row.subsystem, context, printed)
    disturbances = []
    if "other-load" in amounts:
        disturbances.append(f"other programs used {amounts['other-load']:.1f} CPUs")
    if "steal" in amounts:
        disturbances.append(f"the hypervisor took {percent(amounts['steal'])} % of the CPU time")
    if "waited" in amounts and not disturbances:
        disturbances.append(
            f"the threads waited for a CPU {percent(amounts['waited'])} % of the time"
        )
    cap = _lowered_clock(host, recipe.cpus)
    if cap:
        disturbances.append(cap)
    if quota and quota >= threads:
        quota = None
    return Try(value, " and ".join(disturbances), quota)


def _lowered_clock(host: Host, cpus: tuple[int, ...]) -> str:
    """Return that the kernel's limit of the clock is below the CPU's highest clock; empty if it is not."""
    for cpu in cpus:
        folder = f"{_CPU}/cpu{cpu}/cpufreq"
        limit = host.read_int(folder, "scaling_max_freq")
        highest = host.read_int(folder, "cpuinfo_max_freq")
        if limit and highest and limit < CAPPED * highest:
            return f"the clock is limited to {limit / 1e6:.2f} of {highest / 1e6:.2f} GHz"
    return ""
