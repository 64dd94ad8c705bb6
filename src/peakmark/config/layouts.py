"""Layouts: the tables as a certain report prints them, described by a YAML file in
``reports/layouts``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from peakmark import yamlfile
from peakmark.arithmetic import evaluate
from peakmark.catalogue import KERNELS, WORKLOADS
from peakmark.config import drawings
from peakmark.config.drawings import Drawing
from peakmark.errors import ConfigError
from peakmark.formatting import size
from peakmark.resources import ROOT
from peakmark.schemas import problem, sentence
from peakmark.tools.tables import BY_NAME, Program, Table
from peakmark.units import format_size, parse_size

FOLDER = ROOT / "reports" / "layouts"
ORDER = ("workload", "concurrency", "block")
_SHOWN = {
    ("B/s", 1e-6): "MB/sec",
    ("B/s", 1e-9): "GB/sec",
    ("bit/s", 1e-6): "Mb/sec",
    ("bit/s", 1e-9): "Gb/sec",
    ("s", 1e3): "ms",
    ("s", 1e6): "us",
    ("s", 1e9): "ns",
}


@dataclass(frozen=True)
class LayoutColumn:
    """A column: either ``text`` with {workload}, {concurrency} and {block}, or the ``value`` of an
    instrument.

    value    measured, mean, median, deviation, run, theoretical or efficiency
    run      which repetition, from 1
    formula  efficiency in percent by ``measured`` and ``theoretical``; None: the share of the limit
    where    which of a line's rows, None for the only one
    """

    heading: str
    text: str | None = None
    value: str | None = None
    instrument: str = ""
    run: int = 1
    formula: str | None = None
    workload: str | None = None
    concurrency: int | None = None


@dataclass(frozen=True)
class LayoutTable:
    """One printed table: which rows of ``table``, how they are called, and the columns; see the
    schema of layouts.

    labels  (workload, block in bytes) -> (workload, block) as shown, None where a name stays
    compare pairs of workloads that sentences compare, None for the usual ones
    """

    name: str
    table: Table
    title: str
    columns: tuple[LayoutColumn, ...]
    workloads: tuple[str, ...]
    variants: tuple[str, ...]
    order: tuple[str, ...]
    group: tuple[str, ...]
    sizes: str
    factor: float
    labels: Mapping[tuple[str, int], tuple[str | None, str | None]]
    remark: str
    compare: tuple[tuple[str, str], ...] | None = None

    def takes(self, workload: str, variant: str) -> bool:
        """Whether rows of this workload and variant are shown."""
        return (not self.workloads or workload in self.workloads) and (
            not self.variants or variant in self.variants
        )

    def names(self, workload: str, concurrency: int, block: int | None) -> dict[str, str]:
        """What {workload}, {concurrency} and {block} stand for in one row."""
        as_workload, as_block = self.labels.get((workload, block or 0), (None, None))
        return {
            "workload": as_workload or self.table.workload_label(workload),
            "concurrency": str(concurrency),
            "block": as_block or ("" if block is None else written(block, self.sizes)),
        }


@dataclass(frozen=True)
class Layout:
    """A layout: its name, its tables in the order of the report, and the figures it has of its own.

    narrow  its LaTeX tables fit one column of a paper, not a page
    """

    name: str
    layout_tables: tuple[LayoutTable, ...]
    drawings: tuple[Drawing, ...] = ()
    narrow: bool = False

    def called(self, table: Table) -> Table:
        """The table with programs and unit as this layout prints them, so that notes and figures
        say the same names.
        """
        mine = [
            layout_table
            for layout_table in self.layout_tables
            if layout_table.table.name == table.name
        ]
        factors = {layout_table.factor for layout_table in mine}
        factor = factors.pop() if len(factors) == 1 else table.factor
        return replace(
            table,
            own=_called(table.own, mine),
            references=tuple(_called(series, mine) for series in table.references),
            factor=factor,
            shown=table.shown
            if factor == table.factor
            else _SHOWN.get((table.unit, factor), table.shown),
        )

    def layout_table_of(self, table: Table, workload: str, variant: str) -> LayoutTable | None:
        """The first printed table that shows rows of this workload and variant."""
        mine = (
            layout_table
            for layout_table in self.layout_tables
            if layout_table.table.name == table.name
        )
        return next(
            (layout_table for layout_table in mine if layout_table.takes(workload, variant)), None
        )

    def place(self, table: Table, workload: str, variant: str) -> tuple[int, int]:
        """Where rows of this workload and variant stand in the layout's order; those it does not
        show come last.
        """
        layout_table = self.layout_table_of(table, workload, variant)
        if layout_table is None:
            return len(self.layout_tables), 0
        return self.layout_tables.index(layout_table), layout_table.workloads.index(
            workload
        ) if workload in layout_table.workloads else 0


def _called(series: Program, layout_tables: Sequence[LayoutTable]) -> Program:
    """The program as the first printed table that names it has it; the usual heading where none
    does.
    """
    named = (name_in(layout_table, series.instrument) for layout_table in layout_tables)
    return replace(series, heading=next((name for name in named if name), series.heading))


def name_in(layout_table: LayoutTable, instrument: str) -> str:
    """``FileIO`` of ``FileIO Measured Throughput (MB/sec)``, or a heading that is the program's
    name; empty without either.
    """
    for column in layout_table.columns:
        name, measured, _ = column.heading.partition(" Measured ")
        if (
            column.instrument == instrument
            and column.value == "measured"
            and (measured or name == instrument)
        ):
            return name
    return ""


def written(block: int, sizes: str) -> str:
    """A block size as a layout writes it: ``64KB`` stands for 65536 bytes, as reports have it."""
    if sizes == "in B":
        return str(block)
    if sizes in ("in KB", "in MB"):
        return f"{block / (1024 if sizes == 'in KB' else 1 << 20):g}"
    return format_size(block).replace("iB", "B") if sizes == "KB" else size(block)


def names() -> list[str]:
    """The layouts that come with peakmark."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def path_of(name: str) -> Path:
    """The file of a layout, by its name in ``reports/layouts`` or its own path."""
    return Path(name) if name.endswith((".yaml", ".yml")) else FOLDER / f"{name}.yaml"


def load(name: str) -> Layout:
    """A layout by its name in ``reports/layouts`` or by the path of a file.

    Errors: ConfigError in one sentence that names the file, the key, and what is allowed.
    """
    path = path_of(name)
    if not path.is_file():
        raise ConfigError(
            f"report.tables is {name!r}: allowed are {', '.join(names())}, or the path of a YAML file"
        )
    return _load(path)


@cache
def _load(path: Path) -> Layout:
    data = yamlfile.read(path, "layout")
    wrong = problem(data, "layout")
    if wrong is not None:
        raise ConfigError(f"layout {path}: {sentence(wrong)}")
    pairs = {
        subsystem: _pairs(path, subsystem, named)
        for subsystem, named in data.get("compare", {}).items()
    }
    layout_tables = tuple(_layout_table(path, entry, pairs) for entry in data["tables"])
    called = [layout_table.name for layout_table in layout_tables]
    twice = next((label for label in called if called.count(label) > 1), None)
    if twice is not None:
        raise ConfigError(
            f"layout {path}: two tables are called {twice!r}: give each a name of its own"
        )
    figures = drawings.read(f"layout {path}", data.get("figures", ()))
    return Layout(str(data["name"]), layout_tables, figures, narrow=data.get("fits") == "column")


def _pairs(
    path: Path, subsystem: str, named: Sequence[Sequence[str]]
) -> tuple[tuple[str, str], ...]:
    for workload in (workload for pair in named for workload in pair):
        if workload not in WORKLOADS[subsystem]:
            allowed = ", ".join(WORKLOADS[subsystem])
            raise ConfigError(
                f"layout {path}: compare.{subsystem} names {workload!r}: allowed are {allowed}"
            )
    return tuple((first, second) for first, second in named)


def _layout_table(
    path: Path, entry: Mapping[str, Any], pairs: Mapping[str, tuple[tuple[str, str], ...]]
) -> LayoutTable:
    table = BY_NAME[entry["of"]]
    labels = {
        (label["workload"], parse_size(label["block"])): (
            label.get("as_workload"),
            label.get("as_block"),
        )
        for label in entry.get("labels", ())
    }
    order: Sequence[str] = entry.get("order", ORDER)
    return LayoutTable(
        name=entry["name"],
        table=table,
        title=entry["title"],
        columns=tuple(_column(path, entry["name"], table, column) for column in entry["columns"]),
        workloads=tuple(entry.get("workloads", ())),
        variants=tuple(entry.get("variants", ())),
        order=(*order, *(key for key in ORDER if key not in order)),
        group=tuple(entry.get("group", ORDER)),
        sizes=entry.get("sizes", "IEC"),
        factor=float(entry.get("factor", table.factor)),
        labels=labels,
        remark=entry.get("remark", ""),
        compare=pairs.get(table.subsystem),
    )


def _column(path: Path, layout_table: str, table: Table, entry: Mapping[str, Any]) -> LayoutColumn:
    where = f"layout {path}: column {entry['heading']!r} of {layout_table}"
    instrument = entry.get("of", KERNELS[table.subsystem])
    known = [series.instrument for series in table.series]
    if instrument not in known:
        raise ConfigError(
            f"{where} is of {instrument!r}: allowed for {table.name} are {', '.join(known)}"
        )
    try:
        if "text" in entry:
            entry["text"].format(workload="", concurrency="", block="")
        if "formula" in entry:
            evaluate(entry["formula"], {"measured": 1.0, "theoretical": 1.0})
    except (
        KeyError,
        IndexError,
        ValueError,
        AttributeError,
        TypeError,
    ) as error:  # {block.size}, {block[a]}
        raise ConfigError(
            f"{where} has the text {entry['text']!r}: allowed are {{workload}}, {{concurrency}} and {{block}}"
        ) from error
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from error
    fields = {key: value for key, value in entry.items() if key not in ("of", "where")}
    return LayoutColumn(instrument=instrument, **fields, **entry.get("where", {}))
