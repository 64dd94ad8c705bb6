"""List installed and missing programs, and the commands that install them (``peakmark doctor``).

Doctor examines this machine. On a cluster it asks Slurm whether it would take jobs.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from peakmark import files, resources, slurm
from peakmark.config import site
from peakmark.config.types import SiteValues
from peakmark.errors import MeasurementError, PeakmarkError
from peakmark.formatting import gigabytes, listed
from peakmark.machine import gpu, software, storage
from peakmark.machine.facts import collect
from peakmark.machine.host import Host, chosen
from peakmark.plan import durations, jobs
from peakmark.run import kernel_build, mpi
from peakmark.slurm import commands, failures
from peakmark.tools import REGISTRY, Instrument, references
from peakmark.tools import present as present_tools

MINUTES = 5
"""Time limit in minutes of the jobs that Slurm checks, unless the partition has a shorter one."""
IMMEDIATE_S = 20
"""Seconds in which two nodes must be free for the job that tries the launchers of MPI."""
LAUNCHERS_MIN = 3
"""Time limit in minutes of the job that tries the launchers of MPI.

There are four launchers. Each may hang for half a minute, and takes time to end.
"""
UNCOMPILED = "missing" if resources.IS_CHECKOUT else "note"
"""Mark of a missing kernel: in an installation from a wheel only a note.

The first run from a wheel compiles the kernels.
"""
Finding = tuple[str, str, str]
"""Mark (ok, note, missing or broken), subject and text."""


def examine(scratch: Path | None, kernels: Path) -> tuple[str, bool]:
    """Return a line for each finding, and whether this machine has everything that a run needs.

    Args:
        scratch: directory for the disk cells; None for the default.
        kernels: folder of the compiled kernels.
    """
    needed = [*_programs(), *_kernels(kernels), _scratch(files.scratch(scratch))]
    # The reference tools for GPUs are functions that gpubench calls; those for MPI come with its library.
    usual = [tool for tool in references().values() if tool.rows[0].subsystem not in ("mpi", "gpu")]
    findings = list(needed)
    for tool in usual:
        findings += _reference(tool)
    findings += _gpus(kernels)
    findings += [*_toolchain(kernels), *_settings()]
    lines = [_line(*finding) for finding in findings]
    lacking = [subject for mark, subject, _ in needed if mark not in ("ok", "note")]
    lines += ["", _verdict(lacking)]
    return "\n".join(lines), not lacking


def _verdict(lacking: list[str]) -> str:
    """Return whether this machine can be measured, and how to go on."""
    if lacking:
        return f"not ready: {listed(lacking)}, as said above; then peakmark doctor again"
    return f"ready: {resources.program('peakmark')} run quick"


def _line(mark: str, subject: str, text: str) -> str:
    return f"{mark:<8}{subject:<14}{text}"


def _programs() -> Iterator[Finding]:
    """Yield where gcc and make are. A missing one is only a note if the kernels are compiled already."""
    mark = "note" if kernel_build.up_to_date() else "missing"
    for program in ("gcc", "make"):
        path = shutil.which(program)
        if path:
            yield "ok", program, path
        else:
            yield mark, program, f"needed to compile the kernels; apt-get install {program}"


def _kernels(folder: Path) -> Iterator[Finding]:
    """Yield where peakmark's kernels are, and whether they start."""
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


def _reference(instrument: Instrument) -> Iterator[Finding]:
    """Yield where a reference tool is; if it is missing, also the commands that install it."""
    name, path = instrument.name, instrument.on_path()
    if path is None:
        yield "missing", name, "its columns stay empty; one of these installs it"
        for source, command in ways(instrument):
            yield "", f"  {source}", command
        return
    try:
        found = f"{path} {instrument.find(path).version}"
        yield "ok", name, found.removesuffix(" unknown")
    except PeakmarkError as error:
        yield "missing", name, str(error)


def ways(instrument: Instrument) -> Iterator[tuple[str, str]]:
    """Yield (source, command) for each way to install a tool; there is at least one."""
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


def _toolchain(kernels: Path) -> Iterator[Finding]:
    """Yield each instruction set that the kernels were built without, with the reason."""
    left_out = software.collect_build(Host(), kernels)["left_out"] or {}
    for isa, why in left_out.items():
        text = f"the kernels were built without {isa} ({why}); a newer compiler and assembler can, then peakmark run -- kernels"
        yield "note", "toolchain", text


def _scratch(scratch: Path) -> Finding:
    """Return whether the disk cells can write into their directory, and whether it is on a disk."""
    why = files.unusable(scratch)
    if why:
        fix = "set scratch: to a directory on the node"
        return "missing", "scratch", f"{scratch} cannot be used ({why}); {fix}"
    disk = storage.collect(Host(), scratch)
    text = f"{scratch}: {disk['filesystem']}, {gigabytes(shutil.disk_usage(scratch).free)} free"
    if disk["interface"] == "ram":
        fix = "this is memory, not a disk: set scratch: to a directory on a disk"
        return "note", "scratch", f"{text}; {fix}"
    return "ok", "scratch", text


def _settings() -> Iterator[Finding]:
    """Yield whether the kernel gives huge pages, and whether Slurm is here."""
    host = Host()
    choice = chosen(host.read("/sys/kernel/mm/transparent_hugepage/enabled"))
    if choice == "never":
        yield "note", "huge pages", "never; memory figures will be lower than the machine can do"
    elif choice:
        yield "ok", "huge pages", choice
    sbatch = shutil.which("sbatch")
    yield "note", "Slurm", sbatch or "not here; peakmark run measures this machine"


def _gpus(kernels: Path) -> Iterator[Finding]:
    """Yield how many GPUs of this machine can be used, and whether one is divided (MIG); nothing without a GPU."""
    present = gpu.on_bus(Host())
    count, reason = gpu.survey()
    if not present and not count:
        return
    # A job sees the GPUs that it asked for. Elsewhere, the driver should find all of them.
    mark = "note"
    advice = "ask for all in gpus: {gres: gpu} of the site file"
    if "SLURM_JOB_ID" not in os.environ:
        mark, advice = "broken", "see dmesg and nvidia-smi"
    if not count:
        yield mark, "GPUs", f"none of {present} can be used: {reason}; {advice}"
        return
    known = gpu.collect(Host(), kernels / "gpubench") or {"name": None, "partitioned": False}
    name = known["name"] or "GPUs"
    if count < present:
        yield mark, "GPUs", f"{count} of {present} {name} can be used; {advice}"
    else:
        yield "ok", "GPUs", f"{count} x {name}"
    if known["partitioned"]:
        yield "note", "MIG", "a GPU is divided into instances, which are not measured"


def facts(scratch: Path | None, kernels: Path) -> str:
    """Return the facts of this machine as JSON. Arguments as for ``examine``."""
    found = collect(scratch, tools=present_tools(kernels), cpubench=kernels / "cpubench")
    return json.dumps(found, indent=1, sort_keys=True)


# -- on a cluster


def examine_cluster(site_file: Path | None) -> tuple[str, bool]:
    """Have Slurm check jobs, and return a line for each finding, and whether a campaign can run.

    Args:
        site_file: site file with partition and account; None for Slurm's defaults.

    Raises:
        ConfigError: the site file is wrong.
        SlurmError: Slurm does not answer.
    """
    known, option = SiteValues(), ""
    if site_file is not None:
        known, option = site.load(site_file), f" --site {shlex.quote(str(site_file))}"
    text, is_ready = _examine_jobs(known)
    verdict = "not ready: Slurm would reject a job on one node, see above"
    if is_ready:
        verdict = f"ready: {resources.program('peakmark')} run quick --slurm{option}"
    return f"{text}\n\n{verdict}", is_ready


def _examine_jobs(known: SiteValues) -> tuple[str, bool]:
    """Have Slurm check a job of one node and one of two, and try MPI in such a job.

    Return the lines to print, and whether Slurm takes a job of one node.
    """
    settings = known.slurm
    nodes = slurm.nodes(settings.partition, settings.reservation)
    limits = [node.limit for node in nodes if node.limit is not None]
    minutes = jobs.clip_minutes(MINUTES, min(limits, default=None))
    lines = []
    for count, subject in ((1, "one node"), (2, "two nodes")):
        named = jobs.site_options(
            settings, count, minutes, cpu_count=1, memory_mb=durations.PROGRAMS_MB
        )
        refusal = failures.check(named, jobs.command_line(named, settings))
        lines.append(_line(*_job_finding(subject, refusal)))
        if refusal and count == 1:
            return lines[0], False
        if refusal is None and count == 2:
            lines += [_line(*finding) for finding in _launchers(known)]
    there = f"srun {resources.program('peakmark')} doctor"
    lines.append(_line("note", "programs", f"{there} lists those of a node"))
    return "\n".join(lines), True


def _launchers(known: SiteValues) -> Iterator[Finding]:
    """Yield which launchers start ranks of MPI on two nodes, and why others do not. A short job tries them."""
    shared = kernel_build.folder().absolute()  # the node sees the kernels, and so this folder
    shared.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="doctor-", dir=shared) as name:
        named = jobs.site_options(
            known.slurm, 2, LAUNCHERS_MIN, cpu_count=1, memory_mb=durations.PROGRAMS_MB
        )
        named["immediate"] = str(IMMEDIATE_S)
        # Only the folder of plan.json counts: mpibench is compiled for it below, and there is no
        # plan.
        step = ["srun", "--overlap", "--nodes=1", "--ntasks=1"]
        step += resources.command("measure", "--plan", f"{name}/plan.json", "--launchers")
        argv = ["salloc", *jobs.command_line(named, known.slurm), *step]
        try:
            mpi.compile_for(Path(name), known.mpi)
            answers = commands.ask(*argv, limit_s=60.0 * LAUNCHERS_MIN + IMMEDIATE_S)
        except PeakmarkError as error:
            yield "note", "MPI", f"no launcher was tried: {error}"
            return
    for line in answers.splitlines():
        launch, reason = msgspec.json.decode(line, type=tuple[mpi.Launch, str])
        if reason:
            yield "note", "MPI", f"{launch.text} starts no ranks on two nodes: {reason}"
        else:
            over = f" over {launch.transport}" if launch.transport else ""
            yield "ok", "MPI", f"{launch.text} starts ranks on two nodes{over}"


def _job_finding(subject: str, refusal: failures.Refusal | None) -> Finding:
    """Return whether Slurm would take a job on ``subject``, such as two nodes."""
    if refusal is None:
        return "ok", subject, "Slurm would take such a job"
    if refusal.is_temporary:
        later = "a campaign asks again until it does"
        return "note", subject, f"Slurm takes none now: {refusal.text}; {later}"
    return "missing", subject, refusal.text
