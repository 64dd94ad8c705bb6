"""Facts of a node as any user can read them: what the limits are computed from and what a report
must state.
"""

from peakmark.machine.facts import cached, collect

__all__ = ["cached", "collect"]
