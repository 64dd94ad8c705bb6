"""Pack a campaign into one file, and unpack it."""
