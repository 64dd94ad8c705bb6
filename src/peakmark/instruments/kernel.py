"""What the four own kernels share: finding them, common options, and reading the JSON object they print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from peakmark.cell import Cell
from peakmark.errors import ConfigError, MeasurementError, ParseError, Unavailable
from peakmark.instruments import common, documents
from peakmark.instruments.base import Command, Completed, Measurement, Parsed, Tool, Workspace
from peakmark.lean import Any, ClassVar, dataclass

ISAS = ("auto", "scalar", "sse2", "avx2", "avx512", "neon")

# Keys of the shared part that are not details of one measurement.
_SHARED = {"instrument", "version", "workload", "threads", "value", "unit", "work_unit", "per_thread", "warnings"}


@dataclass(frozen=True)
class Result:
    """A kernel's JSON object after its shared keys were checked."""

    value: float
    document: Mapping[str, Any]
    details: Mapping[str, Any]
    warnings: tuple[str, ...]
    version: str

    def number(self, key: str) -> float:
        """A positive number under ``key``. Errors: ParseError."""
        return documents.number_at(self.document, key, str(self.document["instrument"]))


class Kernel(common.Program):
    """An own kernel: printed unit by workload, and how its result is read."""

    reference = False
    units: ClassVar[Mapping[str, str]]  # workload -> unit the kernel must print

    def find(self, path: str) -> Tool:
        """Errors: MeasurementError when it does not start: a broken kernel is mended and then measures, unlike a program
        that a machine has not.
        """
        try:
            return common.find_version(self.name, path, ("--version",), rf"{self.name}\b.*?\b([0-9]\S*)")
        except Unavailable as error:
            raise MeasurementError(f"{error}; `make clean kernels` compiles it anew") from error

    def read(self, cell: Cell, completed: Sequence[Completed]) -> Result:
        """The last command's JSON object. Errors: ParseError when a shared key is missing or contradicts the cell."""
        if not completed:
            raise ParseError(f"{self.name} was not run")
        text = completed[-1].stdout
        if len(text.splitlines()) > 1:
            raise ParseError(f"{self.name} printed more than its one line of JSON")
        document = documents.read(text, self.name)
        expected: dict[str, Any] = {
            "instrument": self.name,
            "workload": cell.workload,
            "threads": cell.concurrency,
            "unit": self.units[cell.workload],
        }
        for key, value in expected.items():
            if documents.at(document, key, self.name) != value:
                raise ParseError(f"{self.name}: {key} is {document[key]!r}, but the cell is for {value!r}")
        per_thread = documents.at(document, "per_thread", self.name)
        warnings = documents.at(document, "warnings", self.name)
        if not isinstance(per_thread, list) or len(per_thread) != cell.concurrency:
            raise ParseError(f"{self.name}: per_thread does not hold {cell.concurrency} entries")
        if not isinstance(warnings, list):
            raise ParseError(f"{self.name}: warnings is not a list")
        details = {
            key: value
            for key, value in document.items()
            if key not in _SHARED and (value is None or isinstance(value, str | int | float))
        }
        for key in ("seconds", "work"):
            documents.number_at(document, key, self.name)
        return Result(
            value=documents.number_at(document, "value", self.name),
            document=document,
            details=details,
            warnings=tuple(str(warning) for warning in warnings),
            version=str(documents.at(document, "version", self.name)),
        )

    def common_options(self, cell: Cell, workspace: Workspace, cpus: int | None = None) -> tuple[str, ...]:
        """--threads --cpus --warmup --seed; ``cpus`` is the number of CPUs named, default one for each thread."""
        named = common.cpu_list(workspace, cell.concurrency if cpus is None else cpus)
        options = ["--threads", str(cell.concurrency), "--cpus", named]
        warmup = common.option_number(cell, "warmup", None, zero=True)
        if warmup is not None:
            options += ["--warmup", common.plain(warmup)]
        seed = common.option_number(cell, "seed", None, zero=True)
        if seed is not None:
            options += ["--seed", str(int(seed))]
        return tuple(options)

    def amount(self, cell: Cell, key: str, flag: str) -> tuple[str, ...]:
        """How much is done: the option ``key`` as ``flag`` if given, else --seconds. The kernels take only one."""
        work = common.option_number(cell, key, None) if key != "total" else common.option_size(cell, key, None)
        if work is not None:
            return (flag, str(int(work)))
        return ("--seconds", common.plain(common.seconds_of(cell)))

    def command(self, argv: tuple[str, ...], seconds: float, env: Mapping[str, str] | None = None) -> Command:
        return Command(argv=argv, env={**common.ENV, **(env or {})}, timeout_s=common.timeout(seconds))


def isa_option(cell: Cell) -> tuple[str, ...]:
    """--isa when the cell's options name one. Errors: ConfigError for an unknown name."""
    isa = cell.options.get("isa")
    if isa is None:
        return ()
    if isa not in ISAS:
        raise ConfigError(f"cell {cell.id}: option isa={isa!r} is not allowed, choose one of {', '.join(ISAS)}")
    return ("--isa", str(isa))


def asked_s(cell: Cell, key: str, warmup: float) -> float:
    """Seconds of warm-up, and of the clock where no fixed work was asked for."""
    timed = cell.options.get(key) is None
    return common.warmup_of(cell, warmup) + (common.seconds_of(cell) if timed else 0.0)


def work_of(cell: Cell, key: str) -> float:
    """The fixed work that was asked for, 0 where a time was."""
    work = common.option_number(cell, key, None) if key != "total" else common.option_size(cell, key, None)
    return work or 0.0


def parsed(cell: Cell, result: Result, rows: Sequence[tuple[str, float, str, Mapping[str, Any]]]) -> Parsed:
    """One measurement of the cell's own row per (metric, value, unit, details)."""
    return Parsed(
        measurements=tuple(Measurement.of(cell, metric, value, unit, details) for metric, value, unit, details in rows),
        version=result.version,
        warnings=result.warnings,
    )
