"""The physical limit of every table row, from measured, read, stated or tabled numbers.

No limit is invented. An unknown limit has a reason, which says how to supply it, and perhaps a bound;
its row has no efficiency.
"""

from peakmark.limits.base import Limit, Question
from peakmark.limits.row import for_row

__all__ = ["Limit", "Question", "for_row"]
