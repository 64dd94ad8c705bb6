"""The report of a campaign: ``document`` collects the content, ``rendering`` makes PDF and HTML."""
