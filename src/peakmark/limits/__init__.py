"""Compute the physical limit of table rows from facts, the site file and tables of processors.

No limit is guessed. An unknown limit has a reason, which says how to supply the limit, and may have a
bound. A row with an unknown limit has no efficiency.
"""

from peakmark.limits.base import Limit, Question
from peakmark.limits.row import for_row

__all__ = ["Limit", "Question", "for_row"]
