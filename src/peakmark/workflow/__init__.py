"""Run a campaign, and show its progress and failures."""
