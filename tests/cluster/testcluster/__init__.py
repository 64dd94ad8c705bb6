"""A real Slurm cluster on one machine, for tests and for trying things out.

Every host of the cluster (the login side with the controller, and each node) is a set of Linux
namespaces: its own network on a bridge of the cluster's own, host name, process table and mounts.
Nothing is written outside one state directory, and when the cluster ends, the kernel ends every
process in it.
"""

from . import cgroups
from .cluster import Cluster
from .errors import ClusterError
from .requirements import why_not

__all__ = ["Cluster", "ClusterError", "cgroups", "why_not"]
