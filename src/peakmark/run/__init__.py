"""One cell measured: the program run, watched and guarded, alone or with a far end, and what else
went on meanwhile.
"""
