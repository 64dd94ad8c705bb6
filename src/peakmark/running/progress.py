"""What the progress bar is told by the Snakefile; the logger plugin lives in the same process."""

from __future__ import annotations

expected_seconds: float = 0.0
"""Expected seconds of all cells that this run will measure; 0 when not known."""

campaign: str = ""
"""Folder of the campaign, for the last words of a run that has nothing to do."""
