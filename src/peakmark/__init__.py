"""peakmark: how close a cluster node comes to its physical limits."""

__version__ = "1.0.0"
