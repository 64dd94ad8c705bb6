"""``peakmark run`` and ``init``: measure a campaign into the current folder."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from peakmark import output, resources
from peakmark.commands.measure import CAMPAIGN, PRESETS, SITE

EDITABLE = {
    "config/config.yaml": "config/config.yaml",
    "config/sites/mine.yaml": "config/sites/example.yaml",
}
"""File that ``init`` writes -> the shipped one it is a copy of."""


def add(commands: Any) -> None:
    """Declare the commands."""
    run = commands.add_parser(
        "run",
        help="measure a campaign into ./results, to the report",
        usage="peakmark run [PRESET|FILE ...] [--slurm] [--site NAME|FILE] [-- SNAKEMAKE OPTIONS]",
        description="A second run measures only what is missing. Options after -- are Snakemake's: -- --dry-run",
    )
    run.add_argument("campaign", **CAMPAIGN)
    run.add_argument("--slurm", action="store_true", help="every cell a Slurm job")
    run.add_argument("--site", **SITE)
    run.set_defaults(run=_run)

    init = commands.add_parser(
        "init", help="write config/config.yaml and config/sites/mine.yaml, to be edited"
    )
    init.set_defaults(run=_init)


def _run(options: argparse.Namespace) -> int:
    from peakmark.config import overrides

    profile = resources.of_checkout("slurm" if options.slurm else "local")
    argv = resources.snakemake()
    if options.campaign:
        files = [overrides.shipped(name, PRESETS) for name in options.campaign]
        argv += ["--configfile", *files]
    # After the profile, which is one word: Snakemake would take a target for another configuration.
    argv += ["--profile", str(profile), *options.snakemake]
    if options.site:
        # Snakemake takes the last --config alone.
        settings = overrides.named(options.snakemake, overrides.WORDS)
        argv += ["--config", *settings, *overrides.site(options.site)]
    output.flush()
    os.execv(argv[0], argv)  # noqa: S606 - no shell is wanted


def _init(_: argparse.Namespace) -> int:
    for name, source in EDITABLE.items():
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with path.open("x", encoding="utf-8") as stream:
                stream.write((resources.ROOT / source).read_text(encoding="utf-8"))
            output.say(f"{path}: written")
        except FileExistsError:
            output.say(f"{path}: exists and stays as it is")
    output.say("edit them, then: peakmark run --site config/sites/mine.yaml")
    return 0
