"""The nouns of a measurement, and ``Instrument``, one program that measures.

An instrument knows argv and output of one program. It knows nothing of Snakemake, Slurm, records or
other instruments. ``peakmark.run.measure`` runs what ``prepare`` returns and hands the outcome to
``parse``.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from socket import gethostname
from typing import Any

from peakmark.catalogue import SUBSYSTEMS
from peakmark.cell import Cell
from peakmark.errors import Unavailable

C_LOCALE: Mapping[str, str] = {"LC_ALL": "C"}
"""Environment of every command: a tool that prints 1,5 for 1.5 or groups thousands cannot be read."""
SLOWEST_LINK = 1e8
"""bit/s of the slowest network that a fixed amount of data may have to cross: Fast Ethernet."""
_VERSION_TIMEOUT_S = 10.0
"""Seconds that a tool may take to print its version or its help."""
_SERVER_MARGIN_S = 40.0
"""Seconds that a server may outlast its client's timeout, so that the client fails first."""


@dataclass(frozen=True)
class Coverage:
    """Rows that a program measures; for a reference tool, rows that it can be compared with.

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
    variants: tuple[str, ...] = ("",)
    cell: str | None = None
    per_block: bool = True
    per_concurrency: bool = True

    @property
    def of_cells(self) -> tuple[str, ...]:
        """Return the workloads of its cells."""
        return (self.cell,) if self.cell else self.workloads


@dataclass(frozen=True)
class Tool:
    """A program found on this machine. ``version`` is what it prints, ``unknown`` without one."""

    name: str
    path: str
    version: str


@dataclass(frozen=True)
class Workspace:
    """Directory, CPUs and memory of one cell's run, and the facts of its machine.

    directory       private, empty, 0700; removed afterwards. Disk cells put their files below it:
                    it lies on the scratch filesystem that is measured.
    cpus            CPUs of the job (affinity and cgroup), one per physical core first; at least 1
    memory_bytes    memory the job may use
    facts           machine facts (``peakmark.machine``), may be empty
    """

    directory: Path
    cpus: tuple[int, ...]
    memory_bytes: int
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def cpu(self) -> Mapping[str, Any]:
        """Return the facts of the processor, empty if unknown."""
        return self.facts.get("cpu") or {}

    @property
    def isa(self) -> frozenset[str]:
        """Return the instruction sets of the processor: sse2 avx avx2 fma avx512f neon ..."""
        return frozenset(self.cpu.get("isa") or ())


@dataclass(frozen=True)
class Command:
    """One program execution. cwd is ``Workspace.directory``.

    argv       no shell. With two nodes, argv and env values may hold ``{address}`` (the server's
               or, without one, the second node's), ``{port}`` and ``{key}`` (a secret of this run);
               measure fills them in.
    env        added to the environment
    files      name -> text, written into cwd before the start
    outputs    files in cwd that belong to the raw output: those that the program leaves, or its settings
    timeout_s  after this time the process group is ended, and the cell has failed
    cpus       CPUs that it may run on; empty: all of the job. For programs without such an option
    ok_codes   exit codes that are not a failure; 77 from peakmark's kernel means ``Unavailable`` and
               is handled by measure
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
    """Command of a cell, and the server that is up while the command runs.

    server  argv with the placeholders of Command; ready when it listens on that TCP port; ended by
            measure. A cell with a server takes two nodes in Slurm (server on the second) and
            loopback on one machine.
    """

    command: Command
    server: Command | None = None


@dataclass(frozen=True)
class Completed:
    """Outcome of a command: exit code, both streams whole, its output files by name, wall time in
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
             several rows they differ from the cell's
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
        cls, cell: Cell, metric: str, value: float, details: Mapping[str, Any], workload: str = ""
    ) -> Measurement:
        """Return a value for the cell's row, or for the row that differs in ``workload``."""
        unit = SUBSYSTEMS[cell.subsystem].units[metric]
        place = (workload or cell.workload, cell.variant, cell.area, cell.concurrency)
        return cls(*place, metric, value, unit, details)


@dataclass(frozen=True)
class Parsed:
    """Result of reading an execution: values, the tool's version, library (HPL's BLAS and core
    type), warnings.
    """

    measurements: tuple[Measurement, ...]
    version: str | None = None
    library: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Cost:
    """Expected needs of a cell on a slow machine.

    fixed_s       seconds that no machine shortens: start, warm-up, a given time, sleeps
    work_s        seconds of work that a faster machine shortens
    waits_s       seconds in which each write waits for the disk, one after the other: most disks
                  take several at once
    wire_bits     bits that must cross the network
    memory_bytes  bytes of memory
    disk_bytes    bytes on the scratch filesystem
    """

    fixed_s: float
    work_s: float = 0.0
    waits_s: float = 0.0
    wire_bits: float = 0.0
    memory_bytes: int = 0
    disk_bytes: int = 0

    @property
    def seconds(self) -> float:
        """Return the wall time over the slowest network, from which a command's timeout follows."""
        return self.fixed_s + self.work_s + self.waits_s + self.wire_bits / SLOWEST_LINK


class Instrument:
    """One program that measures. Instances are stateless.

    name         key in the registry and value of ``Cell.instrument``
    rows         rows that it measures or, as a reference tool, can be compared with; like for like
                 only
    executables  names looked for on PATH, in ``tools:`` of the config, or in build/kernels; the
                 preferred one first
    reference    False for peakmark's kernel, True for a tool of the field
    two_nodes    whether a cell takes two nodes in Slurm and loopback on one machine
    version      argument that makes it print its version, and a pattern of the version in its answer

    Of reference tools only:

    heading      heading of its columns
    place        place of its columns among those of the references
    package      Debian package that carries it (envs/install.sh installs it), None without one
    component    component of Debian that has the package, if not main
    fedora       package of Fedora, and of EPEL for RHEL, None without one
    opensuse     package of openSUSE, None without one
    spack        its name in Spack, None without one
    conda        its name in conda-forge, None without one
    build        shell command that builds it without root; empty where it needs root
    homes        web page of each executable
    options      keys of a configuration that it heeds in addition to those of every reference; it
                 ignores any other
    unused       options of every cell that it has no use for
    instead      the tool that fills rows whose block is larger than its build takes
    """

    name: str
    rows: tuple[Coverage, ...]
    version: tuple[str, str]
    reference = True
    two_nodes = False
    place = 1
    package: str | None = None
    component = ""
    fedora: str | None = None
    opensuse: str | None = None
    spack: str | None = None
    conda: str | None = None
    build = ""
    homes: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    unused: frozenset[str] = frozenset()
    instead: str | None = None

    @property
    def executables(self) -> tuple[str, ...]:
        """Return its name; programs with other names override this."""
        return (self.name,)

    @property
    def heading(self) -> str:
        """Return its name; programs that are written otherwise override this."""
        return self.name

    def on_path(self, choice: str | None = None) -> str | None:
        """Return the path of the program: by ``choice`` (a path or a name), else by the first of its
        names on PATH; None without any.
        """
        import shutil  # late: cells of peakmark's kernels look for no program

        names = [choice] if choice else self.executables
        paths = map(shutil.which, names)
        return next(filter(None, paths), None)

    def locate(self, kernels: Path, choice: str | None = None) -> str:
        """Return the path of the program on this machine; peakmark's kernels are in ``kernels``.

        Raises:
            Unavailable: where it is not installed.
            MeasurementError: for a kernel that was not compiled, or not for this machine.
        """
        path = self.on_path(choice)
        if path is None:
            names = choice or " or ".join(self.executables)
            remedy = f"install the package {self.package}"
            if self.package is None:
                remedy = "give its path in tools:"
            raise Unavailable(f"{names} not found on {gethostname()}", remedy)
        return path

    def find(self, path: str) -> Tool:
        """Return the tool at ``path`` with its version.

        Raises:
            Unavailable: when it cannot be executed or when its answer is not this tool's.
        """
        argument, pattern = self.version
        answer = ask(path, argument)
        match = re.search(pattern, answer)
        if match is None:
            printed = "nothing"
            if line := first_line(answer):
                printed = repr(line)
            raise Unavailable(
                f"{path} does not look like {self.name}: asked for its version it printed {printed}"
            )
        return Tool(self.name, path, match.group(1))

    def check(self, cell: Cell) -> None:
        """Check what can be known of a cell without a machine, for each planned and measured cell.

        Raises:
            Unavailable: when the program cannot do this cell anywhere.
            ConfigError: for an option that it cannot have.
        """
        of_part = [row for row in self.rows if row.subsystem == cell.subsystem]
        rows = [row for row in of_part if cell.workload in row.of_cells]
        if not rows:
            known: list[str] = []
            for row in self.rows:
                known += row.of_cells
            raise Unavailable(
                f"{self.name} has no workload {cell.workload}: it has {', '.join(known)}"
            )
        if not any(not row.variants or cell.variant in row.variants for row in rows):
            variant = cell.variant or "none"
            known = []
            for row in rows:
                known += [other or "none" for other in row.variants]
            others = (row.workloads for row in of_part if cell.variant in row.variants)
            known += [f"{variant} for {' '.join(workloads)}" for workloads in others]
            raise no_variant(cell, known)
        if cell.concurrency > 1 and not any(row.per_concurrency for row in rows):
            raise Unavailable(
                f"{self.name} measures one stream, the cell asks for {cell.concurrency}"
            )

    def prepare(self, cell: Cell, tool: Tool, workspace: Workspace) -> Invocation:
        """Return the commands that measure a cell, which ``check`` has accepted.

        Raises:
            Unavailable: when the tool cannot do this cell.
        """
        raise NotImplementedError

    def parse(self, cell: Cell, done: Completed) -> Parsed:
        """Read the values in the output.

        Raises:
            ParseError: when the output is not whole, or says that the run failed.
        """
        raise NotImplementedError

    def estimate(self, cell: Cell) -> Cost:
        """Return the expected cost, from the cell alone."""
        raise NotImplementedError

    def command(
        self, cell: Cell, argv: Iterable[str], seconds: float = 0.0, **more: Any
    ) -> Command:
        """Return the command that runs ``argv`` for a cell.

        Args:
            seconds: that it is expected to take; by default those of the cell's estimate.
            more: further fields of ``Command``.
        """
        limit = timeout(seconds or self.estimate(cell).seconds)
        env = {**C_LOCALE, **more.pop("env", {})}
        return Command(tuple(argv), limit, env=env, **more)

    def server(self, client: Command, argv: Iterable[str]) -> Command:
        """Return the command that runs ``argv`` as the server of ``client``, and may outlast it."""
        return Command(tuple(argv), client.timeout_s + _SERVER_MARGIN_S, env=client.env)


def timeout(seconds: float) -> float:
    """Return the time after which a command that was expected to take ``seconds`` has failed."""
    return max(60.0, 5.0 * seconds)


def ask(path: str, *arguments: str) -> str:
    """Return standard output and error of a short question to a tool, such as its version.

    The tool's own exit code does not matter.

    Raises:
        Unavailable: when it cannot be executed, does not answer in 10 s, or a library is missing.
    """
    import subprocess  # late: planning asks no tool, and this takes longer to load than all else

    try:
        answer = subprocess.run(
            [path, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_VERSION_TIMEOUT_S,
            env={**os.environ, **C_LOCALE},
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        question = " ".join([path, *arguments])
        raise Unavailable(f"{question} did not answer in {_VERSION_TIMEOUT_S:g} s") from error
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise not_executable(path, why) from error
    text = (answer.stdout + answer.stderr).decode("utf-8", errors="replace")
    code = answer.returncode
    if code in (126, 127):
        raise not_executable(path, first_line(text) or f"exit code {code}")
    if code < 0:
        raise not_executable(path, f"it was ended by {signal_name(-code)}")
    return text


def not_executable(path: str, why: str) -> Unavailable:
    """Return the error for a program that cannot be executed."""
    return Unavailable(f"{path} cannot be executed: {why}")


def no_variant(cell: Cell, known: Iterable[str]) -> Unavailable:
    """Return the error for a variant that the program does not have."""
    return Unavailable(
        f"{cell.instrument} has no variant {cell.variant or 'none'} for {cell.workload}:"
        f" it has {', '.join(known)}"
    )


def signal_name(number: int) -> str:
    """Return the name of a signal, ``SIGKILL``; ``signal 40`` for one without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def first_line(text: str) -> str:
    """Return the first line that is not blank, at most 200 characters."""
    return next(iter(text.strip().splitlines()), "").strip()[:200]


def last_line(text: str) -> str:
    """Return the last line that is not blank, at most 200 characters."""
    return next(reversed(text.strip().splitlines()), "").strip()[:200]
