"""peakmark: how close a cluster node comes to its physical limits."""

__version__ = "0.1.0"
