"""What is here, what is missing, and the command that would mend it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from peakmark import files
from peakmark.errors import PeakmarkError
from peakmark.machine import software
from peakmark.machine.host import Host, chosen, parse_cpu_list
from peakmark.reasons import MeasurementError, Unavailable
from peakmark.run import lock
from peakmark.tools import REGISTRY
from peakmark.units import gigabytes

Finding = tuple[str, str, str]
"""Mark (ok, note, missing or broken), what it is about, and what was found."""


def examine(scratch: Path | None, kernels: Path, node: bool = False) -> tuple[str, bool]:
    """A line per finding, and whether nothing that is needed is missing. ``node``: inside a job, on
    its node.
    """
    needed = [*_programs(), *_kernels(kernels), _scratch(files.scratch(scratch))]
    others = [*_references(), *_toolchain(kernels), *_settings(), *_busy()]
    lines = [line(*finding) for finding in (*(_cpus() if node else ()), *needed, *others)]
    return "\n".join(lines), all(mark in ("ok", "note") for mark, _, _ in needed)


def line(mark: str, what: str, text: str) -> str:
    """A finding as it is printed."""
    return f"{mark:<8}{what:<14}{text}"


def _cpus() -> Iterator[Finding]:
    """The CPUs that a job may use of those of its node, and threads a core."""
    usable, present = len(os.sched_getaffinity(0)), os.cpu_count() or 0
    if usable == present:
        yield "ok", "CPUs", f"{usable} of {present}"
    else:
        bound = "the job is bound to a part of its node"
        yield "note", "CPUs", f"{usable} of {present}; {bound}"
    siblings = Host().read("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list")
    yield "ok", "threads", f"{len(parse_cpu_list(siblings)) or 1} a core"


def _programs() -> Iterator[Finding]:
    for program in ("gcc", "make"):
        path = shutil.which(program)
        missing = f"needed to compile the kernels; apt-get install {program}"
        yield ("ok", program, path) if path else ("missing", program, missing)


def _kernels(folder: Path) -> Iterator[Finding]:
    for name, instrument in REGISTRY.items():
        if instrument.reference:
            continue
        if not (folder / instrument.executables[0]).exists():
            yield "missing", name, "not compiled; make kernels"
            continue
        try:
            kernel = instrument.locate(folder)
            yield "ok", name, f"{kernel} {instrument.find(kernel).version}"
        except MeasurementError as error:
            yield "broken", name, str(error)


def _references() -> Iterator[Finding]:
    for name, instrument in REGISTRY.items():
        if not instrument.reference:
            continue
        path = instrument.on_path()
        if path is None:
            elsewhere = f"put it on PATH or set tools.{name} in the configuration"
            fix = f"apt-get install {instrument.package}" if instrument.package else elsewhere
            if instrument.component:
                fix = f"add {instrument.component} to the components in the sources of apt, apt-get update, then {fix}"
            yield "missing", name, f"its columns stay empty; {fix}"
            continue
        try:
            yield "ok", name, f"{path} {instrument.find(path).version}"
        except Unavailable as error:
            yield "missing", name, str(error)


def _toolchain(kernels: Path) -> Iterator[Finding]:
    for isa, why in (software.collect_build(Host(), kernels)["left_out"] or {}).items():
        text = f"the kernels were built without {isa} ({why}); a newer compiler and assembler can, then make kernels"
        yield "note", "toolchain", text


def _scratch(scratch: Path) -> Finding:
    try:
        with tempfile.TemporaryFile(
            dir=scratch
        ) as file:  # /proc is a folder with room, and takes none
            file.write(b"0")
        kind = subprocess.run(
            ["stat", "-f", "-c", "%T", str(scratch)],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        ).stdout.strip()
        text = f"{scratch}: {kind}, {gigabytes(files.free(scratch))} free"
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        why = getattr(error, "strerror", None) or error
        return (
            "missing",
            "scratch",
            f"{scratch} cannot be used ({why}); set scratch: to a directory on the node",
        )
    if kind in ("tmpfs", "ramfs"):
        return (
            "note",
            "scratch",
            f"{text}; this is memory, not a disk: set scratch: to a directory on a disk",
        )
    return "ok", "scratch", text


def _settings() -> Iterator[Finding]:
    host = Host()
    choice = chosen(host.read("/sys/kernel/mm/transparent_hugepage/enabled"))
    if choice == "never":
        yield "note", "huge pages", "never; memory figures will be lower than the machine can do"
    elif choice:
        yield "ok", "huge pages", choice
    if host.read("/proc/sys/kernel/io_uring_disabled") not in (None, "0"):
        yield (
            "note",
            "io_uring",
            "switched off by kernel.io_uring_disabled; the psync engine is not affected",
        )
    yield (
        "note",
        "Slurm",
        shutil.which("sbatch") or "not here; measure this machine with --profile local",
    )


def _busy() -> Iterator[Finding]:
    try:
        with lock.held("campaign"):
            pass
    except PeakmarkError as error:
        yield "note", "busy", str(error)
