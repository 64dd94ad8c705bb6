"""What every instrument answers: is it here, what is run, what do its words mean, what does it
cost.

An instrument knows argv and output of one program. It knows nothing of Snakemake, Slurm, records or
other instruments. ``peakmark.run.measure`` runs what ``prepare`` returns and hands the
outcome to ``parse``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from peakmark.cell import Cell


@dataclass(frozen=True)
class Coverage:
    """Rows a reference tool can stand beside.

    subsystem        the subsystem of the rows
    workloads        their workloads
    variants         their variants; empty: any
    cell             None: one cell per workload. Otherwise the workload name of a cell that fills
                     all of them at once
    per_block        False: one execution serves every block size
    per_concurrency  False: one execution, at concurrency 1, serves every concurrency
    """

    subsystem: str
    workloads: tuple[str, ...]
    variants: tuple[str, ...] = ()
    cell: str | None = None
    per_block: bool = True
    per_concurrency: bool = True


@dataclass(frozen=True)
class Tool:
    """A program found on this machine. ``version`` is its own word, ``unknown`` if it has none."""

    name: str
    path: str
    version: str


@dataclass(frozen=True)
class Workspace:
    """Where and with what a cell runs.

    directory       private, empty, 0700; removed afterwards. Disk cells put their files below it:
                    it lies on the scratch filesystem that is measured.
    cpus            CPUs the job was given (affinity and cgroup), one per physical core first; len
                    >= 1
    memory_bytes    memory the job may use
    facts           machine facts (``peakmark.machine``), may be empty
    """

    directory: Path
    cpus: tuple[int, ...]
    memory_bytes: int
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Command:
    """One program execution. cwd is ``Workspace.directory``.

    argv       no shell. With two nodes, argv and env values may hold ``{address}`` (the server's
               or, where there is none, the second node's), ``{port}`` and ``{key}`` (a secret of
               this run); measure fills them in.
    env        added to the environment
    files      name -> text, written into cwd before the start
    outputs    files the program leaves in cwd that belong to its output
    timeout_s  the process group is ended after this time: the cell has failed
    cpus       CPUs that it may run on; empty: all of the job. For programs that cannot be told, or
               another's choice
    ok_codes   exit codes that are not a failure; 77 from an own kernel means ``Unavailable`` and is
               handled by measure
    """

    argv: tuple[str, ...]
    timeout_s: float
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    ok_codes: tuple[int, ...] = (0,)
    cpus: tuple[int, ...] = ()


@dataclass(frozen=True)
class Invocation:
    """What a cell executes: its command, beside a server that is up while it runs.

    server  argv with the placeholders of Command; ready when it listens on that TCP port; ended by
            measure. A cell with a server takes two nodes in Slurm (server on the second) and
            loopback on one machine.
    """

    command: Command
    server: Command | None = None


@dataclass(frozen=True)
class Completed:
    """What a command left: exit code, both streams whole, its output files by name, wall time in
    seconds.
    """

    argv: tuple[str, ...]
    returncode: int
    stdout: str
    stderr: str
    files: Mapping[str, str] = field(default_factory=dict)
    elapsed_s: float = 0.0


@dataclass(frozen=True)
class Measurement:
    """One value in SI base units.

    metric   cpu ``rate`` (op/s); memory ``throughput`` (B/s) ``latency`` (s); disk ``throughput``
             (B/s) ``iops`` (1/s) ``latency`` (s, mean per operation); network ``throughput`` (bit/s
             at the receiver) ``latency`` (s, round trip; details say ``half: true`` where a tool
             only gives one way, already doubled here)
    unit     ``op/s`` ``B/s`` ``s`` ``1/s`` ``bit/s``
    workload, variant, block, concurrency   the table row it belongs to; for a tool that fills
                                            several rows they differ
             from the cell's own
    details  JSON scalars worth keeping: percentiles in s (p50 p90 p99 p999 max), loss, isa,
             instruction, routine, ``estimate: true`` where the value is derived, not measured
    """

    workload: str
    variant: str
    block: int | None
    concurrency: int
    metric: str
    value: float
    unit: str
    details: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        cell: Cell,
        metric: str,
        value: float,
        unit: str,
        details: Mapping[str, Any],
        workload: str = "",
    ) -> Measurement:
        """A value for the cell's own row, or for the one that differs in ``workload``."""
        place = (workload or cell.workload, cell.variant, cell.area, cell.concurrency)
        return cls(*place, metric=metric, value=value, unit=unit, details=details)


@dataclass(frozen=True)
class Parsed:
    """Everything read from an execution: values, the tool's version, library (HPL's BLAS and core
    type), warnings.
    """

    measurements: tuple[Measurement, ...]
    version: str | None = None
    library: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


SLOWEST_LINK = 1e8
"""bit/s of the slowest network that a fixed amount of data may have to cross: Fast Ethernet."""


@dataclass(frozen=True)
class Cost:
    """What a cell is expected to need: wall seconds, bytes on scratch, bytes of memory.

    seconds    on a slow machine with the slowest network there is: what a command may take goes by
               it
    fixed_s    of them, those that no machine shortens: start, warm-up, an asked time, a tool's own
               sleeps
    wire_bits  what must cross the network; it is in ``seconds`` at ``SLOWEST_LINK``
    waits_s    of the seconds, those in which each write waits for the disk, one after the other:
               most disks take several at once
    """

    seconds: float
    disk_bytes: int = 0
    memory_bytes: int = 0
    fixed_s: float = 0.0
    wire_bits: float = 0.0
    waits_s: float = 0.0
