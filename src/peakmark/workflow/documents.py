"""Make the figures of a campaign from its rows, and the report from both."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from peakmark.config import texts
from peakmark.rows import build
from peakmark.rows.names import CAMPAIGN, FOLDER
from peakmark.rows.schema import CampaignFrames
from peakmark.views import figures
from peakmark.views.report import document, rendering, sections
from peakmark.views.report.rendering import ReportContent
from peakmark.workflow import csv_files


def write_figures(campaign: Path) -> None:
    """Draw the figures of a campaign. Errors: see ``csv_files.write_rows``."""
    frames = csv_files.write_rows(campaign)
    folder = campaign / figures.FOLDER
    folder.mkdir(exist_ok=True)
    figures.draw_figures(frames, folder)


def collect(campaign: Path, partial: bool = False, command: str = "report") -> ReportContent:
    """Return the content of a campaign's report. Draw the figures again if they are outdated.

    Args:
        campaign: folder of the campaign.
        partial: whether planned cells may lack a record; they are shown as not measured.
        command: name of the command that the user called, for the error.

    Raises:
        PeakmarkError: cells are missing and ``partial`` is not set.
        ConfigError: a text of the author cannot be used.
    """
    can_write = os.access(campaign, os.W_OK)
    frames = build.load(campaign, keep=can_write)
    document.must_be_complete(frames.campaign, partial, command, campaign)
    if has_figures(frames, campaign):
        return rendering.collect(frames, campaign, campaign / figures.FOLDER)
    if can_write:
        write_figures(campaign)
        return rendering.collect(frames, campaign, campaign / figures.FOLDER)
    # The campaign is an archive that cannot be written to: draw its figures elsewhere.
    with tempfile.TemporaryDirectory(prefix="peakmark-figures-") as name:
        figures.draw_figures(frames, Path(name))
        return rendering.collect(frames, campaign, Path(name))


def has_figures(frames: CampaignFrames, campaign: Path) -> bool:
    """Return whether all figures of a campaign exist and are newer than its rows and its layout."""
    figure_paths = [
        campaign / figures.FOLDER / f"{name}.svg" for name in sections.figure_names(frames)
    ]
    named = texts.named_files(frames.campaign["config"].get("report") or {})
    sources = [campaign / FOLDER / CAMPAIGN, *named]
    if not all(path.is_file() for path in figure_paths):
        return False
    newest = max(path.stat().st_mtime_ns for path in sources if path.is_file())
    return all(path.stat().st_mtime_ns >= newest for path in figure_paths)
