"""Measure a row once on this node, and find out whether something disturbed it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from peakmark.catalogue import NOT_POSSIBLE
from peakmark.check.expected import ClassRow, Recipe
from peakmark.errors import MeasurementError, Unavailable
from peakmark.formatting import percent, quantity
from peakmark.machine import job_limits
from peakmark.machine.host import Host
from peakmark.run import noise

LOWERED = 0.99
"""Share of the class's limit of the clock below which this node's limit counts as lowered."""


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
    after = noise.read(recipe.cpus)
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
    quota = _quota(row)
    during = noise.between(before, after) or {}
    disturbances = _disturbances(row, recipe, printed, during, quota)
    cap = _lowered_clock(before.state["clock_limit_hz"], recipe.clock_limit_hz)
    return Try(float(value), " and ".join(filter(None, [*disturbances, cap])), quota)


def _printed(text: str) -> Mapping[str, Any]:
    """Return the JSON object that a kernel printed; empty if there is none."""
    try:
        printed = json.loads(text)
    except ValueError:
        return {}
    if not isinstance(printed, dict):
        return {}
    return printed


def _quota(row: ClassRow) -> float | None:
    """Return the CPUs whose time the control group allows, if they are fewer than the threads."""
    quota: float | None = job_limits.collect(Host())["cpu_quota"]
    if quota and quota < row.concurrency:
        return quota
    return None


def _disturbances(
    row: ClassRow,
    recipe: Recipe,
    printed: Mapping[str, Any],
    during: Mapping[str, Any],
    quota: float | None,
) -> list[str]:
    """Return in words how other programs and the hypervisor disturbed a try.

    The time for which a quota of the control group holds the threads back is no disturbance.
    """
    context = {
        "noise": {"during": during},
        "placed": {"threads": row.concurrency, "cpus": recipe.cpus},
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
    return disturbances


def _lowered_clock(limit_hz: float | None, usual_hz: float | None) -> str:
    """Return a sentence part if this node's clock limit is below the one of its class; else an empty text.

    Args:
        limit_hz: highest clock that the OS kernel of this node allows, if known.
        usual_hz: highest clock that it allows on the nodes of the class, if known.
    """
    if not limit_hz or not usual_hz or limit_hz >= LOWERED * usual_hz:
        return ""
    return (
        f"the clock was limited to {quantity(limit_hz, 'Hz')} (class: {quantity(usual_hz, 'Hz')})"
    )
