"""snakemake --lint, with the one exception that is meant."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.checkout import Checkout

# Conda or a container would bring its own tools and libraries: what is measured is the machine with
# what it has, and envs/ says what that should be.
MEANT = {"Specify a conda environment or container for each rule."}


def test_no_lint_but_the_meant_one(checkout: Checkout) -> None:
    run = checkout.run("snakemake", "--lint", "--configfile", "config/presets/quick.yaml")
    output = run.stdout + run.stderr
    found = {line.strip(" *:") for line in output.splitlines() if line.startswith("    * ")}
    assert "rule measure" in output
    assert found <= MEANT


def test_the_format_is_that_of_snakefmt(checkout: Checkout) -> None:
    run = checkout.run(
        str(Path(sys.executable).parent / "snakefmt"), "--check", "Snakefile", "rules"
    )
    assert run.returncode == 0, run.stderr
