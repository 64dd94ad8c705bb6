"""Measure one cell: run its program within limits, with a server if it needs one, and watch the other
load on the node.
"""
