"""Files of a campaign: records and whether they count, machine facts, the plan, and all of them read as
one.
"""
