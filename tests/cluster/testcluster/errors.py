"""What goes wrong when starting, using or ending a test cluster."""


class ClusterError(Exception):
    """The cluster could not do what was asked; the message is one clear sentence and, where there
    is one, the end of a log.
    """
