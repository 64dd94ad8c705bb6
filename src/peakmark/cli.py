"""Command line of peakmark: for each command a function that adds its arguments, and one that runs it.

Every error ends in one sentence and an exit code. Each command imports its modules when it is called,
so that commands start fast.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import sys
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from peakmark import __version__, files, resources
from peakmark.check import command as check_command
from peakmark.errors import ConfigError, ExitCode, PeakmarkError, Terminated, mute, sentence, tell
from peakmark.formatting import plural
from peakmark.run import cleanup, kernel_build

if TYPE_CHECKING:
    from peakmark.views.compare import Dataset


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns:
        One of ``ExitCode``, or 128 plus the number of the signal that stopped the command.
    """
    # Never create files that everybody can write: add this bit to the user's mask. The mask can only be read by
    # setting one, so the inner call sets a mask that holds until the outer call.
    os.umask(os.umask(0o077) | 0o002)
    try:
        with cleanup.handled():
            if arguments is None:
                arguments = sys.argv[1:]
            try:
                return _execute(list(arguments))
            finally:
                sys.stdout.flush()  # inside the try, so that a failed write is reported as one sentence
    except PeakmarkError as error:
        return _failed(str(error), error.exit_code)
    except BrokenPipeError:  # the program that reads the output, such as head, has ended
        mute()
        return ExitCode.ERROR
    except OSError as error:
        mute()
        return _failed(sentence(error), ExitCode.ERROR)
    except Terminated:
        return _failed("terminated", 128 + signal.SIGTERM)
    except KeyboardInterrupt:
        return _failed("interrupted", 128 + signal.SIGINT)


def _execute(words: list[str]) -> int:
    """Parse a command line, run its command, and return the exit code."""
    resources.set_matplotlib_cache()
    parser = build_parser()
    if not words:
        parser.print_help(sys.stderr)
        return ExitCode.USAGE
    # The words after -- are Snakemake's.
    end = len(words)
    if words[0] == "run" and "--" in words:
        end = words.index("--")
    options = parser.parse_args(words[:end])
    options.snakemake = words[end + 1 :]
    code: int | None = options.run(options)
    return code or ExitCode.GOOD


def _failed(text: str, code: int) -> int:
    """Print why a command failed, and return its exit code."""
    with suppress(OSError):  # standard error may be full or a broken pipe too
        tell(text)
    return code


# -- arguments that several commands have

FOLDER_HELP = "folder of the campaign, e.g. results/quick"
BUNDLE_HELP = f"{FOLDER_HELP}, or a bundle"
OUTPUT = ("-o", "--output")
PRESETS = "config/presets"
RUN_USAGE = "peakmark run [PRESET|FILE ...] [--slurm] [--site NAME|FILE] [-- SNAKEMAKE OPTIONS]"
SNAKEMAKE_FAILED = 1
"""Exit code of Snakemake for every failure except a wrong command line, which has the exit code 2."""


def _no_arguments(_: ArgumentParser) -> None:
    """Add nothing: the command has no arguments."""


def _campaign_argument(command: ArgumentParser) -> None:
    command.add_argument("campaign", type=Path, help=FOLDER_HELP)


def _bundle_argument(command: ArgumentParser) -> None:
    command.add_argument("campaign", type=Path, help=BUNDLE_HELP)


def _configuration_arguments(command: ArgumentParser) -> None:
    command.add_argument(
        "campaign",
        nargs="*",
        metavar="PRESET|FILE",
        help="presets such as quick, or configuration files; later ones override earlier ones; default: config/config.yaml",
    )
    command.add_argument(
        "--site", metavar="NAME|FILE", help="site file, with facts that no tool can read"
    )


# -- measure


def init(_: argparse.Namespace) -> None:
    """Write config/config.yaml and config/sites/mine.yaml for editing."""
    config, site = Path("config/config.yaml"), Path("config/sites/mine.yaml")
    shipped = (resources.ROOT / config).read_text(encoding="utf-8")
    named = f"site: {site} # facts that no tool can read on a node\n"
    is_new = _write_new(config, f"{shipped}\n{named}")
    example = (resources.ROOT / "config/sites/example.yaml").read_text(encoding="utf-8")
    _write_new(site, example.replace("name: example", f"name: {site.stem}", 1))
    # Both files name their schema in the first line.
    for name in ("config", "site"):
        path = Path(f"config/schemas/{name}.schema.yaml")
        files.write_text(path, (resources.ROOT / path).read_text(encoding="utf-8"))
        print(f"{path}: written, for editors that check the files")
    # A configuration that existed may name another site file, or none.
    option = "" if is_new else f" --site {site}"
    print(f"edit them, then: peakmark run{option}")


def _write_new(path: Path, text: str) -> bool:
    """Write a file for the user to edit, unless it exists. Return whether it was written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        print(f"{path}: exists, not changed")
        return False
    print(f"{path}: written")
    return True


def _doctor_arguments(command: ArgumentParser) -> None:
    command.add_argument("--scratch", type=Path, help="directory for the disk cells")
    command.add_argument(
        "--facts",
        action="store_true",
        help="print the facts of this machine that any user can read (JSON)",
    )
    command.add_argument(
        "--slurm",
        action="store_true",
        help="have Slurm check jobs, and try the launchers of MPI on two nodes",
    )
    command.add_argument(
        "--site", type=Path, help="site file for --slurm, with partition and account"
    )


def doctor(options: argparse.Namespace) -> int:
    """Show which programs are installed or missing, and how to install them."""
    from peakmark.workflow.doctor import examine, examine_cluster, facts

    if options.facts:
        print(facts(options.scratch, kernel_build.folder()))
        return ExitCode.GOOD
    if options.site and not options.slurm:
        raise ConfigError("--site needs --slurm: it sets the options of Slurm jobs")
    if options.slurm:
        text, healthy = examine_cluster(options.site)
    else:
        text, healthy = examine(options.scratch, kernel_build.folder())
    print(text)
    return ExitCode.GOOD if healthy else ExitCode.ERROR


def _plan_arguments(command: ArgumentParser) -> None:
    _configuration_arguments(command)
    command.add_argument(
        "--config",
        "-C",
        nargs="*",
        default=[],
        metavar="KEY=VALUE",
        help="same as for snakemake, e.g. scale=0.1",
    )
    command.add_argument(
        "--write",
        type=Path,
        metavar="results/NAME/plan.json",
        help="write the plan to this file, to measure cells by hand",
    )
    command.add_argument(
        "--slurm",
        action="store_true",
        help="plan for a cluster, and show its nodes, node-hours and wall time",
    )
    command.add_argument(
        "--cells", action="store_true", help="list every cell instead of every point"
    )


def plan(options: argparse.Namespace) -> None:
    """Show what would be measured: cells, tools, time, disk space."""
    from peakmark.config import campaign
    from peakmark.plan import cluster
    from peakmark.plan.plan import RESULTS, complete, describe, make_completed
    from peakmark.storage import planfile

    paths = [Path(campaign.shipped(name, PRESETS)) for name in options.campaign]
    settings = [*options.config, *campaign.site(options.site)]
    values = campaign.read(paths, settings)
    completed = complete(values, on_cluster=options.slurm)
    where = None
    if options.slurm:
        # None: the partition of the site file. Nodes that an earlier run chose are kept.
        where = cluster.find(completed, None, RESULTS / completed.campaign)
    planned = make_completed(completed, where)
    if options.write is not None:
        planfile.write(options.write, planned.to_json())
        print(f"{options.write}: {plural(len(planned.cells), 'cell')}")
    else:
        from peakmark.workflow import startup

        notes = startup.check(planned, planned.cells)
        if where is not None:
            # A job that Slurm would refuse becomes a note below the plan: nothing is submitted here. The mapping is
            # empty because this command line has no options for jobs, unlike that of a run.
            try:
                startup.check_jobs(planned, {}, planned.results.missing)
            except PeakmarkError as error:
                notes.append(str(error))
        print("\n".join([describe(planned, every_cell=options.cells), *notes]))


def _run_arguments(command: ArgumentParser) -> None:
    _configuration_arguments(command)
    command.add_argument("--slurm", action="store_true", help="measure every cell in a Slurm job")


def run(options: argparse.Namespace) -> int:
    """Measure a campaign and write its report below ./results.

    A second run measures only what is missing. Options after -- are passed to Snakemake: -- --dry-run
    """
    from peakmark.config import campaign

    profile = "slurm" if options.slurm else "local"
    argv = ["snakemake", "--snakefile", str(resources.of_checkout("Snakefile"))]
    if options.campaign:
        paths = [campaign.shipped(name, PRESETS) for name in options.campaign]
        argv += ["--configfile", *paths]
    # Targets come after --profile, which takes one word: after --configfile they would count as files.
    argv += ["--profile", str(resources.of_checkout(profile)), *options.snakemake]
    if options.site:
        # Snakemake uses only the last --config, so it must hold all settings.
        settings = campaign.named(options.snakemake, campaign.WORDS)
        argv += ["--config", *settings, *campaign.site(options.site)]
    return _snakemake(argv)


def _snakemake(argv: list[str]) -> int:
    """Run Snakemake in this process, and return the exit code in peakmark's terms."""
    import snakemake.cli

    from peakmark.workflow.startup import UserError

    sys.argv = argv
    try:
        snakemake.cli.main()
    except SystemExit as end:
        if end.code != SNAKEMAKE_FAILED:
            return int(end.code or 0)
        if cleanup.pressed:
            return 128 + signal.SIGINT
        # Snakemake has the same code for all failures. ``UserError`` remembers the code of the error.
        return UserError.exit_code
    return ExitCode.GOOD


# -- read the results of a campaign


def _status_arguments(command: ArgumentParser) -> None:
    _campaign_argument(command)
    command.add_argument("--failed", action="store_true", help="show only failed cells")


def status(options: argparse.Namespace) -> None:
    """Count the finished, missing and failed cells."""
    from peakmark.storage.results import Results
    from peakmark.workflow.status import describe

    print(describe(Results.read(options.campaign), only_failed=options.failed))


def tables(options: argparse.Namespace) -> None:
    """Make the tables from the records."""
    from peakmark.rows import build
    from peakmark.views import table_files

    table_files.write_tables(build.load(options.campaign), options.campaign / table_files.FOLDER)


def _report_arguments(command: ArgumentParser) -> None:
    _bundle_argument(command)
    command.add_argument(
        *OUTPUT,
        type=Path,
        metavar="FILE",
        help="write only this document: FILE.html, or any other name for the PDF",
    )


def report(options: argparse.Namespace) -> None:
    """Make report.pdf, report.html and the figures, and print the score card.

    Cells that are missing are marked.
    """
    from peakmark.bundle import opened
    from peakmark.views import rendering
    from peakmark.workflow.status import collect_report, print_summary

    with opened(options.campaign) as folder:
        content = collect_report(folder, keep=options.output is None)
        if options.output is not None:
            print(rendering.write(content, options.output))
        elif options.campaign.is_file():
            # A bundle was unpacked into a temporary folder, so write next to the bundle.
            for suffix in (".pdf", ".html"):
                path = options.campaign.with_suffix(suffix)
                print(rendering.write(content, path))
        else:
            rendering.write_all(content)
            print_summary(options.campaign)


# -- compare and pass on


def _compare_arguments(command: ArgumentParser) -> None:
    command.add_argument("a", type=Path, metavar="A", help=BUNDLE_HELP)
    command.add_argument(
        "others",
        type=Path,
        nargs="+",
        metavar="B",
        help=f"{BUNDLE_HELP}; several are each compared with A",
    )
    command.add_argument(
        "--changed",
        metavar="FACT",
        action="append",
        default=[],
        help="fact that differs on purpose, such as kernel, and prevents no verdict (may be repeated)",
    )
    command.add_argument(
        "--fail-on", choices=["worse"], help="exit with 1 (for CI) if a row is worse"
    )


def compare(options: argparse.Namespace) -> int:
    """Show what became better or worse between campaigns.

    For every row of both campaigns: the speed of B relative to A, with an interval and a verdict.
    """
    from peakmark.views.compare import Rules, judge
    from peakmark.views.compare import report as text_of

    rules = Rules(changed=options.changed)
    first = _dataset(options.a)
    comparisons = [judge(first, _dataset(other), rules) for other in options.others]
    print("\n\n".join(map(text_of, comparisons)))
    # Verdict -> number of rows with it, in all comparisons.
    counts = Counter[str]()
    for found in comparisons:
        counts += found.counts
    if not options.fail_on:
        return ExitCode.GOOD
    if counts["worse"]:
        return ExitCode.DIFFERENT
    if counts.total() == counts["cannot tell"] + counts["not comparable"]:
        tell("cannot tell: no row of both campaigns could be judged")
        return ExitCode.CANNOT_TELL
    return ExitCode.GOOD


def _dataset(path: Path) -> Dataset:
    """Read a campaign or a bundle as one of the two campaigns of a comparison."""
    from peakmark.bundle import opened
    from peakmark.rows import build
    from peakmark.views.compare import dataset_of

    with opened(path) as folder:
        return dataset_of(folder.name, build.load(folder))


def _fleet_arguments(command: ArgumentParser) -> None:
    _bundle_argument(command)
    command.add_argument(
        "--fail-on",
        choices=["slow", "promise"],
        help="exit with 1 (for cron) if a node is slow or misses a promise of the site file, or only if it misses one",
    )


def fleet(options: argparse.Namespace) -> int:
    """List the slow nodes of a campaign, and the command that drains them.

    peakmark prints the command and never runs it.
    """
    from peakmark.bundle import opened
    from peakmark.rows import build
    from peakmark.views import fleet_report

    with opened(options.campaign) as folder:
        frames = build.load(folder, keep=False)  # the reader may have no right to write there
        lines = fleet_report.describe(frames)
        slow = fleet_report.slow_nodes(frames)
        if slow:
            lines += ["", "To drain them, if you agree:", _drain(slow, frames.campaign["name"])]
    print("\n".join(lines))
    if options.fail_on == "promise":
        code, in_words = fleet_report.judge_promises(frames)
        if code == ExitCode.CANNOT_TELL:
            tell(in_words)
        return code
    return fleet_report.exit_code(frames) if options.fail_on else ExitCode.GOOD


def _drain(nodes: list[str], campaign: str) -> str:
    """Return the command that drains nodes."""
    names, reason = ",".join(nodes), f"reason=peakmark: slow in {campaign}"
    return shlex.join(["scontrol", "update", f"nodename={names}", "state=drain", reason])


def _bundle_arguments(command: ArgumentParser) -> None:
    _campaign_argument(command)
    command.add_argument(
        *OUTPUT,
        type=Path,
        metavar="FILE.zip",
        help="file to write; default: next to the campaign's folder",
    )


def bundle(options: argparse.Namespace) -> None:
    """Pack a campaign into one zip file, from which its report can be built elsewhere.

    The file holds rows, tables, plan, records, raw outputs and machine facts, and the report if it was
    made. `peakmark report FILE.zip` makes the report from the rows in it.
    """
    from peakmark.bundle import write

    print(write(options.campaign, options.output))


def _export_arguments(command: ArgumentParser) -> None:
    _bundle_argument(command)
    command.add_argument(*OUTPUT, type=Path, metavar="FILE", help="file to write")
    form = command.add_mutually_exclusive_group(required=True)
    form.add_argument(
        "--openmetrics", action="store_true", help="gauges in the OpenMetrics text format"
    )
    form.add_argument(
        "--json-lines",
        action="store_true",
        help="one JSON object per row, with the columns of rows.csv",
    )


def export(options: argparse.Namespace) -> None:
    """Print measured values for Prometheus and scripts."""
    from peakmark.bundle import opened
    from peakmark.rows import build
    from peakmark.views import table_files

    write = table_files.json_lines
    if options.openmetrics:
        write = table_files.openmetrics
    with opened(options.campaign) as folder:
        text = write(build.load(folder))
    if options.output is None:
        print(text.rstrip("\n"))
    else:
        options.output.write_text(text, encoding="utf-8")
        print(options.output)


# -- what only rules and jobs call


def _measure_arguments(command: ArgumentParser) -> None:
    command.add_argument("--plan", type=Path, required=True, help="results/<campaign>/plan.json")
    what = command.add_mutually_exclusive_group(required=True)
    what.add_argument("--cell", metavar="ID", help="as peakmark plan --cells lists it")
    what.add_argument(
        "--job", metavar="NAME", help="job whose cells are measured, except those with a record"
    )
    what.add_argument(
        "--tools", nargs="+", metavar="NAME", help="only print which are on this node"
    )
    what.add_argument(
        "--launchers",
        action="store_true",
        help="only print which start ranks of MPI on two nodes; the plan's folder has mpibench, the plan need not be there",
    )
    command.add_argument(
        "--wait",
        action="store_true",
        help="say ready on standard output, and start when standard input says go",
    )
    command.add_argument(
        "--shared",
        type=Path,
        help="folder that all nodes must see which start at the same moment",
    )
    command.add_argument("--kernels", type=Path, help="folder of the compiled kernels")


def measure(options: argparse.Namespace) -> None:
    """Measure one cell of a plan, or the cells of one job."""
    import msgspec

    from peakmark.run import job
    from peakmark.run.measure import measure as measure_cell
    from peakmark.storage import planfile

    kernels = options.kernels or kernel_build.folder()
    if options.launchers:
        from peakmark.run import mpi

        for line in mpi.try_launchers(options.plan.parent):
            print(line, flush=True)
        return
    # --tools: measure nothing, and print [name of this node, the tools that it has].
    if options.tools:
        tools = job.tools_here(planfile.read(options.plan), options.tools, kernels)
        print(msgspec.json.encode([os.environ.get("SLURMD_NODENAME"), tools]).decode())
        return
    # Read only the part of the plan that is measured: a job or a cell.
    if options.cell is None:
        part = planfile.job(options.plan, options.job)
    else:
        part = planfile.cell(options.plan, options.cell)
    # The first cell says on which node a job begins.
    request = job.request(part, part.cells[0], kernels)
    # Slurm may have started a job of two nodes on the server's node. The client's node measures.
    if request.pair:
        _move_to(request.cell.node)
    cleanup.end_cleanly()
    if options.cell is None:
        job.run(part, options.job, kernels)
        return
    # One cell. Only its job tells the other nodes when to start; --wait is the job's option for this.
    if request.cell.is_together and not options.wait:
        raise PeakmarkError(f"{options.cell} is measured by its job, together with other nodes")
    if options.wait:
        request = job.waiting(request, options.shared)
    record = measure_cell(request)
    if record.status != "ok":
        tell(f"{options.cell} is {record.status}: {record.reason}")


def _move_to(node: str) -> None:
    """Continue this command on the node ``node`` of the job, unless it already runs there.

    The process is replaced, so that the function does not return after a move.
    """
    from peakmark import slurm
    from peakmark.run import pair

    # With ``any``, any node of the job may measure.
    if node != "any" and not slurm.is_here(node):
        argv = [*pair.step(node, len(os.sched_getaffinity(0))), *resources.command(*sys.argv[1:])]
        os.execvpe(argv[0], argv, pair.environment())  # noqa: S606 - no shell is wanted


def rows(options: argparse.Namespace) -> None:
    """Compute results/<campaign>/rows from the records."""
    from peakmark.rows import build

    build.load(options.campaign)  # computes and writes the rows, unless they are up to date


def serve(_: argparse.Namespace) -> int:
    """Run the server of a two-node cell (started by measure)."""
    from peakmark.run import pair

    cleanup.end_cleanly()
    return pair.serve()


# -- the list of commands


class CliCommand(NamedTuple):
    """A command, whose name and help are those of the function that runs it.

    Attributes:
        run: function that runs the command and returns its exit code; None means success.
        add_arguments: function that adds the arguments of the command to its parser.
        usage: synopsis, if argparse should not generate it.
    """

    run: Callable[[argparse.Namespace], int | None]
    add_arguments: Callable[[ArgumentParser], None] = _no_arguments
    usage: str | None = None

    @property
    def name(self) -> str:
        return self.run.__name__

    @property
    def help(self) -> str:
        """Return what the command does, without a full stop: the first line of the docstring."""
        return str(self.run.__doc__).partition("\n")[0].rstrip(".")

    @property
    def description(self) -> str:
        """Return the whole docstring on one line, for ``--help`` of the command."""
        return " ".join(str(self.run.__doc__).split())


GROUPS = {
    "Measure": (
        CliCommand(init),
        CliCommand(doctor, _doctor_arguments),
        CliCommand(plan, _plan_arguments),
        CliCommand(run, _run_arguments, RUN_USAGE),
    ),
    "Read the results of a campaign": (
        CliCommand(status, _status_arguments),
        CliCommand(tables, _campaign_argument),
        CliCommand(report, _report_arguments),
    ),
    "Compare and pass on": (
        CliCommand(compare, _compare_arguments),
        CliCommand(fleet, _fleet_arguments),
        CliCommand(check_command.check, check_command.add_arguments),
        CliCommand(bundle, _bundle_arguments),
        CliCommand(export, _export_arguments),
    ),
}
"""Heading of ``peakmark --help`` -> the commands below it."""
INTERNAL = (
    CliCommand(measure, _measure_arguments),
    CliCommand(rows, _campaign_argument),
    CliCommand(serve),
)
"""Commands that only rules and jobs call."""


def build_parser() -> ArgumentParser:
    """Build the parser of the whole command line."""
    lines = []
    for heading, commands in GROUPS.items():
        lines += [f"{heading}:", *(f"  {each.name:<9} {each.help}" for each in commands), ""]
    parser = ArgumentParser(
        prog="peakmark",
        usage="peakmark COMMAND ...",
        description="How close a cluster node comes to its physical limits. Begin with: peakmark run quick",
        epilog="\n".join([*lines, "peakmark COMMAND --help lists the options of a command."]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"peakmark {__version__}")
    parsers = parser.add_subparsers(
        prog="peakmark", required=True, metavar="COMMAND", help=argparse.SUPPRESS
    )
    for command in all_commands().values():
        of_command = parsers.add_parser(
            command.name,
            usage=command.usage,
            description=command.description,
        )
        command.add_arguments(of_command)
        of_command.set_defaults(run=command.run)
    return parser


def all_commands() -> dict[str, CliCommand]:
    """Return name -> command; commands that only rules and jobs call come last."""
    commands = [*chain.from_iterable(GROUPS.values()), *INTERNAL]
    return {command.name: command for command in commands}
