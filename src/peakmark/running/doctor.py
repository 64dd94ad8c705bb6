"""What is here, what is missing, and the command that would mend it."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from peakmark import files
from peakmark.errors import PeakmarkError
from peakmark.instruments import REGISTRY
from peakmark.machine import libraries
from peakmark.machine.host import Host, chosen
from peakmark.measuring import lock
from peakmark.reasons import MeasurementError, Unavailable
from peakmark.running import probe
from peakmark.units import gigabytes


@dataclass
class _Findings:
    """Lines for the user; ``healthy`` is lost only when something is missing without which nothing can be measured."""

    lines: list[str] = field(default_factory=list)
    healthy: bool = True

    def ok(self, what: str, finding: str) -> None:
        self._add("ok", what, finding)

    def note(self, what: str, finding: str) -> None:
        self._add("note", what, finding)

    def broken(self, what: str, finding: str) -> None:
        self.healthy = False
        self._add("broken", what, finding)

    def missing(self, what: str, finding: str, needed: bool = False) -> None:
        self.healthy &= not needed
        self._add("missing", what, finding)

    def _add(self, mark: str, what: str, finding: str) -> None:
        self.lines.append(f"{mark:<8}{what:<14}{finding}")


def examine(scratch: Path | None, kernels: Path, node: bool = False) -> tuple[str, bool]:
    """A line per finding, and whether nothing that is needed is missing. ``node``: inside a job, on its node."""
    findings = _Findings()
    for mark, what, words in probe.of_node() if node else ():
        findings._add(mark, what, words)
    _programs(findings)
    _instruments(findings, kernels)
    _toolchain(findings, kernels)
    _scratch(findings, files.scratch(scratch))
    _settings(findings)
    try:
        with lock.held("campaign"):
            pass
    except PeakmarkError as error:
        findings.note("busy", str(error))
    return "\n".join(findings.lines), findings.healthy


def _programs(findings: _Findings) -> None:
    for program in ("gcc", "make"):
        found = shutil.which(program)
        if found:
            findings.ok(program, found)
        else:
            findings.missing(program, f"needed to compile the kernels; apt-get install {program}", needed=True)


def _instruments(findings: _Findings, kernels: Path) -> None:
    for name, instrument in REGISTRY.items():
        if not instrument.reference:
            path = kernels / instrument.executables[0]
            if not path.exists():
                findings.missing(name, "not compiled; make kernels", needed=True)
                continue
            try:
                kernel = instrument.locate(kernels)
                findings.ok(name, f"{kernel} {instrument.find(kernel).version}")
            except MeasurementError as error:
                findings.broken(name, str(error))
            continue
        found = instrument.on_path()
        if found is None:
            package = instrument.package
            fix = (
                f"apt-get install {package}" if package else f"put it on PATH or set tools.{name} in the configuration"
            )
            findings.missing(name, f"its columns stay empty; {fix}")
            continue
        try:
            findings.ok(name, f"{found} {instrument.find(found).version}")
        except Unavailable as error:
            findings.missing(name, str(error))


def _toolchain(findings: _Findings, kernels: Path) -> None:
    for isa, why in (libraries.collect_build(Host(), kernels)["left_out"] or {}).items():
        text = f"the kernels were built without {isa} ({why}); a newer compiler and assembler can, then make kernels"
        findings.note("toolchain", text)


def _scratch(findings: _Findings, scratch: Path) -> None:
    try:
        kind = subprocess.run(
            ["stat", "-f", "-c", "%T", str(scratch)], capture_output=True, text=True, timeout=10, check=True
        ).stdout.strip()
        free = files.free(scratch)
    except (OSError, subprocess.SubprocessError):
        findings.missing("scratch", f"{scratch} cannot be used; set scratch: to a directory on the node")
        return
    text = f"{scratch}: {kind}, {gigabytes(free)} free"
    if kind in ("tmpfs", "ramfs"):
        findings.note("scratch", f"{text}; this is memory, not a disk: set scratch: to a directory on a disk")
    else:
        findings.ok("scratch", text)


def _settings(findings: _Findings) -> None:
    host = Host()
    choice = chosen(host.read("/sys/kernel/mm/transparent_hugepage/enabled"))
    if choice == "never":
        findings.note("huge pages", "never; memory figures will be lower than the machine can do")
    elif choice:
        findings.ok("huge pages", choice)
    if host.read("/proc/sys/kernel/io_uring_disabled") not in (None, "0"):
        findings.note("io_uring", "switched off by kernel.io_uring_disabled; the psync engine is not affected")
    slurm = shutil.which("sbatch")
    findings.note("Slurm", slurm or "not here; measure this machine with --profile local")
