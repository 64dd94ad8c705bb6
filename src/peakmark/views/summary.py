"""What a run prints at its end, and ``peakmark summary``: the most telling numbers with their warnings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from peakmark.messages import message
from peakmark.rows.schema import CampaignFrames
from peakmark.views import headlines, layouts

DOCUMENTS = {"report": "report.pdf", "page": "report.html", "tables": "tables"}
"""What the summary calls a result -> its place below the campaign."""


def summarise(frames: CampaignFrames, folder: Path) -> dict[str, Any]:
    """Return what ``summary.txt.j2`` shows of a campaign.

    Keys: ``is_complete``; ``documents`` that there are, with their paths; ``verdicts``, a headline
    of each subsystem; ``again``, a sentence on repetitions that were disturbed; ``impossible``,
    reason -> cells.
    """
    arranged = layouts.arrange(frames, layouts.layout_of(frames))
    documents = []
    for name, place in DOCUMENTS.items():
        if (folder / place).exists():
            documents.append((name, folder / place))
    runs = frames.runs
    again = int(runs.loc[runs["disturbed"].ne(""), "cell"].nunique())
    return {
        "is_complete": not frames.campaign["missing"],
        "documents": documents,
        "verdicts": headlines.headlines(arranged),
        "again": message("measured-again", count=again).text if again else "",
        "impossible": impossible(frames),
    }


def impossible(frames: CampaignFrames) -> dict[str, list[str]]:
    """Return reason -> cells that this machine cannot measure, the reason of most first."""
    runs = frames.runs[frames.runs["status"].eq("unavailable")].drop_duplicates("cell")
    reasons = {}
    for reason, cells in runs.groupby("reason", sort=False)["cell"]:
        reasons[str(reason)] = cells.tolist()
    return dict(sorted(reasons.items(), key=lambda entry: -len(entry[1])))
