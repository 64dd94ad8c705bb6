"""A test of the method itself: does it see what is there, and nothing else? ``make bench-method``.

promises.py     what is promised, and how often it was broken
same.py         like against like, on real campaigns: how often is a difference claimed that is none
campaigns.py    simulated pairs of campaigns
rows.py         simulated rows: warnings, intervals, findings, placements
fleets.py       simulated fleets: slow nodes, slow links
faults.py       faults put in on purpose and taken out again: found, and named?
sides.py        a campaign of a few short cells, measured as a job does it, in surroundings of
                choice
strip_direct.c  makes a disk measurement use the page cache
"""
