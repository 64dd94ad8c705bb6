"""Functions that instruments share: options of a cell, checks of its needs, and parsing of output.

``Kernel`` is the base class of peakmark's kernels: it finds them and parses the JSON that they print.
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
from peakmark.formatting import format_size, parse_size
from peakmark.tools.base import (
    Completed,
    Instrument,
    Measurement,
    Parsed,
    Tool,
    Workspace,
    first_line,
    last_line,
)

LEAST_N = 10_000
"""Smallest N of HPL for which its rate is compared with the limit.

In smaller matrices, panels and row exchanges, which grow with N^2, take a large share of the time.
"""
LEAST_SECONDS = 5.0
"""Shortest solution of HPL, in seconds, whose rate is compared with the limit.

In less time, the clock of the CPU and the threads do not reach a steady state.
"""
ON_CPUS_OF_RANK = (
    "exec taskset -c "
    '"$(echo "$0" | cut -d: -f$((1 + ${OMPI_COMM_WORLD_LOCAL_RANK:-${MPI_LOCALRANKID:-$SLURM_LOCALID}})))" "$@"'
)
"""Shell command that runs a program on the CPUs of its rank.

Its first argument has the CPUs of all ranks of the node, such as ``0,1:2,3``, the second is the program. The number
of the rank on its node comes from the variable of Open MPI, of Intel MPI and MPICH, or of srun.
"""
MEMORY_SHARE = 0.9
"""Share of the job's memory that buffers may take. The rest is left for the program itself."""
_NO_NUMBER = r"[+-]?(?i:nan(?:\(.*\))?|inf(?:inity)?)"
"""Pattern of the texts that C and Python print for values that are no finite number: nan and infinity."""
_NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
"""Pattern of a number as tools print it in the C locale."""
_NO_JSON_NUMBER = re.compile(rf"(?<=[:\[,\s]){_NO_NUMBER}(?=\s*[,}}\]])")
"""Pattern of an unquoted ``nan`` or ``inf`` as a value in JSON. JSON does not allow it, but tools print it."""

HISTOGRAM = "^[0-9]{1,4}( [1-9][0-9]{0,17})+(;[0-9]{1,4}( [1-9][0-9]{0,17})+)*\\Z"
"""Pattern of a histogram as kernels print it and records keep it.

The text has a part for each group of consecutive buckets that are not empty: the index of the first bucket,
then the count of each bucket. Buckets of times in ns are logarithmic, 128 for each power of two
(``src/kernels/common/histogram.h``).
"""
SUB_BITS = 7
"""Binary logarithm of the number of histogram buckets for each power of two."""
PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}
"""Percentile in the details of a latency -> share of all operations that take at most this time."""


def fits_memory(size: int, available: int) -> bool:
    """Return whether buffers of ``size`` bytes take at most ``MEMORY_SHARE`` of ``available`` bytes of memory."""
    return size <= MEMORY_SHARE * available


def need_memory(name: str, size: int, workspace: Workspace) -> None:
    """Check that the program ``name`` may allocate ``size`` bytes.

    Raises:
        Unavailable: the node has too little memory.
        MeasurementError: the node has enough memory, but Slurm granted the job too little. A later run
            can ask for more.
    """
    if fits_memory(size, workspace.memory_bytes):
        return
    limits = workspace.facts.get("limits") or {}
    total = (workspace.facts.get("memory") or {}).get("total") or 0
    may_use = format_size(workspace.memory_bytes)
    fact = f"{name} would allocate {format_size(size)}, but the job may use {may_use}"
    # ``memory_limited_by`` is None if the job may use all memory of the node.
    if limits.get("slurm") and limits.get("memory_limited_by") and fits_memory(size, total):
        raise MeasurementError(f"{OUT_OF_MEMORY}: {fact}", MORE_MEMORY)
    raise Unavailable(fact, "make the pool smaller or ask for more memory")


def need_sectors(record: int, workspace: Workspace) -> None:
    """Check that direct I/O on the scratch disk allows a record size. A disk whose sector size is unknown allows it.

    Raises:
        Unavailable: records are no multiple of the disk's sector size.
    """
    storage = workspace.facts.get("storage") or {}
    sector = storage.get("logical_block_size")
    if sector and record % sector:
        larger = format_size(-(-record // sector) * sector)  # rounded up to whole sectors
        raise Unavailable(
            f"direct I/O on the disk of {storage.get('scratch')} moves multiples of {sector} B; "
            f"the next larger record is {larger}"
        )


def need_share(cell: Cell, key: str, least: int) -> None:
    """Check that a fixed amount of work is at least ``least`` for each thread.

    Args:
        cell: the cell.
        key: option with the amount of all threads, in bytes or as a number of operations.
        least: smallest amount for each thread, in the same unit.

    A cell without this option passes: it runs for a time.

    Raises:
        Unavailable: the amount is smaller.
    """
    total = amount(cell, key)
    if total is not None and total < least * cell.concurrency:
        raise Unavailable(
            f"a total of {plain(total)} is less than {least} for each of {cell.concurrency} threads",
            "give a larger total, or put few threads into a separate grid",
        )


def need_between(
    cell: Cell, what: str, value: int, least: int, most: int, *, in_bytes: bool = False
) -> None:
    """Check that the program accepts a value.

    Args:
        cell: the cell.
        what: name of the value in the message.
        value: the value.
        least: least value that the program accepts.
        most: largest value that the program accepts.
        in_bytes: whether the value is a number of bytes; otherwise it is a number of things called ``what``.

    Raises:
        Unavailable: the value is not between ``least`` and ``most``.
    """
    if least <= value <= most:
        return
    if in_bytes:
        raise Unavailable(
            f"{cell.instrument} takes {what} of {format_size(least)} to {format_size(most)},"
            f" the cell asks for {format_size(value)}"
        )
    raise Unavailable(
        f"{cell.instrument} takes {least} to {most} {what}, the cell asks for {value}"
    )


def need_multiple(program: str, unit: int, block: int) -> None:
    """Check that a block is a multiple of ``unit``, the bytes that the program moves at once.

    Raises:
        Unavailable: the block is no multiple.
    """
    if block % unit:
        raise Unavailable(
            f"{program} takes blocks of a multiple of {unit} B, the cell's has {block} B"
        )


def needed_block(cell: Cell) -> int:
    """Return the cell's block size in bytes. Errors: ConfigError if the cell has none."""
    if cell.block is None:
        raise ConfigError(f"cell {cell.id}: {cell.instrument} needs a block size, e.g. 1MiB")
    return cell.block


def option_number(cell: Cell, key: str) -> float | None:
    """Return the number in the option ``key`` of the cell; None if the cell does not set this option."""
    value = cell.options.get(key)
    return None if value is None else float(value)


def option_size(cell: Cell, key: str) -> int | None:
    """Return the bytes of the size in the option ``key`` of the cell; None if the cell does not set this option.

    Errors: ConfigError if the option is no size.
    """
    value = cell.options.get(key)
    return None if value is None else parse_size(value)  # type: ignore[arg-type]


def amount(cell: Cell, key: str) -> float | None:
    """Return the fixed amount of work that the option ``key`` of the cell sets; None if the cell does not set it.

    ``total`` is in bytes, and may be written as a size. The other options are numbers of operations.
    """
    if key == "total":
        return option_size(cell, key)
    return option_number(cell, key)


def seconds_of(cell: Cell) -> float:
    """Return the seconds for which the cell is measured: 1 s unless the option ``seconds`` sets them."""
    return option_number(cell, "seconds") or 1.0


def warmup_of(cell: Cell, default: float = 0.0) -> float:
    """Return the seconds of warm-up before the clock starts.

    A cell may set 0. If it sets none, the result is ``default``.
    """
    value = option_number(cell, "warmup")
    return default if value is None else value


def plain(number: float) -> str:
    """Return a number as text that every tool can parse: 2 for 2.0, and never an exponent."""
    return f"{number:.9f}".rstrip("0").rstrip(".")


def cpu_list(workspace: Workspace, threads: int) -> str:
    """Return one CPU for each thread as ``0,2,4``; all CPUs if there are fewer CPUs than threads."""
    return ",".join(str(cpu) for cpu in workspace.cpus[:threads])


def pinned(workspace: Workspace, threads: int) -> tuple[str, ...]:
    """Return the start of a command line that pins a program to one CPU for each thread, with ``taskset``.

    It is for tools that have no option for CPUs.
    """
    return ("taskset", "-c", cpu_list(workspace, threads))


def excerpt(*texts: str) -> str:
    """Return the last line of the first non-blank text, for the message of an error.

    If all texts are blank, the result says that nothing was printed.
    """
    lines = map(last_line, texts)
    return next(filter(None, lines), "it printed nothing")


def found(pattern: str, text: str) -> str | None:
    """Return group 1 of a pattern's first match, or None. ``^`` matches at every line."""
    match = re.search(pattern, text, re.MULTILINE)
    return match[1] if match else None


class Output(dict[str, Any]):
    """Values that a program printed, by name. Names in nested JSON objects are joined by dots.

    A value is checked when it is read. Reading a missing name raises ParseError.
    """

    def __init__(self, program: str, values: Mapping[str, Any]) -> None:
        """Hold values, which may be nested. Errors name the ``program`` that printed them."""
        super().__init__(_flat(values))
        self.program = program

    @classmethod
    def of_json(cls, program: str, text: str) -> Output:
        """Read the first JSON object that begins a line: tools print notes before and after it.

        Raises:
            ParseError: there is no object, or it is incomplete.
        """
        begin = re.search(r"^\{", text, re.MULTILINE)
        if begin is None:
            raise ParseError(
                f"{program} printed no JSON: {first_line(text) or 'it printed nothing'}"
            )
        # A bare nan or inf is no JSON. In quotes it can be read, and ``number`` refuses it where it is needed.
        quoted = _NO_JSON_NUMBER.sub(r'"\g<0>"', text[begin.start() :])
        try:
            values, end = json.JSONDecoder().raw_decode(quoted)
        except (ValueError, RecursionError) as error:
            raise ParseError(f"{program} did not print whole JSON: {error}") from error
        # If JSON goes on after the end of the object, a line with { was lost, so the object ended too early.
        if quoted[end:].lstrip().startswith(("}", "]", ",", ":")):
            raise ParseError(
                f"{program} did not print whole JSON: a line is missing before its end"
            )
        return cls(program, values)

    def __missing__(self, name: str) -> Any:
        raise ParseError(f"{self.program}: {name} is missing in its output")

    def number(self, name: str, *, allow_zero: bool = False) -> float:
        """Return the value ``name`` as a positive, finite number. With ``allow_zero``, it may be 0.

        Raises:
            ParseError: the value is anything else, such as ``nan`` or ``inf``.
        """
        value = self[name]
        if re.fullmatch(_NO_NUMBER, str(value).strip()):
            raise ParseError(f"{self.program}: {name} is {value}, which is no number")
        # The pattern is stricter than float(), which also accepts 1_000 and digits of other scripts.
        if isinstance(value, str) and re.fullmatch(_NUMBER, value.strip()):
            value = float(value)
        if (
            not isinstance(value, int | float)
            or not 0 <= value <= sys.float_info.max
            or (value == 0 and not allow_zero)
        ):
            raise ParseError(f"{self.program}: {name} is {str(value)[:60]!r}, no positive number")
        return float(value)

    def whole(self, name: str) -> int:
        """Return a positive whole number. Errors: ParseError for any other value."""
        text = str(self[name]).strip()
        if not re.fullmatch("0*[1-9][0-9]*", text):
            raise ParseError(f"{self.program}: {name} is {text[:60]!r}, no positive whole number")
        return int(text)

    def number_or_none(self, name: str) -> float | None:
        """Return an optional number of at least 0; None if it is missing, negative, infinite or no number."""
        try:
            return self.number(name, allow_zero=True)
        except ParseError:
            return None

    def signed(self, name: str) -> float | None:
        """Return an optional finite number, which may be negative; None if it is missing or anything else.

        Unlike ``number``, this method does not read numbers in quotes.
        """
        value = self.get(name)
        if not isinstance(value, int | float):
            return None
        if abs(value) > sys.float_info.max:
            return None
        return float(value)

    def expect(self, values: Mapping[str, Any]) -> None:
        """Check that the program printed these values (name -> value).

        Raises:
            ParseError: a name is missing, or has another value.
        """
        for name, value in values.items():
            if self[name] != value:
                raise ParseError(
                    f"{self.program}: {name} is {self[name]!r}, but the cell is for {value!r}"
                )


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (name, value) for all values in nested objects, with names joined by dots.

    Lists are not flattened. ``prefix`` is the name of the object with a dot, empty for the outermost object.
    """
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def agree(value: float, other: float, tolerance: float, what: str) -> None:
    """Check that two values of the same quantity differ by at most the share ``tolerance``.

    Raises:
        ParseError: the values differ by more.
    """
    if abs(value - other) > tolerance * abs(other):
        raise ParseError(
            f"{what}: the output contradicts itself, {value:.6g} and {other:.6g} should be equal"
        )


_HEAD_BYTES = 20
"""Bytes at the start of an ELF file, up to the end of the field ``e_machine`` (architecture)."""
_COMPILE_ANEW = "`make clean kernels` compiles it anew"
"""Remedy for a kernel whose file is broken."""
_SHARED = frozenset({"instrument", "version", "workload", "threads", "value", "unit", "work_unit"})
"""Keys in the output of every kernel that are not details of a measurement."""


def kernel_path(folder: Path, name: str) -> Path:
    """Return the path of a kernel: ``<folder>/<architecture>/<name>`` if it exists, else
    ``<folder>/<name>``.

    Raises:
        MeasurementError: the kernel was not compiled, or was compiled for another architecture.
            Without this check an emulator might run it, slowly.
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
    # The last two of ``_HEAD_BYTES`` are the architecture. This Python runs on the node, so its architecture is the
    # right one. A file that is not ELF, such as a script, has none, and may run everywhere.
    if head[:4] == b"\x7fELF" and head[18:] != _head(Path("/proc/self/exe"))[18:]:
        build = (folder / machine).resolve()
        raise MeasurementError(
            f"{path} was compiled for another architecture than this node's, {machine}",
            f"run there, once: make -C src/kernels BUILD={build}",
        )
    return path.resolve()


def _head(path: Path) -> bytes:
    """Return the first ``_HEAD_BYTES`` of a file. Errors: OSError if it cannot be read."""
    with path.open("rb") as stream:
        return stream.read(_HEAD_BYTES)


class Kernel(Instrument):
    """One of peakmark's kernels, with the options and output that all kernels share."""

    reference = False

    def __init_subclass__(cls) -> None:
        # Each kernel prints a line that begins with its name and has its version.
        cls.version = ("--version", rf"^{cls.name}\b.*?\b([0-9]\S*)")

    def locate(self, kernels: Path, choice: str | None = None) -> str:
        # Kernels are never searched on PATH, and the configuration chooses no other program for them.
        return str(kernel_path(kernels, self.name))

    def find(self, path: str) -> Tool:
        """Return the kernel with its version.

        Raises:
            MeasurementError: the kernel does not start. This is not ``Unavailable``, because the
                kernel can be compiled again.
        """
        try:
            return super().find(path)
        except Unavailable as error:
            raise MeasurementError(str(error), _COMPILE_ANEW) from error

    def read(self, cell: Cell, done: Completed) -> Output:
        """Read the kernel's JSON object, and check it against the cell.

        Raises:
            ParseError: a key is missing, or its value contradicts the cell.
        """
        output = Output.of_json(self.name, done.stdout)
        unit = next(iter(metrics(cell.subsystem, cell.workload).values()))
        wanted = {"instrument": self.name, "workload": cell.workload, "unit": unit}
        output.expect({**wanted, "threads": self.threads(cell)})
        # A single rate must be the work divided by the time. Times, matrices and curves are no such rate.
        value, work, seconds = map(output.number, ("value", "work", "seconds"))
        if unit != "s" and cell.workload not in SHAPES:
            if unit == "bit/s":
                work *= 8  # the work is in bytes
            self.check_rate(output, value, work / seconds)
        return output

    def threads(self, cell: Cell) -> int:
        """Return the number of threads that the kernel must report: the concurrency.

        mpibench overrides this, because it reports the ranks of all nodes.
        """
        return cell.concurrency

    def check_rate(self, output: Output, value: float, rate: float) -> None:
        """Check that the value equals the work divided by the time.

        Args:
            output: output of the kernel. Only gpubench's check, which overrides this, reads it.
            value: the kernel's value.
            rate: work / time, in the unit of the value.

        Raises:
            ParseError: they differ by more than 0.1 %.
        """
        agree(value, rate, 1e-3, f"{self.name}: value")

    def parse(self, cell: Cell, done: Completed) -> Parsed:
        return self.parsed(cell, self.read(cell, done))

    def parsed(self, cell: Cell, output: Output, *rows: Measurement) -> Parsed:
        """Return ``rows`` together with the version and the warnings that the kernel printed.

        Without ``rows``, the only measurement is the kernel's value for the row of the cell, with
        all details.
        """
        metric = next(iter(metrics(cell.subsystem, cell.workload)))
        # An output without a value is an error, also if its rows are given.
        one = Measurement.of(cell, metric, output.number("value"), details(output))
        return Parsed(rows or (one,), output["version"], warnings=tuple(output["warnings"]))

    def common_options(
        self, cell: Cell, workspace: Workspace, cpus: int | None = None
    ) -> tuple[str, ...]:
        """Return the options --threads, --cpus, --warmup, --seed and --isa for the cell.

        Args:
            cell: the cell.
            workspace: the CPUs of the job.
            cpus: number of CPUs to pass; by default one for each thread.
        """
        listed_cpus = cpu_list(workspace, cpus or cell.concurrency)
        options = ["--threads", str(cell.concurrency), "--cpus", listed_cpus]
        options += self.warmup_option(cell)
        options += flags(cell, "seed", "isa")
        return tuple(options)

    def warmup_option(self, cell: Cell) -> tuple[str, ...]:
        """Return the option --warmup if the cell sets a warm-up."""
        warmup = option_number(cell, "warmup")
        if warmup is None:
            return ()
        return ("--warmup", plain(warmup))

    def work_option(self, cell: Cell, key: str) -> tuple[str, ...]:
        """Return the option for the amount of work that the cell's option ``key`` sets, such as ``--total``.

        Without such an amount, return --seconds.
        """
        work = amount(cell, key)
        if work is not None:
            return (f"--{key.replace('_', '-')}", str(int(work)))
        return ("--seconds", plain(seconds_of(cell)))


def flags(cell: Cell, *keys: str) -> tuple[str, ...]:
    """Return the words ``--key``, value for each of these options that the cell sets."""
    words: list[str] = []
    for key in keys:
        value = cell.options.get(key)
        if value is not None:
            words += [f"--{key}", str(value)]
    return tuple(words)


def clock_s(cell: Cell, key: str, warmup: float) -> float:
    """Return the seconds of warm-up and measuring that the cell's options set.

    The time to measure is left out if the option ``key`` sets an amount of work, because the time that this work
    takes depends on the machine. ``warmup`` is the warm-up in seconds of a cell that sets none.
    """
    seconds = warmup_of(cell, warmup)
    if cell.options.get(key) is None:
        seconds += seconds_of(cell)
    return seconds


def details(output: Output) -> dict[str, Any]:
    """Return the details of a kernel's value: all scalars in its output, except ``_SHARED`` keys.

    Records keep these keys, such as the version and the value itself, in other places.
    """
    return {
        name: value
        for name, value in output.items()
        if name not in _SHARED and (value is None or isinstance(value, str | int | float))
    }


def percentiles(output: Output, operations: str) -> Mapping[str, Any]:
    """Return the percentiles (``PERCENTILES``) and the maximum of a latency in seconds, and its histogram as text.

    Args:
        output: output of the kernel.
        operations: name of the value that must equal the number of operations in the histogram.
    """
    counted = read_histogram(str(output["histogram"])).total()
    # The tolerance is 0: every operation is in the histogram.
    agree(counted, output.number(operations), 0.0, f"{output.program}: histogram")
    numbers = {name: output.number(name) for name in (*PERCENTILES, "max")}
    return {**numbers, "histogram": output["histogram"]}


def read_histogram(text: str) -> Counter[int]:
    """Parse a histogram into bucket -> count. Errors: ParseError if the text is no histogram."""
    if not re.fullmatch(HISTOGRAM, text):
        raise ParseError(f"{text[:60]!r} is no histogram")
    counts: Counter[int] = Counter()
    for part in text.split(";"):
        first, *numbers = map(int, part.split())
        counts.update(dict(enumerate(numbers, first)))
    return counts


def percentile_times(counts: Counter[int], shares: Sequence[float]) -> list[float]:
    """Return percentiles of a histogram in seconds, by nearest rank, accurate to 0.8 %.

    Args:
        counts: bucket -> number of operations.
        shares: shares of all operations, between 0 and 1, ascending.

    Returns:
        A time for each share. The times of the highest shares are left out if they would be the
            longest time of all operations.
    """
    buckets = sorted(counts)
    # Number of operations up to the end of each bucket.
    until = list(accumulate(counts[bucket] for bucket in buckets))
    ranks = [max(1, math.ceil(share * counts.total())) for share in shares]
    times = []
    for rank in ranks:
        if rank >= counts.total():
            break
        # Find the bucket with this rank, its shortest time in ns, and its width: how much longer its longest time
        # is. Up to 2**(SUB_BITS + 1) ns, the bucket is the time, and the width 0. Each further power of two has
        # 2**SUB_BITS buckets. The shift is the binary logarithm of the number of times in such a bucket.
        index = bisect_left(until, rank)
        bucket = buckets[index]
        count = counts[bucket]
        shift = max(bucket >> SUB_BITS, 1) - 1
        shortest = bucket - (shift << SUB_BITS) << shift
        width = (1 << shift) - 1
        # The times in a bucket are taken to be evenly spaced.
        rank_in_bucket = rank - until[index] + count
        times.append((shortest + width * (rank_in_bucket - 0.5) / count) * 1e-9)
    return times


def is_too_small(hpl_details: Mapping[str, Any]) -> bool:
    """Return whether HPL's problem was too small for its rate to be compared with the limit.

    ``hpl_details`` are the details of its measurement. A problem whose size or time is not recorded counts as
    large enough.
    """
    n, seconds = hpl_details.get("N", LEAST_N), hpl_details.get("seconds", LEAST_SECONDS)
    return bool(n < LEAST_N or seconds < LEAST_SECONDS)
