"""Which workloads, tables and tools there are: names and rows of data that know no other part of
the package.
"""
