"""Make the content of a campaign's report from its rows and its figures."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from peakmark.rows import build
from peakmark.views import figures, rendering
from peakmark.views.rendering import ReportContent


def collect(campaign: Path) -> ReportContent:
    """Draw the figures of a campaign, and return the content of its report.

    Raises:
        RecordError: the folder holds no campaign, or a record is damaged.
        ConfigError: a text of the author cannot be used.
    """
    can_write = os.access(campaign, os.W_OK)
    frames = build.load(campaign, keep=can_write)
    if can_write:
        folder = campaign / figures.FOLDER
        folder.mkdir(exist_ok=True)
        figures.draw_figures(frames, folder)
        return rendering.collect(frames, campaign, folder)
    # The campaign is an archive that cannot be written to: draw its figures elsewhere.
    with tempfile.TemporaryDirectory(prefix="peakmark-figures-") as name:
        figures.draw_figures(frames, Path(name))
        return rendering.collect(frames, campaign, Path(name))
