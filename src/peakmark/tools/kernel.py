"""What the four own kernels share: finding them, common options, and reading the JSON object they
print.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from peakmark.catalogue import metrics
from peakmark.cell import Cell
from peakmark.errors import ParseError
from peakmark.reasons import MeasurementError, Unavailable
from peakmark.tools import common
from peakmark.tools.base import Completed, Instrument, Measurement, Parsed, Tool, Workspace
from peakmark.tools.common import Output

PERCENTILES = ("p50", "p90", "p99", "p999", "max")
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
        if unit != "s":
            bits = 8 if unit == "bit/s" else 1
            common.agree(value, bits * work / seconds, 1e-3, f"{self.name}: value")
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
        named = common.cpu_list(workspace, cpus or cell.concurrency)
        seed = common.option_number(cell, "seed", zero=True)
        return (
            *("--threads", str(cell.concurrency), "--cpus", named),
            *self.warmup_option(cell),
            *(() if seed is None else ("--seed", str(int(seed)))),
            *flags(cell, "isa"),
        )

    def warmup_option(self, cell: Cell) -> tuple[str, ...]:
        """--warmup when the cell's options name one."""
        warmup = common.option_number(cell, "warmup", zero=True)
        return () if warmup is None else ("--warmup", common.plain(warmup))

    def work_option(self, cell: Cell, key: str) -> tuple[str, ...]:
        """The option ``key`` as the flag of its name for a fixed amount of work, else --seconds."""
        work = common.amount(cell, key)
        if work is not None:
            return (f"--{key.replace('_', '-')}", str(int(work)))
        return ("--seconds", common.plain(common.seconds_of(cell)))


def flags(cell: Cell, *keys: str) -> tuple[str, ...]:
    """``--key value`` for those of the options that the cell has."""
    present = (key for key in keys if cell.options.get(key) is not None)
    return tuple(word for key in present for word in (f"--{key}", str(cell.options[key])))


def clock_s(cell: Cell, key: str, warmup: float) -> float:
    """Seconds of warm-up, and of the clock without a fixed amount of work in option ``key``."""
    timed = cell.options.get(key) is None
    return common.warmup_of(cell, warmup) + (common.seconds_of(cell) if timed else 0.0)


def details(output: Output) -> dict[str, Any]:
    """What is worth keeping with the value: every plain value that is not shared by all
    measurements.
    """
    return {
        name: value
        for name, value in output.items()
        if name not in _SHARED and (value is None or isinstance(value, str | int | float))
    }


def percentiles(output: Output) -> Mapping[str, float]:
    """Percentiles of a latency in s."""
    return {name: output.number(name) for name in PERCENTILES}
