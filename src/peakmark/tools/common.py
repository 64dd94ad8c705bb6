"""What all instruments share: asking a tool its version, reading options of a cell, reading numbers
strictly.
"""

from __future__ import annotations

import math
import os
import re
import signal
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from socket import gethostname
from typing import Any, ClassVar

from peakmark.cell import Cell
from peakmark.errors import ConfigError, ParseError
from peakmark.reasons import MeasurementError, Unavailable
from peakmark.tools.base import (
    Command,
    Completed,
    Cost,
    Coverage,
    Invocation,
    Parsed,
    Tool,
    Workspace,
)
from peakmark.units import parse_size

C_LOCALE: Mapping[str, str] = {"LC_ALL": "C"}
"""Of every command: a tool that prints 1,5 for 1.5 or groups thousands cannot be read."""
_NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_VERSION_TIMEOUT_S = 10.0
MEMORY_SHARE = 0.9
"""Of the memory that a job may use, for what a program allocates on purpose; the rest is for the
programs themselves.
"""


def fits_memory(size: int, available: int) -> bool:
    """Whether a program may allocate ``size`` bytes where ``available`` may be used."""
    return size <= MEMORY_SHARE * available


def need_memory(name: str, size: int, workspace: Workspace) -> None:
    """Errors: Unavailable when the node has too little memory for ``size`` bytes; MeasurementError
    when it has enough but the Slurm job was granted too little, which the next run can mend.
    """
    if fits_memory(size, workspace.memory_bytes):
        return
    limits, total = (
        workspace.facts.get("limits") or {},
        (workspace.facts.get("memory") or {}).get("total") or 0,
    )
    if limits.get("slurm") and limits.get("memory_limited_by") and fits_memory(size, total):
        raise MeasurementError(
            "memory-granted", program=name, need=size, may=workspace.memory_bytes
        )
    raise Unavailable("memory", program=name, need=size, may=workspace.memory_bytes)


def sectors_refuse(record: int, sector: Any, what: str) -> Unavailable | None:
    """Why direct I/O on ``what`` cannot move a record of so many bytes, and the next that it can;
    None where it can.
    """
    if not isinstance(sector, int) or sector < 1 or record % sector == 0:
        return None
    return Unavailable("sector", disk=what, sector=sector, larger=-(-record // sector) * sector)


def need_sectors(record: int, workspace: Workspace) -> None:
    """Errors: Unavailable when direct I/O on the scratch disk cannot move such a record."""
    storage = workspace.facts.get("storage") or {}
    refused = sectors_refuse(
        record, storage.get("logical_block_size"), f"the disk of {storage.get('scratch')}"
    )
    if refused is not None:
        raise refused


def need_share(cell: Cell, key: str, least: int) -> None:
    """Errors: Unavailable when a fixed amount of work leaves a thread less than ``least``, its
    smallest piece.
    """
    amount = work(cell, key)
    if amount is not None and amount < least * cell.concurrency:
        raise Unavailable("share", total=plain(amount), least=least, threads=cell.concurrency)


def need_variant(cell: Cell, has_one: bool) -> None:
    """Errors: Unavailable for a memory cell of a block or pool without one, or another cell with
    such a variant.
    """
    if has_one == (cell.variant == ""):
        wanted = "the variant block or pool" if has_one else "no variant"
        asked = {
            "program": cell.instrument,
            "workload": cell.workload,
            "variant": cell.variant or "none",
        }
        raise Unavailable("variant-of", wanted=wanted, **asked)


def need_one_stream(cell: Cell) -> None:
    """Errors: Unavailable for a cell with several, for programs that have one stream only."""
    if cell.concurrency != 1:
        raise Unavailable("one-stream", program=cell.instrument, streams=cell.concurrency)


def need_between(
    cell: Cell, what: str, value: int, least: int, most: int, *, size: bool = False
) -> None:
    """Errors: Unavailable when the program takes no such ``value`` of ``what``; ``size``: they are
    bytes.
    """
    if not least <= value <= most:
        values = {"what": what, "value": value, "least": least, "most": most}
        raise Unavailable("size-range" if size else "range", program=cell.instrument, **values)


def needed_block(cell: Cell) -> int:
    """The cell's block size in bytes. Errors: ConfigError when the cell has none."""
    if cell.block is None:
        raise ConfigError(f"cell {cell.id}: {cell.instrument} needs a block size, e.g. 1MiB")
    return cell.block


def option_number(
    cell: Cell, key: str, default: float | None, *, zero: bool = False
) -> float | None:
    """A number among the cell's options; ``default`` when it is absent or null.

    Errors: ConfigError when it is not a finite number above 0 (or at 0, with ``zero``).
    """
    value = cell.options.get(key)
    if value is None:
        return default
    try:
        number = float(value) if not isinstance(value, bool) else math.nan
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or number < 0 or (number == 0 and not zero):
        raise ConfigError(
            f"cell {cell.id}: option {key}={value!r} is not allowed, give a number above 0"
        )
    return number


def option_size(cell: Cell, key: str, default: int | None) -> int | None:
    """A size in bytes among the cell's options: a number, or text such as 1GiB. Errors:
    ConfigError.
    """
    value = cell.options.get(key)
    if value is None:
        return default
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int | str):
        raise ConfigError(
            f"cell {cell.id}: option {key}={value!r} is not a size, write for example 1GiB"
        )
    return parse_size(value)


def work(cell: Cell, key: str) -> float | None:
    """The fixed amount of work that was asked for, bytes for ``total``; None where a time was."""
    return option_size(cell, key, None) if key == "total" else option_number(cell, key, None)


def seconds_of(cell: Cell) -> float:
    """Seconds the cell is to be measured for."""
    return option_number(cell, "seconds", None) or 1.0


def warmup_of(cell: Cell, default: float) -> float:
    """Seconds before the clock starts; 0 is allowed."""
    value = option_number(cell, "warmup", default, zero=True)
    return default if value is None else value


def plain(number: float) -> str:
    """A number as every tool reads it: 2 for 2.0, 0.25, never an exponent."""
    return f"{number:.9f}".rstrip("0").rstrip(".")


def cpu_list(workspace: Workspace, threads: int) -> str:
    """The CPUs for a number of threads as ``0,2,4``: all CPUs when there are fewer than threads."""
    return ",".join(str(cpu) for cpu in workspace.cpus[:threads])


def pinned(workspace: Workspace, threads: int) -> tuple[str, ...]:
    """The beginning of an argv that keeps a tool which does not pin itself on the cell's CPUs."""
    return ("taskset", "-c", cpu_list(workspace, threads))


def crowded(argv: Sequence[str], threads: int) -> tuple[str, ...]:
    """A warning when a command that began with ``pinned`` had fewer CPUs than threads."""
    cpus = len(argv[2].split(",")) if len(argv) > 2 and argv[0] == "taskset" else threads
    return (
        (f"{threads} threads shared {cpus} CPU{'s' if cpus > 1 else ''}",) if cpus < threads else ()
    )


def timeout(seconds: float) -> float:
    """Time after which a command that was expected to take ``seconds`` has failed."""
    return max(60.0, 5.0 * seconds)


def cpu_facts(workspace: Workspace) -> Mapping[str, Any]:
    """The ``cpu`` part of the machine facts, empty if unknown."""
    return workspace.facts.get("cpu") or {}


def isa_flags(workspace: Workspace) -> frozenset[str]:
    """Instruction sets of this CPU by the machine facts: sse2 avx avx2 fma avx512f neon ..."""
    return frozenset(cpu_facts(workspace).get("isa") or ())


def ask(path: str, *arguments: str) -> str:
    """Standard output and error of a short question to a tool, e.g. its version; its exit code does
    not matter.

    Errors: Unavailable when it cannot be executed, does not answer in 10 s, or a shared library is
    missing.
    """
    import subprocess  # not at the top: planning asks no tool anything, and this takes longer to load than all else

    environment = {**os.environ, **C_LOCALE}
    try:
        answer = subprocess.run(
            [path, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_VERSION_TIMEOUT_S,
            env=environment,
            check=False,
        )
    except (OSError, ValueError) as error:
        raise Unavailable(
            "not-run", path=path, why=getattr(error, "strerror", None) or str(error)
        ) from error
    except subprocess.TimeoutExpired as error:
        raise Unavailable(
            "no-answer", path=path, arguments=" ".join(arguments), seconds=_VERSION_TIMEOUT_S
        ) from error
    text = (answer.stdout + answer.stderr).decode("utf-8", errors="replace")
    if answer.returncode < 0:
        raise Unavailable(
            "not-run", path=path, why=f"it was ended by {signal_name(-answer.returncode)}"
        )
    if answer.returncode in (126, 127):
        raise Unavailable(
            "not-run", path=path, why=first_line(text) or f"exit code {answer.returncode}"
        )
    return text


def signal_name(number: int) -> str:
    """``SIGKILL``; ``signal 40`` for one without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def first_line(text: str) -> str:
    """The first line that is not blank, at most 200 characters."""
    return _first_shown(text.splitlines())


def last_line(text: str) -> str:
    """The last line that is not blank, at most 200 characters."""
    return _first_shown(reversed(text.splitlines()))


def _first_shown(lines: Iterable[str]) -> str:
    return next((line.strip()[:200] for line in lines if line.strip()), "")


def excerpt(*texts: str) -> str:
    """The last line of the first of these texts that has one."""
    return next(filter(None, map(last_line, texts)), "it printed nothing")


def number(text: str, what: str, *, zero: bool = False) -> float:
    """A positive, finite decimal number in ASCII digits. Errors: ParseError naming ``what`` for
    anything else.

    float() takes ``1_000``, ``nan`` and digits of other scripts: none of them is what a tool prints
    in the C locale.
    """
    stripped = text.strip()
    value = float(stripped) if re.fullmatch(_NUMBER, stripped) else math.nan
    if not math.isfinite(value) or value < 0 or (value == 0 and not zero):
        raise ParseError(f"{what}: {stripped[:60]!r} is not a positive number with a decimal point")
    return value


def whole(text: str, what: str) -> int:
    """A positive whole number in ASCII digits. Errors: ParseError."""
    stripped = text.strip()
    if not re.fullmatch("[0-9]+", stripped) or int(stripped) == 0:
        raise ParseError(f"{what}: {stripped[:60]!r} is not a positive whole number")
    return int(stripped)


def agree(value: float, other: float, tolerance: float, what: str) -> None:
    """Errors: ParseError when two readings of the same thing differ by more than ``tolerance``,
    relatively.
    """
    if abs(value - other) > tolerance * abs(other):
        raise ParseError(
            f"{what}: the output contradicts itself, {value:.6g} and {other:.6g} should be equal"
        )


class Instrument:
    """One program that measures; see the module's text. Instances are stateless.

    name         key in the registry and value of ``Cell.instrument``
    workloads    subsystem -> workloads that a cell of it may have, e.g. ``{"disk": ("ALL",)}``
    executables  names looked for on PATH, in ``tools:`` of the config, or in build/kernels; the
                 preferred one first
    reference    False for an own kernel, True for a tool of the field
    two_nodes    whether a cell takes two nodes in Slurm and loopback on one machine
    package      Debian package that carries it, for the command that would fill an empty column
    version      argument that makes it tell its version, and where that stands in the answer

    Of reference tools only:

    heading      what its columns are called
    rows         those it can stand beside; like for like only
    options      keys of a configuration that it heeds beside those of every reference; another one
                 would be passed over
    unused       options of every cell that it has no use for
    instead      the tool that fills rows whose block is larger than its build takes
    columns      tables in which it has a column, and its place among the references there
    readings     figure -> a sentence on how to read its points there
    homes        executable -> web page of the program
    """

    name: ClassVar[str]
    workloads: ClassVar[Mapping[str, tuple[str, ...]]]
    executables: ClassVar[tuple[str, ...]]
    reference: ClassVar[bool] = True
    two_nodes: ClassVar[bool] = False
    package: ClassVar[str | None] = None
    component: ClassVar[str] = ""
    variants: ClassVar[tuple[str, ...]] = ("",)
    version: ClassVar[tuple[str, str]]
    heading: ClassVar[str] = ""
    rows: ClassVar[tuple[Coverage, ...]] = ()
    options: ClassVar[tuple[str, ...]] = ()
    unused: ClassVar[frozenset[str]] = frozenset()
    instead: ClassVar[str | None] = None
    columns: ClassVar[Mapping[str, int]] = {}
    readings: ClassVar[Mapping[str, str]] = {}
    homes: ClassVar[Mapping[str, str]] = {}

    def has_variant(self, variant: str) -> bool:
        return variant in self.variants

    def on_path(self, choice: str | None = None) -> str | None:
        """Path of the program: as ``choice`` (a path or a name) says, else the first of its names
        on PATH; None without any.
        """
        import shutil  # late: the cells of own kernels look for nothing

        return next(
            (path for path in map(shutil.which, [choice] if choice else self.executables) if path),
            None,
        )

    def locate(self, kernels: Path, choice: str | None = None) -> str:
        """Path of the program on this machine; own kernels are in the folder ``kernels``.

        Errors: Unavailable where it is not here; MeasurementError for a kernel that was not
        compiled, or not for here.
        """
        path = self.on_path(choice)
        if path is None:
            names = " or ".join([choice] if choice else self.executables)
            remedy = (
                f"install the package {self.package}" if self.package else "give its path in tools:"
            )
            raise Unavailable("no-program", names=names, host=gethostname(), remedy=remedy)
        return path

    def find(self, path: str) -> Tool:
        """The tool at ``path`` with its version.

        Errors: Unavailable when it cannot be executed or when its answer is not this tool's.
        """
        argument, pattern = self.version
        answer = ask(path, argument)
        match = re.search(pattern, answer)
        if match is None:
            printed = repr(first_line(answer)) if first_line(answer) else "nothing"
            raise Unavailable("other-program", path=path, program=self.name, printed=printed)
        return Tool(name=self.name, path=path, version=match.group(1))

    def check(self, cell: Cell) -> None:
        """All that is known of a cell before a machine is: asked for each when a campaign is
        planned.

        Errors: Unavailable when the program cannot do this cell anywhere; ConfigError for an option
        that it cannot have.
        """
        if cell.instrument != self.name:
            raise ConfigError(
                f"cell {cell.id} belongs to instrument {cell.instrument}, not to {self.name}"
            )
        allowed = self.workloads.get(cell.subsystem)
        if allowed is None:
            raise ConfigError(
                f"{self.name} does not measure {cell.subsystem}: it measures {', '.join(self.workloads)}"
            )
        if cell.concurrency < 1:
            raise ConfigError(
                f"cell {cell.id}: concurrency {cell.concurrency} is not allowed, use 1 or more"
            )
        if cell.workload not in allowed:
            raise Unavailable("workload", program=self.name, workload=cell.workload, known=allowed)
        if not self.has_variant(cell.variant):
            known = [variant or "none" for variant in self.variants]
            raise Unavailable(
                "variant", program=self.name, variant=cell.variant or "none", known=known
            )

    def prepare(self, cell: Cell, tool: Tool, workspace: Workspace) -> Invocation:
        """What to execute for ``cell``. Errors: Unavailable when the tool cannot do this cell, with
        the reason.
        """
        raise NotImplementedError

    def parse(self, cell: Cell, done: Completed) -> Parsed:
        """The values in the output. Errors: ParseError when the output is not whole or says that
        the run failed.
        """
        raise NotImplementedError

    def estimate(self, cell: Cell) -> Cost:
        """Expected cost, from the cell alone."""
        raise NotImplementedError

    def command(
        self, cell: Cell, argv: Iterable[str], seconds: float = 0.0, **more: Any
    ) -> Command:
        """What runs ``argv`` for a cell that takes ``seconds``, by default those of its estimate;
        ``more`` as of Command.
        """
        limit = timeout(seconds or self.estimate(cell).seconds)
        return Command(tuple(argv), limit, env={**C_LOCALE, **more.pop("env", {})}, **more)

    def server(self, client: Command, argv: Iterable[str], **more: Any) -> Command:
        """What runs ``argv`` as the far end of ``client``, a little longer than that may."""
        return Command(
            tuple(argv), client.timeout_s + 40.0, env={**C_LOCALE, **more.pop("env", {})}, **more
        )
