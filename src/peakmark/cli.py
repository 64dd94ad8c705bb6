"""The command line: the commands, a function for each, which imports what does the work when it is
called; and how each ends: one sentence for every mistake, and the exit code. Their arguments are in
``data/commands.toml``.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from socket import gethostname
from typing import Any

from peakmark import __version__, data, files, output, resources
from peakmark.errors import ConfigError, PeakmarkError, Terminated, sentence
from peakmark.messages import message
from peakmark.run import build, cleanup


def build_parser() -> argparse.ArgumentParser:
    """All commands with their options."""
    parser = argparse.ArgumentParser(
        prog="peakmark",
        description="How close a cluster node comes to its physical limits. To measure: peakmark run",
    )
    parser.add_argument("--version", action="version", version=f"peakmark {__version__}")
    group = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, entry in tomllib.loads(data.text("commands.toml")).items():
        arguments, one_of = entry.pop("arguments", {}), entry.pop("one_of", {})
        command = group.add_parser(name, **entry)
        command.set_defaults(run=globals()[name])
        _declare(command, arguments)
        if one_of:
            _declare(command.add_mutually_exclusive_group(required=True), one_of)
    return parser


def _declare(group: Any, arguments: Mapping[str, dict[str, Any]]) -> None:
    """Add arguments to the parser of a command, or to a group of it."""
    for names, settings in arguments.items():
        if "between" in settings:
            settings["type"] = partial(_number, settings.pop("between"))
        elif "type" in settings:
            settings["type"] = TYPES[settings["type"]]
        group.add_argument(*names.split(", "), **settings)


def _number(bounds: Sequence[float], text: str) -> float:
    least, most = bounds
    if not least <= float(text) <= most:
        raise argparse.ArgumentTypeError(
            f"{text} is not allowed: give a number from {least:g} to {most:g}"
        )
    return float(text)


TYPES: dict[str, Callable[[str], Any]] = {
    "path": Path,
    "integer": int,
    "kernels": lambda text: Path(text) if text else build.folder(),
}
"""Type of an argument in ``commands.toml`` -> what converts its text."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Returns the exit code: 0, 1 (failed), 2 (wrong use), and 128 and more when
    told to end.
    """
    output.open_streams()
    os.umask(os.umask(0o077) | 0o002)  # whatever the user's says, nothing is for everybody to write
    try:
        with cleanup.handled():
            try:
                return _execute(list(sys.argv[1:] if arguments is None else arguments))
            finally:
                output.flush()  # here, where what cannot be written is still one sentence
    except PeakmarkError as error:
        return _said(str(error), 2 if isinstance(error, ConfigError) else 1)
    except BrokenPipeError:
        output.drop()
        return 1
    except OSError as error:
        output.drop()
        return _said(sentence(error), 1)
    except Terminated:
        return _said("told to end", 128 + signal.SIGTERM)
    except KeyboardInterrupt:
        return _said("interrupted", 130)


def _execute(words: list[str]) -> int:
    end = words.index("--") if words[:1] == ["run"] and "--" in words else len(words)
    resources.keep_matplotlib()
    options = build_parser().parse_args(words[:end])
    options.snakemake = words[end + 1 :]
    return int(options.run(options) or 0)


def _said(text: str, code: int) -> int:
    with suppress(OSError):
        output.tell(text)
    return code


# -- the commands

PRESETS = "config/presets"
EDITABLE = {
    "config/config.yaml": "config/config.yaml",
    "config/sites/mine.yaml": "config/sites/example.yaml",
}
"""File that ``init`` writes -> the shipped one it is a copy of."""


def run(options: argparse.Namespace) -> int:
    from peakmark.config import campaign

    profile = resources.of_checkout("slurm" if options.slurm else "local")
    argv = resources.snakemake()
    if options.campaign:
        files = [campaign.shipped(name, PRESETS) for name in options.campaign]
        argv += ["--configfile", *files]
    # After the profile, which is one word: Snakemake would take a target for another configuration.
    argv += ["--profile", str(profile), *options.snakemake]
    if options.site:
        # Snakemake takes the last --config alone.
        settings = campaign.named(options.snakemake, campaign.WORDS)
        argv += ["--config", *settings, *campaign.site(options.site)]
    output.flush()
    os.execv(argv[0], argv)  # noqa: S606 - no shell is wanted


def init(_: argparse.Namespace) -> None:
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


def plan(options: argparse.Namespace) -> None:
    from peakmark import plan
    from peakmark.config import campaign
    from peakmark.formatting import plural
    from peakmark.plan import cluster, plan_text
    from peakmark.storage import planfile

    files = [Path(campaign.shipped(name, PRESETS)) for name in options.campaign]
    settings = [*options.config, *campaign.site(options.site)]
    values = campaign.read([*files, *options.configfile], settings)
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


def decide(options: argparse.Namespace) -> None:
    from peakmark.analysis import Analysis, suspects
    from peakmark.storage import planfile
    from peakmark.storage.results import Results

    campaign = Results.read(options.plan.parent)
    analysis = Analysis(campaign)
    chosen = suspects.choose(campaign, analysis.rows, analysis.link_maps)
    planfile.write_suspects(campaign.directory, chosen)


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
    record = measure(first)
    if record["status"] != "ok":
        output.tell(f"{options.cell} is {record['status']}: {record['reason']}")


def _move_to(node: str) -> None:
    """Become the same command on another node of this job, if this is not the right one."""
    from peakmark.run import pair

    if node not in ("any", gethostname(), gethostname().partition(".")[0]):
        argv = [*pair.step(node, len(os.sched_getaffinity(0))), *resources.command(*sys.argv[1:])]
        os.execvpe(argv[0], argv, pair.environment())  # noqa: S606 - no shell is wanted


def serve(_: argparse.Namespace) -> int:
    from peakmark.run import pair

    cleanup.end_cleanly()
    return pair.serve()


def machine(options: argparse.Namespace) -> None:
    from peakmark import machine
    from peakmark.tools import present

    facts = machine.collect(
        options.scratch, tools=present(options.kernels), cpubench=options.kernels / "cpubench"
    )
    output.say(json.dumps(facts, indent=1, sort_keys=True))


def doctor(options: argparse.Namespace) -> int:
    from peakmark.config import site
    from peakmark.workflow import doctor

    if options.site and not options.slurm:
        raise ConfigError("--site says what Slurm is asked for: give --slurm too")
    if options.slurm:
        cleanup.end_cleanly(signal.SIGHUP)
        facts = site.load(str(options.site), None) if options.site else {}
        settings = dict(facts.get("slurm") or {})
        text, healthy = doctor.examine_cluster(settings, options.scratch, options.wait)
    else:
        text, healthy = doctor.examine(options.scratch, build.folder(), options.node)
    output.say(text)
    return 0 if healthy else 1


def tools(_: argparse.Namespace) -> None:
    from peakmark.workflow import doctor

    output.say(doctor.tools())


def status(options: argparse.Namespace) -> None:
    from peakmark.storage.results import Results
    from peakmark.workflow import status

    output.say(status.describe(Results.read(options.campaign), only_failed=options.failed))


def tables(options: argparse.Namespace) -> None:
    from peakmark.report import write_analysis

    write_analysis(options.campaign)


def report(options: argparse.Namespace) -> None:
    from peakmark.report import ReportContent, rendering

    if options.campaign.is_file():
        from peakmark import bundle

        path, comparison = bundle.rebuild(options.campaign, options.output, options.partial)
        output.say(f"{path}: {comparison}")
        return
    content = ReportContent.read(options.campaign, options.partial)
    output.say(str(rendering.write_pdf(content, options.output)))
    if options.html:
        output.say(str(rendering.write_html(content)))
    if options.artifact:
        from peakmark import bundle

        output.say(str(bundle.write_artifact(options.campaign)))


def html(options: argparse.Namespace) -> None:
    from peakmark.report import ReportContent, rendering

    content = ReportContent.read(options.campaign, options.partial, "html")
    output.say(str(rendering.write_html(content, options.output)))


def summary(options: argparse.Namespace) -> None:
    from peakmark.workflow import status

    output.say(status.summary(options.campaign))


def bundle(options: argparse.Namespace) -> None:
    from peakmark import bundle
    from peakmark.bundle import anonymise
    from peakmark.storage.results import Results

    path = bundle.write(
        options.campaign,
        options.output,
        partial=options.partial,
        licence=options.license,
        replace=anonymise.replacer(Results.read(options.campaign)) if options.anonymise else str,
    )
    output.say(str(path))


def export(options: argparse.Namespace) -> None:
    from peakmark.analysis import Analysis
    from peakmark.bundle import export

    write: Callable[[Analysis], str] = getattr(export, options.form)
    text = write(Analysis.of(options.campaign))
    if options.output is None:
        output.say(text.rstrip("\n"))
    else:
        files.write_document(options.output, text.encode(), options.campaign)
        output.say(str(options.output))


def compare(options: argparse.Namespace) -> int:
    from peakmark.analysis import compare, datasets

    first, second = options.a, options.b
    if options.interleave:
        from peakmark.workflow import interleave

        first, second = map(str, interleave.run(Path(first), Path(second), options.kernels))
    text, counts = compare.report(
        datasets.read(first),
        datasets.read(second),
        options.confidence,
        options.tolerance,
        options.changed,
    )
    output.say(text)
    worse, drift = counts["worse"], counts["worse or drift"]
    if options.fail_on == "worse" and drift:
        output.tell(message("drift-passes", rows=drift).text)
        drift = 0
    return 1 if options.fail_on and worse + drift else 0


def fleet(options: argparse.Namespace) -> int:
    from peakmark import slurm
    from peakmark.report import ReportContent

    data = ReportContent.read(options.campaign, partial=True).data
    slow = set(data["fleet"].get("slow", ()))
    campaign = data["meta"]["campaign"]
    lines = [message("fleet", campaign=campaign, slow=len(slow)).text]
    if data["meta"]["partial"]:
        lines.append(data["meta"]["partial_text"])
    lines += data["slow"]
    if slow:
        nodes, reason = slurm.hostlist(slow), f"reason=peakmark: slow in {campaign}"
        command = ["scontrol", "update", f"nodename={nodes}", "state=drain", reason]
        lines += ["", message("drain").text, shlex.join(command)]
    output.say("\n".join(lines))
    return 1 if options.fail_on and slow else 0


def history(options: argparse.Namespace) -> None:
    from peakmark import bundle
    from peakmark.analysis import history
    from peakmark.figures import curves, style

    campaigns = bundle.histories(options.campaigns)
    trends = history.follow(campaigns, options.node)
    if not trends:
        raise ConfigError(
            f"no campaign has a headline row {f'of {options.node} ' * bool(options.node)}to follow"
        )
    output.say(history.report(campaigns, trends))
    style.begin()
    for target in options.output:
        if target.suffix in style.METADATA:
            content = style.drawn(curves.plot_trends(trends), target.suffix)
        else:
            content = history.frame(trends).to_csv(index=False, lineterminator="\n").encode()
        files.write_document(target, content, options.campaigns[0])
        output.say(str(target))
