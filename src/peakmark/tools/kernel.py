"""What the four own kernels share: finding them, common options, and reading the JSON object they
print.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from peakmark.cell import Cell
from peakmark.errors import ConfigError, ParseError
from peakmark.reasons import MeasurementError, Unavailable
from peakmark.tools import common
from peakmark.tools.base import Completed, Measurement, Parsed, Tool, Workspace
from peakmark.tools.documents import Document

ISAS = ("auto", "scalar", "sse2", "avx2", "avx512", "neon")
HEAD_BYTES = 20  # of an ELF file, as far as e_machine
# e_machine of <elf.h>, by what uname calls the machine.
_ELF = {
    "x86_64": 62,
    "aarch64": 183,
    "ppc64le": 21,
    "riscv64": 243,
    "s390x": 22,
    "loongarch64": 258,
}

# Keys of the shared part that are not details of one measurement.
_SHARED = {
    "instrument",
    "version",
    "workload",
    "threads",
    "value",
    "unit",
    "work_unit",
    "per_thread",
    "warnings",
}


def program(folder: Path, name: str, machine: str | None = None) -> Path:
    """A kernel that this machine can run: ``<folder>/<machine>/<name>`` if it exists, else
    ``<folder>/<name>``.

    Errors: MeasurementError when it was compiled for another architecture, with the command that
    compiles one.
    """
    machine = machine or os.uname().machine
    special = folder / machine / name
    path = special if special.exists() else folder / name
    try:
        with path.open("rb") as stream:
            head = stream.read(HEAD_BYTES)
    except OSError as error:
        raise MeasurementError("no-kernel", path=path, why=error.strerror) from error
    if head[:4] == b"\x7fELF" and len(head) < HEAD_BYTES:
        raise MeasurementError("cut-kernel", path=path, count=len(head))
    if head[:4] == b"\x7fELF" and machine in _ELF:
        order = "<" if head[5] == 1 else ">"
        if struct.unpack_from(f"{order}H", head, 18)[0] != _ELF[machine]:
            raise MeasurementError(
                "other-kernel", path=path, machine=machine, build=(folder / machine).resolve()
            )
    return path.resolve()


class Kernel(common.Instrument):
    """An own kernel: printed unit by workload, and how its result is read."""

    reference = False
    units: ClassVar[Mapping[str, str]]  # workload -> unit the kernel must print

    def __init_subclass__(cls) -> None:
        cls.version = ("--version", rf"^{cls.name}\b.*?\b([0-9]\S*)")

    def locate(self, kernels: Path, choice: str | None = None) -> str:
        return str(program(kernels, self.executables[0]))

    def find(self, path: str) -> Tool:
        """Errors: MeasurementError when it does not start: a broken kernel is mended and then
        measures, unlike a program that a machine has not.
        """
        try:
            return super().find(path)
        except Unavailable as error:
            raise MeasurementError("broken-kernel", why=str(error)) from error

    def read(self, cell: Cell, done: Completed) -> Document:
        """The JSON object. Errors: ParseError when a shared key is missing or contradicts the cell."""
        if len(done.stdout.splitlines()) > 1:
            raise ParseError(f"{self.name} printed more than its one line of JSON")
        document = Document.read(done.stdout, self.name)
        expected: dict[str, Any] = {
            "instrument": self.name,
            "workload": cell.workload,
            "threads": cell.concurrency,
            "unit": self.units[cell.workload],
        }
        for key, value in expected.items():
            if document.at(key) != value:
                raise ParseError(
                    f"{self.name}: {key} is {document.at(key)!r}, but the cell is for {value!r}"
                )
        if (
            not isinstance(document.at("per_thread"), list)
            or len(document.at("per_thread")) != cell.concurrency
        ):
            raise ParseError(f"{self.name}: per_thread does not hold {cell.concurrency} entries")
        if not isinstance(document.at("warnings"), list):
            raise ParseError(f"{self.name}: warnings is not a list")
        for key in ("value", "seconds", "work"):
            document.number(key)
        return document

    def agree_rate(self, document: Document, bits: int = 1) -> None:
        """Errors: ParseError when the value is not the work, in ``bits`` of its units, by the time."""
        rate = bits * document.number("work") / document.number("seconds")
        common.agree(document.number("value"), rate, 1e-3, f"{self.name}: value")

    def common_options(
        self, cell: Cell, workspace: Workspace, cpus: int | None = None
    ) -> tuple[str, ...]:
        """--threads --cpus --warmup --seed; ``cpus`` is the number of CPUs named, default one for
        each thread.
        """
        named = common.cpu_list(workspace, cell.concurrency if cpus is None else cpus)
        seed = common.option_number(cell, "seed", None, zero=True)
        seeded = () if seed is None else ("--seed", str(int(seed)))
        return (
            "--threads",
            str(cell.concurrency),
            "--cpus",
            named,
            *self.warmup_option(cell),
            *seeded,
        )

    def warmup_option(self, cell: Cell) -> tuple[str, ...]:
        """--warmup when the cell's options name one."""
        warmup = common.option_number(cell, "warmup", None, zero=True)
        return () if warmup is None else ("--warmup", common.plain(warmup))

    def amount(self, cell: Cell, key: str) -> tuple[str, ...]:
        """How much is done: the option ``key`` as the flag of its name if given, else --seconds.
        The kernels take only one.
        """
        work = common.work(cell, key)
        if work is not None:
            return (f"--{key.replace('_', '-')}", str(int(work)))
        return ("--seconds", common.plain(common.seconds_of(cell)))


def isa_option(cell: Cell) -> tuple[str, ...]:
    """--isa when the cell's options name one. Errors: ConfigError for an unknown name."""
    isa = cell.options.get("isa")
    if isa is None:
        return ()
    if isa not in ISAS:
        raise ConfigError(
            f"cell {cell.id}: option isa={isa!r} is not allowed, choose one of {', '.join(ISAS)}"
        )
    return ("--isa", str(isa))


def asked_s(cell: Cell, key: str, warmup: float) -> float:
    """Seconds of warm-up, and of the clock where no fixed work was asked for."""
    timed = cell.options.get(key) is None
    return common.warmup_of(cell, warmup) + (common.seconds_of(cell) if timed else 0.0)


def details(document: Document) -> dict[str, Any]:
    """What is worth keeping beside the value: every plain value that is not shared by all
    measurements.
    """
    plain = {
        key: value
        for key, value in document.values.items()
        if value is None or isinstance(value, str | int | float)
    }
    return {key: value for key, value in plain.items() if key not in _SHARED}


def parsed(
    cell: Cell, document: Document, *rows: tuple[str, float, str, Mapping[str, Any]]
) -> Parsed:
    """One measurement of the cell's own row per (metric, value, unit, details)."""
    measurements = tuple(Measurement.of(cell, *row) for row in rows)
    return Parsed(
        measurements, str(document.at("version")), warnings=tuple(map(str, document.at("warnings")))
    )
