"""The commands: each module declares its options and calls what does the work, which it imports
when it is asked.
"""
