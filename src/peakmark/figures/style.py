"""How figures look: colours and markers that survive colour blindness and grey printing, fonts of
matplotlib's own.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text
from matplotlib.ticker import Formatter, LogLocator, NullLocator

from peakmark.formatting import decimal_mark
from peakmark.resources import ROOT
from peakmark.tools.tables import UNITS, Table

STYLE = ROOT / "reports" / "figures.mplstyle"
INK = "#222222"
SMALL = 7.3  # points, of the smallest type
QUIET = "#6b6b6b"
WIDTH = 6.85  # inches; an A4 page between its margins
LABELS, LEGEND_LINE = 0.3, 0.17  # inches
MAX_TICKS = 6  # numbers of a logarithmic axis
SPAN = 20  # highest by lowest value from which on the vertical axis is logarithmic
NUMBER = "{x:.10g}"
"""Numbers of an axis, without powers of ten."""
PADS = {"w_pad": 0.06, "h_pad": 0.06}
LIMIT: dict[str, Any] = {"color": INK, "linewidth": 0.9, "dashes": (5, 2), "zorder": 1}
METADATA = {".svg": {"Date": None, "Creator": None}, ".png": {"Software": None}}
"""Ending of a file -> what its format would tell of when and by what it was made."""
DASHES: tuple[Any, ...] = (
    (None, None),
    (4, 1.6),
    (1.2, 1.4),
    (6, 1.5, 1.2, 1.5),
    (9, 2),
    (3, 1, 1, 1, 1, 1),
)


@dataclass(frozen=True)
class Look:
    """Colour (after Okabe and Ito 2008), marker and its face: own kernels and workloads are filled,
    references are open.
    """

    colour: str
    marker: str
    face: str


COLOURS = ("#0072B2", "#D55E00", "#009E73", "#9B3D7E", "#5A5A5A", "#7A5C00")
MARKERS = "os^DvP"


def look(position: int, is_open: bool = False) -> Look:
    """The look of a program or workload by its place: 0 is the own kernel.

    Beyond six, colours come with other markers.
    """
    colour = COLOURS[position % len(COLOURS)]
    marker = MARKERS[(position + position // len(COLOURS)) % len(MARKERS)]
    return Look(colour, marker, "white" if is_open else colour)


def legend(figure: Figure, handles: Sequence[Patch | Line2D]) -> None:
    """Draw a legend above the panels: as many entries side by side as the figure is wide."""
    longest = max(len(str(handle.get_label())) for handle in handles)
    columns = max(1, int(figure.get_figwidth() / (0.53 + 0.055 * longest)))
    lines = math.ceil(len(handles) / columns)
    figure.set_figheight(figure.get_figheight() + LEGEND_LINE * lines)
    figure.legend(
        handles=handles, loc="outside upper left", ncols=columns, frameon=False, handlelength=2.4
    )


def named_lines(names: Sequence[str], width: float, height: float) -> tuple[Figure, Axes]:
    """A figure with a line for each name, the first on top, which finds room for all labels.

    Args:
        names: at least one.
        width: of the figure, in inches.
        height: of a line, in inches.
    """
    figure = Figure(figsize=(width, height * len(names) + 0.5))
    figure.set_layout_engine("constrained", **PADS)
    axis = figure.subplots()
    axis.set_yticks(range(len(names)), names)
    axis.tick_params(axis="y", length=0)
    axis.set_ylim(len(names) - 0.5, -0.6)
    axis.grid(axis="x")
    sns.despine(ax=axis, left=True)
    return figure, axis


def small_multiples(
    titles: Sequence[str],
    labels: tuple[str, str],
    panel: tuple[float, float] = (0.23, 1.02),
    most: int = 4,
    **shared: Any,
) -> tuple[Figure, list[Axes]]:
    """A figure with a panel for each title, in even lines; labels stand at the outer panels.

    Args:
        titles: at least one.
        labels: of the horizontal and of the vertical axis.
        panel: its share of the page's width, and its height in inches.
        most: panels side by side.
        shared: which axes panels share.
    """
    columns = math.ceil(len(titles) / math.ceil(len(titles) / most))
    share, height = panel
    width = WIDTH * min(1.0, max(share * columns, min(2 * share, 0.46)) + 0.09)
    grid = sns.FacetGrid(
        pd.DataFrame({"panel": titles}), col="panel", col_wrap=columns, **{"sharex": False, "sharey": False, **shared}
    )  # fmt: skip
    plt.close(grid.figure)
    grid.set_titles("{col_name}").set_axis_labels(*labels)
    grid.figure.set_size_inches(width, height * math.ceil(len(titles) / columns) + LABELS)
    grid.figure.set_layout_engine("constrained", **PADS)
    return grid.figure, list(grid.axes.flat)


def scale_values(axes: Sequence[Axes], is_shared: bool) -> None:
    """Few round numbers on vertical axes; logarithmic where all that is drawn spans more than a
    factor of 20, else from zero.
    """
    for axis in axes:
        low, high = np.transpose(
            [each.dataLim.intervaly for each in (axes if is_shared else [axis])]
        )
        lowest, highest = low.min(), high.max()
        if 0 < lowest * SPAN < highest:
            axis.set_yscale("log")
            axis.set_ylim(lowest / 1.4, highest * 1.6)
            axis.yaxis.set_major_locator(LogLocator(numticks=MAX_TICKS))
            axis.yaxis.set_minor_locator(NullLocator())
        else:
            axis.set_ylim(0, 1.12 * highest)
        axis.yaxis.set_major_formatter(NUMBER)


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
            axis.set_major_formatter(_marked(axis.get_major_formatter(), mark))


def _marked(usual: Formatter, mark: str) -> Callable[[float, Any], str]:
    return lambda value, place: decimal_mark(usual(value, place), mark)
