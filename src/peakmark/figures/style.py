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
from matplotlib.ticker import Formatter, ScalarFormatter

from peakmark.formatting import decimal_mark
from peakmark.resources import ROOT

STYLE = ROOT / "reports" / "figures.mplstyle"
INK = "#222222"
SMALL = 7.3  # points, of the smallest type
QUIET = "#6b6b6b"
LIMIT = "#222222"
_PUBLISHED = ("D", "v", "P", "X")
"""Markers of published sets, by their place."""
METADATA = {".svg": {"Date": None, "Creator": None}, ".png": {"Software": None}}
"""Ending of a file -> what its format would tell of when and by what it was made."""
DASHES: tuple[Any, ...] = ((), (4, 1.6), (1.2, 1.4), (6, 1.5, 1.2, 1.5), (9, 2), (3, 1, 1, 1, 1, 1))


@dataclass(frozen=True)
class Look:
    """Colour (Okabe and Ito 2008), marker and its face for one instrument; own kernels are filled,
    references are open. ``ink`` is the colour of its name: dark enough for text on white (4.5 :
    1 or more).
    """

    colour: str
    marker: str
    face: str
    ink: str


_LOOKS = (
    Look("#0072B2", "o", "#0072B2", "#0072B2"),
    Look("#D55E00", "s", "white", "#B84F00"),
    Look("#009E73", "^", "white", "#00785A"),
)

# Lines of workloads beside each other: each dark enough for its name on white.
_LINES = (
    Look("#0072B2", "o", "#0072B2", "#0072B2"),
    Look("#B84F00", "s", "#B84F00", "#B84F00"),
    Look("#00785A", "^", "#00785A", "#00785A"),
    Look("#9B3D7E", "D", "#9B3D7E", "#9B3D7E"),
    Look("#5A5A5A", "v", "#5A5A5A", "#5A5A5A"),
    Look("#7A5C00", "P", "#7A5C00", "#7A5C00"),
)


def line(position: int) -> Look:
    """The look of a workload's line where several stand in one panel."""
    return _LINES[position % len(_LINES)]


def look(position: int) -> Look:
    """The look of a table's instrument by its place: 0 is the own kernel."""
    return _LOOKS[position % len(_LOOKS)]


def legend(
    figure: Figure, handles: Sequence[Patch | Line2D], columns: int, handle_length: float
) -> None:
    """Draw a legend above the panels; ``handle_length`` in widths of a letter."""
    figure.legend(
        handles=handles,
        loc="outside upper left",
        ncols=columns,
        frameon=False,
        handlelength=handle_length,
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


def figure(width: float, height: float, **pads: float) -> Figure:
    """An empty figure of so many inches, which finds room for all labels by itself."""
    empty = Figure(figsize=(width, height))
    empty.set_layout_engine("constrained", **pads)
    return empty


def panels(figure: FigureBase, count: int, columns: int, **shared: Any) -> list[Axes]:
    """So many panels in lines of ``columns``; the last line may have fewer."""
    axes = figure.subplots(math.ceil(count / columns), columns, squeeze=False, **shared).flat
    for axis in axes[count:]:
        axis.set_visible(False)
    return list(axes[:count])


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


def spread(positions: Sequence[float], gap: float) -> list[float]:
    """Positions moved apart so that neighbours are at least ``gap`` from each other, each as near
    to its own as possible.

    Order is kept. Groups that collide are centred on their mean.
    """
    order = sorted(range(len(positions)), key=lambda index: positions[index])
    groups: list[list[int]] = []
    for index in order:
        groups.append([index])
        while (
            len(groups) > 1
            and _bottom(groups[-1], positions, gap) < _top(groups[-2], positions, gap) + gap
        ):
            groups[-2:] = [groups[-2] + groups[-1]]
    result = list(positions)
    for group in groups:
        start = _bottom(group, positions, gap)
        for rank, index in enumerate(group):
            result[index] = start + rank * gap
    return result


def _bottom(group: Sequence[int], positions: Sequence[float], gap: float) -> float:
    return sum(positions[index] for index in group) / len(group) - (len(group) - 1) * gap / 2


def _top(group: Sequence[int], positions: Sequence[float], gap: float) -> float:
    return _bottom(group, positions, gap) + (len(group) - 1) * gap
