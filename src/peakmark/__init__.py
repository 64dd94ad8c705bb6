"""peakmark: how close a cluster node comes to its physical limits."""

import atexit
import gc

__version__ = "1.0.0"

# The last collection of a process can crash in msgspec (its issue 717; on Python 3.12 after one run
# in four): it finds nothing then.
atexit.register(gc.freeze)
