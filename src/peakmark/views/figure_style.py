"""The style of all figures, and their files.

Colours and markers are distinct to the colour-blind and in grey print. The fonts are matplotlib's own.

Panels, lines, bars, heat maps and runs are drawn by seaborn's functions (``relplot``, ``catplot``, ``barplot``,
``heatmap``, ``scatterplot``). Matplotlib draws what seaborn has no function for: limits, markers of which some are open
and some filled, names beside lines, strips of nodes, and a legend that is common to all panels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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
from matplotlib.ticker import LogLocator, NullLocator

from peakmark.resources import ROOT
from peakmark.tools.tables import UNITS, Table

STYLE = ROOT / "reports" / "figures.mplstyle"
INK = "#222222"
SMALL = 7.3  # points, of the smallest type
QUIET = "#6b6b6b"
WIDTH = 6.85  # inches; an A4 page between its margins
LABELS, LEGEND_LINE, LEGEND_EDGE = 0.3, 0.17, 0.14  # inches
MAX_TICKS = 6  # numbers of a logarithmic axis
SPAN = 20  # ratio of the highest to the lowest value above which the vertical axis is logarithmic
DENSE = 50  # ratio of the values below which a logarithmic axis has numbers at 3 too
NUMBER = "{x:.10g}"
"""Format of the numbers on an axis, without powers of ten."""
PADS = {"w_pad": 0.06, "h_pad": 0.06}
LIMIT: dict[str, Any] = {"color": INK, "linewidth": 0.9, "dashes": (5, 2), "zorder": 1}
METADATA = {".svg": {"Date": None, "Creator": None}, ".png": {"Software": None}}
"""Ending of a file -> metadata that are removed, because they differ between days or versions."""
# Lengths of dash and gap in line widths, in the order of a panel's lines. The first line is solid.
DASHES: tuple[Any, ...] = (
    "",
    (4, 1.6),
    (1.2, 1.4),
    (6, 1.5, 1.2, 1.5),
    (9, 2),
    (3, 1, 1, 1, 1, 1),
)


@dataclass(frozen=True)
class Look:
    """Colour (after Okabe and Ito 2008), marker, and colour of the marker's face.

    Markers of peakmark's kernels and of workloads are filled; those of references are open.
    """

    colour: str
    marker: str
    face: str


COLOURS = ("#0072B2", "#D55E00", "#009E73", "#9B3D7E", "#5A5A5A", "#7A5C00")
MARKERS = "os^DvP"


def look(position: int, is_open: bool = False) -> Look:
    """Return the look of a program or workload by its position; peakmark's kernel is at position 0.

    From position 6 on, the colours repeat with other markers. The face of a marker that ``is_open``
    is white.
    """
    # As many markers as colours: without a shift, a repeated colour would repeat its marker too.
    repetition, place = divmod(position, len(COLOURS))
    colour = COLOURS[place]
    marker = MARKERS[(position + repetition) % len(MARKERS)]
    return Look(colour, marker, "white" if is_open else colour)


HOLLOW = Look(INK, "o", "none")
"""Look of runs that do not count."""


def looks_of(table: Table) -> dict[str, Look]:
    """Return the look of each program of a table by its name."""
    looks = {}
    for place, program in enumerate(table.series):
        looks[program.heading] = look(place, is_open=place > 0)
    return looks


def palette_of(looks: Mapping[str, Look]) -> dict[str, str]:
    """Return the colour of each name."""
    return {name: each.colour for name, each in looks.items()}


def scatter(axis: Axes, dots: pd.DataFrame, names: str, looks: Mapping[Any, Look]) -> None:
    """Draw dots in the looks of their names.

    Args:
        axis: the panel.
        dots: the dots, with ``x`` and ``y``.
        names: column of the names.
        looks: name -> its look. A name that begins with ``_`` is not in the legend.
    """
    for name, each in looks.items():
        of_name = dots[dots[names].eq(name)]
        if len(of_name):
            order = 4 if each.face == "white" else 5  # filled dots cover open ones
            axis.scatter(
                of_name["x"], of_name["y"], s=11, marker=each.marker, facecolor=each.face, label=name,
                edgecolor=each.colour, linewidth=0.7, zorder=order,
            )  # fmt: skip


def legend(figure: Figure) -> None:
    """Draw a legend above the panels, with as many entries side by side as the figure is wide."""
    handles: dict[str, Any] = {}
    for axis in figure.axes:
        for handle, name in zip(*axis.get_legend_handles_labels(), strict=True):
            handles.setdefault(name, handle)
    if not handles:
        return
    # An entry takes 0.53 inches for its marker and the gap, and 0.055 inches for each letter.
    columns = max(1, int(figure.get_figwidth() / (0.53 + 0.055 * max(map(len, handles)))))
    lines = math.ceil(len(handles) / columns)
    figure.set_figheight(figure.get_figheight() + LEGEND_LINE * lines + LEGEND_EDGE)
    figure.legend(
        handles.values(), handles.keys(), loc="outside upper left", ncols=columns, frameon=False,
        handlelength=2.4, markerscale=1.3,
    )  # fmt: skip


def columns_of(count: int, most: int) -> int:
    """Return how many of ``count`` panels stand side by side, at most ``most``.

    The lines of panels then have as equal lengths as possible.
    """
    return math.ceil(count / math.ceil(count / most))


def resize(figure: Figure, width: float, height: float) -> None:
    """Set the size of a figure in inches, and arrange it without overlaps.

    Also close it in pyplot, which keeps every open figure in memory.
    """
    figure.set_size_inches(width, height)
    figure.set_layout_engine("constrained", **PADS)
    plt.close(figure)


def finish(
    grid: sns.FacetGrid,
    labels: tuple[str, str],
    columns: int,
    height: float,
    share: float = 0.26,
) -> None:
    """Label the axes of a grid, and set its size: panels of the same size on all pages.

    With several lines of panels, the vertical axis is labelled once, because a panel is lower than its label.

    Args:
        grid: the drawn panels.
        labels: labels of the horizontal and the vertical axis.
        columns: number of panels side by side.
        height: height of a panel, in inches.
        share: width of a panel, as a share of ``WIDTH``. The figure is wider by 0.1 of ``WIDTH``
            for what is beside its panels.
    """
    lines = math.ceil(len(grid.axes.flat) / columns)
    width = WIDTH * min(1.0, share * columns + 0.1)
    resize(grid.figure, width, height * lines + LABELS)
    horizontal, vertical = labels
    if lines > 1:
        grid.figure.supylabel(vertical, fontsize=plt.rcParams["axes.labelsize"])
        vertical = ""
    grid.set_axis_labels(horizontal, vertical)


def steps_of(lowest: float, highest: float) -> tuple[int, ...]:
    """Return the first digits of the numbers on a logarithmic axis: 1; on short axes 1 and 3."""
    return (1, 3) if highest < DENSE * lowest else (1,)


def scale_values(axes: Sequence[Axes], is_shared: bool) -> None:
    """Scale vertical axes and write a few round numbers on them.

    An axis is logarithmic if its data span more than a factor of ``SPAN``. Other axes begin at zero.
    """
    for axis in axes:
        together = axes if is_shared else [axis]
        low, high = np.transpose([each.dataLim.intervaly for each in together])
        lowest, highest = low.min(), high.max()
        if 0 < lowest * SPAN < highest:
            axis.set_yscale("log")
            axis.set_ylim(lowest / 1.4, highest * 1.6)  # room for markers at both ends
            axis.yaxis.set_major_locator(
                LogLocator(subs=steps_of(lowest, highest), numticks=MAX_TICKS)
            )
            axis.yaxis.set_minor_locator(NullLocator())
        else:
            axis.set_ylim(0, 1.12 * highest)
        axis.yaxis.set_major_formatter(NUMBER)


def vertical_label(table: Table, value: str = "measured") -> str:
    """Return ``Throughput (MB/s)``, or the quantity alone if it is its own unit, such as ``IOPS``.

    Args:
        table: table with the quantity and the unit.
        value: see ``layouts.Drawing``; for ``deviation`` the label is ``Standard deviation (MB/s)``.
    """
    if value == "efficiency":
        return "% of the limit"
    # The factor from SI units decides the unit, such as GB/s for 1e-9. Without an entry, use that
    # of the headings.
    unit = UNITS.get((table.unit, table.factor), table.shown)
    if value == "deviation":
        return f"Standard deviation ({unit or table.quantity})"
    if unit == table.quantity:
        return unit
    return f"{table.quantity} ({unit})"


def begin() -> None:
    """Set the style of all figures.

    Texts are drawn as outlines, and identifiers are constant, so that equal figures have equal
    bytes.
    """
    sns.set_theme(
        context="paper",
        style="ticks",
        rc=mpl.rc_params_from_file(STYLE, use_default_template=False),
    )


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write ``name.svg`` and ``name.png`` (200 dpi), without date and versions."""
    paths = [folder / f"{name}{suffix}" for suffix in METADATA]
    for path in paths:
        figure.savefig(path, dpi=200, metadata=METADATA[path.suffix])
    return paths
