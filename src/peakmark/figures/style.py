"""How figures look: colours and markers that survive colour blindness and grey printing, fonts of
matplotlib's own.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure, FigureBase
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text
from matplotlib.ticker import Formatter, FuncFormatter, LogLocator, NullLocator, ScalarFormatter

from peakmark.formatting import decimal_mark
from peakmark.resources import ROOT
from peakmark.tools.tables import UNITS, Table

STYLE = ROOT / "reports" / "figures.mplstyle"
INK = "#222222"
SMALL = 7.3  # points, of the smallest type
QUIET = "#6b6b6b"
WIDTH = 6.85  # inches; an A4 page between its margins
LABELS, LEGEND_LINE = 0.3, 0.17  # inches
MAX_TICKS = 6  # numbers of a vertical axis, at each step of a decade
DECADES = 30  # highest by lowest end from which on a logarithmic axis names powers of ten only
LIMIT = "#222222"
_PUBLISHED = ("D", "v", "P", "X")
"""Markers of published sets, by their place."""
METADATA = {".svg": {"Date": None, "Creator": None}, ".png": {"Software": None}}
"""Ending of a file -> what its format would tell of when and by what it was made."""
DASHES: tuple[Any, ...] = ((), (4, 1.6), (1.2, 1.4), (6, 1.5, 1.2, 1.5), (9, 2), (3, 1, 1, 1, 1, 1))


@dataclass(frozen=True)
class Look:
    """Colour (Okabe and Ito 2008), marker and its face for one instrument; own kernels are filled,
    references are open.
    """

    colour: str
    marker: str
    face: str


_LOOKS = (
    Look("#0072B2", "o", "#0072B2"),
    Look("#D55E00", "s", "white"),
    Look("#009E73", "^", "white"),
)
_COLOURS = ("#0072B2", "#B84F00", "#00785A", "#9B3D7E", "#5A5A5A", "#7A5C00")
"""Of workloads beside each other."""


def line(position: int) -> Look:
    """The look of a workload's line where several stand in one panel."""
    colour = _COLOURS[position % len(_COLOURS)]
    return Look(colour, "os^DvP"[position % len(_COLOURS)], colour)


def look(position: int) -> Look:
    """The look of a table's instrument by its place: 0 is the own kernel."""
    return _LOOKS[position % len(_LOOKS)]


def legend(figure: Figure, handles: Sequence[Patch | Line2D]) -> None:
    """Draw a legend above the panels: as many entries side by side as the figure is wide."""
    if not handles:
        return
    longest = max(len(str(handle.get_label())) for handle in handles)
    side_by_side = max(1, int(figure.get_figwidth() / (0.53 + 0.055 * longest)))
    lines = math.ceil(len(handles) / side_by_side)
    figure.set_figheight(figure.get_figheight() + LEGEND_LINE * lines)
    figure.legend(
        handles=handles,
        loc="outside upper left",
        ncols=min(len(handles), side_by_side),
        frameon=False,
        handlelength=2.4,
    )


def entry(look: Look, label: str, **more: Any) -> Line2D:
    """A program or a workload in a legend."""
    return Line2D(
        [], [], color=look.colour, marker=look.marker, markerfacecolor=look.face, markeredgecolor=look.colour, markersize=4,
        linewidth=1.1, label=label, **more,
    )  # fmt: skip


def published(position: int) -> dict[str, Any]:
    """The marker of a published set by its place, an empty one."""
    return {"marker": _PUBLISHED[position % len(_PUBLISHED)], "facecolor": "none", "edgecolor": INK}


def figure(width: float, height: float) -> Figure:
    """An empty figure of so many inches, which finds room for all labels by itself."""
    empty = Figure(figsize=(width, height))
    empty.set_layout_engine("constrained", w_pad=0.06, h_pad=0.06)
    return empty


def panels(figure: FigureBase, count: int, columns: int, **shared: Any) -> list[Axes]:
    """So many panels in lines of ``columns``; the last line may have fewer."""
    axes = figure.subplots(math.ceil(count / columns), columns, squeeze=False, **shared).flat
    for axis in axes[count:]:
        axis.set_visible(False)
    return list(axes[:count])


def small_multiples(
    titles: Sequence[str],
    labels: tuple[str, str],
    panel: tuple[float, float] = (0.23, 1.02),
    most: int = 4,
    **shared: Any,
) -> tuple[Figure, list[Axes]]:
    """A figure with a panel for each title, in even lines.

    Args:
        titles: at least one.
        labels: of the horizontal and of the vertical axis; they stand at the outer panels.
        panel: its share of the page's width, and its height in inches.
        most: panels side by side.
        shared: which axes panels share.
    """
    lines = math.ceil(len(titles) / most)
    columns = math.ceil(len(titles) / lines)
    share, height = panel
    width = min(1.0, max(share * columns, min(2 * share, 0.46)) + 0.09)
    whole = figure(WIDTH * width, height * lines + LABELS)
    axes = panels(whole, len(titles), columns, **shared)
    for place, (axis, title) in enumerate(zip(axes, titles, strict=True)):
        axis.set_title(title)
        if place % columns == 0:
            axis.set_ylabel(labels[1])
        if place + columns >= len(titles):
            axis.set_xlabel(labels[0])
            axis.tick_params(labelbottom=True)
        sns.despine(ax=axis)
    return whole, axes


def scale_values(axis: Axes, logarithmic: bool) -> None:
    """The vertical axis, whose ends are known: few round numbers."""
    if not logarithmic:
        axis.yaxis.set_major_formatter(Ticks())
        return
    axis.set_yscale("log")
    low, high = axis.get_ylim()
    steps = (1.0, 2.0, 5.0) if high < DECADES * low else (1.0,)
    axis.yaxis.set_major_locator(LogLocator(subs=steps, numticks=MAX_TICKS * len(steps)))
    axis.yaxis.set_minor_locator(NullLocator())
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def vertical_label(table: Table, value: str = "measured") -> str:
    """``Throughput (MB/s)``, a quantity that is its own unit alone; of other values than measured
    ones, see ``Drawing``, ``Standard deviation (MB/s)`` or ``% of the limit``.
    """
    if value == "efficiency":
        return "% of the limit"
    unit = UNITS.get((table.unit, table.factor), table.shown)
    if value == "deviation":
        return f"Standard deviation ({unit or table.quantity})"
    return unit if unit in ("GigaOPS", table.quantity) else f"{table.quantity} ({unit})"


def left_out(axis: Axes, across: Sequence[float], values: Sequence[float]) -> None:
    """Repetitions that are not part of a summary, as hollow circles."""
    if values:
        axis.scatter(across, values, s=13, marker="o", facecolor="none", edgecolor=INK,
                     linewidth=0.6, zorder=3.5)  # fmt: skip


def limit_line(axis: Axes, value: float) -> None:
    """A limit that is the same for all that is drawn."""
    axis.axhline(value, color=LIMIT, linewidth=0.9, dashes=(5, 2), zorder=1)


class Ticks(ScalarFormatter):
    """Numbers of one axis with equally many decimals."""

    def __init__(self) -> None:
        super().__init__(useOffset=False)
        self.set_scientific(False)


class DecimalMark(Formatter):
    """The labels of another formatter, with a decimal mark of choice."""

    def __init__(self, formatter: Formatter, mark: str) -> None:
        self._formatter, self._mark = formatter, mark

    def __call__(self, x: float, pos: int | None = None) -> str:
        """The label of a tick."""
        return decimal_mark(self._formatter(x, pos), self._mark)

    def format_ticks(self, values: Any) -> list[str]:
        """The labels of all ticks."""
        return [decimal_mark(label, self._mark) for label in self._formatter.format_ticks(values)]


def begin() -> None:
    """Set the style for all figures that follow; texts become outlines and identifiers are stable:
    SVGs do not change.
    """
    sns.set_theme(
        context="paper",
        style="ticks",
        rc=mpl.rc_params_from_file(STYLE, use_default_template=False),
    )


def save(figure: Figure, folder: Path, name: str, mark: str = ".") -> list[Path]:
    """Write ``name.svg`` and ``name.png`` (200 dpi), without date and versions: equal input gives
    equal files. ``mark`` is the decimal mark of all numbers.
    """
    if mark != ".":
        use_decimal_mark(figure, mark)
    paths = [folder / f"{name}{suffix}" for suffix in METADATA]
    for path in paths:
        path.write_bytes(drawn(figure, path.suffix))
    return paths


def drawn(figure: Figure, suffix: str) -> bytes:
    """The content of a file of the figure with such an ending."""
    content = io.BytesIO()
    figure.savefig(content, format=suffix[1:], dpi=200, metadata=METADATA[suffix])
    return content.getvalue()


def use_decimal_mark(figure: Figure, mark: str) -> None:
    """Replace the decimal point in all texts and tick labels of a figure."""
    for text in figure.findobj(Text):
        text.set_text(decimal_mark(text.get_text(), mark))
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(DecimalMark(axis.get_major_formatter(), mark))
