"""A real Slurm cluster on one machine, for tests and for trying things out.

Every host of the cluster (the login side with the controller, and each node) is a set of Linux
namespaces: its own network on a bridge of the cluster's own, host name, process table and mounts.
Nothing is written outside one state directory, and when the cluster ends, the kernel ends every
process in it.

requirements.py  what the machine lacks for it
config.py        its options, and the files that Slurm reads
processes.py     processes by namespace       hosts.py  namespaces by host
keeper.py        the first processes of its hosts
daemons.py       Slurm's daemons              cluster.py  all of it as one object
"""

from .cluster import Cluster
from .processes import ClusterError
from .requirements import why_not

__all__ = ["Cluster", "ClusterError", "why_not"]
