"""The physical limit of every table row: from measured, read, stated or tabled numbers, or
``unknown`` with the reason and, where there is one, a bound.

No limit is invented: an unknown one leaves the efficiency empty and says how to supply it.
"""

from peakmark.limits.base import Limit, Question
from peakmark.limits.row import for_row

__all__ = ["Limit", "Question", "for_row"]
