"""Command line of peakmark: the arguments of each command, and a function that runs it.

Every error ends in one sentence and an exit code. Each command imports its modules when it is called,
so that commands start fast.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path
from socket import gethostname
from typing import TYPE_CHECKING, Any

from peakmark import __version__, files, output, resources
from peakmark.check import command as check_command
from peakmark.errors import ConfigError, ExitCode, PeakmarkError, Terminated, sentence
from peakmark.formatting import plural
from peakmark.run import build, cleanup

if TYPE_CHECKING:
    from peakmark.rows.schema import CampaignFrames
    from peakmark.views.compare import Dataset

Handler = Callable[[argparse.Namespace], int | None]
"""Function that runs a command and returns its exit code; None means success."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns:
        One of ``ExitCode``, or 128 plus the number of the signal that stopped the command.
    """
    os.umask(os.umask(0o077) | 0o002)  # never create files that everybody can write
    try:
        with cleanup.handled():
            if arguments is None:
                arguments = sys.argv[1:]
            try:
                return _execute(list(arguments))
            finally:
                sys.stdout.flush()  # inside the try, so that a failed write is reported as one sentence
    except ConfigError as error:
        return _failed(str(error), ExitCode.USAGE)
    except PeakmarkError as error:
        return _failed(str(error), ExitCode.ERROR)
    except BrokenPipeError:
        output.drop()
        return ExitCode.ERROR
    except OSError as error:
        output.drop()
        return _failed(sentence(error), ExitCode.ERROR)
    except Terminated:
        return _failed("terminated", 128 + signal.SIGTERM)
    except KeyboardInterrupt:
        return _failed("interrupted", 128 + signal.SIGINT)


def _execute(words: list[str]) -> int:
    """Parse a command line, run its command, and return the exit code."""
    resources.keep_matplotlib()
    commands = build_commands()
    if not words:
        commands.parser.print_help(sys.stderr)
        return ExitCode.USAGE
    commands.check(words[0])
    end = len(words)
    if words[0] == "run" and "--" in words:
        end = words.index("--")
    options = commands.parser.parse_args(words[:end])
    options.snakemake = words[end + 1 :]
    code: int | None = options.run(options)
    return code or ExitCode.GOOD


def _failed(text: str, code: int) -> int:
    """Print why a command failed, and return its exit code."""
    with suppress(OSError):
        output.tell(text)
    return code


# -- arguments


class Commands:
    """The parsers of all commands, and the groups in which ``--help`` lists them.

    Attributes:
        parser: parser of the whole command line.
        parsers: command -> its parser.
        groups: heading -> command -> its help text. Commands that only rules and jobs call belong
            to no group.
    """

    def __init__(self) -> None:
        self.parser = argparse.ArgumentParser(
            prog="peakmark",
            usage="peakmark COMMAND ...",
            description="How close a cluster node comes to its physical limits. Begin with: peakmark run quick",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self.parser.add_argument("--version", action="version", version=f"peakmark {__version__}")
        self._subparsers = self.parser.add_subparsers(
            prog="peakmark", required=True, metavar="COMMAND", help=argparse.SUPPRESS
        )
        self.parsers: dict[str, argparse.ArgumentParser] = {}
        self.groups: dict[str, dict[str, str]] = {}

    def add(
        self,
        heading: str,
        name: str,
        run: Handler,
        help: str,
        details: str = "",
        usage: str | None = None,
    ) -> argparse.ArgumentParser:
        """Add a command.

        Args:
            heading: heading of the command's group; empty for a command that only rules and jobs call.
            name: name of the command.
            run: function that runs the command.
            help: what the command does, without a full stop.
            details: further sentences, printed only by the command's ``--help``.
            usage: synopsis of the command, if argparse should not generate it.
        """
        command = self._subparsers.add_parser(
            name, usage=usage, description=f"{help}. {details}".rstrip()
        )
        command.set_defaults(run=run)
        self.parsers[name] = command
        if heading:
            self.groups.setdefault(heading, {})[name] = help
        return command

    def list_groups(self) -> str:
        """Return a line for each command below the heading of its group."""
        lines = []
        for heading, commands in self.groups.items():
            lines.append(f"{heading}:")
            lines += [f"  {name:<9} {text}" for name, text in commands.items()]
            lines.append("")
        return "\n".join([*lines, "peakmark COMMAND --help lists the options of a command."])

    def check(self, word: str) -> None:
        """Check that the first word of a command line is a command or an option.

        Raises:
            ConfigError: the word is neither. The message suggests the most similar command.
        """
        if word.startswith("-") or word in self.parsers:
            return
        from peakmark.validation import did_you_mean

        known = list(chain.from_iterable(self.groups.values()))
        raise ConfigError(
            f"there is no command {word!r}{did_you_mean(word, known)} (peakmark --help lists all)"
        )


def build_commands() -> Commands:
    """Build the parsers of all commands."""
    commands = Commands()
    _add_measuring(commands, "Measure")
    _add_reading(commands, "Read the results of a campaign")
    _add_comparing(commands, "Compare and pass on")
    _add_internal(commands, "")
    commands.parser.epilog = commands.list_groups()
    return commands


def _add_measuring(commands: Commands, heading: str) -> None:
    """Add the commands that prepare a campaign and measure it."""
    commands.add(
        heading, "init", init, "Write config/config.yaml and config/sites/mine.yaml for editing"
    )
    _add_doctor(commands, heading)
    commands.add(
        heading, "tools", tools, "List the reference tools, their versions, and how to install them"
    )
    command = commands.add(
        heading,
        "machine",
        machine,
        "Print the facts of this machine that any user can read (JSON)",
    )
    command.add_argument("--scratch", type=Path, help="directory on the disk to describe")
    _add_kernels(command)
    _add_plan(commands, heading)
    _add_run(commands, heading)


def _add_doctor(commands: Commands, heading: str) -> None:
    command = commands.add(
        heading,
        "doctor",
        doctor,
        "Show which programs are installed or missing, and how to install them",
    )
    command.add_argument("--scratch", type=Path, help="directory for the disk cells")
    command.add_argument(
        "--slurm",
        action="store_true",
        help="have Slurm check a job, and list the nodes of each kind",
    )
    command.add_argument(
        "--site",
        type=Path,
        help="site file for --slurm, with partition and account",
    )


def _add_plan(commands: Commands, heading: str) -> None:
    command = commands.add(
        heading, "plan", plan, "Show what would be measured: cells, tools, time, disk space"
    )
    _add_configuration(command)
    command.add_argument(
        "--configfile",
        "--configfiles",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="same as for snakemake, e.g. config/presets/quick.yaml",
    )
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
        "--partition",
        help="partition of the cluster; default: from the site file, else Slurm's default",
    )
    command.add_argument(
        "--cells", action="store_true", help="list every cell instead of every point"
    )


def _add_run(commands: Commands, heading: str) -> None:
    command = commands.add(
        heading,
        "run",
        run,
        "Measure a campaign and write its report below ./results",
        "A second run measures only what is missing. Options after -- are passed to Snakemake: -- --dry-run",
        usage="peakmark run [PRESET|FILE ...] [--slurm] [--site NAME|FILE] [-- SNAKEMAKE OPTIONS]",
    )
    _add_configuration(command)
    command.add_argument("--slurm", action="store_true", help="measure every cell in a Slurm job")


def _add_reading(commands: Commands, heading: str) -> None:
    """Add the commands that show one campaign."""
    command = commands.add(
        heading, "status", status, "Count the finished, missing and failed cells"
    )
    _add_campaign(command)
    command.add_argument("--failed", action="store_true", help="show only failed and missing cells")

    command = commands.add(heading, "tables", tables, "Make the tables from the records")
    _add_campaign(command)

    command = commands.add(
        heading,
        "report",
        report,
        "Make report.pdf, report.html and the figures, and print the score card",
        "Cells that are missing are marked.",
    )
    _add_campaign(command, BUNDLE_HELP)
    _add_output(command, "write only this document: FILE.html, or any other name for the PDF")


def _add_comparing(commands: Commands, heading: str) -> None:
    """Add the commands that compare nodes and campaigns, pack a campaign, or export its rows."""
    _add_compare(commands, heading)
    _add_fleet(commands, heading)
    _add_check(commands, heading)
    _add_bundle(commands, heading)
    _add_export(commands, heading)


def _add_compare(commands: Commands, heading: str) -> None:
    command = commands.add(
        heading,
        "compare",
        compare,
        "Show what became better or worse between campaigns",
        "For every row of both campaigns: the speed of B relative to A, with an interval and a verdict.",
    )
    command.add_argument("a", type=Path, metavar="A", help=BUNDLE_HELP)
    command.add_argument(
        "others",
        type=Path,
        nargs="+",
        metavar="B",
        help=f"{BUNDLE_HELP}; several are each compared with A",
    )
    command.add_argument(
        "--confidence",
        type=partial(_number, 0, 0.9999),
        default=0.95,
        help="level of the intervals, default 0.95",
    )
    command.add_argument(
        "--tolerance",
        type=partial(_number, 0, 0.9999),
        default=0.03,
        help="relative difference that counts as unchanged, default 0.03",
    )
    command.add_argument(
        "--changed",
        metavar="FACT",
        action="append",
        default=[],
        help="fact that differs on purpose, such as kernel, and prevents no verdict (may be repeated)",
    )
    command.add_argument(
        "--fail-on",
        choices=["worse"],
        help="exit with 1 (for CI) if a row is worse",
    )


def _add_fleet(commands: Commands, heading: str) -> None:
    command = commands.add(
        heading,
        "fleet",
        fleet,
        "List the slow nodes of a campaign, and the command that drains them",
        "peakmark prints the command and never runs it.",
    )
    _add_campaign(command, BUNDLE_HELP)
    command.add_argument(
        "--fail-on", choices=["slow"], help="exit with 1 (for cron) if a node is slow"
    )


def _add_check(commands: Commands, heading: str) -> None:
    command = commands.add(
        heading, "check", check_command.run, check_command.HELP, check_command.DETAILS
    )
    check_command.add_arguments(command)


def _add_bundle(commands: Commands, heading: str) -> None:
    command = commands.add(
        heading,
        "bundle",
        bundle,
        "Pack a campaign into one zip file, from which its report can be built elsewhere",
        "The file holds rows, tables, plan, records, raw outputs and machine facts, and the report if it was made. "
        "`peakmark report FILE.zip` makes the report from the rows in it.",
    )
    _add_campaign(command)
    _add_output(
        command, "file to write; default: next to the campaign's folder", metavar="FILE.zip"
    )


def _add_export(commands: Commands, heading: str) -> None:
    command = commands.add(
        heading, "export", export, "Print measured values for Prometheus, NHC and scripts"
    )
    _add_campaign(command, BUNDLE_HELP)
    _add_output(command)
    form = command.add_mutually_exclusive_group(required=True)
    _add_form(form, "openmetrics", "gauges in the OpenMetrics text format")
    _add_form(form, "json-lines", "one JSON object per row, with the columns of rows.csv")


def _add_internal(commands: Commands, heading: str) -> None:
    """Add the commands that only rules and jobs call."""
    command = commands.add(
        heading, "measure", measure, "Measure one cell of a plan, or the cells of one job"
    )
    command.add_argument("--plan", type=Path, required=True, help="results/<campaign>/plan.json")
    what = command.add_mutually_exclusive_group(required=True)
    what.add_argument("--cell", metavar="ID", help="as peakmark plan --cells lists it")
    what.add_argument(
        "--job", metavar="NAME", help="job whose cells are measured, except those with a record"
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
    _add_kernels(command)

    command = commands.add(
        heading, "rows", rows, "Compute results/<campaign>/rows from the records"
    )
    _add_campaign(command)

    commands.add(heading, "serve", serve, "Run the server of a two-node cell (started by measure)")


FOLDER_HELP = "folder of the campaign, e.g. results/quick"
BUNDLE_HELP = f"{FOLDER_HELP}, or a bundle"


def _add_campaign(command: argparse.ArgumentParser, help: str = FOLDER_HELP) -> None:
    command.add_argument("campaign", type=Path, help=help)


def _add_configuration(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "campaign",
        nargs="*",
        metavar="PRESET|FILE",
        help="presets such as quick, or configuration files; later ones override earlier ones; default: config/config.yaml",
    )
    command.add_argument(
        "--site", metavar="NAME|FILE", help="site file, with facts that no tool can read"
    )


def _add_output(
    command: argparse.ArgumentParser,
    help: str = "file to write",
    metavar: str = "FILE",
    **settings: Any,
) -> None:
    command.add_argument("-o", "--output", type=Path, metavar=metavar, help=help, **settings)


def _add_kernels(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--kernels", type=_kernels, default="", help="folder of the compiled kernels"
    )


def _add_form(group: Any, name: str, help: str) -> None:
    """Add an option that selects the function of the same name in ``views.export``."""
    group.add_argument(
        f"--{name}", dest="form", action="store_const", const=name.replace("-", "_"), help=help
    )


def _kernels(text: str) -> Path:
    """Return the folder that an option names, or by default the folder of the compiled kernels."""
    return Path(text) if text else build.folder()


def _number(least: float, most: float, text: str) -> float:
    if not least <= float(text) <= most:
        raise argparse.ArgumentTypeError(
            f"{text} is not allowed: give a number from {least:g} to {most:g}"
        )
    return float(text)


# -- the commands

PRESETS = "config/presets"


def run(options: argparse.Namespace) -> int:
    from peakmark.config import campaign

    profile = "slurm" if options.slurm else "local"
    snakefile = str(resources.of_checkout("Snakefile"))
    argv = [sys.executable, "-m", "peakmark.workflow.launch", "--snakefile", snakefile]
    if options.campaign:
        files = [campaign.shipped(name, PRESETS) for name in options.campaign]
        argv += ["--configfile", *files]
    # Targets come after --profile, which takes one word: after --configfile they would count as files.
    argv += ["--profile", str(resources.of_checkout(profile)), *options.snakemake]
    if options.site:
        # Snakemake uses only the last --config, so it must hold all settings.
        settings = campaign.named(options.snakemake, campaign.WORDS)
        argv += ["--config", *settings, *campaign.site(options.site)]
    sys.stdout.flush()
    os.execv(argv[0], argv)  # noqa: S606 - no shell is wanted


def init(_: argparse.Namespace) -> None:
    from peakmark.config import schemas
    from peakmark.config.types import Campaign, Site

    config, site = Path("config/config.yaml"), Path("config/sites/mine.yaml")
    shipped = (resources.ROOT / config).read_text(encoding="utf-8")
    named = f"site: {site} # facts that no tool can read on a node\n\n"
    is_new = _write_new(config, f"{schemas.reference(config, 'config')}{named}{shipped}")
    example = (resources.ROOT / "config/sites/example.yaml").read_text(encoding="utf-8")
    example = example.replace("name: example", f"name: {site.stem}", 1)
    _write_new(site, f"{schemas.reference(site, 'site')}{example}")
    for name, kind in (("config", Campaign), ("site", Site)):
        path = schemas.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_text(path, schemas.as_yaml(name, kind))
        output.say(f"{path}: written, for editors that check the files")
    option = "" if is_new else f" --site {site}"
    output.say(f"edit them, then: peakmark run{option}")


def _write_new(path: Path, text: str) -> bool:
    """Write a file for the user to edit, unless it exists. Return whether it was written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        output.say(f"{path}: exists, not changed")
        return False
    output.say(f"{path}: written")
    return True


def plan(options: argparse.Namespace) -> None:
    from peakmark.config import campaign
    from peakmark.plan import build, cluster, plan_text
    from peakmark.plan.plan import RESULTS
    from peakmark.storage import planfile

    files = [Path(campaign.shipped(name, PRESETS)) for name in options.campaign]
    settings = [*options.config, *campaign.site(options.site)]
    values = campaign.read([*files, *options.configfile], settings)
    completed = build.complete(values, on_cluster=options.slurm)
    where = None
    if options.slurm:
        where = cluster.find(completed, options.partition, RESULTS / completed["campaign"])
    planned = build.make_completed(completed, where)
    if options.write is not None:
        planfile.write(options.write, planned.to_json())
        output.say(f"{options.write}: {plural(len(planned.cells), 'cell')}")
    else:
        from peakmark.workflow import startup

        notes = startup.check(planned, planned.cells)
        output.say("\n".join([plan_text.describe(planned, every_cell=options.cells), *notes]))


def measure(options: argparse.Namespace) -> None:
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
    cleanup.end_cleanly()
    if options.cell is None:
        job.run(part, options.job, options.kernels)
        return
    if first.cell.is_together and not options.wait:
        raise PeakmarkError(f"{first.cell.id} is measured by its job, together with other nodes")
    if options.wait:
        from peakmark.run import together  # late: few cells need it

        first = together.waiting(first, options.shared)
    record = measure(first)
    if record["status"] != "ok":
        output.tell(f"{options.cell} is {record['status']}: {record['reason']}")


def _move_to(node: str) -> None:
    """Continue this command on the node ``node`` of the job, unless it already runs there.

    The process is replaced, so that the function does not return after a move.
    """
    from peakmark.run import pair

    if node not in ("any", gethostname(), gethostname().partition(".")[0]):
        argv = [*pair.step(node, len(os.sched_getaffinity(0))), *resources.command(*sys.argv[1:])]
        os.execvpe(argv[0], argv, pair.environment())  # noqa: S606 - no shell is wanted


def serve(_: argparse.Namespace) -> int:
    from peakmark.run import pair

    cleanup.end_cleanly()
    return pair.serve()


def machine(options: argparse.Namespace) -> None:
    from peakmark.machine.facts import collect
    from peakmark.tools import present

    facts = collect(
        options.scratch, tools=present(options.kernels), cpubench=options.kernels / "cpubench"
    )
    output.say(json.dumps(facts, indent=1, sort_keys=True))


def doctor(options: argparse.Namespace) -> int:
    from peakmark.config import site
    from peakmark.workflow import doctor

    if options.site and not options.slurm:
        raise ConfigError("--site needs --slurm: it sets the options of Slurm jobs")
    if options.slurm:
        stated = site.load(str(options.site)) if options.site else {}
        text, healthy = doctor.examine_cluster(stated.get("slurm") or {})
        text += f"\n\n{_cluster_verdict(healthy, options.site)}"
    else:
        text, healthy = doctor.examine(options.scratch, build.folder())
    output.say(text)
    return ExitCode.GOOD if healthy else ExitCode.ERROR


def _cluster_verdict(is_ready: bool, site: Path | None) -> str:
    """Return a sentence that says whether the cluster can measure a campaign, and the next command."""
    if not is_ready:
        return "not ready: Slurm would reject a job on one node, see above"
    named = f" --site {shlex.quote(str(site))}" if site else ""
    return f"ready: {resources.program('peakmark')} run quick --slurm{named}"


def tools(_: argparse.Namespace) -> None:
    from peakmark.workflow import doctor

    output.say(doctor.tools())


def status(options: argparse.Namespace) -> None:
    from peakmark.storage.results import Results
    from peakmark.workflow import status

    output.say(status.describe(Results.read(options.campaign), only_failed=options.failed))


def tables(options: argparse.Namespace) -> None:
    from peakmark.workflow import csv_files

    csv_files.write_tables(options.campaign)


def rows(options: argparse.Namespace) -> None:
    from peakmark.workflow import csv_files

    csv_files.write_rows(options.campaign)


def report(options: argparse.Namespace) -> None:
    from peakmark.bundle import pack
    from peakmark.views.report import rendering
    from peakmark.workflow import documents, status

    with pack.opened(options.campaign) as folder:
        content = documents.collect(folder)
        if options.output is not None:
            is_html = options.output.suffix == ".html"
            write = rendering.write_html if is_html else rendering.write_pdf
            output.say(str(write(content, options.output)))
        elif options.campaign.is_file():
            for suffix, write in ((".pdf", rendering.write_pdf), (".html", rendering.write_html)):
                output.say(str(write(content, options.campaign.with_suffix(suffix))))
        else:
            rendering.write_all(content)
            status.print_summary(options.campaign)


def bundle(options: argparse.Namespace) -> None:
    from peakmark.bundle import pack

    output.say(str(pack.write(options.campaign, options.output)))


def export(options: argparse.Namespace) -> None:
    from peakmark.bundle import pack
    from peakmark.rows import build
    from peakmark.views import export

    write: Callable[[CampaignFrames], str] = getattr(export, options.form)
    with pack.opened(options.campaign) as folder:
        text = write(build.load(folder))
    if options.output is None:
        output.say(text.rstrip("\n"))
    else:
        options.output.write_text(text, encoding="utf-8")
        output.say(str(options.output))


def compare(options: argparse.Namespace) -> int:
    from peakmark.views import compare

    rules = compare.Rules(options.confidence, options.tolerance, options.changed)
    first = _dataset(options.a)
    comparisons = [compare.judge(first, _dataset(other), rules) for other in options.others]
    output.say("\n\n".join(compare.report(found) for found in comparisons))
    counts = Counter[str]()
    for found in comparisons:
        counts += found.counts
    if not options.fail_on:
        return ExitCode.GOOD
    if counts["worse"]:
        return ExitCode.DIFFERENT
    if counts.total() == counts["cannot tell"] + counts["not comparable"]:
        output.tell("cannot tell: no row of both campaigns could be judged")
        return ExitCode.CANNOT_TELL
    return ExitCode.GOOD


def _dataset(path: Path) -> Dataset:
    """Read a campaign or a bundle as one side of a comparison."""
    from peakmark.bundle import pack
    from peakmark.rows import build
    from peakmark.views.compare import dataset_of

    with pack.opened(path) as folder:
        return dataset_of(folder.name, build.load(folder))


def fleet(options: argparse.Namespace) -> int:
    from peakmark.bundle import pack
    from peakmark.rows import build
    from peakmark.views import fleet_report

    with pack.opened(options.campaign) as folder:
        frames = build.load(folder, keep=False)
        lines = fleet_report.describe(frames)
        slow = fleet_report.slow_nodes(frames)
        if slow:
            lines += ["", "To drain them, if you agree:", _drain(slow, frames.campaign["name"])]
    output.say("\n".join(lines))
    if not options.fail_on:
        return ExitCode.GOOD
    if slow:
        return ExitCode.DIFFERENT
    return ExitCode.GOOD if fleet_report.is_judged(frames) else ExitCode.CANNOT_TELL


def _drain(nodes: list[str], campaign: str) -> str:
    """Return the command that drains nodes."""
    names, reason = ",".join(nodes), f"reason=peakmark: slow in {campaign}"
    return shlex.join(["scontrol", "update", f"nodename={names}", "state=drain", reason])
