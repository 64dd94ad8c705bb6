"""Configuration and cluster -> the cells of a campaign, their order, and the jobs that measure
them.
"""
