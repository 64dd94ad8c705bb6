"""The style of all figures, and their files.

Colours and markers are distinct to the colour-blind and in grey print. The fonts are matplotlib's own.
"""

from __future__ import annotations

import io
import math
import re
import textwrap
from collections.abc import Sequence
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
from matplotlib.ticker import LogLocator, NullLocator

from peakmark.resources import ROOT
from peakmark.tools.tables import UNITS, Table

STYLE = ROOT / "reports" / "figures.mplstyle"
INK = "#222222"
SMALL = 7.3  # points, of the smallest type
QUIET = "#6b6b6b"
WIDTH = 6.85  # inches; an A4 page between its margins
LABELS, LEGEND_LINE = 0.3, 0.17  # inches
MAX_TICKS = 6  # numbers of a logarithmic axis
NUMBERS = 0.5  # inches; width of the label and the numbers of the first vertical axis
MORE_NUMBERS = 0.3  # inches; width of the numbers of another vertical axis
TITLE_LETTER = 0.072  # inches; width of a letter of a panel's title
TITLE_LINE = 0.14  # inches; height of a line of such a title
SPAN = 20  # ratio of the highest to the lowest value above which the vertical axis is logarithmic
NUMBER = "{x:.10g}"
"""Format of the numbers on an axis, without powers of ten."""
PADS = {"w_pad": 0.06, "h_pad": 0.06}
LIMIT: dict[str, Any] = {"color": INK, "linewidth": 0.9, "dashes": (5, 2), "zorder": 1}
LINK = re.compile(r'<a xlink:href="([^"]*)"[^>]*>(.*?)</a>', re.DOTALL)
"""A mark with a link in an SVG file."""
METADATA = {".svg": {"Date": None, "Creator": None}, ".png": {"Software": None}}
"""Ending of a file -> metadata that are removed, because they differ between days or versions."""
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
    """Colour (after Okabe and Ito 2008), marker, colour of the marker's face, and dashes of the line.

    Markers of peakmark's kernels and of workloads are filled; those of references are open.
    """

    colour: str
    marker: str
    face: str
    dashes: tuple[Any, ...] = (None, None)


COLOURS = ("#0072B2", "#D55E00", "#009E73", "#9B3D7E", "#5A5A5A", "#7A5C00")
MARKERS = "os^DvP"
LOOK_DASHES: tuple[tuple[Any, ...], ...] = ((None, None), (1.2, 1.2), (5, 1.2, 1.2, 1.2))
"""Dashes of the lines whose colours occur for the first, second and third time."""


def look(position: int, is_open: bool = False) -> Look:
    """Return the look of a program or workload by its position; peakmark's kernel is at position 0.

    From position 6 on, the colours repeat with other markers and dashes.
    """
    often, place = divmod(position, len(COLOURS))
    colour = COLOURS[place]
    marker = MARKERS[(position + often) % len(MARKERS)]
    dashes = LOOK_DASHES[often % len(LOOK_DASHES)]
    return Look(colour, marker, "white" if is_open else colour, dashes)


def legend(figure: Figure, handles: Sequence[Patch | Line2D]) -> None:
    """Draw a legend above the panels, with as many entries side by side as the figure is wide."""
    longest = max(len(str(handle.get_label())) for handle in handles)
    columns = max(1, int(figure.get_figwidth() / (0.53 + 0.055 * longest)))
    lines = math.ceil(len(handles) / columns)
    figure.set_figheight(figure.get_figheight() + LEGEND_LINE * lines)
    figure.legend(
        handles=handles, loc="outside upper left", ncols=columns, frameon=False, handlelength=2.4
    )


def named_lines(names: Sequence[str], width: float, height: float) -> tuple[Figure, Axes]:
    """Return an empty figure with a line for each name, the first at the top, and room for all labels.

    Args:
        names: labels of the lines, at least one.
        width: width of the figure, in inches.
        height: height of a line, in inches.
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


def facets(
    shown: pd.DataFrame,
    panel: tuple[float, float] = (0.23, 1.02),
    most: int = 4,
    **shared: Any,
) -> sns.FacetGrid:
    """Return an empty figure with a panel for each title in the column ``panel``, in equal lines.

    Args:
        shown: the data; at least one line.
        panel: share of the page's width, and height in inches, of a panel.
        most: largest number of panels side by side.
        shared: ``sharex`` and ``sharey`` of seaborn's ``FacetGrid``.
    """
    count = shown["panel"].nunique()
    rows = math.ceil(count / most)
    columns = math.ceil(count / rows)
    share, height = panel
    width = WIDTH * min(1.0, max(share * columns, min(2 * share, 0.46)) + 0.09)
    axes = {"sharex": False, "sharey": False, **shared}
    grid = sns.FacetGrid(shown, col="panel", col_wrap=columns, **axes)
    plt.close(grid.figure)
    # A title that is wider than its panel takes several lines, for which all panels have room.
    of_numbers = NUMBERS
    if not axes["sharey"]:
        of_numbers += MORE_NUMBERS * (columns - 1)
    widest = int((width - of_numbers) / columns / TITLE_LETTER)
    lines = 1
    for title, axis in grid.axes_dict.items():
        of_title: list[str] = []
        for part in str(title).splitlines():
            of_title += textwrap.wrap(part, widest)
        axis.set_title("\n".join(of_title))
        lines = max(lines, len(of_title))
    height += TITLE_LINE * (lines - 1)
    grid.figure.set_size_inches(width, height * math.ceil(count / columns) + LABELS)
    grid.figure.set_layout_engine("constrained", **PADS)
    return grid


def label_axes(grid: sns.FacetGrid, labels: tuple[str, str]) -> None:
    """Label the outer axes: the horizontal ones, and the vertical ones once for several lines of panels.

    A panel is lower than a label such as ``Throughput (GB/s)`` is long.
    """
    horizontal, vertical = labels
    if len({axis.get_position().y0 for axis in grid.axes.flat}) > 1:
        grid.figure.supylabel(vertical, fontsize=plt.rcParams["axes.labelsize"])
        vertical = ""
    grid.set_axis_labels(horizontal, vertical)


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
            axis.set_ylim(lowest / 1.4, highest * 1.6)
            axis.yaxis.set_major_locator(LogLocator(numticks=MAX_TICKS))
            axis.yaxis.set_minor_locator(NullLocator())
        else:
            axis.set_ylim(0, 1.12 * highest)
        axis.yaxis.set_major_formatter(NUMBER)


def vertical_label(table: Table, value: str = "measured") -> str:
    """Return ``Throughput (MB/s)``, or the quantity alone if it is its own unit.

    Args:
        table: table with the quantity and the unit.
        value: see ``layouts.Drawing``; for ``deviation`` the label is ``Standard deviation (MB/s)``.
    """
    if value == "efficiency":
        return "% of the limit"
    unit = UNITS.get((table.unit, table.factor), table.shown)
    if value == "deviation":
        return f"Standard deviation ({unit or table.quantity})"
    if unit in ("GigaOPS", table.quantity):
        return unit
    return f"{table.quantity} ({unit})"


def begin() -> None:
    """Set the style of all figures, in which equal figures have equal bytes.

    For this, texts are drawn as outlines and identifiers are constant.
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
        path.write_bytes(drawn(figure, path.suffix))
    return paths


def drawn(figure: Figure, suffix: str) -> bytes:
    """Return the content of a figure's file.

    In an SVG file, the link of a mark is replaced by a title, which browsers show at the pointer.

    Args:
        figure: the figure.
        suffix: ending of the file, ``.svg`` or ``.png``.
    """
    content = io.BytesIO()
    figure.savefig(content, format=suffix[1:], dpi=200, metadata=METADATA[suffix])
    if suffix != ".svg":
        return content.getvalue()
    text = content.getvalue().decode()
    return LINK.sub(r"<g><title>\1</title>\2</g>", text).encode()
