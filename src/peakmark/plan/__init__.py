"""Plan a campaign: turn its configuration into cells in running order, and group cells into jobs."""

from peakmark.plan.plan import RESULTS, Plan, complete, make, make_completed

__all__ = ["RESULTS", "Plan", "complete", "make", "make_completed"]
