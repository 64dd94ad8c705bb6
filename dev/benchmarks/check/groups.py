"""Limit the CPU time of a command by a control group."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from peakmark.errors import Unavailable
from peakmark.machine import job_limits
from peakmark.machine.host import Host

PERIOD_US = 20_000
GONE_S = 10.0
"""Longest wait, in seconds, until the kernel lets go of a group whose processes have ended."""


@contextmanager
def limited(cpus: float) -> Iterator[list[str]]:
    """Yield the start of an argv that runs a command with the time of so many CPUs.

    Raises:
        Unavailable: no control group can be made here.
    """
    with quota_group(cpus) as group:
        script = f'echo $$ > {shlex.quote(str(group))}/cgroup.procs; exec "$@"'
        yield ["sh", "-c", script, "sh"]


@contextmanager
def quota_group(cpus: float, name: str = "check") -> Iterator[Path]:
    """Yield the folder of a control group with a quota, and remove it after the block.

    Raises:
        Unavailable: no control group can be made here.
    """
    quota_us = round(cpus * PERIOD_US)
    reason = "no control group limits the CPU time"
    for version, folder in job_limits.folders(Host(), "cpu"):
        group = Path(folder) / f"peakmark-{name}-{os.getpid()}"
        limits = {"cpu.cfs_period_us": f"{PERIOD_US}", "cpu.cfs_quota_us": f"{quota_us}"}
        if version == 2:
            limits = {"cpu.max": f"{quota_us} {PERIOD_US}"}
        try:
            group.mkdir()
            for file, text in limits.items():
                (group / file).write_text(text)
        except OSError as error:
            reason = str(error)
            with suppress(OSError):
                group.rmdir()
            continue
        try:
            yield group
        finally:
            _remove(group)
        return
    raise Unavailable(reason)


def _remove(group: Path) -> None:
    """Remove a control group once its last process has ended."""
    deadline = time.monotonic() + GONE_S
    while group.exists() and time.monotonic() < deadline:
        with suppress(OSError):
            group.rmdir()
        time.sleep(0.01)
