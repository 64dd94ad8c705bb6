"""peakmark: how close a cluster node comes to its physical limits."""

import atexit
import gc

__version__ = "1.0.0"

# The garbage collection at exit can crash in msgspec (its issue 717), on Python 3.12 in one of four
# runs. After gc.freeze there is nothing to collect.
atexit.register(gc.freeze)
