"""What goes on around the cells of a running campaign: progress, failures, states of jobs, repairs,
cleaning.
"""
