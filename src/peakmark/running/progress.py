"""What the progress bar is told of a campaign; Snakefile, executor and logger plugin live in the same process."""

from __future__ import annotations

estimates: dict[str, float] = {}
"""Output of each job that this run may start -> its expected seconds."""

started: float | None = None
"""When the first job began to measure, by ``time.monotonic``: what it waited before is no measure of what is left."""
