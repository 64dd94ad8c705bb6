"""A campaign with the rows of its tables: read once, judged once, for tables, figures, PDF and
page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from peakmark.analysis import rows
from peakmark.analysis.row import Row
from peakmark.storage.results import Results


@dataclass(frozen=True)
class Analysis:
    """All that is known of a campaign. ``rows``: those of every table by the table's name, see
    ``rows.build``.
    """

    results: Results

    @classmethod
    def of(cls, campaign: Path | Analysis) -> Analysis:
        """What is judged already as it is; of a folder, what is in it. Errors: RecordError when it
        holds no campaign.
        """
        return campaign if isinstance(campaign, Analysis) else cls(Results.read(campaign))

    @cached_property
    def rows(self) -> Mapping[str, Sequence[Row]]:
        return rows.build(self.results)
