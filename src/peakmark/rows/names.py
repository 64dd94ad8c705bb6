"""Names of the files in ``results/C/rows/``. Snakemake's rules import them, so no pandas here."""

FOLDER = "rows"
"""Subfolder of a campaign's folder that holds the files."""
FRAMES = ("runs", "rows", "warnings", "findings", "nodes", "facts", "fleet")
"""Names of the frames; each is kept as ``NAME.csv``."""
NOT_PLANNED = "the plan holds no cell of it"
"""Reason in ``campaign.json`` for a program without values that the campaign does not measure."""
DISTURBANCES = ("steal", "other-load", "waited", "crowded-core", "clock-moved", "memory-load")
"""Codes of the warnings that runs were disturbed."""
CHECK = "check.json"
"""File of what good nodes of each class reach, for ``peakmark check``."""
CAMPAIGN = "campaign.json"
"""File of the title, authors, configuration, times, failures and programs of a campaign."""
