"""The command line. Each command imports what it needs, so that measuring a cell does not wait for pandas."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from peakmark import __version__, output
from peakmark.command import end_cleanly, outcome
from peakmark.errors import ConfigError
from peakmark.resources import of_checkout

KERNELS = of_checkout("build/kernels")
ANONYMOUS = {"report": "report-anonymous.pdf", "html": "report-anonymous.html"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit code: 0, 1 (failed), 2 (wrong use)."""
    words = sys.argv[1:] if arguments is None else list(arguments)

    def run() -> int:
        options = _parser().parse_args(words)
        return int(options.run(options) or 0)

    return outcome(run)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="peakmark",
        description="How close a cluster node comes to its physical limits. To measure: snakemake --profile local",
    )
    parser.add_argument("--version", action="version", version=f"peakmark {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    plan = commands.add_parser("plan", help="what would be measured, with what, how long, how much disk")
    plan.add_argument(
        "--configfile", "--configfiles", type=Path, nargs="+", default=[], metavar="FILE",
        help="as for snakemake, e.g. config/presets/quick.yaml",
    )  # fmt: skip
    plan.add_argument(
        "--config", "-C", nargs="*", default=[], metavar="KEY=VALUE", help="as for snakemake, e.g. scale=0.1"
    )
    plan.add_argument("--write", type=Path, metavar="results/NAME/plan.json", help="write it, to measure cells by hand")
    plan.add_argument("--slurm", action="store_true", help="for a cluster: also its nodes, node-hours and wall time")
    plan.add_argument("--partition", help="of the cluster; default: the site file's, else Slurm's default")
    plan.add_argument("--cells", action="store_true", help="list every cell, not only the points")
    plan.set_defaults(run=_plan)

    measure = commands.add_parser("measure", help="measure one cell of a plan, or those of one job (what a rule calls)")
    measure.add_argument("--plan", required=True, type=Path, help="results/<campaign>/plan.json")
    what = measure.add_mutually_exclusive_group(required=True)
    what.add_argument("--cell", metavar="ID", help="as peakmark plan --cells lists it")
    what.add_argument("--job", metavar="NAME", help="a job of several cells: measure what it still lacks")
    measure.add_argument("--kernels", type=Path, default=KERNELS, help="folder of the compiled kernels")
    measure.set_defaults(run=_measure)

    decide = commands.add_parser("decide", help="which rows need more repetitions (what a rule calls)")
    decide.add_argument("--plan", required=True, type=Path, help="results/<campaign>/plan.json")
    decide.add_argument("--round", required=True, type=int, help="number of the round that has ended, from 0")
    decide.add_argument("--output", required=True, type=Path, help="results/<campaign>/repetitions/<round>.json")
    decide.set_defaults(run=_decide)

    serve = commands.add_parser("serve", help="far end of a two-node cell (what measure calls)")
    serve.set_defaults(run=_serve)

    machine = commands.add_parser("machine", help="facts of this machine, as any user can read them (JSON)")
    machine.add_argument("--scratch", type=Path, default=None, help="directory whose disk is described")
    machine.add_argument("--kernels", type=Path, default=KERNELS, help="folder of the compiled kernels, for the clock")
    machine.set_defaults(run=_machine)

    doctor = commands.add_parser("doctor", help="what is here, what is missing, and the command that would mend it")
    doctor.add_argument("--scratch", type=Path, default=None, help="directory for the disk cells")
    doctor.add_argument("--slurm", action="store_true", help="the same by a job on one node of each kind")
    doctor.add_argument("--site", type=Path, help="site file with partition, account and the like, for --slurm")
    doctor.add_argument(
        "--wait", type=float, default=300.0, metavar="SECONDS", help="how long a job may wait, for --slurm"
    )
    doctor.add_argument("--node", action="store_true", help=argparse.SUPPRESS)
    doctor.set_defaults(run=_doctor)

    clean = commands.add_parser("clean", help="remove what dead runs left on scratch disks, and nothing else")
    clean.add_argument(
        "places", type=Path, nargs="*", metavar="PLACE", help="scratch directories or campaigns; default: $TMPDIR, /tmp"
    )
    clean.add_argument("--dry-run", action="store_true", help="only say what would go")
    clean.set_defaults(run=_clean)

    compare = commands.add_parser(
        "compare",
        help="two campaigns, or a campaign and published results: what became better or worse",
        description="Ratio of medians B / A of every row that both have, with a bootstrap interval and a verdict.",
    )
    for side in ("A", "B"):
        compare.add_argument(
            side.lower(), metavar=side, help="folder of a campaign, or name or CSV file of published results"
        )
    compare.add_argument(
        "--interleave",
        action="store_true",
        help="A and B are configuration files: measure both on this machine in turn, then compare them round by round; "
        "of B one without a grid says what it does otherwise than A",
    )
    compare.add_argument("--kernels", type=Path, default=KERNELS, help="folder of the compiled kernels")
    compare.add_argument("--confidence", type=_share, default=0.95, help="level of the intervals, default 0.95")
    compare.add_argument(
        "--tolerance",
        type=_share,
        help="share by which a row may differ without a verdict, default 0.03; 0.01 for what was measured in turn",
    )
    compare.add_argument(
        "--repeat",
        metavar="A2",
        help="a second campaign of what A measured: its difference from A is how much rows drift",
    )
    compare.add_argument("--fail-on", choices=["worse"], help="exit with 1 when a row became worse (for CI)")
    compare.set_defaults(run=_compare)

    bundle = commands.add_parser(
        "bundle",
        help="a campaign as one zip file, from which its report can be built elsewhere",
        description="Records, raw outputs, plan, configuration, machine facts, tables, report, checksums and an RO-Crate "
        "description. `peakmark report FILE.zip` builds the same PDF from it.",
    )
    bundle.add_argument("campaign", type=Path, help="folder of the campaign, e.g. results/quick")
    bundle.add_argument("-o", "--output", type=Path, metavar="FILE.zip", help="default: beside the campaign's folder")
    bundle.add_argument("--partial", action="store_true", help="also when cells are missing")
    bundle.add_argument(
        "--license", metavar="NAME", help="of the data: an SPDX identifier such as CC-BY-4.0, or an address"
    )
    bundle.add_argument("--anonymise", action="store_true", help="without names of hosts and users, and addresses")
    bundle.set_defaults(run=_bundle)

    sbom = commands.add_parser("sbom", help="what this installation consists of: a CycloneDX bill of materials (JSON)")
    sbom.add_argument("--kernels", type=Path, default=KERNELS, help="folder of the compiled kernels")
    sbom.set_defaults(run=_sbom)

    for name, run, text in (
        ("tables", _tables, "records -> measurements.csv and the tables"),
        ("figures", _figures, "records -> figures"),
        ("report", _report, "tables and records -> figures and report.pdf"),
        ("html", _html, "records and figures -> report.html, one page that needs nothing else"),
        ("status", _status, "done, missing and failed cells"),
        ("summary", _summary, "where the results are, and the five most telling numbers"),
    ):
        command = commands.add_parser(name, help=text)
        also = ", or a bundle" if name == "report" else ""
        command.add_argument("campaign", type=Path, help=f"folder of the campaign, e.g. results/quick{also}")
        command.set_defaults(run=run)
        if name in ("report", "html"):
            command.add_argument(
                "--partial", action="store_true", help="also when cells are missing, with the holes marked"
            )
            command.add_argument("-o", "--output", type=Path, metavar="FILE", help="write it there")
            command.add_argument(
                "--anonymise",
                action="store_true",
                help=f"{ANONYMOUS[name]} without names of hosts and users, and addresses",
            )
        if name == "report":
            command.add_argument("--html", action="store_true", help="the page report.html too")
        if name == "status":
            command.add_argument("--failed", action="store_true", help="only what failed or is missing")
            command.add_argument(
                "--watch",
                type=float,
                nargs="?",
                const=10.0,
                metavar="SECONDS",
                help="show it again every so many seconds (default 10) until all cells are done",
            )
    return parser


def _plan(options: argparse.Namespace) -> int:
    from peakmark.config import given
    from peakmark.planning import cluster, plan, plan_text
    from peakmark.storage import planfile

    values = given.read(options.configfile, options.config)
    where = cluster.from_environment()
    if options.slurm and where is None:
        where = cluster.find(plan.complete(values, on_cluster=True), options.partition)
    made = plan.make(values, where)
    if options.write is not None:
        planfile.write(options.write, made.to_json())
    else:
        from peakmark.running import preflight

        notes = preflight.check(made, made.cells)
        output.say("\n".join([plan_text.describe(made, every_cell=options.cells), *notes]))
    return 0


def _decide(options: argparse.Namespace) -> int:
    from peakmark.planning import adaptive
    from peakmark.storage import decisions
    from peakmark.storage.results import Results

    campaign = Results.read(options.plan.parent)
    earlier = decisions.read(options.output.with_name(f"{options.round - 1}.json")) if options.round else {}
    stored = adaptive.read_records(campaign.directory, campaign.planned, campaign.criteria)
    decided = adaptive.decide(campaign.planned, campaign.criteria, earlier, options.round, stored)
    decisions.write(options.output, decided)
    return 0


def _serve(_: argparse.Namespace) -> int:
    from peakmark.measuring import serve

    end_cleanly()
    return serve.main()


def _measure(options: argparse.Namespace) -> int:
    from peakmark.measuring import command

    name = options.cell or options.job
    return command.run(command.Order(options.plan, name, options.cell is None, options.kernels))


def _machine(options: argparse.Namespace) -> int:
    from peakmark import machine
    from peakmark.measuring import tools

    found = tools.present(options.kernels)
    facts = machine.collect(options.scratch, tools=found, cpubench=options.kernels / "cpubench")
    output.say(json.dumps(facts, indent=1, sort_keys=True))
    return 0


def _doctor(options: argparse.Namespace) -> int:
    from peakmark.config import site
    from peakmark.running import doctor, probe

    if options.slurm:
        facts = site.load(str(options.site), None) if options.site else {}
        text, healthy = probe.examine(dict(facts.get("slurm") or {}), options.scratch, options.wait)
    else:
        text, healthy = doctor.examine(options.scratch, KERNELS, options.node)
    output.say(text)
    return 0 if healthy else 1


def _clean(options: argparse.Namespace) -> int:
    from peakmark.running import clean

    output.say(clean.clean(options.places, options.dry_run))
    return 0


def _share(text: str) -> float:
    value = float(text)
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not allowed: give a share from 0 to below 1, such as 0.95")
    return value


def _compare(options: argparse.Namespace) -> int:
    from peakmark.judging import compare_text, sides

    first, second = options.a, options.b
    if options.interleave:
        from peakmark.running import interleave

        if options.repeat:
            raise ConfigError(
                "--repeat measures the drift between two times, which --interleave has not: leave one out"
            )
        first, second = map(str, interleave.run(Path(first), Path(second), options.kernels))
    text, counts = compare_text.report(
        sides.read(first),
        sides.read(second),
        options.confidence,
        options.tolerance,
        sides.read(options.repeat) if options.repeat else None,
    )
    output.say(text)
    return 1 if options.fail_on and counts["worse"] else 0


def _tables(options: argparse.Namespace) -> int:
    from peakmark.storage import measurements
    from peakmark.tables import tables

    measurements.build(options.campaign)
    tables.build(options.campaign)
    return 0


def _figures(options: argparse.Namespace) -> int:
    from peakmark.figures import figures

    figures.build(options.campaign)
    return 0


def _report(options: argparse.Namespace) -> int:
    from peakmark.bundling import unbundle
    from peakmark.figures import figures
    from peakmark.judging.judged import Judged
    from peakmark.reporting import report, webpage
    from peakmark.storage import measurements
    from peakmark.tables import tables

    if unbundle.is_bundle(options.campaign):
        rebuilt = unbundle.report(options.campaign, options.output, options.partial)
        _print_path(rebuilt.path, f": {rebuilt.comparison}")
        return 0
    if options.anonymise:
        return _anonymous_report(options)
    with _workplace(options) as folder:
        judged = Judged.of(folder)
        if options.partial:
            measurements.build(folder)
            tables.build(judged)
        figures.build(judged)
        _print_path(report.build(judged, options.partial, options.output, options.campaign))
        if options.html:
            _print_path(webpage.build(judged, options.partial, owner=options.campaign))
    return 0


def _html(options: argparse.Namespace) -> int:
    from peakmark.figures import figures
    from peakmark.judging.judged import Judged
    from peakmark.reporting import webpage

    if options.anonymise:
        return _anonymous_report(options, "html")
    with _workplace(options) as folder:
        judged = Judged.of(folder)
        figures.build(judged)
        _print_path(webpage.build(judged, options.partial, options.output, options.campaign))
    return 0


def _workplace(options: argparse.Namespace) -> AbstractContextManager[Path]:
    """Where tables and figures are built: below the campaign, unless it is read-only and its report goes elsewhere."""
    from peakmark import documents
    from peakmark.bundling import unbundle

    if options.output is None:
        return nullcontext(options.campaign)
    return documents.workplace(options.campaign, unbundle.SOURCES)


def _print_path(path: Path, more: str = "") -> None:
    """Say where a document is; beside one that went through a pipe or standard output the line would be part of it."""
    from peakmark import documents

    print(f"{path}{more}", file=sys.stderr if documents.is_stream(path) else sys.stdout)


def _bundle(options: argparse.Namespace) -> int:
    from peakmark.bundling import anonymise, bundle, sbom
    from peakmark.bundling.crate import Extra
    from peakmark.reporting import document
    from peakmark.storage.results import Results

    results = Results.read(options.campaign)
    # The bill says nothing of hosts and users; its time is that of the newest record, so that bundles can be compared.
    bill = sbom.make(KERNELS, document.newest(results), results.config.get("tools"))
    said = "CycloneDX bill of materials of the installation that made this bundle"
    path = bundle.write(
        options.campaign,
        options.output,
        partial=options.partial,
        licence=options.license,
        extra=[Extra("sbom.cdx.json", "Software bill of materials", said, bill.encode(), sbom.MEDIA_TYPE)],
        replace=anonymise.replacer(results) if options.anonymise else None,
    )
    _print_path(path)
    return 0


def _anonymous_report(options: argparse.Namespace, form: str = "report") -> int:
    """The report, or the page of the ``form`` html, of a copy in which every name is replaced."""
    import tempfile

    from peakmark import documents
    from peakmark.bundling import anonymise, bundle, staging
    from peakmark.storage.results import Results

    results = Results.read(options.campaign)
    target = options.output or options.campaign / ANONYMOUS[form]
    with tempfile.TemporaryDirectory(prefix="peakmark-report-") as name:
        folder = Path(name) / results.name
        staging.copy(results, folder, anonymise.replacer(results))
        pdf = bundle.build_all(folder, options.partial)
        made = pdf if form == "report" else pdf.with_suffix(".html")
        documents.write(target, made.read_bytes(), options.campaign)
    _print_path(target)
    return 0


def _sbom(options: argparse.Namespace) -> int:
    from peakmark.bundling import sbom

    print(sbom.make(options.kernels), end="")
    return 0


def _status(options: argparse.Namespace) -> int:
    from peakmark.running import status
    from peakmark.storage.results import Results

    while True:
        found = status.describe(Results.read(options.campaign), only_failed=options.failed)
        if options.watch is None:
            output.say(found.text)
            return 0
        # Home, the text, and nothing of the one before below or beside it.
        output.say("\033[H\033[2J" + found.text if sys.stdout.isatty() else found.text)
        if found.complete:
            return 0
        time.sleep(max(1.0, options.watch))


def _summary(options: argparse.Namespace) -> int:
    from peakmark.running import summary

    output.say(summary.describe(options.campaign))
    return 0
