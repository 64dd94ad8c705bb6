"""Judge a campaign: from its records to the files in ``results/C/rows/``, which all views read."""
