"""Check whether a node is as good as its class was in a campaign, with the standard library alone.

``python3 -IBS .../peakmark/check results/NAME`` runs it without installed packages, as Slurm's prolog and
HealthCheckProgram need. The rules are in docs/method.md (Checks of a node).
"""
