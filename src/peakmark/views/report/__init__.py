"""The report of a campaign, from its frames: ``document`` lists what it says, ``rendering`` sets it."""
