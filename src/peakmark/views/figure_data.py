"""What a figure shows: rows of a table with their runs, and the names that a layout gives them."""

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
from peakmark.views import layouts
from peakmark.views.points import Line


@dataclass(frozen=True, eq=False)
class FigureData:
    """A figure before it is drawn.

    Attributes:
        name: of its files, without ending.
        table: with the unit and the programs that are printed, see ``layouts.table_of``.
        rows: lines of ``frames.rows`` that have a value, of the points that the figure shows.
        frames: the campaign, see ``layouts.arrange``.
        layout: of the campaign.
        drawing: what the layout says of the figure, None for a usual one.
    """

    name: str
    table: Table
    rows: pd.DataFrame
    frames: CampaignFrames
    layout: Layout | None = None
    drawing: Drawing | None = None

    @cached_property
    def own(self) -> pd.DataFrame:
        """The rows of peakmark's kernel."""
        return self.rows[self.rows["is_own"]]

    @cached_property
    def runs(self) -> pd.DataFrame:
        """The runs of the rows; those that do not count are in it too."""
        runs = self.frames.runs[self.frames.runs["value"].notna()]
        return runs.merge(self.rows[["point", "instrument"]], on=["point", "instrument"])

    @cached_property
    def own_runs(self) -> Mapping[str, Sequence[Line]]:
        """Point -> the runs of peakmark's kernel that count, in their order."""
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
        return layouts.labels_of(self.layout, table, row)
