"""Layouts: YAML files in ``reports/layouts`` that define how a report prints tables and figures.

The JSON schema of layout files is generated from the types in this module.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, field
from msgspec.structs import replace

from peakmark import yamlfile
from peakmark.catalogue import KERNELS
from peakmark.config.types import Positive, Size, Text
from peakmark.errors import ConfigError
from peakmark.formatting import format_size, parse_size, size
from peakmark.resources import ROOT
from peakmark.tools.tables import BY_NAME, UNITS, Program, Table
from peakmark.validation import UNIQUE, Keys, allowed, read

FOLDER = ROOT / "reports" / "layouts"
Part = Literal["workload", "concurrency", "block"]
ORDER: tuple[Part, ...] = ("workload", "concurrency", "block")
"""Keys by which rows are sorted and share a line, unless the layout sets others."""
_TABLES = tuple(BY_NAME)
TableName = Literal[_TABLES]  # type: ignore[valid-type]
Words = Annotated[tuple[str, ...], UNIQUE]
Order = Annotated[tuple[Part, ...], UNIQUE]
Pair = Annotated[tuple[str, ...], Meta(min_length=2, max_length=2)]
"""Two workloads."""


class _Rows(Keys, frozen=True):
    """Rows of a table, selected by workload and variant. An empty selection selects all rows."""

    of: TableName
    title: Text
    workloads: Words = ()
    variants: Words = ()

    @property
    def table(self) -> Table:
        return BY_NAME[self.of]

    def takes(self, workload: str, variant: str) -> bool:
        """Return whether rows with this workload and variant are selected."""
        takes_workload = not self.workloads or workload in self.workloads
        takes_variant = not self.variants or variant in self.variants
        return takes_workload and takes_variant


class Drawing(_Rows, frozen=True, kw_only=True):
    """A figure of a layout.

    Attributes:
        name: File name of the figure, without its extension.
        of: Table whose rows are drawn.
        title: What the figure shows. The caption begins with it.
        workloads: Workloads to draw. Default: all workloads of the table.
        variants: Variants to draw. Default: all variants.
        kind: panels (default) draws a panel for each workload, with every program and the limit;
            together draws a line for each workload, in one panel or in one for each block size;
            bars draws a bar for each row, with the references as open markers, and all block sizes of a
            workload in one panel.
        value: measured (default), efficiency (the share of the limit), or deviation (the standard
            deviation of the runs).
    """

    name: Annotated[
        str,
        allowed("a name of letters, digits and underscores", pattern=r"^[a-z0-9][a-zA-Z0-9_]*\Z"),
    ]
    kind: Literal["panels", "together", "bars"] = "panels"
    value: Literal["measured", "efficiency", "deviation"] = "measured"


class Label(Keys, frozen=True):
    """Printed names of the workload and block of some rows.

    Attributes:
        workload: Workload of the rows.
        block: Block size of the rows.
        as_workload: Workload as printed.
        as_block: Block size as printed.
    """

    workload: str
    block: Size
    as_workload: str | None = None
    as_block: str | None = None


class Where(Keys, frozen=True):
    """Choice of one row among the rows that share a printed line.

    Attributes:
        workload: Workload of the row. Needed if rows of several workloads share a line.
        concurrency: Concurrency of the row. Needed if rows of several concurrencies share a line.
    """

    workload: str | None = None
    concurrency: Annotated[int, Meta(ge=1)] | None = None


class LayoutColumn(Keys, frozen=True):
    """A column of a printed table: a heading, and either a text or a value.

    Attributes:
        text: Text, in which {workload}, {concurrency}, {block} and {variant} are replaced.
        value: Value to print. measured is the layout's value; interval is the distance of the median from the
            farther end of its interval, in percent; run is one repetition.
        of: Instrument that measured the value. Default: peakmark's kernel.
        run: Number of the repetition, from 1.
        formula: Formula of an efficiency in percent that a published report uses instead of the share
            of the limit.
        where: Row of the line whose value is printed.
    """

    heading: Text
    text: str | None = None
    value: (
        Literal[
            "measured",
            "interval",
            "deviation",
            "run",
            "theoretical",
            "efficiency",
        ]
        | None
    ) = None
    instrument: str = field(default="", name="of")
    run: Annotated[int, Meta(ge=1)] = 1
    formula: Literal["100 - 100 * measured / theoretical"] | None = None
    where: Where = Where()


class LayoutTable(_Rows, frozen=True, kw_only=True, dict=True):
    """A table of a layout.

    Attributes:
        name: File name of the table, without its extension.
        of: Table of peakmark whose rows are printed.
        workloads: Workloads to print, in this order. Default: all workloads of the table.
        variants: Variants to print. Default: all variants.
        order: Keys by which rows are sorted. Default: workload, concurrency, block.
        group: Keys whose values make a line. Rows with equal values share a line; columns choose
            among them with `where`.
        sizes: How {block} is written: IEC (64 KiB), KB (64KB, meaning 65536 B), or as a number of
            bytes (in B), of 1024 bytes (in KB), or of 1024 x 1024 bytes (in MB).
        factor: Factor between the SI value and the printed value. Default: that of the table.
        labels: Workloads and blocks that this layout prints under other names.
        compare: Pairs of workloads that sentences below the table compare, besides the usual pairs.
        remark: Remark that is printed below the table.
    """

    name: Annotated[
        str,
        allowed(
            "a name of small letters, digits and underscores", pattern=r"^[a-z0-9][a-z0-9_]*\Z"
        ),
    ]
    columns: Annotated[tuple[LayoutColumn, ...], Meta(min_length=1)]
    order: Order = ()
    group: Order = ORDER
    sizes: Literal["IEC", "KB", "in B", "in KB", "in MB"] = "IEC"
    factor: Positive = 0.0
    label_list: tuple[Label, ...] = field(default=(), name="labels")
    compare: tuple[Pair, ...] = ()
    remark: Text = ""

    @cached_property
    def labels(self) -> Mapping[tuple[str, int], tuple[str | None, str | None]]:
        """Return (workload, block in bytes) -> (printed workload, printed block).

        A printed name is None if the layout does not change it.
        """
        labels = {}
        for label in self.label_list:
            key = label.workload, parse_size(label.block)
            labels[key] = label.as_workload, label.as_block
        return labels

    def names(
        self, named: Table, workload: str, concurrency: int, block: int | None
    ) -> dict[str, str]:
        """Return the texts that replace {workload}, {concurrency} and {block} in one row.

        Args:
            named: table with the printed names of workloads, see ``Layout.called``.
            workload, concurrency, block: those of the row; the block in bytes.
        """
        # Without a block, 0 finds no label: each label has a block.
        as_workload, as_block = self.labels.get((workload, block or 0), (None, None))
        if not as_block and block is not None:
            as_block = written(block, self.sizes)
        return {
            "workload": as_workload or named.workload_label(workload),
            "concurrency": str(concurrency),
            "block": as_block or "",
        }


class Layout(Keys, frozen=True, kw_only=True):
    """Layout of a report's tables: the rows of each table, their headings and their order.

    Attributes:
        name: Name of the layout, and of the folder of its tables below tables/.
        fits: Width of the LaTeX tables: a page (default), with notes below the table, or one column
            of a paper, with stars that mark warnings.
        plain_names: Whether workloads have plain names, such as INT8 and sequential read (default), instead
            of their codes, such as QP and RS.
        raw_outputs: Whether the PDF ends with the commands and one raw output of each reference tool.
        value: Value of a row in tables, figures and sentences: the median (default) or the mean of the
            repetitions.
        figures: Figures of the layout. They replace the usual figures of the tables that they draw.
    """

    schema: Literal[1]
    name: Annotated[
        str, allowed("a name of small letters, digits and dashes", pattern=r"^[a-z0-9][a-z0-9-]*\Z")
    ]
    description: Text = ""
    fits: Literal["page", "column"] = "page"
    plain_names: bool = True
    raw_outputs: bool = False
    value: Literal["median", "mean"] = "median"
    drawings: Annotated[tuple[Drawing, ...], Meta(min_length=1)] = field(default=(), name="figures")
    layout_tables: Annotated[tuple[LayoutTable, ...], Meta(min_length=1)] = field(name="tables")

    @property
    def narrow(self) -> bool:
        """Return whether the LaTeX tables fit one column of a paper instead of a page."""
        return self.fits == "column"

    def prints_limits(self, table: Table) -> bool:
        """Return whether the layout prints a column of this table that needs the limits of its rows."""
        for one in self.layout_tables:
            values = {column.value for column in one.columns}
            if one.of == table.name and not values.isdisjoint(("theoretical", "efficiency")):
                return True
        return False

    def programs_of(self, table: Table) -> set[str]:
        """Return the instruments that have a column in the layout's printed tables of ``table``."""
        instruments = set[str]()
        for one in self.layout_tables:
            if one.of == table.name:
                instruments.update(column.instrument for column in one.columns)
        return instruments

    def pairs_of(self, table: Table) -> list[Pair]:
        """Return the pairs of workloads that the layout compares in ``table``."""
        pairs: list[Pair] = []
        for one in self.layout_tables:
            if one.of == table.name:
                pairs += one.compare
        return pairs

    def called(self, table: Table) -> Table:
        """Return the table with the names of programs and the unit that this layout prints.

        Notes and figures then use the printed names. The unit stays that of ``table`` if the layout
        prints the table in several units.
        """
        printed = [one for one in self.layout_tables if one.of == table.name]
        factor, unit = table.factor, table.shown
        factors = {one.factor for one in printed}
        if len(factors) == 1:
            factor = factors.pop()
        if factor != table.factor:
            unit = UNITS.get((table.unit, factor), table.shown)
        return dataclasses.replace(
            table,
            own=_called(table.own, printed),
            references=tuple(_called(series, printed) for series in table.references),
            factor=factor,
            shown=unit,
            is_plain=self.plain_names,
        )

    def layout_table_of(self, table: Table, workload: str, variant: str) -> LayoutTable | None:
        """Return the first printed table that shows rows with this workload and variant, if any."""
        for one in self.layout_tables:
            if one.of == table.name and one.takes(workload, variant):
                return one
        return None

    def place(self, table: Table, workload: str, variant: str) -> tuple[int, int]:
        """Return the sort key of rows with this workload and variant: layout table, place of the workload in it.

        Rows that the layout does not print come last. A layout table without a list of workloads does not sort
        by workload.
        """
        printed = self.layout_table_of(table, workload, variant)
        if printed is None:
            return len(self.layout_tables), 0
        inside = 0
        if workload in printed.workloads:
            inside = printed.workloads.index(workload)
        return self.layout_tables.index(printed), inside


def _called(series: Program, printed: Iterable[LayoutTable]) -> Program:
    """Return the program with its heading from the first printed table that names it.

    If no printed table names the program, its heading is unchanged.
    """
    named = (name_in(one, series.instrument) for one in printed)
    heading = next(filter(None, named), series.heading)
    return dataclasses.replace(series, heading=heading)


def name_in(layout_table: LayoutTable, instrument: str) -> str:
    """Return the program's name in the headings of a layout table; empty if no heading names it.

    For example, ``FileIO Measured Throughput (MB/sec)`` names ``FileIO``. A heading that is the name of the
    instrument names it too.
    """
    for column in layout_table.columns:
        if column.instrument != instrument or column.value != "measured":
            continue
        name, measured, _ = column.heading.partition(" Measured ")
        if measured or name == instrument:
            return name
    return ""


def written(block: int, sizes: str) -> str:
    """Return a block size in a notation of ``LayoutTable.sizes``.

    KB and MB are multiples of 1024 bytes, as in published reports.
    """
    if sizes == "in B":
        return str(block)
    if sizes == "in KB":
        return f"{block / (1 << 10):g}"
    if sizes == "in MB":
        return f"{block / (1 << 20):g}"
    if sizes == "KB":
        return format_size(block).replace("iB", "B")
    return size(block)


def names() -> list[str]:
    """Return the names of the layouts that come with peakmark."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def path_of(name: str) -> Path:
    """Return the file of a layout, which is given by its name in ``reports/layouts`` or by a path."""
    if name.endswith((".yaml", ".yml")):
        return Path(name)
    return FOLDER / f"{name}.yaml"


@cache
def load(name: str) -> Layout:
    """Return a layout by its name in ``reports/layouts`` or by the path of a file, with defaults for missing keys.

    Raises:
        ConfigError: the layout is not valid. The message names file, key, and what is allowed.
    """
    path = path_of(name)
    if not path.is_file():
        raise ConfigError(
            f"report.tables is {name!r}: allowed are {', '.join(names())}, or the path of a YAML file"
        )
    layout = read(yamlfile.read(path, "layout"), Layout, f"layout {path}: ")
    try:
        _check_names(layout)
        printed = tuple(_completed(one) for one in layout.layout_tables)
    except ConfigError as error:
        raise ConfigError(f"layout {path}: {error}") from error
    return replace(layout, layout_tables=printed)


def _check_names(layout: Layout) -> None:
    """Check that no two tables and no two figures share a name, and that figures can be drawn."""
    for what, parts in (("tables", layout.layout_tables), ("figures", layout.drawings)):
        used = [part.name for part in parts]
        for name in used:
            if used.count(name) > 1:
                raise ConfigError(f"two {what} are called {name!r}: give them different names")
    for drawing in layout.drawings:
        if drawing.kind == "panels" and drawing.value != "measured":
            raise ConfigError(
                f"figure {drawing.name!r} has kind panels and value {drawing.value}: panels show only measured "
                "values; set kind to together or bars"
            )


def _completed(printed: LayoutTable) -> LayoutTable:
    """Return a layout table with defaults for the keys that the layout file leaves out."""
    return replace(
        printed,
        columns=tuple(_column(printed, column) for column in printed.columns),
        # Rows that are equal in the keys of the layout are sorted by the other keys.
        order=tuple(dict.fromkeys((*printed.order, *ORDER))),
        factor=printed.factor or printed.table.factor,
    )


def _column(printed: LayoutTable, column: LayoutColumn) -> LayoutColumn:
    """Check a column, and return it with its default instrument filled in."""
    where = f"column {column.heading!r} of {printed.name}"
    instrument = column.instrument or KERNELS[printed.table.subsystem]
    known = [series.instrument for series in printed.table.series]
    if instrument not in known:
        raise ConfigError(
            f"{where} has the key of: {instrument}; allowed for {printed.of} are {', '.join(known)}"
        )
    if (column.text is None) == (column.value is None):
        raise ConfigError(f"{where} is not allowed: a column has either text or value")
    # Fill the text once: it may have another field.
    try:
        (column.text or "").format(workload="", concurrency="", block="", variant="")
    except (LookupError, ValueError, AttributeError, TypeError) as error:  # such as {block.size}
        raise ConfigError(
            f"{where} has the text {column.text!r}: allowed are {{workload}}, {{concurrency}}, "
            "{{block}} and {{variant}}"
        ) from error
    return replace(column, instrument=instrument)
