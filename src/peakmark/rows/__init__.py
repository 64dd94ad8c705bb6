"""Judge a campaign: from its records to the files in ``results/C/rows/``, which all views read.

The names of these files are here, because Snakemake's rules and ``peakmark check`` import them: no pandas.
"""

FOLDER = "rows"
"""Subfolder of a campaign's folder that holds what was judged: the files named below."""
CHECK = "check.json"
"""File of what good nodes of each class reach, for ``peakmark check``."""
CAMPAIGN = "campaign.json"
"""File of the title, authors, configuration, times, failures and programs of a campaign."""
FRAMES = ("runs", "rows", "warnings", "findings", "nodes", "facts", "fleet")
"""Names of the frames; each is kept as ``NAME.csv``."""
