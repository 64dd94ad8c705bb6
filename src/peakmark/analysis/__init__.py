"""What the numbers allow to say: statistics, checks, rankings, comparisons, verdicts, sentences."""
