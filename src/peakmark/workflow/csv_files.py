"""Write the CSV files of a campaign: its rows, and tables from the rows.

These functions are not in ``documents``, which imports matplotlib: the import takes longer than writing
all CSV files.
"""

from __future__ import annotations

from pathlib import Path

from peakmark.rows import build
from peakmark.rows.schema import CampaignFrames
from peakmark.views import table_files


def write_rows(campaign: Path) -> CampaignFrames:
    """Write the files in ``rows/`` (see ``rows.schema``) unless they are up to date. Return their frames.

    Raises:
        RecordError: the folder holds no campaign, or a record is damaged.
        PeakmarkError: the files cannot be written.
    """
    return build.load(campaign)


def write_tables(campaign: Path) -> None:
    """Write the tables of a campaign. Errors: see ``write_rows``."""
    frames = write_rows(campaign)
    table_files.write_tables(frames, campaign / table_files.FOLDER)
