"""What is kept of a campaign: records, whether they count, and all of them read as one."""
