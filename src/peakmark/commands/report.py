"""``peakmark status``, ``tables``, ``report``, ``html``, ``bundle``, ``export`` and ``summary``: what
became of a campaign, and what is made of it; ``compare``: two of them; ``history``: many.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from peakmark import output
from peakmark.commands import seconds
from peakmark.errors import ConfigError
from peakmark.messages import message
from peakmark.run import build

EXPORTS = {
    "reframe": "reference of a ReFrame test, with thresholds",
    "nhc": "checks for LBNL Node Health Check",
    "openmetrics": "gauges in the OpenMetrics text format",
    "json-lines": "one object a row, as config/schema/export.schema.json describes it",
}
ANONYMOUS = {"report": "report-anonymous.pdf", "html": "report-anonymous.html"}


def add(commands: Any) -> None:
    """Declare the commands."""
    for name, run, text in (
        ("tables", _tables, "records -> tables and figures"),
        ("report", _report, "tables and figures -> report.pdf"),
        ("html", _html, "tables and figures -> report.html, one page that needs nothing else"),
        ("summary", _summary, "where the results are, and the five most telling numbers"),
    ):
        command = commands.add_parser(name, help=text)
        also = ", or a bundle" if name == "report" else ""
        command.add_argument(
            "campaign", type=Path, help=f"folder of the campaign, e.g. results/quick{also}"
        )
        command.set_defaults(run=run)
        if name in ("report", "html"):
            command.add_argument(
                "--partial",
                action="store_true",
                help="also when cells are missing, with the holes marked",
            )
            command.add_argument("-o", "--output", type=Path, metavar="FILE", help="write it there")
            command.add_argument(
                "--anonymise",
                action="store_true",
                help=f"{ANONYMOUS[name]} without names of hosts and users, and addresses",
            )
        if name == "report":
            command.add_argument("--html", action="store_true", help="the page report.html too")
            command.add_argument(
                "--artifact",
                action="store_true",
                help="artifact/appendix.tex too, as SC and ACM ask for, and the files of HPL",
            )

    bundle = commands.add_parser(
        "bundle",
        help="a campaign as one zip file, from which its report can be built elsewhere",
        description="Records, raw outputs, plan, configuration, machine facts, tables, report, checksums and an RO-Crate "
        "description. `peakmark report FILE.zip` builds the same PDF from it.",
    )
    bundle.add_argument("campaign", type=Path, help="folder of the campaign, e.g. results/quick")
    bundle.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE.zip",
        help="default: beside the campaign's folder",
    )
    bundle.add_argument("--partial", action="store_true", help="also when cells are missing")
    bundle.add_argument(
        "--license",
        metavar="NAME",
        help="of the data: an SPDX identifier such as CC-BY-4.0, or an address",
    )
    bundle.add_argument(
        "--anonymise", action="store_true", help="without names of hosts and users, and addresses"
    )
    bundle.set_defaults(run=_bundle)

    export = commands.add_parser(
        "export", help="measured values for other programs: ReFrame, NHC, Prometheus, scripts"
    )
    export.add_argument("campaign", type=Path, help="folder of the campaign, e.g. results/quick")
    forms = export.add_mutually_exclusive_group(required=True)
    for form, text in EXPORTS.items():
        forms.add_argument(f"--{form}", dest="form", action="store_const", const=form, help=text)
    export.add_argument("-o", "--output", type=Path, metavar="FILE", help="write it there")
    export.set_defaults(run=_export)

    status = commands.add_parser("status", help="done, missing and failed cells")
    status.add_argument("campaign", type=Path, help="folder of the campaign, e.g. results/quick")
    status.add_argument("--failed", action="store_true", help="only what failed or is missing")
    status.add_argument(
        "--watch",
        type=seconds(1, 86400),
        nargs="?",
        const=10.0,
        metavar="SECONDS",
        help="show it again every so many seconds (default 10) until all cells are done",
    )
    status.set_defaults(run=_status)

    compare = commands.add_parser(
        "compare",
        help="two campaigns: what became better or worse",
        description="The speed of B against A in every row that both have, with an interval and a verdict.",
    )
    for side in ("A", "B"):
        compare.add_argument(side.lower(), metavar=side, help="folder of a campaign")
    compare.add_argument(
        "--interleave",
        action="store_true",
        help="A and B are configuration files: measure both on this machine in turn, then compare them round by round; "
        "of B one without a grid says what it does otherwise than A",
    )
    compare.add_argument(
        "--kernels", type=Path, default=build.folder(), help="folder of the compiled kernels"
    )
    compare.add_argument(
        "--confidence", type=_share, default=0.95, help="level of the intervals, default 0.95"
    )
    compare.add_argument(
        "--tolerance",
        type=_share,
        help="share by which a row may differ without a verdict, default 0.03; 0.01 for what was measured in turn",
    )
    compare.add_argument(
        "--changed",
        metavar="FACT",
        action="append",
        default=[],
        help="a fact that differs on purpose, such as kernel: it stops no verdict (may be repeated)",
    )
    compare.add_argument(
        "--fail-on",
        choices=["worse", "drift"],
        help="exit with 1 (for CI) when a row is worse; drift: also when one is worse or drift, "
        "which --interleave tells apart",
    )
    compare.set_defaults(run=_compare)

    fleet = commands.add_parser(
        "fleet",
        help="the slow nodes of a campaign, and the command that drains them",
        description="The commands are printed, never run.",
    )
    fleet.add_argument("campaign", type=Path, help="folder of the campaign, e.g. results/nodes")
    fleet.add_argument(
        "--fail-on", choices=["slow"], help="exit with 1 (for cron) when a node is slow"
    )
    fleet.set_defaults(run=_fleet)

    history = commands.add_parser(
        "history",
        help="many campaigns in the order of their time: which rows changed when, and what else did",
        description="The headline rows over campaigns, with change points and the recorded facts that changed there. "
        "Only the stored analysis of each campaign is read.",
    )
    history.add_argument(
        "campaigns",
        type=Path,
        nargs="+",
        metavar="CAMPAIGN",
        help="folders of campaigns and bundles, e.g. results/*",
    )
    history.add_argument("--node", default="", help="this node alone, not the median of all")
    history.add_argument(
        "-o",
        "--output",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="write it there too: a figure (.svg, .png), else a table (CSV); may be repeated",
    )
    history.set_defaults(run=_history)


def _status(options: argparse.Namespace) -> int:
    from peakmark.storage.results import Results
    from peakmark.workflow import status

    while True:
        standing = status.describe(Results.read(options.campaign), only_failed=options.failed)
        if options.watch is None:
            output.say(standing.text)
            return 0
        output.clear()
        output.say(standing.text)
        if standing.complete:
            return 0
        time.sleep(options.watch)


def _tables(options: argparse.Namespace) -> int:
    from peakmark.report import stored

    stored.build(options.campaign)
    return 0


def _report(options: argparse.Namespace) -> int:
    from peakmark.bundle import bundle

    if bundle.is_bundle(options.campaign):
        path, comparison = bundle.rebuild(options.campaign, options.output, options.partial)
        _print_path(path, f": {comparison}")
        return 0
    code = _documents(options, pdf=True, page=options.html)
    if options.artifact:
        from peakmark.bundle import artifact

        _print_path(artifact.write(options.campaign))
    return code


def _html(options: argparse.Namespace) -> int:
    return _documents(options, pdf=False, page=True)


def _documents(options: argparse.Namespace, pdf: bool, page: bool) -> int:
    from peakmark.report import html_report, pdf_report
    from peakmark.report.stored import ReportContent

    if options.anonymise:
        return _anonymous_report(options, "report" if pdf else "html")
    command = "report" if pdf else "html"
    with _workplace(options) as folder:
        report = ReportContent.read(folder, options.partial, command, options.campaign)
        if pdf:
            _print_path(pdf_report.build(report, options.output))
        if page:
            _print_path(html_report.build(report, None if pdf else options.output))
    return 0


def _summary(options: argparse.Namespace) -> int:
    from peakmark.workflow import status

    output.say(status.summary(options.campaign))
    return 0


def _bundle(options: argparse.Namespace) -> int:
    from peakmark.bundle import anonymise, bundle
    from peakmark.storage.results import Results

    path = bundle.write(
        options.campaign,
        options.output,
        partial=options.partial,
        licence=options.license,
        replace=anonymise.replacer(Results.read(options.campaign)) if options.anonymise else str,
    )
    _print_path(path)
    return 0


def _export(options: argparse.Namespace) -> int:
    from peakmark import documents
    from peakmark.analysis.analysis import Analysis
    from peakmark.bundle import export

    text = export.FORMS[options.form](Analysis.of(options.campaign))
    if options.output is None:
        output.say(text.rstrip("\n"))
    else:
        documents.write(options.output, text.encode(), options.campaign)
        _print_path(options.output)
    return 0


def _anonymous_report(options: argparse.Namespace, form: str) -> int:
    """The report, or the page of the ``form`` html, of a copy in which every name is replaced."""
    import tempfile

    from peakmark import documents
    from peakmark.bundle import anonymise, bundle
    from peakmark.storage.results import Results

    results = Results.read(options.campaign)
    target = options.output or options.campaign / ANONYMOUS[form]
    with tempfile.TemporaryDirectory(prefix="peakmark-report-") as name:
        folder = Path(name) / results.name
        bundle.copy(results, folder, anonymise.replacer(results))
        pdf = bundle.build_all(folder, options.partial)
        document = pdf if form == "report" else pdf.with_suffix(".html")
        documents.write(target, document.read_bytes(), options.campaign)
    _print_path(target)
    return 0


def _workplace(options: argparse.Namespace) -> AbstractContextManager[Path]:
    """Where tables and figures are built: below the campaign, unless it is read-only and its report
    goes elsewhere.
    """
    from peakmark import documents
    from peakmark.report import stored

    if options.output is None:
        return nullcontext(options.campaign)
    return documents.workplace(options.campaign, stored.SOURCES)


def _print_path(path: Path, more: str = "") -> None:
    """Say where a document is; beside one that went through a pipe or standard output the line
    would be part of it.
    """
    from peakmark import documents

    if documents.is_stream(path):
        print(output.plain(f"{path}{more}"), file=sys.stderr)
    else:
        output.say(f"{path}{more}")


def _compare(options: argparse.Namespace) -> int:
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


def _fleet(options: argparse.Namespace) -> int:
    from peakmark import slurm
    from peakmark.report.stored import ReportContent

    data = ReportContent.read(options.campaign, partial=True).data
    found = data["fleet"]["slow"] if data["fleet"] else []
    slow = {each["node"] for each in found if not each["not_confirmed"]}
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


def _history(options: argparse.Namespace) -> int:
    from peakmark import documents
    from peakmark.analysis import history
    from peakmark.bundle import bundle
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
        documents.write(target, content, options.campaigns[0])
        _print_path(target)
    return 0


def _share(text: str) -> float:
    value = float(text)
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(
            f"{text} is not allowed: give a share from 0 to below 1, such as 0.95"
        )
    return value
