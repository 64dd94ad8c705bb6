"""A campaign with the rows of its tables: read once, judged once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from peakmark.analysis import fleet, rows
from peakmark.analysis.row import Row
from peakmark.config.layouts import Layout
from peakmark.storage.results import Results


@dataclass(frozen=True)
class Analysis:
    """All that is known of a campaign."""

    results: Results

    @classmethod
    def of(cls, campaign: Path | Analysis) -> Analysis:
        """The campaign in a folder; an analysis is returned as it is.

        Raises:
            RecordError: the folder holds no campaign.
        """
        return campaign if isinstance(campaign, Analysis) else cls(Results.read(campaign))

    @cached_property
    def rows(self) -> Mapping[str, Sequence[Row]]:
        """The rows of each table by its name, see ``rows.build``."""
        return rows.build(self.results)

    @property
    def mark(self) -> str:
        """The decimal mark of the report."""
        return self.results.mark

    @cached_property
    def layout(self) -> Layout | None:
        """The layout that ``report.tables`` names, None without one. Errors: ConfigError."""
        return rows.layout_of(self.results)

    @cached_property
    def has_several_nodes(self) -> bool:
        """Whether more than one node was measured by itself."""
        return len(fleet.nodes(self.rows)) > 1

    @cached_property
    def is_fleet(self) -> bool:
        """Whether there are too many nodes for a line of each."""
        return fleet.is_many(self.rows)
