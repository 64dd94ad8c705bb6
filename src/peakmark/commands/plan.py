"""``peakmark plan`` and ``decide``: what would be measured, and what more is needed."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from peakmark import output

PRESETS = "config/presets"
CAMPAIGN: dict[str, Any] = {
    "nargs": "?",
    "metavar": "PRESET|FILE",
    "help": "a preset such as quick, or a configuration file; default: config/config.yaml",
}
"""The argument of a command that names a campaign."""


def add(commands: Any) -> None:
    """Declare the commands."""
    plan = commands.add_parser(
        "plan", help="what would be measured, with what, how long, how much disk"
    )
    plan.add_argument("campaign", **CAMPAIGN)
    plan.add_argument(
        "--configfile", "--configfiles", type=Path, nargs="+", default=[], metavar="FILE",
        help="as for snakemake, e.g. config/presets/quick.yaml",
    )  # fmt: skip
    plan.add_argument(
        "--config",
        "-C",
        nargs="*",
        default=[],
        metavar="KEY=VALUE",
        help="as for snakemake, e.g. scale=0.1",
    )
    plan.add_argument(
        "--write",
        type=Path,
        metavar="results/NAME/plan.json",
        help="write it, to measure cells by hand",
    )
    plan.add_argument(
        "--slurm",
        action="store_true",
        help="for a cluster: also its nodes, node-hours and wall time",
    )
    plan.add_argument(
        "--partition", help="of the cluster; default: the site file's, else Slurm's default"
    )
    plan.add_argument("--cells", action="store_true", help="list every cell, not only the points")
    plan.set_defaults(run=_plan)

    decide = commands.add_parser(
        "decide", help="which rows need more repetitions (what a rule calls)"
    )
    decide.add_argument("--plan", required=True, type=Path, help="results/<campaign>/plan.json")
    decide.add_argument(
        "--round", required=True, type=int, help="number of the round that has ended, from 0"
    )
    decide.add_argument(
        "--output", required=True, type=Path, help="results/<campaign>/repetitions/<round>.json"
    )
    decide.set_defaults(run=_decide)


def _plan(options: argparse.Namespace) -> int:
    from peakmark.config import overrides
    from peakmark.formatting import plural
    from peakmark.plan import cluster, plan, plan_text
    from peakmark.storage import planfile

    files = options.configfile
    if options.campaign:
        files = [overrides.shipped(options.campaign, PRESETS), *files]
    values = overrides.read(files, options.config)
    where = cluster.from_environment()
    if options.slurm and where is None:
        completed = plan.complete(values, on_cluster=True)
        where = cluster.find(completed, options.partition, plan.RESULTS / completed["campaign"])
    planned = plan.make(values, where)
    if options.write is not None:
        planfile.write_new(options.write, planned.to_json())
        output.say(f"{options.write}: {plural(len(planned.cells), 'cell')}")
    else:
        from peakmark.workflow import preflight

        notes = preflight.check(planned, planned.cells)
        output.say("\n".join([plan_text.describe(planned, every_cell=options.cells), *notes]))
    return 0


def _decide(options: argparse.Namespace) -> int:
    from peakmark.errors import ConfigError
    from peakmark.plan import sequential_testing
    from peakmark.storage import decisions
    from peakmark.storage.results import Results

    folder = options.plan.parent / decisions.FOLDER
    output_path = folder / f"{options.round}.json"
    if options.round < 0 or options.output.absolute() != output_path.absolute():
        raise ConfigError(
            f"--output is {str(options.output)!r}: allowed is {output_path}, with --round from 0"
        )
    campaign = Results.read(options.plan.parent)
    earlier = decisions.read(folder / f"{options.round - 1}.json") if options.round else {}
    stored = sequential_testing.read_records(
        campaign.directory, campaign.planned, campaign.criteria
    )
    decided = sequential_testing.decide(
        campaign.planned, campaign.criteria, earlier, options.round, stored
    )
    decisions.write(options.output, decided)
    return 0
