"""Draw the states of the machine over time: the readings of the probes, with the cells below them."""

from __future__ import annotations

from datetime import UTC

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from peakmark.catalogue import SUBSYSTEMS
from peakmark.formatting import plural
from peakmark.rows.schema import CampaignFrames
from peakmark.views import figure_style
from peakmark.views.points import is_many

PROBES = {"dram": ("DRAM\n(GB/s)", 1e-9), "core-to-core": ("Core to core\n(ns)", 1e9)}
"""Probe -> label of the axis, and factor from SI units to the unit of the axis."""
COLUMNS = {
    "dram": ("probe_before", "probe_after"),
    "core-to-core": ("core_to_core_before", "core_to_core_after"),
}
"""Probe -> columns of ``runs`` with the reading before and after the work."""
PANEL = 0.95
"""Height of a panel, in inches."""


def has_timeline(frames: CampaignFrames) -> bool:
    """Return whether a campaign has readings of probes, and few enough nodes for a panel per node."""
    probed = frames.runs[["probe_before", "probe_after", "core_to_core_before"]]
    return bool(probed.notna().any(axis=None)) and not is_many(frames)


def plot(frames: CampaignFrames) -> Figure | None:
    """Draw a panel for each host and probe, and a panel with the cells; return None without probes."""
    if not has_timeline(frames):
        return None
    readings = read_probes(frames.runs)
    counts = sorted(readings["threads"].unique())
    panels = list(readings.groupby(["host", "probe"]))
    figure = Figure(figsize=(figure_style.WIDTH, PANEL * (len(panels) + 1)))
    figure.set_layout_engine("constrained", **figure_style.PADS)
    *probe_axes, cell_axis = figure.subplots(len(panels) + 1, 1, sharex=True)
    for axis, (_, of_panel) in zip(probe_axes, panels, strict=True):
        draw_readings(axis, of_panel, counts)
        if readings["host"].nunique() > 1:
            axis.set_title(of_panel["host"].iloc[0], loc="left", fontsize=figure_style.SMALL)
    draw_cells(cell_axis, frames.runs)
    locator = AutoDateLocator(tz=UTC)  # type: ignore[no-untyped-call]
    cell_axis.xaxis.set_major_locator(locator)
    formatter = ConciseDateFormatter(locator, tz=UTC)  # type: ignore[no-untyped-call]
    cell_axis.xaxis.set_major_formatter(formatter)
    cell_axis.set_xlabel("Time of day (UTC)")
    entries = []
    for place, count in enumerate(counts):
        look = figure_style.look(place)
        entries.append(
            Line2D(
                [], [], linestyle="none", color=look.colour, marker=look.marker,
                label=plural(int(count), "thread"),
            )
        )  # fmt: skip
    figure_style.legend(figure, entries)
    return figure


def read_probes(runs: pd.DataFrame) -> pd.DataFrame:
    """Return a line for each reading of a probe, in order of time.

    Columns are ``host``, ``probe``, ``threads``, ``time`` in seconds since 1970, and ``value``.
    """
    parts = []
    for probe, (before, after) in COLUMNS.items():
        for when, column in (("before", before), ("after", after)):
            part = runs[["host", "record", "attempt", "time"]].assign(
                probe=probe,
                threads=runs["measured_concurrency"],
                when=when,
                value=runs[column],
            )
            if when == "after":
                part["time"] += runs["cell_seconds"].fillna(0.0)
            parts.append(part)
    readings = pd.concat(parts, ignore_index=True)
    readings = readings[readings["value"].gt(0) & readings["time"].notna()]
    # The lines of one execution have the same reading.
    readings = readings.drop_duplicates(["record", "attempt", "probe", "when"])
    return readings.sort_values("time", kind="stable", ignore_index=True)


def draw_readings(axis: Axes, readings: pd.DataFrame, counts: list[int]) -> None:
    """Draw the readings of one probe, with a look for each number of threads."""
    label, factor = PROBES[readings["probe"].iloc[0]]
    for place, count in enumerate(counts):
        shown = readings[readings["threads"].eq(count)]
        look = figure_style.look(place)
        axis.scatter(
            pd.to_datetime(shown["time"], unit="s", utc=True), shown["value"] * factor, s=9,
            marker=look.marker, facecolor=look.face, edgecolor=look.colour, linewidth=0.5,
        )  # fmt: skip
    axis.set_ylabel(label)
    figure_style.scale_values([axis], False)
    axis.grid(axis="y")
    sns.despine(ax=axis)


def draw_cells(axis: Axes, runs: pd.DataFrame) -> None:
    """Draw each execution of a cell as a bar in the line of its resource."""
    cells = runs[runs["time"].notna()].drop_duplicates(["record", "attempt"])
    names = [name for name in SUBSYSTEMS if name in set(cells["subsystem"])]
    for line, name in enumerate(names):
        of_line = cells[cells["subsystem"].eq(name)]
        start = pd.to_datetime(of_line["time"], unit="s", utc=True)
        lasted = pd.to_timedelta(of_line["cell_seconds"].fillna(0.0), unit="s")
        axis.barh(
            [line] * len(of_line), lasted, left=start, height=0.6, facecolor=figure_style.QUIET,
            edgecolor=figure_style.QUIET, linewidth=0.3,
        )  # fmt: skip
    # The bars begin at the edge of the panels by default, which would cut the first readings.
    axis.use_sticky_edges = False
    axis.margins(x=0.01)
    axis.set_yticks(range(len(names)), [SUBSYSTEMS[name].resource for name in names])
    axis.set_ylim(len(names) - 0.5, -0.5)
    axis.tick_params(axis="y", length=0)
    sns.despine(ax=axis, left=True)
