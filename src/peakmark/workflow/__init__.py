"""Run a campaign, show its progress and failures, and plan how to measure suspects again."""
