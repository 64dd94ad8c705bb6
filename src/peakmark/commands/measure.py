"""``peakmark run``, ``init`` and ``plan``: a campaign measured into the current folder; ``measure``,
``serve`` and ``decide``: what its rules and jobs call.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from socket import gethostname
from typing import Any

from peakmark import output, resources
from peakmark.interrupts import end_cleanly
from peakmark.run import build

PRESETS = "config/presets"
CAMPAIGN: dict[str, Any] = {
    "nargs": "*",
    "metavar": "PRESET|FILE",
    "help": "presets such as quick, or configuration files, later ones over earlier ones; "
    "default: config/config.yaml",
}
"""The argument of a command that names a campaign."""
SITE = {"metavar": "NAME|FILE", "help": "site file with what no tool can read"}
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
    plan.add_argument("--site", **SITE)
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
        "decide", help="which rows are measured more often (what a rule calls)"
    )
    decide.add_argument("--plan", required=True, type=Path, help="results/<campaign>/plan.json")
    decide.add_argument(
        "--round",
        type=int,
        help="number of the round that has ended, from 0; without it: which slow nodes and "
        "suspected links are measured again",
    )
    decide.add_argument(
        "--output",
        required=True,
        type=Path,
        help="results/<campaign>/repetitions/<round>.json, or suspects.json",
    )
    decide.set_defaults(run=_decide)

    measure = commands.add_parser(
        "measure", help="measure one cell of a plan, or the cells of one job"
    )
    measure.add_argument("--plan", required=True, type=Path, help="results/<campaign>/plan.json")
    what = measure.add_mutually_exclusive_group(required=True)
    what.add_argument("--cell", metavar="ID", help="as peakmark plan --cells lists it")
    what.add_argument(
        "--job", metavar="NAME", help="a job of several cells: measure those without a record"
    )
    measure.add_argument(
        "--kernels", type=Path, default=build.folder(), help="folder of the compiled kernels"
    )
    measure.set_defaults(run=_measure)

    serve = commands.add_parser(
        "serve", help="run the server of a two-node cell (started by measure)"
    )
    serve.set_defaults(run=_serve)


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


def _plan(options: argparse.Namespace) -> int:
    from peakmark.config import overrides
    from peakmark.formatting import plural
    from peakmark.plan import cluster, plan, plan_text
    from peakmark.storage import planfile

    files = [Path(overrides.shipped(name, PRESETS)) for name in options.campaign]
    settings = [*options.config, *overrides.site(options.site)]
    values = overrides.read([*files, *options.configfile], settings)
    where = None
    if options.slurm:
        completed = plan.complete(values, on_cluster=True)
        where = cluster.find(completed, options.partition, plan.RESULTS / completed["campaign"])
    planned = plan.make(values, where)
    if options.write is not None:
        planfile.write_new(options.write, planned.to_json())
        output.say(f"{options.write}: {plural(len(planned.cells), 'cell')}")
    else:
        from peakmark.workflow import startup

        notes = startup.check(planned, planned.cells)
        output.say("\n".join([plan_text.describe(planned, every_cell=options.cells), *notes]))
    return 0


def _decide(options: argparse.Namespace) -> int:
    from peakmark.analysis import suspects
    from peakmark.analysis.analysis import Analysis
    from peakmark.errors import ConfigError
    from peakmark.plan import sequential_testing
    from peakmark.storage import decisions
    from peakmark.storage.results import Results

    folder = options.plan.parent / decisions.FOLDER
    name = "suspects" if options.round is None else str(options.round)
    output_path = folder / f"{name}.json"
    if not name[0].isalnum() or options.output.absolute() != output_path.absolute():
        raise ConfigError(
            f"--output is {str(options.output)!r}: allowed is {output_path}, with --round from 0"
        )
    campaign = Results.read(options.plan.parent)
    if options.round is None:
        analysis = Analysis(campaign)
        chosen = suspects.choose(campaign, analysis.rows, analysis.link_maps)
        decisions.write(options.output, {}, chosen)
        return 0
    earlier = decisions.read(folder / f"{options.round - 1}.json") if options.round else {}
    stored = sequential_testing.read_records(
        campaign.directory, campaign.planned, campaign.criteria
    )
    decided = sequential_testing.decide(
        campaign.planned, campaign.criteria, earlier, options.round, stored
    )
    decisions.write(options.output, decided)
    return 0


def _measure(options: argparse.Namespace) -> int:
    from peakmark.run import job
    from peakmark.run.measure import measure
    from peakmark.storage import planfile

    if options.cell is None:
        part = planfile.job(options.plan, options.job)
    else:
        part = planfile.cell(options.plan, options.cell)
    first = job.request(part, part.cells[0], options.kernels)
    if first.pair:
        _move_to(first.cell.node)
    end_cleanly()
    if options.cell is None:
        job.run(part, options.job, options.kernels)
        return 0
    record = measure(first)
    if record["status"] != "ok":
        output.tell(f"{options.cell} is {record['status']}: {record['reason']}")
    return 0


def _move_to(node: str) -> None:
    """Become the same command on another node of this job, if this is not the right one."""
    from peakmark.run import pair

    if node not in ("any", gethostname(), gethostname().partition(".")[0]):
        argv = [*pair.step(node, len(os.sched_getaffinity(0))), *resources.command(*sys.argv[1:])]
        os.execvpe(argv[0], argv, pair.environment())  # noqa: S606 - no shell is wanted


def _serve(_: argparse.Namespace) -> int:
    from peakmark.run import pair

    end_cleanly()
    return pair.serve()
