"""The campaign that this process runs: told by the Snakefile, read by the executor, which Snakemake makes by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from peakmark.running.queue import Queue
    from peakmark.running.run import Run

run: Run | None = None
queue: Queue | None = None
"""Of the executor ``peakmark``; None while another one hands jobs over."""
