"""Configuration -> the cells to measure, in running order, and the jobs that measure them."""

from peakmark.plan.build import complete, make, make_completed
from peakmark.plan.plan import RESULTS, Plan

__all__ = ["RESULTS", "Plan", "complete", "make", "make_completed"]
