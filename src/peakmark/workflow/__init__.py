"""Start a campaign, show its progress and failures, and measure its suspects again."""
