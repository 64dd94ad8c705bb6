"""What the report says, as one JSON value for the templates: words and texts, no markup. ``PARTS``
lists it in the order of the report.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from peakmark.analysis import Analysis, verdict
from peakmark.catalogue import SUBSYSTEMS
from peakmark.config import inputs
from peakmark.formatting import date, decimal_mark, listed, mapped, plural, typeset
from peakmark.report import appendix, chapters, nodes, sections


class ReportPart(NamedTuple):
    """Page one has several parts, and each chapter one or two.

    Attributes:
        key: under which the templates find it in the data.
        content: what makes it.
        heading: of its chapter; empty where it has none, or several.
        is_numeric: whether its numbers get the decimal mark. The others hold versions, commands
            and names, or set the mark themselves.
    """

    key: str
    content: Callable[[Analysis], Any]
    heading: str = ""
    is_numeric: bool = False


def build(analysis: Analysis) -> dict[str, Any]:
    """The whole report but for the chapters of the author: the key of each part -> its content, and
    the ``headings`` by key.
    """
    data: dict[str, Any] = {"headings": HEADINGS}
    for part in PARTS:
        content = part.content(analysis)
        is_marked = part.is_numeric and analysis.results.mark != "."
        change = partial(decimal_mark, mark=analysis.results.mark)
        data[part.key] = mapped(content, change) if is_marked else content
    return data


def _meta(analysis: Analysis) -> dict[str, Any]:
    results, config = analysis.results, analysis.results.report_config
    resources = [SUBSYSTEMS[subsystem].resource for subsystem in verdict.planned(analysis.rows)]
    lead = appendix.TEXT["lead"]["nodes" if len(results.facts) > 1 else "machine"]
    language = str(config.get("date_language") or "en")
    newest = results.newest
    planned = plural(len(results.cells), "planned cell")
    return {
        "title": str(config.get("title") or "Performance report"),
        "author": inputs.author_line(config),
        "authors": [author.name for author in inputs.authors(config)],
        "course": str(config.get("course") or ""),
        "date": date(newest, language) if newest.timestamp() else "nothing measured yet",
        "campaign": results.name,
        "lead": lead.format(machine=nodes.short(results), resources=listed(resources)),
        "partial": bool(results.missing),
        "newest": newest.isoformat(),
        "partial_text": appendix.TEXT["partial"].format(
            missing=len(results.missing), cells=planned
        ),
        "has_layout": analysis.layout is not None,
    }


def _verdicts(analysis: Analysis) -> list[dict[str, str]]:
    """For each resource a sentence of page one with the warning below it."""
    return [
        {
            "title": entry.title,
            "text": typeset(entry.text.full_sentence),
            "warning": typeset(entry.caution),
        }
        for entry in verdict.verdicts(analysis.rows)
    ]


def _caveats(analysis: Analysis) -> list[str]:
    """What a reader of page one must know."""
    caveats = verdict.build_caveats(analysis.rows, analysis.results.config)
    texts = [typeset(caveat.full_sentence) for caveat in caveats]
    if analysis.layout and analysis.is_fleet:
        texts.append(appendix.TEXT["layout_of_nodes"].format(name=analysis.layout.name))
    return texts


PARTS = (
    ReportPart("meta", _meta),
    ReportPart("verdicts", _verdicts, is_numeric=True),
    ReportPart("slow", nodes.slow_paragraphs, is_numeric=True),
    ReportPart("overview", sections.overview, is_numeric=True),
    ReportPart("caveats", _caveats, "Before you use these numbers", is_numeric=True),
    ReportPart("fleet", nodes.fleet_data, "Slow nodes", is_numeric=True),
    # A chapter for each resource, with its title as heading.
    ReportPart("sections", sections.build, is_numeric=True),
    ReportPart("method", appendix.method, "Method"),
    ReportPart("machine", nodes.machines, "Machine"),
    # Stands where the author writes, too.
    ReportPart("kernels", chapters.measured, "How each kernel measures"),
    ReportPart("problems", appendix.problems, "Failures"),
    ReportPart("artifact", appendix.artifact, "Reproduction", is_numeric=True),
    ReportPart("provenance", appendix.provenance),
    ReportPart("runs", appendix.runs, "Runs", is_numeric=True),
)
"""All that peakmark writes, in the order of the PDF. Headings of one form alone (the limits of the
PDF, the commands of the HTML report) stand in its template.
"""
HEADINGS = {part.key: part.heading for part in PARTS if part.heading}
