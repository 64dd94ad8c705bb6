"""Names of the files of a judged campaign, for rules, which import nothing heavy."""

FOLDER = "rows"
"""Folder of the files below that of a campaign."""
FRAMES = ("runs", "rows", "warnings", "findings", "nodes", "facts", "fleet")
"""Frames, and their files without the ending ``.csv``."""
CAMPAIGN = "campaign.json"
"""What holds for the whole campaign: title, authors, configuration, times, failures, programs."""
