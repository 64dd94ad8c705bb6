"""Measure one cell: run the program within limits, alone or with a server, and watch the other load on
the node.
"""
