"""A test of the method itself: does it see what is there, and nothing else? ``make bench-method``.

sides.py        a campaign of a few short cells, measured as a job does it, in surroundings of
                choice
worker.py       the process that measures them
same.py         like against like: how often is a difference claimed that is none
faults.py       faults put in on purpose and taken out again
verdicts.py     was a fault found, and was it named
table.py        what is printed and written
strip_direct.c  makes a disk measurement use the page cache
"""
