"""Draw the figures of a campaign as SVG and PNG."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from matplotlib.figure import Figure

from peakmark.config.layouts import Layout
from peakmark.rows.schema import CampaignFrames
from peakmark.tools.tables import TABLES
from peakmark.views import (
    curve_figures,
    figure_style,
    layout_tables,
    panel_figures,
    strip_figures,
)
from peakmark.views.pictures import FLEET, Picture, pictures_of
from peakmark.views.table import is_many

FOLDER = "figures"
"""Folder of the figures, below the campaign's folder."""
PLOTS: Mapping[str, Callable[[Picture], Figure | None]] = {
    "strip": strip_figures.plot_strip,
    "ladder": curve_figures.plot_ladder,
    "loaded": curve_figures.plot_loaded,
    "roofline": curve_figures.plot_roofline,
    "matrix": curve_figures.plot_matrices,
    "links": curve_figures.plot_links,
    "nodes": strip_figures.plot_nodes,
}
"""Kind of a figure -> function that draws it, or returns None if it would show nothing.

``panel_figures`` draws the other kinds: panels, together and bars.
"""


def draw_figures(frames: CampaignFrames, folder: Path) -> list[Path]:
    """Write the figures of a campaign into a folder; equal frames give equal bytes.

    A table without a measurement has no figure. Older figures in the folder are kept.

    Returns:
        The paths written.
    """
    figure_style.begin()
    # For many nodes, the usual figures replace the figures of the layout.
    layout = None if is_many(frames) else layout_tables.layout_of(frames)
    written: list[Path] = []
    for name, figure in drawn_figures(layout_tables.for_print(frames, layout), layout):
        written += figure_style.save(figure, folder, name)
    return written


def drawn_figures(frames: CampaignFrames, layout: Layout | None) -> Iterator[tuple[str, Figure]]:
    """Yield name and drawing of each figure that shows anything.

    Args:
        frames: the campaign, see ``layout_tables.for_print``.
        layout: layout of the campaign.
    """
    if len(frames.nodes) > 1:
        fleet = strip_figures.plot_fleet(frames)
        if fleet is not None:
            yield FLEET, fleet
    for data in figures_of(frames, layout):
        figure = draw(data)
        if figure is not None:
            yield data.name, figure


def figures_of(frames: CampaignFrames, layout: Layout | None) -> Iterator[Picture]:
    """Yield each figure of a table that has rows. The arguments are those of ``drawn_figures``."""
    for table in TABLES:
        for picture in pictures_of(frames, table, layout):
            if len(picture.rows):
                yield picture


def draw(figure: Picture) -> Figure | None:
    """Return the drawing of a figure; None if the figure would show nothing."""
    plot = PLOTS.get(figure.kind, panel_figures.plot)
    return plot(figure)
