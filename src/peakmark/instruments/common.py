"""What all instruments share: asking a tool its version, reading options of a cell, reading numbers strictly."""

from __future__ import annotations

import math
import os
import re
import signal
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from peakmark.cell import Cell
from peakmark.errors import MORE_MEMORY, OUT_OF_MEMORY, ConfigError, MeasurementError, ParseError, Unavailable
from peakmark.instruments.base import Tool, Workspace
from peakmark.lean import Any, ClassVar
from peakmark.units import format_size, parse_size

# A tool that prints 1,5 for 1.5 or groups thousands cannot be read: every command runs in the C locale.
ENV: Mapping[str, str] = {"LC_ALL": "C"}

_NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_VERSION_TIMEOUT_S = 10.0
MEMORY_SHARE = 0.9
"""Of the memory that a job may use, for what a program allocates on purpose; the rest is for the programs themselves."""

# What a CPU flag of /proc/cpuinfo is called in the machine facts.
_FLAGS = {"asimd": "neon"}


def fits_memory(size: int, available: int) -> bool:
    """Whether a program may allocate ``size`` bytes where ``available`` may be used."""
    return size <= MEMORY_SHARE * available


def need_memory(name: str, size: int, workspace: Workspace) -> None:
    """Errors: Unavailable when the node has too little memory for ``size`` bytes; MeasurementError when it has enough
    but the Slurm job was granted too little, which the next run can mend."""
    if fits_memory(size, workspace.memory_bytes):
        return
    need = f"{name} would allocate {format_size(size)}, but the job may use {format_size(workspace.memory_bytes)}"
    limits, total = workspace.facts.get("limits") or {}, (workspace.facts.get("memory") or {}).get("total") or 0
    if limits.get("slurm") and limits.get("memory_limited_by") and fits_memory(size, total):
        raise MeasurementError(f"{OUT_OF_MEMORY}: {need}; {MORE_MEMORY}")
    raise Unavailable(f"{need}: make the pool smaller or ask for more memory")


def sectors_refuse(record: int, sector: Any, what: str) -> str | None:
    """Why direct I/O on ``what`` cannot move a record of so many bytes, and the next that it can; None where it can."""
    if not isinstance(sector, int) or sector < 1 or record % sector == 0:
        return None
    larger = format_size(-(-record // sector) * sector)
    return f"direct I/O on {what} moves multiples of {sector} B; the next larger record is {larger}"


def need_sectors(record: int, workspace: Workspace) -> None:
    """Errors: Unavailable when direct I/O on the scratch disk cannot move such a record."""
    storage = workspace.facts.get("storage") or {}
    reason = sectors_refuse(record, storage.get("logical_block_size"), f"the disk of {storage.get('scratch')}")
    if reason is not None:
        raise Unavailable(reason)


class Program:
    """The attributes that ``base.Instrument`` asks for, and the checks on a cell that need nothing else."""

    name: ClassVar[str]
    workloads: ClassVar[Mapping[str, tuple[str, ...]]]
    executables: ClassVar[tuple[str, ...]]
    reference: ClassVar[bool] = True
    two_nodes: ClassVar[bool] = False
    package: ClassVar[str | None] = None
    variants: ClassVar[tuple[str, ...]] = ("",)

    def check(self, cell: Cell) -> None:
        """Errors: ConfigError for a cell of another instrument; Unavailable for a workload or variant it has not."""
        if cell.instrument != self.name:
            raise ConfigError(f"cell {cell.id} belongs to instrument {cell.instrument}, not to {self.name}")
        allowed = self.workloads.get(cell.subsystem)
        if allowed is None:
            raise ConfigError(f"{self.name} does not measure {cell.subsystem}: it measures {', '.join(self.workloads)}")
        if cell.concurrency < 1:
            raise ConfigError(f"cell {cell.id}: concurrency {cell.concurrency} is not allowed, use 1 or more")
        if cell.workload not in allowed:
            raise Unavailable(f"{self.name} has no workload {cell.workload}: it has {', '.join(allowed)}")
        if not self.has_variant(cell.variant):
            names = ", ".join(variant or "none" for variant in self.variants)
            raise Unavailable(f"{self.name} has no variant {cell.variant or 'none'}: it has {names}")

    def has_variant(self, variant: str) -> bool:
        return variant in self.variants


def need_share(cell: Cell, key: str, least: int) -> None:
    """Errors: Unavailable when a fixed amount of work leaves a thread less than ``least``, its smallest piece."""
    work = option_number(cell, key, None) if key != "total" else option_size(cell, key, None)
    if work is not None and work < least * cell.concurrency:
        raise Unavailable(
            f"a total of {plain(work)} is less than {least} for each of {cell.concurrency} threads: "
            "give a larger total, or fewer threads a grid of their own"
        )


def needed_block(cell: Cell) -> int:
    """The cell's block size in bytes. Errors: ConfigError when the cell has none."""
    if cell.block is None:
        raise ConfigError(f"cell {cell.id}: {cell.instrument} needs a block size, e.g. 1MiB")
    return cell.block


def option_number(cell: Cell, key: str, default: float | None, *, zero: bool = False) -> float | None:
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
        raise ConfigError(f"cell {cell.id}: option {key}={value!r} is not allowed, give a number above 0")
    return number


def option_size(cell: Cell, key: str, default: int | None) -> int | None:
    """A size in bytes among the cell's options: a number, or text such as 1GiB. Errors: ConfigError."""
    value = cell.options.get(key)
    if value is None:
        return default
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int | str):
        raise ConfigError(f"cell {cell.id}: option {key}={value!r} is not a size, write for example 1GiB")
    return parse_size(value)


def seconds_of(cell: Cell) -> float:
    """Seconds the cell is to be measured for."""
    return option_number(cell, "seconds", None) or 1.0


def warmup_of(cell: Cell, default: float) -> float:
    """Seconds before the clock starts; 0 is allowed."""
    value = option_number(cell, "warmup", default, zero=True)
    return default if value is None else value


def plain(number: float) -> str:
    """A number as every tool reads it: 2 for 2.0, 0.25, never an exponent."""
    text = f"{number:.9f}".rstrip("0").rstrip(".")
    return text or "0"


def cpu_list(workspace: Workspace, threads: int) -> str:
    """The CPUs for a number of threads as ``0,2,4``: all CPUs when there are fewer than threads."""
    return ",".join(str(cpu) for cpu in workspace.cpus[:threads])


def pinned(workspace: Workspace, threads: int) -> tuple[str, ...]:
    """The beginning of an argv that keeps a tool which does not pin itself on the cell's CPUs."""
    return ("taskset", "-c", cpu_list(workspace, threads))


def crowded(argv: Sequence[str], threads: int) -> tuple[str, ...]:
    """A warning when a command that began with ``pinned`` had fewer CPUs than threads."""
    cpus = len(argv[2].split(",")) if len(argv) > 2 and argv[0] == "taskset" else threads
    return (f"{threads} threads shared {cpus} CPU{'s' if cpus > 1 else ''}",) if cpus < threads else ()


def timeout(seconds: float) -> float:
    """Time after which a command that was expected to take ``seconds`` has failed."""
    return max(60.0, 5.0 * seconds)


def cpu_facts(workspace: Workspace) -> Mapping[str, Any]:
    """The ``cpu`` part of the machine facts, empty if unknown."""
    cpu = workspace.facts.get("cpu")
    return cpu if isinstance(cpu, Mapping) else {}


def isa_flags(workspace: Workspace) -> frozenset[str]:
    """Instruction sets of this CPU (sse2 avx avx2 fma avx512f neon ...), from the facts, else from /proc/cpuinfo."""
    known = cpu_facts(workspace).get("isa")
    if isinstance(known, list | tuple) and known:
        return frozenset(str(name) for name in known)
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return frozenset()
    flags = next((line for line in lines if line.split(":")[0].strip() in ("flags", "Features")), ":")
    return frozenset(_FLAGS.get(flag, flag) for flag in flags.split(":", 1)[1].split())


def ask(path: str, *arguments: str) -> str:
    """Standard output and error of a short question to a tool, e.g. its version; its exit code does not matter.

    Errors: Unavailable when it cannot be executed, does not answer in 10 s, or a shared library is missing.
    """
    import subprocess  # not at the top: planning asks no tool anything, and this takes longer to load than all else

    environment = {**os.environ, **ENV}
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
        reason = getattr(error, "strerror", None) or str(error)
        raise Unavailable(f"{path} cannot be executed: {reason}") from error
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"{path} {' '.join(arguments)} did not answer in {_VERSION_TIMEOUT_S:g} s") from error
    if answer.returncode < 0:
        raise Unavailable(f"{path} cannot be executed: it was ended by {_signal(-answer.returncode)}")
    text = (answer.stdout + answer.stderr).decode("utf-8", errors="replace")
    if answer.returncode in (126, 127):
        raise Unavailable(f"{path} cannot be executed: {first_line(text) or f'exit code {answer.returncode}'}")
    return text


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def on_path(names: Iterable[str]) -> str | None:
    """The first of these programs that can be executed here, as a path; None without any."""
    import shutil  # late: the cells of own kernels look for nothing

    return next((path for path in map(shutil.which, names) if path), None)


def find_version(name: str, path: str, arguments: tuple[str, ...], pattern: str) -> Tool:
    """The tool at ``path`` with the version that ``pattern``'s first group finds in its answer.

    Errors: Unavailable when it cannot be executed or when the answer is not this tool's.
    """
    answer = ask(path, *arguments)
    match = re.search(pattern, answer)
    if match is None:
        answered = repr(first_line(answer)) if first_line(answer) else "nothing"
        raise Unavailable(f"{path} does not look like {name}: asked for its version it printed {answered}")
    return Tool(name=name, path=path, version=match.group(1))


def first_line(text: str) -> str:
    """The first line that is not blank, at most 200 characters."""
    return next((line.strip()[:200] for line in text.splitlines() if line.strip()), "")


def last_line(text: str) -> str:
    """The last line that is not blank, at most 200 characters."""
    return next((line.strip()[:200] for line in reversed(text.splitlines()) if line.strip()), "")


def number(text: str, what: str, *, zero: bool = False) -> float:
    """A positive, finite decimal number in ASCII digits. Errors: ParseError naming ``what`` for anything else.

    float() takes ``1_000``, ``nan`` and digits of other scripts: none of them is what a tool prints in the C locale.
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
    """Errors: ParseError when two readings of the same thing differ by more than ``tolerance``, relatively."""
    if abs(value - other) > tolerance * abs(other):
        raise ParseError(f"{what}: the output contradicts itself, {value:.6g} and {other:.6g} should be equal")
