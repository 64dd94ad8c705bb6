"""The data of a figure: rows of a table with their runs, and their names in a layout."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from peakmark.config.layouts import Drawing, Layout
from peakmark.rows import schema
from peakmark.rows.labels import Labels
from peakmark.rows.schema import CampaignFrames
from peakmark.tools.tables import BY_NAME, Table
from peakmark.views import layout_tables
from peakmark.views.points import Line


@dataclass(frozen=True, eq=False)
class FigureData:
    """A figure before it is drawn.

    Attributes:
        name: name of the figure's files, without ending.
        kind: how the figure is drawn, see ``figures.SHAPES``.
        table: table with the printed unit and names of programs, see ``layout_tables.table_of``.
        rows: lines of ``frames.rows`` that the figure shows; all have a value.
        frames: the campaign, see ``layout_tables.for_print``.
        layout: layout of the campaign.
        drawing: the figure's entry in the layout, None for a usual figure.
    """

    name: str
    kind: str
    table: Table
    rows: pd.DataFrame
    frames: CampaignFrames
    layout: Layout | None = None
    drawing: Drawing | None = None

    @cached_property
    def own(self) -> pd.DataFrame:
        """Return the rows of peakmark's kernel."""
        return self.rows[self.rows["is_own"]]

    @cached_property
    def runs(self) -> pd.DataFrame:
        """Return the runs of the rows, including those that do not count."""
        runs = self.frames.runs[self.frames.runs["value"].notna()]
        return runs.merge(self.rows[["point", "instrument"]], on=["point", "instrument"])

    @cached_property
    def own_runs(self) -> Mapping[str, Sequence[Line]]:
        """Return point -> the runs of peakmark's kernel that count, in their order."""
        instruments = self.own["instrument"].unique()
        is_shown = self.runs["kept"] & self.runs["instrument"].isin(instruments)
        found: dict[str, list[Line]] = defaultdict(list)
        for run in schema.lines(self.runs[is_shown]):
            found[run.point].append(run)
        return found

    def labels(self, row: Line) -> Labels:
        """Return the names for a row."""
        table = self.table
        if row.table != table.name:
            table = BY_NAME[row.table]
        return layout_tables.labels_of(self.layout, table, row)
