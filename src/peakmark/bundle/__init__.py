"""A campaign for others: one zip file with its description, parts list and checksums, and the way
back.
"""
