"""``Instrument``, the base class of programs that measure, the types that instruments use, and the
registry of all instruments.

An instrument defines the commands of one program and parses its output. It does not depend on
Snakemake, Slurm, records or other instruments. ``peakmark.run.measure`` runs the commands that
``prepare`` returns, and passes the outcome to ``parse``.
"""

from __future__ import annotations

import os
import re
import signal
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from itertools import chain
from pathlib import Path
from socket import gethostname
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from peakmark.catalogue import KERNELS, SUBSYSTEMS
from peakmark.cell import Cell
from peakmark.errors import MeasurementError, PeakmarkError, Unavailable
from peakmark.validation import allowed

C_LOCALE: Mapping[str, str] = {"LC_ALL": "C"}
"""Environment of every command, so that no tool prints 1,5 for 1.5 or groups thousands."""
SLOWEST_LINK = 1e8
"""Speed in bit/s of the slowest network for which times are estimated: Fast Ethernet."""
_VERSION_TIMEOUT_S = 10.0
"""Seconds that a tool may take to print its version or its help."""
_SERVER_MARGIN_S = 40.0
"""Seconds by which a server's timeout exceeds its client's, so that the client fails first."""
# Types of numbers in records: a positive integer, an integer, a number, and any value of ``details``. Sums, squares
# and ratios of numbers within these bounds stay finite.
Several = Annotated[int, Meta(ge=1, le=1 << 62)]
Whole = Annotated[int, Meta(ge=-(1 << 62), le=1 << 62)]
Number = Annotated[float, Meta(ge=-1e30, le=1e30)]
Detail: Any = Whole | Number | str | bool | list[Any] | dict[str, Any] | None
# Names of the metrics of all subsystems.
_METRICS = tuple(ChainMap(*(subsystem.units for subsystem in SUBSYSTEMS.values())))


@dataclass(frozen=True)
class Coverage:
    """Rows that a program measures.

    Attributes:
        subsystem: subsystem of the rows.
        workloads: workloads of the rows.
        variants: variants of the rows; empty if the program measures any variant. The default,
            ``("",)``, means rows without a variant.
        cell: workload of the cell that measures all these workloads in one execution. None if each
            workload has a separate cell.
        per_block: whether each block size needs a separate execution. If not, one execution serves
            the rows of all block sizes.
        per_concurrency: whether each concurrency needs a separate execution. If not, the program
            runs only at concurrency 1.
    """

    subsystem: str
    workloads: tuple[str, ...]
    variants: tuple[str, ...] = ("",)
    cell: str | None = None
    per_block: bool = True
    per_concurrency: bool = True

    @property
    def of_cells(self) -> tuple[str, ...]:
        """Return the workloads of the cells that measure these rows.

        With ``cell``, such as ``ALL``, this is the only workload.
        """
        return (self.cell,) if self.cell else self.workloads


class Tool(Struct, frozen=True):
    """A program on this machine. Its version is ``unknown`` if the program does not print one."""

    name: str
    path: str
    version: str


@dataclass(frozen=True)
class Workspace:
    """Directory, CPUs and memory for the execution of one cell, and the facts of the machine.

    Attributes:
        directory: empty directory of mode 0700 on the scratch filesystem, which is removed afterwards.
            Disk cells write their files there.
        cpus: CPUs that the job may use, at least one. The first CPU of each core comes before the second ones.
        memory_bytes: memory that the job may use.
        facts: machine facts (``peakmark.machine``); may be empty.
        shared: folder on the scratch filesystem for the common files of nodes that are measured at the
            same moment; None if the node is measured alone.
    """

    directory: Path
    cpus: tuple[int, ...]
    memory_bytes: int
    facts: Mapping[str, Any] = field(default_factory=dict)
    shared: Path | None = None

    @property
    def cpu(self) -> Mapping[str, Any]:
        """Return the facts of the processor, empty if unknown."""
        return self.facts.get("cpu") or {}

    @property
    def isa(self) -> frozenset[str]:
        """Return the instruction sets of the processor (sse2 avx avx2 fma avx512f neon ...); empty if unknown."""
        return frozenset(self.cpu.get("isa") or ())


@dataclass(frozen=True)
class Command:
    """One execution of a program, in the directory of the workspace and without a shell.

    In argv and env of network cells, ``peakmark.run.execute`` replaces ``{address}`` (the address of the
    server or of the second node), ``{port}``, and ``{key}`` (a secret of this execution).

    Attributes:
        argv: program and arguments.
        timeout_s: time limit in seconds. After it the process group is ended, and the cell fails.
        env: variables to add to the environment.
        files: name -> text of a file to write before the start.
        outputs: names of files that belong to the raw output, such as results and settings.
        ok_codes: exit codes that mean success. Exit code 77 of peakmark's kernels means
            ``Unavailable`` and need not be listed.
        cpus: CPUs to pin the program to, if it has no option for that; empty for all CPUs of the job.
        is_held: whether the program prints ``ready`` on standard error when its preparation has ended, and waits
            for a line on standard input before it measures.
        ranks: number of processes on each node of an MPI program, which srun or mpirun starts; 0 for any
            other program.
        server: the server that must run during the command, if any. In a Slurm job it runs on the
            second node. On one machine, command and server communicate over loopback. The server is
            ready when it listens on TCP port ``{port}``.
        preparation: command that must end before this one starts, if any, such as one that fills the
            files.
    """

    argv: tuple[str, ...]
    timeout_s: float
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    ok_codes: tuple[int, ...] = (0,)
    cpus: tuple[int, ...] = ()
    is_held: bool = False
    ranks: int = 0
    server: Command | None = None
    preparation: Command | None = None


@dataclass(frozen=True)
class Completed:
    """Outcome of a command.

    Attributes:
        argv: program and arguments, with placeholders replaced.
        returncode: exit code, or the negative number of a signal.
        stdout: standard output.
        stderr: standard error.
        files: name -> text of an output file.
        elapsed_s: wall time in seconds.
    """

    argv: tuple[str, ...]
    returncode: int
    stdout: str
    stderr: str
    files: Mapping[str, str] = field(default_factory=dict)
    elapsed_s: float = 0.0


class Measurement(Struct):
    """One measured value in SI base units.

    Workload, variant, block and concurrency identify the table row of the value. They differ from the
    cell's if the tool measures several rows in one execution.

    Attributes:
        block: block size of the row in bytes.
        concurrency: number of threads, processes or streams.
        metric: throughput of the network is measured at the receiver, and its latency is a round trip.
            Latency of the disk is the mean over all operations.
        details: further output of the program, in SI base units. ``half`` marks a one-way latency that
            was doubled, ``estimate`` a derived value. ``histogram`` is the number of operations by
            duration in ns, 128 buckets for each power of two; each run of consecutive buckets is the
            index of its first bucket, then the counts. ``retransmits`` are the TCP segments that the
            sender sent again, over all streams since they connected.
    """

    workload: Annotated[str, Meta(min_length=1)]
    variant: str
    block: Several | None
    concurrency: Several
    metric: Literal[_METRICS]  # type: ignore[valid-type]
    value: Annotated[float, allowed("1e-15 to 1e21 in SI units", ge=1e-15, le=1e21)]
    unit: Annotated[str, Meta(pattern=r"^(op/s|B/s|bit/s|s|1/s|message/s)\Z")]
    details: dict[str, Detail] = {}

    @classmethod
    def of(
        cls, cell: Cell, metric: str, value: float, details: Mapping[str, Any], workload: str = ""
    ) -> Measurement:
        """Return a value for the cell's row, or for the row that differs from it only in ``workload``.

        The block of the row is the cell's block, or the area that the node chose for a cell without one.
        """
        return cls(
            workload=workload or cell.workload,
            variant=cell.variant,
            block=cell.area,
            concurrency=cell.concurrency,
            metric=metric,
            value=value,
            unit=SUBSYSTEMS[cell.subsystem].units[metric],
            details=dict(details),
        )


@dataclass(frozen=True)
class Parsed:
    """Parsed output of an execution.

    Attributes:
        measurements: measured values.
        version: version of the tool, if the output states it.
        library: libraries that the tool reports, such as HPL's BLAS and its core type.
        warnings: warnings that the tool printed.
    """

    measurements: tuple[Measurement, ...]
    version: str | None = None
    library: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Cost:
    """Expected needs of a cell on a slow machine.

    Attributes:
        fixed_s: seconds that are the same on every machine: start, warm-up, a requested time, sleeps.
        work_s: seconds of work that a faster machine shortens.
        waits_s: seconds of waiting for the disk if it processes one write at a time.
        wire_bits: bits that cross the network.
        memory_bytes: most bytes of memory that the program allocates on a node.
        disk_bytes: bytes of its files on the scratch filesystem.
    """

    fixed_s: float
    work_s: float = 0.0
    waits_s: float = 0.0
    wire_bits: float = 0.0
    memory_bytes: int = 0
    disk_bytes: int = 0

    @property
    def seconds(self) -> float:
        """Return the wall time in seconds, if bits cross the network at ``SLOWEST_LINK``.

        Timeouts are based on this time.
        """
        return self.fixed_s + self.work_s + self.waits_s + self.wire_bits / SLOWEST_LINK


class Instrument:
    """One program that measures. Instances have no state.

    Attributes:
        name: key in the registry, and value of ``Cell.instrument``.
        rows: rows that the program measures. A reference tool lists only rows in which its values can
            be compared with those of peakmark's kernel.
        executables: possible names of the program, the preferred one first.
        reference: whether the program is a reference tool; False for peakmark's kernels.
        two_nodes: whether a cell needs a second node in Slurm; on one machine it uses loopback.
        version: argument that prints the version, and pattern whose group 1 is the version in the output.

    The other attributes describe reference tools only:

    Attributes:
        heading: heading of the tool's columns.
        place: number by which the columns of reference tools are sorted, 1 for the first.
        package: Debian package, which envs/install.sh installs; None without one.
        component: component of Debian that has the package, if not main.
        spack: name in Spack; None without one.
        conda: name in conda-forge; None without one.
        build: shell command that builds the tool without root; empty if it needs root.
        options: keys of the configuration that the tool uses, besides the keys of all references.
        unused: options of a cell that the tool does not use.
    """

    name: str
    rows: tuple[Coverage, ...]
    version: tuple[str, str]
    reference = True
    two_nodes = False
    place = 1
    package: str | None = None
    component = ""
    spack: str | None = None
    conda: str | None = None
    build = ""
    options: tuple[str, ...] = ()
    unused: frozenset[str] = frozenset()

    @property
    def executables(self) -> tuple[str, ...]:
        """Return the names of the programs: by default the name of the instrument."""
        return (self.name,)

    @property
    def heading(self) -> str:
        """Return the tool's name in the headings of columns: by default the name of the instrument."""
        return self.name

    def on_path(self, choice: str | None = None) -> str | None:
        """Return the path of the program, or None if it is not found.

        Args:
            choice: configured path or name; without it, ``executables`` are searched on PATH.
        """
        import shutil  # late: cells of peakmark's kernels search no program

        names = [choice] if choice else self.executables
        paths = map(shutil.which, names)
        return next(filter(None, paths), None)

    def locate(self, kernels: Path, choice: str | None = None) -> str:
        """Return the path of the program on this machine.

        Args:
            kernels: folder of peakmark's compiled kernels.
            choice: configured path or name of a reference tool. Kernels ignore it.

        Raises:
            Unavailable: a reference tool is not installed.
            MeasurementError: the kernel was not compiled, or not for this machine.
        """
        path = self.on_path(choice)
        if path is None:
            names = choice or " or ".join(self.executables)
            remedy = f"install the package {self.package}"
            if self.package is None:
                remedy = "give its path under tools in the configuration"
            raise Unavailable(f"{names} not found on {gethostname()}", remedy)
        return path

    def find(self, path: str) -> Tool:
        """Return the tool at ``path`` with its version.

        Raises:
            Unavailable: the program cannot be executed, or prints no version of this tool.
        """
        argument, pattern = self.version
        answer = ask(path, argument)
        match = re.search(pattern, answer)
        if match is None:
            raise Unavailable(
                f"{path} does not look like {self.name}:"
                f" asked for its version it printed {first_line(answer)!r}"
            )
        return Tool(self.name, path, match.group(1))

    def nodes(self, cell: Cell) -> int:
        """Return the number of nodes that the cell needs on a cluster.

        MPI programs and HPL override this: they read the number from the cell's variant.
        """
        return 2 if self.two_nodes else 1

    def check(self, cell: Cell) -> None:
        """Check whether the program can measure a cell on some machine.

        Planning checks every cell, and measuring checks it again.

        Raises:
            Unavailable: the program cannot measure the cell on any machine.
            ConfigError: the cell has an option that is not allowed.
        """
        rows = [
            row
            for row in self.rows
            if row.subsystem == cell.subsystem and cell.workload in row.of_cells
        ]
        if not rows:
            raise Unavailable(f"{self.name} has no workload {cell.workload}")
        # If one of the rows has no ``variants``, any variant is allowed.
        variants = list(chain.from_iterable(row.variants for row in rows))
        if all(row.variants for row in rows) and cell.variant not in variants:
            raise no_variant(cell, [variant or "none" for variant in variants])
        # A program whose rows have no ``per_concurrency`` runs only at concurrency 1.
        if cell.concurrency > 1 and not any(row.per_concurrency for row in rows):
            raise Unavailable(
                f"{self.name} measures one stream, the cell asks for {cell.concurrency}"
            )

    def prepare(self, cell: Cell, tool: Tool, workspace: Workspace) -> Command:
        """Return the command that measures a cell, which ``check`` has accepted.

        Raises:
            Unavailable: the tool cannot measure this cell on this machine.
        """
        raise NotImplementedError

    def parse(self, cell: Cell, done: Completed) -> Parsed:
        """Parse the values in the output.

        Raises:
            ParseError: the output is incomplete, or states that the execution failed.
        """
        raise NotImplementedError

    def estimate(self, cell: Cell) -> Cost:
        """Return how much time, memory and disk space a cell is expected to need on a slow machine."""
        raise NotImplementedError

    def command(
        self, cell: Cell, argv: Iterable[str], seconds: float = 0.0, **more: Any
    ) -> Command:
        """Return the command that runs ``argv`` for a cell.

        Args:
            cell: the cell.
            argv: program and arguments.
            seconds: expected seconds, from which the timeout follows; 0 to use the estimate of the
                cell.
            more: further attributes of ``Command``.
        """
        limit = timeout(seconds or self.estimate(cell).seconds)
        env = {**C_LOCALE, **more.pop("env", {})}
        return Command(tuple(argv), limit, env=env, **more)

    def server(self, client: Command, argv: Iterable[str]) -> Command:
        """Return the command that runs ``argv`` as the server of ``client``.

        Its timeout is longer than the client's, so that the client fails first.
        """
        return Command(tuple(argv), client.timeout_s + _SERVER_MARGIN_S, env=client.env)


class _Registry(Mapping[str, Instrument]):
    """Mapping from sorted names to instruments. Each instrument is a module of ``programs``.

    The module is imported when the instrument is first looked up, because measuring a cell needs only one.
    """

    @cached_property
    def _names(self) -> tuple[str, ...]:
        # ``__init__.py`` is no instrument.
        modules = Path(__file__).with_name("programs").glob("[!_]*.py")
        return tuple(sorted(module.stem.replace("_", "-") for module in modules))

    def __getitem__(self, name: str) -> Instrument:
        if name not in self._names:
            raise KeyError(name)
        module = import_module(f"peakmark.tools.programs.{name.replace('-', '_')}")
        instrument: Instrument = module.INSTRUMENT
        return instrument

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


REGISTRY: Mapping[str, Instrument] = _Registry()
REFERENCES = tuple(name for name in REGISTRY if name not in KERNELS.values())
"""Names of the reference tools."""


def references() -> dict[str, Instrument]:
    """Return the reference tools by name."""
    return {name: REGISTRY[name] for name in REFERENCES}


def present(kernels: Path) -> dict[str, Tool]:
    """Find peakmark's kernels and the reference tools on this machine, and return them by name with their versions.

    Programs that are missing or do not print their version are left out.

    Args:
        kernels: folder of the compiled kernels.
    """
    tools = {}
    for name, instrument in REGISTRY.items():
        with suppress(PeakmarkError):
            tools[name] = instrument.find(instrument.locate(kernels))
    return tools


def timeout(seconds: float) -> float:
    """Return the time limit in seconds of a command that is expected to take ``seconds``.

    It must end only a program that hangs. A busy machine or a slow disk may take a multiple of the expected time,
    so the limit is five times as long, and at least a minute.
    """
    return max(60.0, 5.0 * seconds)


def ask(path: str, *arguments: str) -> str:
    """Run a tool briefly, for example to print its version, and return its standard output and standard error.

    Exit codes are ignored, except those of a program that could not start: tools differ in the code with which
    they print a version or a help text.

    Raises:
        Unavailable: the tool cannot be executed, lacks a library, or was ended by a signal.
        MeasurementError: the tool does not end in 10 s, perhaps because the node is busy.
    """
    import subprocess  # late: planning runs no tool, and this import takes longest

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
        raise MeasurementError(f"{question} did not answer in {_VERSION_TIMEOUT_S:g} s") from error
    except OSError as error:
        raise not_executable(path, str(error.strerror)) from error
    text = (answer.stdout + answer.stderr).decode("utf-8", errors="replace")
    code = answer.returncode
    # If ``path`` is env, it ends with 126 or 127 if it cannot start its program. The dynamic loader of any program ends
    # with 127 if a library is missing.
    if code in (126, 127):
        raise not_executable(path, first_line(text) or f"exit code {code}")
    if code < 0:
        raise not_executable(path, f"it was ended by {signal_name(-code)}")
    return text


def not_executable(path: str, why: str) -> Unavailable:
    """Return the error for a program that cannot be executed."""
    return Unavailable(f"{path} cannot be executed: {why}")


def no_variant(cell: Cell, known: Iterable[str]) -> Unavailable:
    """Return the error for a variant that the program cannot measure. ``known`` are the variants that it can."""
    return Unavailable(
        f"{cell.instrument} has no variant {cell.variant or 'none'} for {cell.workload}:"
        f" it has {', '.join(known)}"
    )


def signal_name(number: int) -> str:
    """Return the name of a signal, such as ``SIGKILL``, or ``signal 40`` if it has no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def first_line(text: str) -> str:
    """Return the first line that is not blank, at most 200 characters; empty for a blank text."""
    return next(iter(text.strip().splitlines()), "").strip()[:200]


def last_line(text: str) -> str:
    """Return the last line that is not blank, at most 200 characters; empty for a blank text."""
    return next(reversed(text.strip().splitlines()), "").strip()[:200]
