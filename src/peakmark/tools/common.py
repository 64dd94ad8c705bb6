"""Parts that programs share: options of a cell, needs of a cell, and strict reading of output.

For peakmark's kernels also their place, and the JSON object that they print.
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from peakmark.catalogue import SHAPES, metrics
from peakmark.cell import Cell
from peakmark.errors import (
    MORE_MEMORY,
    OUT_OF_MEMORY,
    ConfigError,
    MeasurementError,
    ParseError,
    Unavailable,
)
from peakmark.formatting import format_size, parse_size, plural
from peakmark.tools.base import (
    Completed,
    Instrument,
    Measurement,
    Parsed,
    Tool,
    Workspace,
    last_line,
)
from peakmark.tools.json_text import find_object

MEMORY_SHARE = 0.9
"""Share of the job's memory that a program may allocate for its buffers; the rest is for the program
itself.
"""
_NO_NUMBER = r"[+-]?(?i:nan(?:\(.*\))?|inf(?:inity)?)"
"""Text that C and Python print for a quotient by 0 and the like."""
_NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
"""Number as a tool prints it in the C locale."""

HISTOGRAM = "^[0-9]{1,4}( [1-9][0-9]{0,17})+(;[0-9]{1,4}( [1-9][0-9]{0,17})+)*\\Z"
"""Text of a histogram as the kernels print it and records keep it: runs of neighbouring buckets. A run
has the index of its first bucket, then the counts.

The buckets of times in ns are logarithmic, 128 for each power of two
(``src/kernels/common/histogram.h``).
"""
SUB_BITS = 7
"""Binary logarithm of the number of buckets for each power of two."""
PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}
"""Percentile in a latency's details -> the share of all operations that took no longer."""


def fits_memory(size: int, available: int) -> bool:
    """Return whether a program may allocate ``size`` bytes where ``available`` may be used."""
    return size <= MEMORY_SHARE * available


def need_memory(name: str, size: int, workspace: Workspace) -> None:
    """Check that a program may allocate ``size`` bytes.

    Raises:
        Unavailable: when the node has too little memory.
        MeasurementError: when it has enough but the Slurm job was granted too little, which the
            next run can mend.
    """
    if fits_memory(size, workspace.memory_bytes):
        return
    limits = workspace.facts.get("limits") or {}
    total = (workspace.facts.get("memory") or {}).get("total") or 0
    may_use = format_size(workspace.memory_bytes)
    fact = f"{name} would allocate {format_size(size)}, but the job may use {may_use}"
    if limits.get("slurm") and limits.get("memory_limited_by") and fits_memory(size, total):
        raise MeasurementError(f"{OUT_OF_MEMORY}: {fact}", MORE_MEMORY)
    raise Unavailable(fact, "make the pool smaller or ask for more memory")


def sectors_refuse(record: int, sector: Any, what: str) -> Unavailable | None:
    """Return why direct I/O on ``what`` cannot move a record of so many bytes, and the next size
    that it can move; None where it can.
    """
    if not isinstance(sector, int) or sector < 1 or record % sector == 0:
        return None
    larger = format_size(-(-record // sector) * sector)
    return Unavailable(
        f"direct I/O on {what} moves multiples of {sector} B; the next larger record is {larger}"
    )


def need_sectors(record: int, workspace: Workspace) -> None:
    """Check that direct I/O on the scratch disk can move the record; else raise Unavailable."""
    storage = workspace.facts.get("storage") or {}
    disk = f"the disk of {storage.get('scratch')}"
    refused = sectors_refuse(record, storage.get("logical_block_size"), disk)
    if refused is not None:
        raise refused


def need_share(cell: Cell, key: str, least: int) -> None:
    """Check that a fixed amount of work gives each thread ``least``, its smallest piece.

    Raises:
        Unavailable: when it gives less.
    """
    total = amount(cell, key)
    if total is not None and total < least * cell.concurrency:
        raise Unavailable(
            f"a total of {plain(total)} is less than {least} for each of {cell.concurrency} threads",
            "give a larger total, or fewer threads a grid of their own",
        )


def need_between(
    cell: Cell, what: str, value: int, least: int, most: int, *, size: bool = False
) -> None:
    """Check that the program takes this ``value`` of ``what``.

    Args:
        size: whether the value is in bytes.

    Raises:
        Unavailable: when the value is not between ``least`` and ``most``.
    """
    if least <= value <= most:
        return
    if size:
        raise Unavailable(
            f"{cell.instrument} takes {what} of {format_size(least)} to {format_size(most)},"
            f" the cell asks for {format_size(value)}"
        )
    raise Unavailable(
        f"{cell.instrument} takes {least} to {most} {what}, the cell asks for {value}"
    )


def need_multiple(program: str, unit: int, block: int) -> None:
    """Check that a block is a multiple of the bytes that the program moves at once.

    Raises:
        Unavailable: when it is none.
    """
    if block % unit:
        raise Unavailable(
            f"{program} takes blocks of a multiple of {unit} B, the cell's has {block} B"
        )


def needed_block(cell: Cell) -> int:
    """Return the cell's block size in bytes; raise ConfigError when the cell has none."""
    if cell.block is None:
        raise ConfigError(f"cell {cell.id}: {cell.instrument} needs a block size, e.g. 1MiB")
    return cell.block


def option_number(cell: Cell, key: str) -> float | None:
    """Return a number among the cell's options, which the configuration's types have checked."""
    value = cell.options.get(key)
    return None if value is None else float(value)


def option_size(cell: Cell, key: str) -> int | None:
    """Return a size in bytes among the cell's options; raise ConfigError when it is no size."""
    value = cell.options.get(key)
    return None if value is None else parse_size(value)  # type: ignore[arg-type]


def amount(cell: Cell, key: str) -> float | None:
    """Return the fixed amount of work of a cell, bytes for ``total``; None where it has a time."""
    if key == "total":
        return option_size(cell, key)
    return option_number(cell, key)


def seconds_of(cell: Cell) -> float:
    """Return the seconds that the cell is to be measured for."""
    return option_number(cell, "seconds") or 1.0


def warmup_of(cell: Cell, default: float = 0.0) -> float:
    """Return the seconds of warm-up, before the clock starts; 0 is allowed."""
    value = option_number(cell, "warmup")
    return default if value is None else value


def plain(number: float) -> str:
    """Return a number as every tool reads it: 2 for 2.0, 0.25, never an exponent."""
    return f"{number:.9f}".rstrip("0").rstrip(".")


def cpu_list(workspace: Workspace, threads: int) -> str:
    """Return the CPUs for a number of threads as ``0,2,4``: all CPUs when they are fewer."""
    return ",".join(str(cpu) for cpu in workspace.cpus[:threads])


def pinned(workspace: Workspace, threads: int) -> tuple[str, ...]:
    """Return the begin of an argv that keeps a tool on the cell's CPUs if it cannot pin itself."""
    return ("taskset", "-c", cpu_list(workspace, threads))


def crowded(argv: Sequence[str], threads: int) -> tuple[str, ...]:
    """Return a warning when a command that began with ``pinned`` had fewer CPUs than threads."""
    if argv[:1] != ("taskset",):
        return ()
    cpus = len(argv[2].split(","))
    if cpus >= threads:
        return ()
    return (f"{threads} threads shared {plural(cpus, 'CPU')}",)


def excerpt(*texts: str) -> str:
    """Return the last line of the first text that is not blank."""
    return next(filter(None, map(last_line, texts)), "it printed nothing")


def found(pattern: str, text: str) -> str | None:
    """Return the first group of a pattern's first match, None without a match; ``^`` begins a line."""
    match = re.search(pattern, text, re.MULTILINE)
    return match[1] if match else None


class Output(dict[str, Any]):
    """Values that a program printed, by name; names in nested JSON objects are joined by dots.

    Values are checked when they are read; others are not. A missing name raises ParseError.
    """

    def __init__(self, program: str, values: Mapping[str, Any]) -> None:
        super().__init__(_flat(values))
        self.program = program

    @classmethod
    def of_tool(cls, program: str, text: str) -> Output:
        """Read the JSON object among the notes of a tool of the field.

        Raises:
            ParseError: when there is none, or when it is not whole.
        """
        return cls(program, find_object(program, text))

    @classmethod
    def of_json(cls, program: str, text: str) -> Output:
        """Read the JSON object that peakmark's kernel prints.

        Raises:
            ParseError: when ``text`` is not exactly one whole object, or holds NaN.
        """

        def refuse(constant: str) -> Any:
            raise ParseError(f"{program} printed {constant}, which is no number")

        if not text.strip():
            raise ParseError(f"{program} printed nothing on standard output")
        try:
            values = json.loads(text, parse_constant=refuse)
        except (ValueError, RecursionError) as error:
            raise ParseError(f"{program} did not print whole JSON: {error}") from error
        if not isinstance(values, dict):
            raise ParseError(f"{program} printed JSON that is not an object")
        return cls(program, values)

    def __missing__(self, name: str) -> Any:
        raise ParseError(f"{self.program}: {name} is missing in its output")

    def number(self, name: str, *, zero: bool = False) -> float:
        """Return a positive, finite number, or 0 with ``zero``.

        Raises:
            ParseError: for anything else, such as ``nan`` and ``inf``.
        """
        value = self[name]
        if re.fullmatch(_NO_NUMBER, str(value).strip()):
            raise ParseError(f"{self.program}: {name} is {value}, which is no number")
        # float() also takes 1_000 and digits of other scripts, which no tool prints.
        if isinstance(value, str) and re.fullmatch(_NUMBER, value.strip()):
            value = float(value)
        usable = isinstance(value, int | float) and not isinstance(value, bool)
        if not usable or not 0 <= value <= sys.float_info.max or (value == 0 and not zero):
            raise ParseError(f"{self.program}: {name} is {str(value)[:60]!r}, no positive number")
        return float(value)

    def whole(self, name: str) -> int:
        """Return a positive whole number; raise ParseError for anything else."""
        text = str(self[name]).strip()
        if not re.fullmatch("0*[1-9][0-9]*", text):
            raise ParseError(f"{self.program}: {name} is {text[:60]!r}, no positive whole number")
        return int(text)

    def number_or_none(self, name: str) -> float | None:
        """Return a number that a row can do without; None where it is missing or no number."""
        try:
            return self.number(name, zero=True)
        except ParseError:
            return None

    def signed(self, name: str) -> float | None:
        """Return a finite number of either sign that a row can do without; None for anything else."""
        value = self.get(name)
        if not isinstance(value, int | float) or isinstance(value, bool):
            return None
        return float(value) if abs(value) <= sys.float_info.max else None

    def expect(self, values: Mapping[str, Any]) -> None:
        """Check that the program printed the values of the cell; else raise ParseError."""
        for name, value in values.items():
            if self[name] != value:
                raise ParseError(
                    f"{self.program}: {name} is {self[name]!r}, but the cell is for {value!r}"
                )


def _flat(values: Mapping[str, Any], place: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of nested objects with their names joined by dots."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{place}{name}.")
        else:
            yield f"{place}{name}", value


def agree(value: float, other: float, tolerance: float, what: str) -> None:
    """Check that two readings of one quantity differ by at most the share ``tolerance``.

    Raises:
        ParseError: when they differ by more.
    """
    if abs(value - other) > tolerance * abs(other):
        raise ParseError(
            f"{what}: the output contradicts itself, {value:.6g} and {other:.6g} should be equal"
        )


_HEAD_BYTES = 20
"""Bytes of an ELF file up to the end of e_machine, its architecture."""
_COMPILE_ANEW = "`make clean kernels` compiles it anew"
"""Remedy for a kernel whose file is broken."""
_SHARED = frozenset({"instrument", "version", "workload", "threads", "value", "unit", "work_unit"})
"""Keys of every kernel's result that are not details of one measurement."""


def program(folder: Path, name: str) -> Path:
    """Return a kernel that this machine can run: ``<folder>/<machine>/<name>`` if it exists, else
    ``<folder>/<name>``.

    Raises:
        MeasurementError: when it was compiled for another architecture, with the command that
            compiles one. An emulator might run it, slowly.
    """
    machine = os.uname().machine
    path = folder / machine / name
    if not path.exists():
        path = folder / name
    try:
        head = _head(path)
    except OSError as error:
        raise MeasurementError(
            f"the kernel {path} cannot be read ({error.strerror})",
            "peakmark run -- kernels compiles it",
        ) from error
    if head[:4] == b"\x7fELF":
        if len(head) < _HEAD_BYTES:
            raise MeasurementError(
                f"the kernel {path} is cut off after {len(head)} bytes", _COMPILE_ANEW
            )
        if head[18:] != _head(Path("/proc/self/exe"))[18:]:
            build = (folder / machine).resolve()
            raise MeasurementError(
                f"{path} was compiled for another architecture than this node's, {machine}",
                f"run there, once: make -C src/kernels BUILD={build}",
            )
    return path.resolve()


def _head(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(_HEAD_BYTES)


class Kernel(Instrument):
    """One of peakmark's kernels: its options, and how its result is read."""

    reference = False

    def __init_subclass__(cls) -> None:
        cls.version = ("--version", rf"^{cls.name}\b.*?\b([0-9]\S*)")

    def locate(self, kernels: Path, choice: str | None = None) -> str:
        return str(program(kernels, self.name))

    def find(self, path: str) -> Tool:
        """Return the kernel with its version.

        Raises:
            MeasurementError: when it does not start. A broken kernel can be compiled again, unlike
                a program that the machine lacks.
        """
        try:
            return super().find(path)
        except Unavailable as error:
            raise MeasurementError(str(error), _COMPILE_ANEW) from error

    def read(self, cell: Cell, done: Completed) -> Output:
        """Read the kernel's JSON object.

        Raises:
            ParseError: when a key is missing or contradicts the cell.
        """
        if len(done.stdout.splitlines()) > 1:
            raise ParseError(f"{self.name} printed more than its one line of JSON")
        output = Output.of_json(self.name, done.stdout)
        unit = next(iter(metrics(cell.subsystem, cell.workload).values()))
        wanted = {"instrument": self.name, "workload": cell.workload, "unit": unit}
        output.expect({**wanted, "threads": cell.concurrency})
        threads, warnings = output["per_thread"], output["warnings"]
        if not isinstance(threads, list) or len(threads) != cell.concurrency:
            raise ParseError(f"{self.name}: per_thread does not hold {cell.concurrency} entries")
        if not isinstance(warnings, list) or not isinstance(output["version"], str):
            raise ParseError(f"{self.name}: warnings is no list, or version no text")
        value, work, seconds = map(output.number, ("value", "work", "seconds"))
        if unit != "s" and cell.workload not in SHAPES:
            bits = 8 if unit == "bit/s" else 1
            agree(value, bits * work / seconds, 1e-3, f"{self.name}: value")
        return output

    def parsed(self, cell: Cell, output: Output, *rows: Measurement) -> Parsed:
        """Return the rows with the version and the warnings that the kernel printed.

        Without rows, the kernel's value with all details is the only row.
        """
        metric = next(iter(metrics(cell.subsystem, cell.workload)))
        one = Measurement.of(cell, metric, output.number("value"), details(output))
        return Parsed(rows or (one,), output["version"], warnings=tuple(output["warnings"]))

    def common_options(
        self, cell: Cell, workspace: Workspace, cpus: int | None = None
    ) -> tuple[str, ...]:
        """Return --threads, --cpus, --warmup, --seed and --isa for the cell.

        Args:
            cpus: number of CPUs to name; by default one for each thread.
        """
        named = cpu_list(workspace, cpus or cell.concurrency)
        options = ["--threads", str(cell.concurrency), "--cpus", named]
        options += self.warmup_option(cell)
        seed = option_number(cell, "seed")
        if seed is not None:
            options += ["--seed", str(int(seed))]
        options += flags(cell, "isa")
        return tuple(options)

    def warmup_option(self, cell: Cell) -> tuple[str, ...]:
        """Return --warmup when the cell's options name one."""
        warmup = option_number(cell, "warmup")
        if warmup is None:
            return ()
        return ("--warmup", plain(warmup))

    def work_option(self, cell: Cell, key: str) -> tuple[str, ...]:
        """Return the flag for the fixed amount of work in option ``key``, else --seconds."""
        work = amount(cell, key)
        if work is not None:
            return (f"--{key.replace('_', '-')}", str(int(work)))
        return ("--seconds", plain(seconds_of(cell)))


def flags(cell: Cell, *keys: str) -> tuple[str, ...]:
    """Return ``--key value`` for each of the options that the cell has."""
    words: list[str] = []
    for key in keys:
        value = cell.options.get(key)
        if value is not None:
            words += [f"--{key}", str(value)]
    return tuple(words)


def clock_s(cell: Cell, key: str, warmup: float) -> float:
    """Return the seconds that the cell's options fix: the warm-up, and the time to measure unless
    option ``key`` gives an amount of work.
    """
    seconds = warmup_of(cell, warmup)
    if cell.options.get(key) is None:
        seconds += seconds_of(cell)
    return seconds


def details(output: Output) -> dict[str, Any]:
    """Return the details to keep with a kernel's value: every plain value but those that all
    measurements share.
    """
    return {
        name: value
        for name, value in output.items()
        if name not in _SHARED and (value is None or isinstance(value, str | int | float))
    }


def percentiles(output: Output, operations: str) -> Mapping[str, Any]:
    """Return the percentiles of a latency in s with its histogram.

    The histogram must count as many operations as the output's value ``operations``.
    """
    counted = read_histogram(str(output["histogram"])).total()
    agree(counted, output.number(operations), 0.0, f"{output.program}: histogram")
    numbers = {name: output.number(name) for name in (*PERCENTILES, "max")}
    return {**numbers, "histogram": output["histogram"]}


def read_histogram(text: str) -> Counter[int]:
    """Return the counts by bucket; raise ParseError when the text is no histogram."""
    if not re.fullmatch(HISTOGRAM, text):
        raise ParseError(f"{text[:60]!r} is no histogram")
    counts: Counter[int] = Counter()
    for run in text.split(";"):
        first, *numbers = map(int, run.split())
        counts.update(dict(enumerate(numbers, first)))
    return counts


def percentile_times(counts: Counter[int], shares: Sequence[float]) -> list[float]:
    """Return the times in s that shares of all operations do not exceed, by nearest rank, within
    0.8 %.

    Args:
        counts: operations by bucket.
        shares: between 0 and 1, ascending.

    Returns:
        A time for each share, as far as there are operations beyond it.
    """
    buckets = sorted(counts)
    until = list(accumulate(counts[bucket] for bucket in buckets))
    ranks = [max(1, math.ceil(share * counts.total())) for share in shares]
    times = []
    for rank in ranks:
        if rank >= counts.total():
            break
        place = bisect_left(until, rank)
        bucket, number = buckets[place], counts[buckets[place]]
        shift = max(bucket >> SUB_BITS, 1) - 1
        low, width = bucket - (shift << SUB_BITS) << shift, (1 << shift) - 1
        times.append((low + width * (rank - 0.5 - until[place] + number) / number) * 1e-9)
    return times
