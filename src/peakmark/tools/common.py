"""What the programs share: options of a cell, what a cell needs, and strict reading of output; of the
own kernels also how they are found and the JSON object they print.
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
from peakmark.errors import ConfigError, ParseError
from peakmark.formatting import parse_size
from peakmark.messages import MeasurementError, Unavailable
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
"""Of the memory that a job may use, for what a program allocates on purpose; the rest is for the
programs themselves.
"""
_NO_NUMBER = r"[+-]?(?i:nan(?:\(.*\))?|inf(?:inity)?)"
"""What C prints, and Python, for a quotient by 0 and the like."""
_NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"

HISTOGRAM = "^[0-9]{1,4}( [1-9][0-9]{0,17})+(;[0-9]{1,4}( [1-9][0-9]{0,17})+)*\\Z"
"""Counts of times in logarithmic buckets, 128 for each power of two, in ns, as the kernels print them
and records keep them: runs of neighbouring buckets, the index of the first one, then the counts.
``src/kernels/common/histogram.h`` has the layout.
"""
SUB_BITS = 7
PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}
"""Detail of a latency -> the share of all operations that took no longer."""
SHOWN_PERCENTILES = {"p50": "p50", "p99": "p99", "p999": "p99.9"}
"""Percentiles that tables show and comparisons judge -> their headings."""


def fits_memory(size: int, available: int) -> bool:
    """Whether a program may allocate ``size`` bytes where ``available`` may be used."""
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
    values = {"program": name, "need": size, "may": workspace.memory_bytes}
    if limits.get("slurm") and limits.get("memory_limited_by") and fits_memory(size, total):
        raise MeasurementError("memory-granted", **values)
    raise Unavailable("memory", **values)


def sectors_refuse(record: int, sector: Any, what: str) -> Unavailable | None:
    """Why direct I/O on ``what`` cannot move a record of so many bytes, and the next that it can;
    None where it can.
    """
    if not isinstance(sector, int) or sector < 1 or record % sector == 0:
        return None
    return Unavailable("sector", disk=what, sector=sector, larger=-(-record // sector) * sector)


def need_sectors(record: int, workspace: Workspace) -> None:
    """Raises Unavailable when direct I/O on the scratch disk cannot move such a record."""
    storage = workspace.facts.get("storage") or {}
    disk = f"the disk of {storage.get('scratch')}"
    refused = sectors_refuse(record, storage.get("logical_block_size"), disk)
    if refused is not None:
        raise refused


def need_share(cell: Cell, key: str, least: int) -> None:
    """Raises Unavailable when a fixed amount of work leaves a thread less than ``least``, its
    smallest piece.
    """
    total = amount(cell, key)
    if total is not None and total < least * cell.concurrency:
        raise Unavailable("share", total=plain(total), least=least, threads=cell.concurrency)


def need_between(
    cell: Cell, what: str, value: int, least: int, most: int, *, size: bool = False
) -> None:
    """Raises Unavailable when the program takes no such ``value`` of ``what``; ``size``: bytes."""
    if not least <= value <= most:
        values = {"what": what, "value": value, "least": least, "most": most}
        raise Unavailable("size-range" if size else "range", program=cell.instrument, **values)


def needed_block(cell: Cell) -> int:
    """The cell's block size in bytes. Raises ConfigError when the cell has none."""
    if cell.block is None:
        raise ConfigError(f"cell {cell.id}: {cell.instrument} needs a block size, e.g. 1MiB")
    return cell.block


def option_number(cell: Cell, key: str) -> float | None:
    """A number among the cell's options, which the configuration's types have checked."""
    value = cell.options.get(key)
    return None if value is None else float(value)


def option_size(cell: Cell, key: str) -> int | None:
    """A size in bytes among the cell's options. Raises ConfigError."""
    value = cell.options.get(key)
    return None if value is None else parse_size(value)  # type: ignore[arg-type]


def amount(cell: Cell, key: str) -> float | None:
    """The fixed amount of work of a cell, bytes for ``total``; None where it has a time."""
    return option_size(cell, key) if key == "total" else option_number(cell, key)


def seconds_of(cell: Cell) -> float:
    """Seconds the cell is to be measured for."""
    return option_number(cell, "seconds") or 1.0


def warmup_of(cell: Cell, default: float = 0.0) -> float:
    """Seconds before the clock starts; 0 is allowed."""
    value = option_number(cell, "warmup")
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
    cpus = len(argv[2].split(",")) if argv[:1] == ("taskset",) else threads
    if cpus >= threads:
        return ()
    return (f"{threads} threads shared {cpus} CPU{'s' if cpus > 1 else ''}",)


def excerpt(*texts: str) -> str:
    """The last line of the first of these texts that has one."""
    return next(filter(None, map(last_line, texts)), "it printed nothing")


class Output(dict[str, Any]):
    """Values that a program printed, by name; names in nested JSON objects are joined by dots.

    It is strict about what is read, silent about all else. A name that is missing raises
    ParseError.
    """

    def __init__(self, program: str, values: Mapping[str, Any]) -> None:
        super().__init__(_flat(values))
        self.program = program

    @classmethod
    def of_tool(cls, program: str, text: str) -> Output:
        """Read the JSON object among the notes of a tool of the field. Raises ParseError."""
        return cls(program, find_object(program, text))

    @classmethod
    def of_json(cls, program: str, text: str) -> Output:
        """The JSON object that ``text`` of a kernel is. Raises ParseError when it is not exactly
        one whole object, or holds NaN.
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
        """A positive, finite number; 0 too with ``zero``. Raises ParseError for anything else, and
        says so of ``nan`` and ``inf``: what the program computed was no number.

        float() takes ``1_000``, ``nan`` and digits of other scripts: none of them is what a tool
        prints in the C locale.
        """
        value = self[name]
        if re.fullmatch(_NO_NUMBER, str(value).strip()):
            raise ParseError(f"{self.program}: {name} is {value}, which is no number")
        if isinstance(value, str) and re.fullmatch(_NUMBER, value.strip()):
            value = float(value)
        usable = isinstance(value, int | float) and not isinstance(value, bool)
        if not usable or not 0 <= value <= sys.float_info.max or (value == 0 and not zero):
            raise ParseError(f"{self.program}: {name} is {str(value)[:60]!r}, no positive number")
        return float(value)

    def whole(self, name: str) -> int:
        """A positive whole number. Raises ParseError."""
        text = str(self[name]).strip()
        if not re.fullmatch("0*[1-9][0-9]*", text):
            raise ParseError(f"{self.program}: {name} is {text[:60]!r}, no positive whole number")
        return int(text)

    def number_or_none(self, name: str) -> float | None:
        """A number that is only worth keeping; None where it is missing or no number."""
        try:
            return self.number(name, zero=True)
        except ParseError:
            return None

    def signed(self, name: str) -> float | None:
        """A finite number of either sign that is only worth keeping; None for anything else."""
        value = self.get(name)
        if not isinstance(value, int | float) or isinstance(value, bool):
            return None
        return float(value) if abs(value) <= sys.float_info.max else None

    def expect(self, values: Mapping[str, Any]) -> None:
        """Raises ParseError when the program printed other values than the cell's."""
        for name, value in values.items():
            if self[name] != value:
                raise ParseError(
                    f"{self.program}: {name} is {self[name]!r}, but the cell is for {value!r}"
                )


def _flat(values: Mapping[str, Any], place: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{place}{name}.")
        else:
            yield f"{place}{name}", value


def agree(value: float, other: float, tolerance: float, what: str) -> None:
    """Raises ParseError when two readings of one quantity differ by more than ``tolerance``,
    relatively.
    """
    if abs(value - other) > tolerance * abs(other):
        raise ParseError(
            f"{what}: the output contradicts itself, {value:.6g} and {other:.6g} should be equal"
        )


_HEAD_BYTES = 20  # of an ELF file, as far as e_machine
_SHARED = frozenset({"instrument", "version", "workload", "threads", "value", "unit", "work_unit"})
"""Keys of every kernel's result that are not details of one measurement."""


def program(folder: Path, name: str) -> Path:
    """A kernel that this machine can run: ``<folder>/<machine>/<name>`` if it exists, else
    ``<folder>/<name>``.

    Raises:
        MeasurementError: when it was compiled for another architecture, with the command that
            compiles one. An emulator might run it, slowly.
    """
    machine = os.uname().machine
    special = folder / machine / name
    path = special if special.exists() else folder / name
    try:
        head = _head(path)
    except OSError as error:
        raise MeasurementError("no-kernel", path=path, why=error.strerror) from error
    if head[:4] == b"\x7fELF":
        if len(head) < _HEAD_BYTES:
            raise MeasurementError("cut-kernel", path=path, count=len(head))
        if head[18:] != _head(Path("/proc/self/exe"))[18:]:
            build = (folder / machine).resolve()
            raise MeasurementError("other-kernel", path=path, machine=machine, build=build)
    return path.resolve()


def _head(path: Path) -> bytes:
    with path.open("rb") as stream:
        return stream.read(_HEAD_BYTES)


class Kernel(Instrument):
    """An own kernel: its options, and how its result is read."""

    reference = False

    def __init_subclass__(cls) -> None:
        cls.version = ("--version", rf"^{cls.name}\b.*?\b([0-9]\S*)")

    def locate(self, kernels: Path, choice: str | None = None) -> str:
        return str(program(kernels, self.name))

    def find(self, path: str) -> Tool:
        """Raises MeasurementError when it does not start: a broken kernel is mended and then
        measures, unlike a program that a machine has not.
        """
        try:
            return super().find(path)
        except Unavailable as error:
            raise MeasurementError("broken-kernel", why=str(error)) from error

    def read(self, cell: Cell, done: Completed) -> Output:
        """The JSON object. Raises ParseError when a key is missing or contradicts the cell."""
        if len(done.stdout.splitlines()) > 1:
            raise ParseError(f"{self.name} printed more than its one line of JSON")
        output = Output.of_json(self.name, done.stdout)
        unit = next(iter(metrics(cell.subsystem, cell.workload).values()))
        output.expect(
            {
                "instrument": self.name,
                "workload": cell.workload,
                "threads": cell.concurrency,
                "unit": unit,
            }
        )
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
        """The rows with the version and the warnings that the kernel printed; without rows, its
        value with all details.
        """
        metric = next(iter(metrics(cell.subsystem, cell.workload)))
        one = Measurement.of(cell, metric, output.number("value"), details(output))
        return Parsed(rows or (one,), output["version"], warnings=tuple(output["warnings"]))

    def common_options(
        self, cell: Cell, workspace: Workspace, cpus: int | None = None
    ) -> tuple[str, ...]:
        """--threads --cpus --warmup --seed --isa; ``cpus`` is the number of CPUs named, default one
        for each thread.
        """
        named = cpu_list(workspace, cpus or cell.concurrency)
        seed = option_number(cell, "seed")
        return (
            *("--threads", str(cell.concurrency), "--cpus", named),
            *self.warmup_option(cell),
            *(() if seed is None else ("--seed", str(int(seed)))),
            *flags(cell, "isa"),
        )

    def warmup_option(self, cell: Cell) -> tuple[str, ...]:
        """--warmup when the cell's options name one."""
        warmup = option_number(cell, "warmup")
        return () if warmup is None else ("--warmup", plain(warmup))

    def work_option(self, cell: Cell, key: str) -> tuple[str, ...]:
        """The option ``key`` as the flag of its name for a fixed amount of work, else --seconds."""
        work = amount(cell, key)
        if work is not None:
            return (f"--{key.replace('_', '-')}", str(int(work)))
        return ("--seconds", plain(seconds_of(cell)))


def flags(cell: Cell, *keys: str) -> tuple[str, ...]:
    """``--key value`` for those of the options that the cell has."""
    present = (key for key in keys if cell.options.get(key) is not None)
    return tuple(word for key in present for word in (f"--{key}", str(cell.options[key])))


def clock_s(cell: Cell, key: str, warmup: float) -> float:
    """Seconds of warm-up, and of the clock without a fixed amount of work in option ``key``."""
    timed = cell.options.get(key) is None
    return warmup_of(cell, warmup) + (seconds_of(cell) if timed else 0.0)


def details(output: Output) -> dict[str, Any]:
    """What is worth keeping with the value: every plain value that is not shared by all
    measurements.
    """
    return {
        name: value
        for name, value in output.items()
        if name not in _SHARED and (value is None or isinstance(value, str | int | float))
    }


def percentiles(output: Output, operations: str) -> Mapping[str, Any]:
    """Percentiles of a latency in s with its histogram, which counts as many as ``operations``."""
    counted = read_histogram(str(output["histogram"])).total()
    agree(counted, output.number(operations), 0.0, f"{output.program}: histogram")
    numbers = {name: output.number(name) for name in (*PERCENTILES, "max")}
    return {**numbers, "histogram": output["histogram"]}


def read_histogram(text: str) -> Counter[int]:
    """The counts by bucket. Raises ParseError when the text is no histogram."""
    if not re.fullmatch(HISTOGRAM, text):
        raise ParseError(f"{text[:60]!r} is no histogram")
    counts: Counter[int] = Counter()
    for run in text.split(";"):
        first, *numbers = map(int, run.split())
        counts.update(dict(enumerate(numbers, first)))
    return counts


def percentile_times(counts: Counter[int], shares: Sequence[float]) -> list[float]:
    """The times in s that shares of all operations do not exceed, by nearest rank, within 0.8 %.

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
