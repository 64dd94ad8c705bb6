"""``peakmark doctor``: what is here, what is missing and the command that mends it; on this machine,
or by jobs on a node of each kind of a cluster.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from peakmark import files, output, resources, slurm
from peakmark.errors import MeasurementError, PeakmarkError, Unavailable
from peakmark.formatting import gigabytes, listed
from peakmark.machine import software, storage
from peakmark.machine.host import Host, chosen, parse_cpu_list
from peakmark.plan import durations, jobs
from peakmark.run import build, cleanup, lock
from peakmark.slurm import failures
from peakmark.tools import REGISTRY, Instrument, references
from peakmark.tools.base import Tool

FOLDER = Path("results") / "doctor"
MINUTES = 5
"""Time limit of a doctor's job, where the partition allows as much."""
SIZE = jobs.Size(threads=1, cpus=1, megabytes=durations.PROGRAMS_MB)
UNCOMPILED = "missing" if resources.IS_CHECKOUT else "note"
"""How doctor marks a missing kernel: of a wheel the first run compiles it."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that end doctor; its job is cancelled then."""
Finding = tuple[str, str, str]
"""Mark (ok, note, missing or broken), subject and what was found."""


def examine(scratch: Path | None, kernels: Path, node: bool = False) -> tuple[str, bool]:
    """A line per finding on this machine, and whether nothing that is needed is missing.

    Args:
        scratch: directory for the disk cells, None for the default.
        kernels: folder of the compiled kernels.
        node: inside a job, on its node.
    """
    needed = [*_programs(), *_kernels(kernels), _scratch(files.scratch(scratch))]
    others = [*map(_reference, references().values()), *_toolchain(kernels), *_settings(), *_busy()]
    lines = [_line(*finding) for finding in (*(_cpus() if node else ()), *needed, *others)]
    lacking = [subject for mark, subject, _ in needed if mark not in ("ok", "note")]
    if not node:
        lines += ["", _verdict(lacking)]
    return "\n".join(lines), not lacking


def _verdict(lacking: list[str]) -> str:
    """Return whether this machine can be measured, and how to go on."""
    if lacking:
        return f"not ready: {listed(lacking)}, as said above; then peakmark doctor again"
    return f"ready: {resources.program('peakmark')} run quick"


def _found(tool: Tool) -> str:
    """Return the version that a tool prints, empty for one that prints none."""
    return "" if tool.version == "unknown" else f" {tool.version}"


def _line(mark: str, subject: str, text: str) -> str:
    return f"{mark:<8}{subject:<14}{text}"


def _cpus() -> Iterator[Finding]:
    """The CPUs that a job may use of those of its node, and threads a core."""
    usable, present = len(os.sched_getaffinity(0)), os.cpu_count() or 0
    cpus = f"{usable} of {present}"
    bound = "note", "CPUs", f"{cpus}; the job is bound to a part of its node"
    yield ("ok", "CPUs", cpus) if usable == present else bound
    siblings = Host().read("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list")
    yield "ok", "threads", f"{len(parse_cpu_list(siblings)) or 1} a core"


def _programs() -> Iterator[Finding]:
    mark = "note" if build.up_to_date() else "missing"
    for program in ("gcc", "make"):
        path = shutil.which(program)
        missing = f"needed to compile the kernels; apt-get install {program}"
        yield ("ok", program, path) if path else (mark, program, missing)


def _kernels(folder: Path) -> Iterator[Finding]:
    for name, instrument in REGISTRY.items():
        if instrument.reference:
            continue
        if not (folder / instrument.executables[0]).exists():
            yield UNCOMPILED, name, "not compiled; peakmark run -- kernels"
            continue
        try:
            kernel = instrument.locate(folder)
            yield "ok", name, f"{kernel} {instrument.find(kernel).version}"
        except MeasurementError as error:
            yield "broken", name, str(error)


def _reference(instrument: Instrument) -> Finding:
    name, path = instrument.name, instrument.on_path()
    if path is None:
        _, fix = next(ways(instrument))
        return "missing", name, f"its columns stay empty; {fix}"
    try:
        return "ok", name, f"{path}{_found(instrument.find(path))}"
    except Unavailable as error:
        return "missing", name, str(error)


def ways(instrument: Instrument) -> Iterator[tuple[str, str]]:
    """Where a tool is to be had, and the line that gets it; at least one."""
    if instrument.package:
        line = f"apt-get install {instrument.package}"
        if instrument.component:
            sources = f"add {instrument.component} to the components in the sources of apt"
            line = f"{sources}, apt-get update, then {line}"
        yield "Debian, root", line
    if instrument.spack:
        yield "Spack", f"spack install {instrument.spack} && spack load {instrument.spack}"
    if instrument.conda:
        yield "conda", f"conda install --channel conda-forge {instrument.conda}"
    if instrument.build:
        yield "own build", instrument.build


def tools() -> str:
    """Each reference tool: where it is, its version, and lines that get it."""
    lines = []
    for name, instrument in references().items():
        lines.append(_line(*_reference(instrument)))
        lines += [_line("", place, line) for place, line in ways(instrument)]
        path = f"/path/to/{instrument.executables[0]}"
        lines += [_line("", "elsewhere", f"tools: {{{name}: {path}}}"), ""]
    return "\n".join(lines).rstrip()


def _toolchain(kernels: Path) -> Iterator[Finding]:
    for isa, why in (software.collect_build(Host(), kernels)["left_out"] or {}).items():
        text = f"the kernels were built without {isa} ({why}); a newer compiler and assembler can, then peakmark run -- kernels"
        yield "note", "toolchain", text


def _scratch(scratch: Path) -> Finding:
    why = files.unusable(scratch)
    if why:
        fix = "set scratch: to a directory on the node"
        return "missing", "scratch", f"{scratch} cannot be used ({why}); {fix}"
    facts = storage.collect(Host(), scratch)
    text = f"{scratch}: {facts['filesystem']}, {gigabytes(files.free(scratch))} free"
    if facts["interface"] == "ram":
        fix = "this is memory, not a disk: set scratch: to a directory on a disk"
        return "note", "scratch", f"{text}; {fix}"
    return "ok", "scratch", text


def _settings() -> Iterator[Finding]:
    host = Host()
    choice = chosen(host.read("/sys/kernel/mm/transparent_hugepage/enabled"))
    if choice == "never":
        yield "note", "huge pages", "never; memory figures will be lower than the machine can do"
    elif choice:
        yield "ok", "huge pages", choice
    if host.read("/proc/sys/kernel/io_uring_disabled") not in (None, "0"):
        off = "switched off by kernel.io_uring_disabled; the psync engine is not affected"
        yield "note", "io_uring", off
    sbatch = shutil.which("sbatch")
    yield "note", "Slurm", sbatch or "not here; peakmark run measures this machine"


def _busy() -> Iterator[Finding]:
    try:
        with lock.held("campaign"):
            pass
    except PeakmarkError as error:
        yield "note", "busy", str(error)


# -- on a cluster


def examine_cluster(
    settings: Mapping[str, Any], scratch: Path | None, wait_s: float
) -> tuple[str, bool]:
    """Have Slurm check a job of each kind, then run one on a node of each size; lines, and whether
    all is well.

    Args:
        settings: section ``slurm`` of the site file.
        scratch: directory for the disk cells, None for the default.
        wait_s: how long each job may wait.

    Raises:
        SlurmError: Slurm does not answer.
    """
    nodes = slurm.nodes(settings.get("partition"), settings.get("reservation"))
    limits = [node.limit for node in nodes if node.limit is not None]
    minutes = jobs.clip_minutes(MINUTES, min(limits, default=None))
    single, pair = (jobs.site_options(settings, count, minutes, lambda: SIZE) for count in (1, 2))
    lines = []
    for subject, wanted in (("one node", single), ("two nodes", pair)):
        refusal = failures.check(wanted, jobs.command_line(wanted, settings))
        if refusal is None:
            lines.append(_line("ok", subject, "Slurm would take such a job"))
        elif refusal.is_temporary:
            later = "a campaign asks again until it does"
            lines.append(_line("note", subject, f"Slurm takes none now: {refusal.text}; {later}"))
        else:
            lines.append(_line("missing", subject, refusal.text))
        if refusal and wanted is single:
            return "\n".join(lines), False
    kinds = defaultdict[tuple[int, int, str], list[slurm.Node]](list)
    for node in nodes:
        features = " ".join(sorted(node.features))
        kinds[node.cpus, node.memory, features].append(node)
    for (cpus, memory, _), equal in sorted(kinds.items()):
        names = ", ".join(node.name for node in equal[:4])
        lines += ["", f"{len(equal)} x {cpus} CPUs, {memory} MiB: {names}"]
        usable = next((node for node in equal if node.usable), None)
        if usable is None:
            lines.append(_line("note", "nodes", f"none can be used now ({equal[0].state})"))
            continue
        options = jobs.command_line({**single, "nodelist": usable.name}, settings)
        lines.append(_examine_node(options, usable.name, scratch, wait_s))
    return "\n".join(lines), True


def _examine_node(options: list[str], node: str, scratch: Path | None, wait_s: float) -> str:
    """The lines of a job on the node, by ``peakmark doctor`` there."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{node}.txt"
    path.unlink(missing_ok=True)
    where = ("--scratch", str(scratch)) if scratch else ()
    command = shlex.join(resources.command("doctor", "--node", *where))
    script = f"#!/bin/sh\n{command} > {path}.part 2>&1; mv {path}.part {path}\n"
    options = [*options, "--job-name=peakmark-doctor", "--output=/dev/null"]
    options.append(f"--comment=doctor/{node} {os.getpid()}")  # by which its number can be found
    number = ""
    try:
        with cleanup.held(*SIGNALS):  # else nobody might know the number of a job in the queue
            number = slurm.submit(options, script)
        output.tell(f"job {number} asks {node}; it may wait {wait_s:g} s for its turn (--wait)")
        return _answer(path, number, wait_s)
    except BaseException as error:
        with cleanup.held(*SIGNALS), contextlib.suppress(PeakmarkError):
            slurm.cancel([number] if number else [])
        if not number and isinstance(error, slurm.SlurmError):
            return _line("missing", "job", failures.refusal(error))
        raise


def _answer(path: Path, number: str, wait_s: float) -> str:
    deadline = time.monotonic() + wait_s
    while not path.exists() and time.monotonic() < deadline:
        for job in slurm.jobs("all"):
            if job.number == number and job.state in slurm.ENDED_BADLY:
                return _line("missing", "job", f"Slurm ended it: {job.state} {job.reason}")
        time.sleep(0.5)
    if path.exists():
        return path.read_text(encoding="utf-8").rstrip()
    slurm.cancel([number])
    late = f"did not run within {wait_s:g} s and is cancelled; --wait gives it longer"
    return _line("note", "job", late)
